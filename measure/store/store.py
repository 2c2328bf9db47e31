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

import sqlalchemy as sa
from msgspec.structs import replace

from measure.model import place
from measure.model.asked import Asked
from measure.model.kept import Kept as Memory
from measure.model.place import StoreError
from measure.model.run import Run
from measure.model.why import Why
from measure.store import database, documents, entries, holders, room, url, waiting
from measure.store.access import Access, log
from measure.store.database import artifacts, gone, marks, runs
from measure.store.entries import Entry, Query
from measure.store.holders import Holders
from measure.store.keeping import Keeping
from measure.store.orders import Orders
from measure.store.waiting import Waiting
from workloads import places

# Runs that are kept in memory as well. One takes about twice what its file does: the largest that is let in fits.
_DECODED_BYTES = 384 * 2**20
_DECODED_BYTES_HOSTED = 48 * 2**20


@dataclass(frozen=True)
class Kept:
    """A stored run. ``version`` grows with each save; ``live``: a process is measuring it now."""

    run: Run
    version: int
    live: bool
    imported: bool
    owner: str = ""


class Store:
    """The runs in a database; safe to use from any thread. All methods but `close` raise `StoreError`."""

    def __init__(self, home: Path | None = None, most_bytes: int | None = None) -> None:
        """``home``: a folder of its own in place of Mapbench's, with the database in it; ``most_bytes``: of all runs,
        the oldest of which go when there are more."""
        address = url.parsed(url.text() if home is None else f"sqlite:///{home / 'runs.db'}")
        file = database.file_of(address)
        self._access = Access(address, self._recover)
        self.orders = Orders(self._access)
        self.keeping = Keeping(self._access, most_bytes)
        # Beside an SQLite file, so that all who share the file see the locks of its holders.
        self._holders = Holders((file.parent if file else place.home()) / "holders", all_are_here=file is not None)
        self._saving = threading.RLock()  # which no reader waits for
        # Version and pieces of each run that grows, as they were last written.
        self._written: dict[str, tuple[int, Sequence[documents.Piece]]] = {}
        # A page asks for the run that it shows at every interaction.
        self._decoded = Memory(_DECODED_BYTES_HOSTED if places.hosted() else _DECODED_BYTES)

    # --- writing -----------------------------------------------------------------------------------------------------

    def save(self, run: Run, *, owner: str = "", live: bool = False, asked: Asked | None = None) -> None:
        """Write what is new of the run, whole or not at all. ``live``: this process measures it; ``asked``: it waits,
        and the next server queues it again where this one ends before."""
        with self._saving:
            version, before = self._written.get(run.id, (0, ()))
            row = entries.row(run) | {"holder": self._holders.hold() if live else None}
            # While it is measured, the next result comes soon: nobody waits for long, and it is tried again with that.
            # Before it has been written once, it would be lost with its server.
            patience_s = database.READING_S if live and version else database.WRITING_S
            with self._access.writing(patience_s) as connection:
                now = entries.update(connection, run.id, version, row)
                if now is None:  # new, or somebody has deleted what was written of it
                    before, now = (), entries.next_version(version)
                    row |= {"version": now, "owner": owner, "imported": False}
                    connection.execute(sa.insert(runs).values(row))
                documents.write(connection, run, before)
                waiting.note(connection, run.id, asked)
            if live:
                self._written[run.id] = (now, list(documents.pieces(run)))
            else:
                self._written.pop(run.id, None)
        if not live:
            self.keeping.make_room(run.id)

    def add(self, run: Run, owner: str = "") -> bool:
        """Keep a run that comes from elsewhere; False where it is here already. ValueError where another has its id."""
        with self._access.writing() as connection:
            is_new = connection.execute(sa.select(runs.c.id).where(runs.c.id == run.id)).first() is None
            if is_new:
                more = {"version": entries.next_version(), "holder": None, "owner": owner, "imported": True}
                connection.execute(sa.insert(runs).values(entries.row(run) | more))
                connection.execute(sa.delete(gone).where(gone.c.id == run.id))
                documents.write(connection, run)
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

    def take_waiting(self) -> list[Waiting]:
        """The runs that waited for a process that is gone; from now on they wait for this one."""
        self._recover()
        with self._saving, self._access.writing() as connection:
            taken = waiting.take(connection, self._holders.hold())
        return taken

    def explain(self, run_id: str, slug: str, why: Why, left: Mapping[str, bytes]) -> bool:
        """Keep why a strategy of a run is as it is, and the artifacts of that; False where the run is gone."""
        with self._saving, self._access.writing() as connection:
            version = connection.execute(sa.select(runs.c.version).where(runs.c.id == run_id)).scalar()
            if version is None:
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
            entries.update(connection, run_id, version, {})
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
        columns = (runs.c.version, runs.c.holder, runs.c.imported, runs.c.owner, marks.c.seen)
        asked = sa.select(*columns).select_from(room.MARKED).where(runs.c.id == run_id)
        with self._access.reading() as connection:
            row = connection.execute(asked).one_or_none()
        if row is not None and row.holder not in (None, waiting.NOBODY) and self._recover([row.holder]):
            with self._access.reading() as connection:
                row = connection.execute(asked).one_or_none()
        if row is None:
            return None
        if row.holder is None:
            self.keeping.note_seen(run_id, max(row.version, row.seen or 0))
        run = self._decoded.get((run_id, row.version), lambda: self._decode(run_id))
        return Kept(run, row.version, row.holder is not None, row.imported, row.owner)

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
        self._recover()
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

    def _decode(self, run_id: str) -> Run:
        with self._access.reading() as connection:
            return documents.read(connection, run_id)

    def _recover(self, names: Sequence[str] | None = None) -> bool:
        """Close the runs of those of these holders, or of all that there are, that are gone; True if there was one.
        Where another process writes, they stay as they are until somebody looks again."""
        if names is None:  # but those that wait for the next server
            with self._access.reading() as connection:
                names = holders.known(connection)
        any_gone = False
        for holder in names:
            try:
                with self._access.faults(), self._holders.if_gone(holder) as is_gone:
                    if is_gone:
                        with self._access.writing(database.READING_S) as connection:
                            holders.close_runs_of(connection, holder)
                        any_gone = True
            except StoreError as error:
                log.warning("runs of a process that is gone are not closed yet: %s", error)
                break
        return any_gone
