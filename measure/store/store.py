"""Runs that last: every run as it happens, in one database for all Mapbenches of a machine.

A run is written part by part while it grows, by the process that measures it. Whoever opens the store and finds a run
whose process is gone closes it as interrupted, with what was measured.
"""

import contextlib
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from measure.claims.ending import CLOSE
from measure.model import place
from measure.model.cache import Cache
from measure.model.job import Job, Standing
from measure.model.place import StoreError
from measure.model.run import Run
from measure.model.why import Why
from measure.store import database, documents, entries, queue, room, url
from measure.store.access import Access, log
from measure.store.database import artifacts, gone, jobs, marks, runs
from measure.store.entries import Entry, Query
from measure.store.holders import Holders
from measure.store.keeping import Keeping
from measure.store.queue import Queue, Work
from workloads import places

# Runs that are kept in memory as well. One takes about twice what its file does: the largest that is let in fits.
_DECODED_BYTES = 384 * 2**20
_DECODED_BYTES_HOSTED = 48 * 2**20
_FAULT = "a fault in Mapbench ended the run; what was measured is kept"
_HOLDER_GONE = "the process that measured it ended unexpectedly; what was measured is kept"


@dataclass(frozen=True)
class Kept:
    """A stored run. ``version`` grows with each save; ``work``: the row of the queue by which it is or will be
    measured, None of one that has ended."""

    run: Run
    version: int
    work: Work | None
    imported: bool
    owner: str = ""


class Store:
    """The runs in a database; safe to use from any thread. All methods but `close` raise `StoreError`."""

    def __init__(self, home: Path | None = None, most_bytes: int | None = None) -> None:
        """``home``: a folder of its own in place of Mapbench's, with the database in it; ``most_bytes``: of all runs,
        the oldest of which go when there are more."""
        address = url.parsed(url.text() if home is None else f"sqlite:///{home / 'runs.db'}")
        file = database.file_of(address)
        self._access = Access(address, self.recover)
        # Beside an SQLite file, so that all who share the file see the locks of its holders.
        self._holders = Holders((file.parent if file else place.home()) / "holders", all_are_here=file is not None)
        self.queue = Queue(self._access, self._holders)
        self.keeping = Keeping(self._access, most_bytes)
        self._saving = threading.RLock()  # which no reader waits for
        # The pieces of each run that grows, as they were last written.
        self._written: dict[str, Sequence[documents.Piece]] = {}
        # A page asks for the run that it shows at every interaction.
        self._decoded = Cache(_DECODED_BYTES_HOSTED if places.hosted() else _DECODED_BYTES)

    # --- writing -----------------------------------------------------------------------------------------------------

    def ask(self, run: Run, work: Work) -> None:
        """Write a run that is to be measured, and queue its work."""
        with self._access.writing() as connection:
            self._insert(connection, run, work.owner)
            queue.add(connection, work)

    def begin(self, run: Run, *, owner: str = "") -> None:
        """Write a run that this process measures at once."""
        work = Work(
            run.id, "measure", run.id, Job(), owner, "", "", 0.0, None, self._holders.hold(), None, Standing()
        )  # fmt: skip
        self.ask(run, work)

    def save(self, run: Run, *, ended: bool = False) -> bool:
        """Write what is new of a run that this process measures, whole or not at all; False where it is no longer this
        process's, since somebody has deleted or closed it. ``ended``: it is not measured any more."""
        with self._saving:
            # While it is measured the next result comes soon: nobody waits for long, and it is tried again with that.
            patience_s = database.WRITING_S if ended else database.READING_S
            with self._access.writing(patience_s) as connection:
                if not queue.is_held(connection, run.id, self._holders.hold()):
                    self._written.pop(run.id, None)
                    return False
                entries.update(connection, run.id, entries.row(run))
                documents.write(connection, run, self._written.get(run.id, ()))
                if ended:
                    queue.remove(connection, run.id)
            if ended:
                self._written.pop(run.id, None)
            else:
                self._written[run.id] = list(documents.pieces(run))
        if ended:
            self.keeping.make_room(run.id)
        return True

    def close_own(self) -> None:
        """Close what this process has begun and no longer does, after a fault."""
        with self._saving, self._access.writing() as connection:
            _close_work_of(connection, self._holders.hold(), _FAULT)
            self._written.clear()

    def withdraw(self, run: Run) -> bool:
        """Write a run as it ends that waits, and take it out of the queue; False where it does not wait any more."""
        waits = sa.select(jobs.c.id).where(jobs.c.id == run.id, jobs.c.holder.is_(None))
        with self._access.writing() as connection:
            if connection.execute(waits).first() is None:
                return False
            entries.update(connection, run.id, entries.row(run))
            documents.write(connection, run)
            queue.remove(connection, run.id)
        return True

    def add(self, run: Run, owner: str = "") -> bool:
        """Keep a run that comes from elsewhere; False where it is here already. ValueError where another has its id."""
        with self._access.writing() as connection:
            is_new = connection.execute(sa.select(runs.c.id).where(runs.c.id == run.id)).first() is None
            if is_new:
                self._insert(connection, run, owner, imported=True)
                connection.execute(sa.delete(gone).where(gone.c.id == run.id))
        if is_new:
            self.keeping.make_room(run.id)
        elif self.load(run.id) != run:
            raise ValueError(f"another run with the id {run.id} is here already: delete it before this one is imported")
        return is_new

    def delete(self, ids: Iterable[str], owner: str | None = None) -> list[str]:
        """Delete runs that have ended, of all owners or of one; the ids of those that are gone."""
        with self._access.writing() as connection:
            chosen = room.ended(connection, ids, owner)
            room.remove(connection, chosen, room.BY_A_PERSON)
        if chosen:
            with contextlib.suppress(StoreError):  # the room is used again where it is not given back
                self._access.give_back()
        return chosen

    def explain(self, run_id: str, slug: str, why: Why, left: Mapping[str, bytes]) -> bool:
        """Keep why a strategy of a run is as it is, and the artifacts of that; False where the run is gone."""
        with self._saving, self._access.writing() as connection:
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
        kept = self.look(run_id)
        return kept.run if kept is not None else None

    def look(self, run_id: str) -> Kept | None:
        """The run as `load` has it, with what the store knows of it."""
        if not place.is_id(run_id):
            return None
        row, work = self._row(run_id)
        if work is not None and work.holder is not None and self.recover([work.holder]):
            row, work = self._row(run_id)
        if row is None:
            return None
        if work is None:
            self.keeping.note_seen(run_id, max(row.version, row.seen or 0))
        run = self._decoded.get((run_id, row.version), lambda: self._decode(run_id))
        return Kept(run, row.version, work, row.imported, row.owner)

    def artifacts(self, run_id: str, slug: str) -> list[str]:
        """Names of what the explanation of a strategy has left."""
        asked = sa.select(artifacts.c.name).where(artifacts.c.run == run_id, artifacts.c.strategy == slug)
        with self._access.reading() as connection:
            return sorted(connection.execute(asked).scalars())

    def artifact(self, run_id: str, slug: str, name: str) -> bytes | None:
        """An artifact of that name; None where it is not there."""
        chosen = (artifacts.c.run == run_id, artifacts.c.strategy == slug, artifacts.c.name == name)
        with self._access.reading() as connection:
            document = connection.execute(sa.select(artifacts.c.document).where(*chosen)).scalar()
        return zlib.decompress(document) if document is not None else None

    def count(self, query: Query | None = None) -> int:
        """The number of runs that a query finds, of all without one."""
        with self._access.reading() as connection:
            return int(connection.execute(entries.count(query or Query())).scalar_one())

    def entries(self, query: Query | None = None, first: int = 0, most: int | None = None) -> list[Entry]:
        """The runs that a query finds, the newest first, from number ``first`` on and at most so many."""
        self.recover()
        with self._access.reading() as connection:
            return [Entry(*row) for row in connection.execute(entries.select(query or Query(), first, most))]

    def values(self) -> dict[str, list[str]]:
        """The workloads and devices that occur, for those who filter by them."""
        with self._access.reading() as connection:
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
            self._access.close()
            self._holders.release()
            self._written.clear()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _row(self, run_id: str) -> tuple[Any, Work | None]:
        """A run's row beside its documents, and that of the queue."""
        columns = (runs.c.version, runs.c.imported, runs.c.owner, marks.c.seen)
        with self._access.reading() as connection:
            row = connection.execute(sa.select(*columns).select_from(room.MARKED).where(runs.c.id == run_id)).first()
            work = queue.read(connection, jobs.c.id == run_id)
        return row, work[0] if work else None

    @staticmethod
    def _insert(connection: sa.Connection, run: Run, owner: str, *, imported: bool = False) -> None:
        more = {"version": entries.next_version(), "owner": owner, "imported": imported}
        connection.execute(sa.insert(runs).values(entries.row(run) | more))
        documents.write(connection, run)

    def _decode(self, run_id: str) -> Run:
        with self._access.reading() as connection:
            return documents.read(connection, run_id)

    def recover(self, names: Sequence[str] | None = None) -> bool:
        """Close what those of these holders, or of all that there are, had begun that are gone; True if there was one.
        Where another process writes, it stays as it is until somebody looks again."""
        if names is None:
            with self._access.reading() as connection:
                names = queue.holders(connection)
        any_gone = False
        for holder in names:
            try:
                with self._access.faults(), self._holders.if_gone(holder) as is_gone:
                    if is_gone:
                        with self._access.writing(database.READING_S) as connection:
                            _close_work_of(connection, holder)
                        any_gone = True
            except StoreError as error:
                log.warning("runs of a process that is gone are not closed yet: %s", error)
                break
        return any_gone


def _close_work_of(connection: sa.Connection, holder: str, reason: str = _HOLDER_GONE) -> None:
    """Close what a holder that is gone had begun: its runs are interrupted, with what was measured. One that is damaged
    stays as it is."""
    held = [work for work in queue.read(connection, jobs.c.holder == holder) if work.kind == "measure"]
    connection.execute(sa.delete(jobs).where(jobs.c.holder == holder, jobs.c.answer.is_(None)))
    for work in held:
        version = connection.execute(sa.select(runs.c.version).where(runs.c.id == work.run_id)).scalar_one()
        row: dict[str, Any] = {"status": "interrupted"}
        try:
            run = documents.read(connection, str(work.run_id))
            run = CLOSE[run.kind](run, "interrupted", reason, entries.utc(version))
        except ValueError as error:
            log.warning("run %s: %s", work.run_id, error)
        else:
            row = entries.row(run)
            documents.write(connection, run)
        entries.update(connection, str(work.run_id), row)
