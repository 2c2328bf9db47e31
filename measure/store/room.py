"""The room that runs take, and what goes when there is not enough: the run that nobody has looked at for the longest
time, but none that is pinned. Whoever follows a link to one that is gone is told so."""

import time
from collections.abc import Collection, Iterable, Sequence

import sqlalchemy as sa

from measure.store import database
from measure.store.database import artifacts, gone, jobs, marks, parts, runs

# How often it is noted that a run was looked at.
SEEN_EVERY_MS = 3_600_000
# Of the runs that are gone, so many are remembered.
MOST_GONE = 10_000
# The write-ahead log, and what is written before the next run has ended, need room as well.
_RESERVE_BYTES, _RESERVE_SHARE = 8 * 2**20, 1 / 3

TO_MAKE_ROOM, BY_A_PERSON = "room", "person"
_USED = sa.case((marks.c.seen > runs.c.version, marks.c.seen), else_=runs.c.version)
PINNED = sa.func.coalesce(marks.c.pinned, sa.false())
MARKED = runs.outerjoin(marks, marks.c.run == runs.c.id)
# True of a run that waits or is measured.
GOES_ON = sa.exists().where(jobs.c.run == runs.c.id, jobs.c.kind == "measure")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def sizes(connection: sa.Connection, ids: Collection[str] | None = None) -> dict[str, int]:
    """The bytes that runs take with what their explanations have left, of all runs or of these."""
    total: dict[str, int] = {}
    for table in (parts, artifacts):
        asked = sa.select(table.c.run, sa.func.sum(sa.func.length(table.c.document))).group_by(table.c.run)
        if ids is not None:
            asked = asked.where(table.c.run.in_(list(ids)))
        for run_id, size in connection.execute(asked):
            total[run_id] = total.get(run_id, 0) + int(size)
    return total


def used(connection: sa.Connection) -> int:
    """The bytes that all runs take on the disk."""
    known = database.used(connection)
    return sum(sizes(connection).values()) if known is None else known


def ended(connection: sa.Connection, ids: Iterable[str], owner: str | None) -> list[str]:
    """The ones of these runs that have ended, of all owners or of one."""
    chosen = sa.select(runs.c.id).where(runs.c.id.in_(list(ids)), sa.not_(GOES_ON))
    if owner is not None:
        chosen = chosen.where(runs.c.owner == owner)
    return list(connection.execute(chosen).scalars())


def remove(connection: sa.Connection, ids: Sequence[str], reason: str) -> None:
    """Take runs out of the database, and remember that they are gone."""
    for table in (artifacts, parts, marks, jobs):
        connection.execute(sa.delete(table).where(table.c.run.in_(ids)))
    connection.execute(sa.delete(runs).where(runs.c.id.in_(ids)))
    if ids:
        now = now_ms()
        connection.execute(sa.delete(gone).where(gone.c.id.in_(ids)))
        connection.execute(sa.insert(gone), [{"id": each, "removed": now, "reason": reason} for each in ids])
        last = sa.select(gone.c.removed).order_by(gone.c.removed.desc()).offset(MOST_GONE).limit(1)
        if (before := connection.execute(last).scalar()) is not None:
            connection.execute(sa.delete(gone).where(gone.c.removed <= before, gone.c.id.not_in(ids)))


def too_much(connection: sa.Connection, most_bytes: int) -> bool:
    return used(connection) > most_bytes - min(_RESERVE_BYTES, most_bytes * _RESERVE_SHARE)


def make(connection: sa.Connection, most_bytes: int, spared: str) -> list[str]:
    """Remove runs until the others take no more than these bytes; their ids. ``spared``: a run that stays."""
    chosen = sa.select(runs.c.id).select_from(MARKED).where(sa.not_(GOES_ON), sa.not_(PINNED))
    oldest = list(connection.execute(chosen.where(runs.c.id != spared).order_by(_USED, runs.c.id)).scalars())
    removed = []
    while oldest and too_much(connection, most_bytes):
        removed.append(oldest.pop(0))
        remove(connection, removed[-1:], TO_MAKE_ROOM)
    return removed


def note_seen(connection: sa.Connection, run_id: str) -> None:
    """Note that a run was looked at now."""
    _mark(connection, run_id, seen=now_ms())


def pin(connection: sa.Connection, run_id: str, pinned: bool) -> None:
    _mark(connection, run_id, pinned=pinned)


def _mark(connection: sa.Connection, run_id: str, **values: object) -> None:
    if not connection.execute(sa.update(marks).where(marks.c.run == run_id).values(values)).rowcount:
        connection.execute(sa.insert(marks).values({"run": run_id, "pinned": False, "seen": 0} | values))
