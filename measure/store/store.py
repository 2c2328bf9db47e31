"""Runs that last: every run as it happens, in one database for all Mapbenches of a machine.

A run is written part by part while it grows, by the process that measures it. Whoever opens the store and finds a run
whose process is gone closes it as interrupted, with what was measured.
"""

import contextlib
import functools
import math
import threading
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from msgspec.structs import asdict, replace

from measure.claims.tries import CLOSE
from measure.run import place
from measure.run.place import StoreError
from measure.run.run import Run, Status
from measure.run.why import Why
from measure.store import database, documents, entries, queue, room
from measure.store.database import Database, artifacts, jobs, log, runs
from measure.store.entries import Entry, Query
from measure.store.holders import Holders
from measure.store.queue import Order, Queue, Standing, Work
from measure.store.room import Room
from workloads import places

# Runs that stay in memory as well. One takes about twice what its file does.
_DECODED_RUNS, _DECODED_RUNS_HOSTED = 8, 3
_FAULT = "a fault in Mapbench ended the run; what was measured is kept"
_HOLDER_GONE = "the process that measured it ended unexpectedly; what was measured is kept"


class Snapshot(Standing, frozen=True):
    """A stored run, and how the work on it stands. ``version`` grows with each new result.

    ``state``: queued (``position`` pieces of work are before it, which take ``wait_s`` by forecast and no more than
    ``wait_most_s``), running, finished. ``owner``: the visitor that has started it, who alone may end, explain or
    delete it.
    """

    run: Run
    state: Literal["queued", "running", "finished"] = "finished"
    position: int = 0
    wait_s: float = 0.0
    wait_most_s: float = math.inf
    elapsed_s: float | None = None
    remaining_s: float | None = None
    version: int = 0
    imported: bool = False
    owner: str = ""


class Store:
    """The runs in a database; safe to use from any thread. All methods but `close` raise `StoreError`."""

    def __init__(self, home: Path | None = None, most_bytes: int | None = None) -> None:
        """``home``: a folder of its own in place of Mapbench's, with the database in it; ``most_bytes``: of all runs,
        the oldest of which go when there are more."""
        url = database.address() if home is None else sa.make_url(f"sqlite:///{home / 'runs.db'}")
        file = database.file_of(url)
        self._database = Database(url, self.recover)
        # Beside an SQLite file, so that all who share the file see the locks of its holders.
        self._holders = Holders((file.parent if file else place.home()) / "holders", all_are_here=file is not None)
        self.queue = Queue(self._database, self._holders)
        self.room = Room(self._database, most_bytes)
        self._saving = threading.RLock()  # which no reader waits for
        # The pieces of each run that grows, as they were last written.
        self._written: dict[str, Sequence[documents.Piece]] = {}
        # A page asks for the run that it shows at every interaction.
        self._decoded = functools.lru_cache(_DECODED_RUNS_HOSTED if places.hosted() else _DECODED_RUNS)(self._decode)

    # --- writing -----------------------------------------------------------------------------------------------------

    def ask(self, work: Work, run: Run | None = None) -> None:
        """Queue work, and write the run that is to be measured by it."""
        with self._database.writing() as connection:
            if run is not None:
                self._insert(connection, run, work.owner)
            queue.add(connection, work)

    def begin(self, run: Run, *, owner: str = "") -> None:
        """Write a run that this process measures at once."""
        self.ask(Work(run.id, "measure", run.id, owner=owner, holder=self._holders.hold()), run)

    def save(self, run: Run, *, ended: bool = False) -> bool:
        """Write what is new of a run that this process measures, in one transaction. False where somebody has deleted
        or closed the run meanwhile. ``ended``: this is its final form, and its work leaves the queue."""
        with self._saving:
            with self._database.writing() as connection:
                mine = (jobs.c.id == run.id, jobs.c.holder == self._holders.hold())
                if connection.execute(sa.select(jobs.c.id).where(*mine)).first() is None:
                    self._written.pop(run.id, None)
                    return False
                _write(connection, run, self._written.get(run.id, ()))
                if ended:
                    connection.execute(sa.delete(jobs).where(*mine))
            if ended:
                self._written.pop(run.id, None)
            else:
                self._written[run.id] = list(documents.pieces(run))
        if ended:
            self.room.make(run.id)
        return True

    def close_own(self) -> None:
        """Close all work that this process has begun, after a fault ended the doing of it."""
        with self._saving, self._database.writing() as connection:
            _close_work_of(connection, self._holders.hold(), _FAULT)
            self._written.clear()

    def end(self, work_id: str, order: Order = "cancel") -> bool:
        """Have whoever does this work end it. What waits and is cancelled goes out of the queue, a run as one that was
        not begun: True then."""
        with self._database.writing() as connection:
            for work in queue.read(connection, jobs.c.id == work_id):
                if work.holder is not None:
                    connection.execute(sa.update(jobs).where(jobs.c.id == work_id).values(order=order))
                elif order == "cancel":
                    connection.execute(sa.delete(jobs).where(jobs.c.id == work_id))
                    if work.kind == "measure":
                        run = documents.read(connection, work_id)
                        _write(connection, closed(run, "cancelled", "cancelled before it began"))
                    return True
        return False

    def add(self, run: Run, owner: str = "") -> bool:
        """Keep a run that comes from elsewhere; False where it is here already. ValueError where another has its id."""
        with self._database.writing() as connection:
            is_new = connection.execute(sa.select(runs.c.id).where(runs.c.id == run.id)).first() is None
            if is_new:
                self._insert(connection, run, owner, imported=True)
        if is_new:
            self.room.make(run.id)
        elif self.load(run.id) != run:
            raise ValueError(f"another run with the id {run.id} is here already: delete it before this one is imported")
        return is_new

    def delete(self, ids: Iterable[str], owner: str | None = None) -> list[str]:
        """Delete runs that have ended, of all owners or of one; the ids of those that are gone."""
        with self._database.writing() as connection:
            chosen = room.ended(connection, ids, owner)
            room.remove(connection, chosen)
        return chosen

    def explain(self, run_id: str, slug: str, why: Why, left: Mapping[str, bytes]) -> bool:
        """Keep why a strategy of a run is as it is, and the artifacts of that; False where the run is gone."""
        with self._saving, self._database.writing() as connection:
            if connection.execute(sa.select(runs.c.id).where(runs.c.id == run_id)).first() is None:
                return False
            explained = {
                number: documents.packed(replace(item, why=why))
                for number, item in enumerate(documents.read(connection, run_id).measurements, 1)
                if item.strategy == slug
            }
            documents.write_parts(connection, run_id, explained)
            connection.execute(sa.delete(artifacts).where(artifacts.c.run == run_id, artifacts.c.strategy == slug))
            rows = [
                {"run": run_id, "strategy": slug, "name": name, "document": zlib.compress(data, 6)}
                for name, data in left.items()
            ]
            if rows:
                connection.execute(sa.insert(artifacts), rows)
            entries.update(connection, run_id, {})
        return True

    # --- reading -----------------------------------------------------------------------------------------------------

    def load(self, run_id: str) -> Run | None:
        """The run, or None where there is none of that id. ValueError where what is stored is damaged."""
        stored = self.look(run_id)
        return stored.run if stored is not None else None

    def look(self, run_id: str, explained_by: str | None = None) -> Snapshot | None:
        """The run as `load` has it, with what the store knows of it. ``explained_by``: the work that explains it, of
        which is told how it stands."""
        if not place.is_id(run_id):
            return None
        work_id = explained_by or run_id
        row, works = self._row(run_id)
        holders = [work.holder for work in works if work.id == work_id and work.holder is not None]
        if holders and self.recover(holders):
            row, works = self._row(run_id)
        if row is None:
            return None
        run = self._decoded(run_id, row.version)
        for before, work in enumerate(works):
            if work.id == work_id:
                how, owner = _standing(work, works[:before]), work.owner
                return Snapshot(run, version=row.version, imported=row.imported, owner=owner, **how)
        return Snapshot(run, version=row.version, imported=row.imported, owner=row.owner)

    def artifacts(self, run_id: str, slug: str) -> list[str]:
        """Names of what the explanation of a strategy has left."""
        asked = sa.select(artifacts.c.name).where(artifacts.c.run == run_id, artifacts.c.strategy == slug)
        with self._database.reading() as connection:
            return sorted(connection.execute(asked).scalars())

    def artifact(self, run_id: str, slug: str, name: str) -> bytes | None:
        """An artifact of that name; None where it is not there."""
        chosen = (artifacts.c.run == run_id, artifacts.c.strategy == slug, artifacts.c.name == name)
        with self._database.reading() as connection:
            document = connection.execute(sa.select(artifacts.c.document).where(*chosen)).scalar()
        return zlib.decompress(document) if document is not None else None

    def count(self, query: Query | None = None) -> int:
        """The number of runs that a query finds, of all without one."""
        with self._database.reading() as connection:
            return int(connection.execute(entries.count(query or Query())).scalar_one())

    def entries(self, query: Query | None = None, first: int = 0, most: int | None = None) -> list[Entry]:
        """The runs that a query finds, the newest first, from number ``first`` on and at most so many."""
        self.recover()
        with self._database.reading() as connection:
            return [Entry(*row) for row in connection.execute(entries.select(query or Query(), first, most))]

    def values(self) -> dict[str, list[str]]:
        """The workloads and devices that occur, for those who filter by them."""
        with self._database.reading() as connection:
            return {
                column.name: list(connection.execute(sa.select(column).distinct().order_by(column)).scalars())
                for column in (runs.c.workload, runs.c.device)
            }

    def ids(self) -> list[str]:
        """Ids of all runs, the newest first."""
        return [entry.id for entry in self.entries()]

    def close(self) -> None:
        """Let go of the database and of the lock; the next use opens it again."""
        with self._saving:
            self._database.close()
            self._holders.release()
            self._written.clear()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _row(self, run_id: str) -> tuple[Any, list[Work]]:
        """A run's row beside its documents, and the work that is not done."""
        with self._database.reading() as connection:
            row = connection.execute(
                sa.select(runs.c.version, runs.c.imported, runs.c.owner).where(runs.c.id == run_id)
            ).first()
            return row, queue.read(connection)

    @staticmethod
    def _insert(connection: sa.Connection, run: Run, owner: str, *, imported: bool = False) -> None:
        more = {"version": database.now_ms(), "owner": owner, "imported": imported}
        connection.execute(sa.insert(runs).values(entries.row(run) | more))
        documents.write(connection, run)

    def _decode(self, run_id: str, version: int) -> Run:
        """The run as it is stored now, at this version or a later one."""
        with self._database.reading() as connection:
            return documents.read(connection, run_id)

    def recover(self, names: Collection[str] | None = None) -> bool:
        """Close what those of these holders, or of all that there are, had begun that are gone; True if there was one.
        Where another process writes, it stays as it is until somebody looks again."""
        if names is None:
            names = {work.holder for work in self.queue.all() if work.holder is not None}
        gone_ones = [holder for holder in names if self._holders.is_gone(holder)]
        try:
            for holder in gone_ones:
                with self._database.writing(database.READING_S) as connection:
                    _close_work_of(connection, holder)
        except StoreError as error:
            log.warning("runs of a process that is gone are not closed yet: %s", error)
            return False
        return bool(gone_ones)


def _write(connection: sa.Connection, run: Run, before: Sequence[documents.Piece] = ()) -> None:
    """Write a run over what is stored of it. ``before``: its pieces as they were last written."""
    entries.update(connection, run.id, entries.row(run))
    documents.write(connection, run, before)


def _standing(work: Work, before: Sequence[Work]) -> dict[str, Any]:
    """The fields of a snapshot that tell how work stands. ``before``: the work that comes first."""
    if work.holder is None:
        waits_s, most_s = sum(other.left_s for other in before), sum(other.most_s for other in before)
        return {"state": "queued", "position": len(before), "wait_s": waits_s, "wait_most_s": most_s}
    left_s = max(0.0, work.forecast_s - work.passed_s)
    return {"state": "running", "elapsed_s": work.passed_s, "remaining_s": left_s, **asdict(work.standing)}


def closed(run: Run, status: Status, reason: str, finished: str | None = None) -> Run:
    """A run as it ends where something outside of the measuring has ended it, with all that was measured."""
    finished = finished or place.utc_now()
    with contextlib.suppress(Exception):  # what is at fault may be at fault here too
        return CLOSE[run.kind](run, status, reason, finished)
    return replace(run, status=status, finished=finished, stop_reason=reason)


def _close_work_of(connection: sa.Connection, holder: str, reason: str = _HOLDER_GONE) -> None:
    """Take the work of a holder out of the queue. Its runs are interrupted, with what was measured; of one that is
    damaged only the status changes."""
    held = [work for work in queue.read(connection, jobs.c.holder == holder) if work.kind == "measure"]
    connection.execute(sa.delete(jobs).where(jobs.c.holder == holder, jobs.c.answer.is_(None)))
    for work in held:
        version = connection.execute(sa.select(runs.c.version).where(runs.c.id == work.id)).scalar_one()
        try:
            run = documents.read(connection, work.id)
        except ValueError as error:
            log.warning("run %s: %s", work.id, error)
            entries.update(connection, work.id, {"status": "interrupted"})
        else:
            _write(connection, closed(run, "interrupted", reason, place.utc(version)))
