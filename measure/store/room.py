"""The room that runs take, and what goes when there is not enough: the oldest run that is not pinned."""

import contextlib
from collections.abc import Collection, Iterable, Sequence

import sqlalchemy as sa

from measure.run.place import StoreError
from measure.store import database
from measure.store.database import GOES_ON, MARKED, PINNED, Database, artifacts, jobs, log, marks, parts, runs

# The write-ahead log, and what is written before the next run has ended, need room as well.
_RESERVE_BYTES, _RESERVE_SHARE = 8 * 2**20, 1 / 3


class Room:
    """Pins, and the bytes of runs. Methods raise `StoreError` but where they say otherwise."""

    def __init__(self, database_: Database, most_bytes: int | None) -> None:
        """``most_bytes``: of all runs; None: as many as there are."""
        self._database, self._most_bytes = database_, most_bytes

    def pin(self, ids: Iterable[str], pinned: bool, owner: str | None = None) -> list[str]:
        """Have runs that have ended stay when room is made, or not any more; the ids of those that are here. ``owner``:
        only those of one. Raises ValueError where an owner's pins would leave too little room for others."""
        with self._database.writing() as connection:
            chosen = ended(connection, ids, owner)
            connection.execute(sa.delete(marks).where(marks.c.run.in_(chosen)))
            if pinned and chosen:
                rows = [{"run": run_id, "pinned": True, "seen": 0} for run_id in chosen]
                connection.execute(sa.insert(marks), rows)
            if pinned and owner is not None and self._most_bytes is not None:
                pins = connection.execute(sa.select(marks.c.run).where(marks.c.pinned)).scalars()
                if sum(_sizes(connection, list(pins)).values()) > self._most_bytes / 2:
                    raise ValueError("pinned runs would take more than half of this server's room")
        return chosen

    def sizes(self) -> dict[str, int]:
        """The bytes of each run."""
        with self._database.reading() as connection:
            return _sizes(connection)

    def make(self, spared: str) -> None:
        """Remove what is too much, but for this run. Raises nothing: it is tried again when the next run has ended."""
        if self._most_bytes is None:
            return
        with contextlib.suppress(StoreError):
            with self._database.reading() as connection:
                if not _too_much(connection, self._most_bytes):
                    return
            removed = 0
            with self._database.writing() as connection:
                chosen = sa.select(runs.c.id).select_from(MARKED).where(sa.not_(GOES_ON), sa.not_(PINNED))
                oldest = chosen.where(runs.c.id != spared).order_by(runs.c.version, runs.c.id)
                for run_id in connection.execute(oldest).scalars().all():
                    if not _too_much(connection, self._most_bytes):
                        break
                    remove(connection, [run_id])
                    removed += 1
            log.info("%d runs were removed to make room", removed)


def ended(connection: sa.Connection, ids: Iterable[str], owner: str | None) -> list[str]:
    """The ones of these runs that have ended, of all owners or of one."""
    chosen = sa.select(runs.c.id).where(runs.c.id.in_(list(ids)), sa.not_(GOES_ON))
    if owner is not None:
        chosen = chosen.where(runs.c.owner == owner)
    return list(connection.execute(chosen).scalars())


def remove(connection: sa.Connection, ids: Sequence[str]) -> None:
    """Take runs out of the database."""
    for table in (artifacts, parts, marks, jobs):
        connection.execute(sa.delete(table).where(table.c.run.in_(ids)))
    connection.execute(sa.delete(runs).where(runs.c.id.in_(ids)))


def _sizes(connection: sa.Connection, ids: Collection[str] | None = None) -> dict[str, int]:
    """The bytes that runs take with what their explanations have left, of all runs or of these."""
    total: dict[str, int] = {}
    for table in (parts, artifacts):
        asked = sa.select(table.c.run, sa.func.sum(sa.func.length(table.c.document))).group_by(table.c.run)
        if ids is not None:
            asked = asked.where(table.c.run.in_(list(ids)))
        for run_id, size in connection.execute(asked):
            total[run_id] = total.get(run_id, 0) + int(size)
    return total


def _too_much(connection: sa.Connection, most_bytes: int) -> bool:
    used = database.used(connection)
    taken = sum(_sizes(connection).values()) if used is None else used
    return taken > most_bytes - min(_RESERVE_BYTES, most_bytes * _RESERVE_SHARE)
