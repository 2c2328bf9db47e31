"""Runs that last: every run as it happens, in one database for all Mapbenches of a machine.

A run is written part by part while it grows, by the process that measures it. Whoever opens the store and finds a run
whose process is gone closes it as interrupted, with what was measured.
"""

import contextlib
import logging
import os
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import sqlalchemy as sa
from msgspec.structs import replace

from measure.model import place
from measure.model.place import StoreError
from measure.model.run import Run
from measure.model.why import Why
from measure.store import database, documents, entries, holders
from measure.store.database import artifacts, parts, runs
from measure.store.entries import Entry, Query
from measure.store.holders import Holders

_log = logging.getLogger("mapbench.store")


@dataclass(frozen=True)
class Kept:
    """A stored run. ``version`` grows with each save; ``live``: a process is measuring it now."""

    run: Run
    version: int
    live: bool
    imported: bool


def url() -> str:
    """The database: ``MAPBENCH_STORE``, an URL as SQLAlchemy reads it, or a file in Mapbench's home."""
    return os.environ.get("MAPBENCH_STORE") or f"sqlite:///{place.home() / 'runs.db'}"


class Store:
    """The runs in a database; safe to use from any thread. All methods but `close` raise `StoreError`."""

    def __init__(self, home: Path | None = None) -> None:
        """``home``: a folder of its own in place of Mapbench's, with the database in it."""
        text = url() if home is None else f"sqlite:///{home / 'runs.db'}"
        try:
            self._url = sa.make_url(text)
        except sa.exc.ArgumentError:
            raise StoreError(
                f"MAPBENCH_STORE={text!r} is not an URL of a database, as sqlite:////folder/runs.db"
            ) from None
        file = database.file_of(self._url)
        # Beside an SQLite file, so that all who share the file see the locks of its holders.
        self._holders = Holders((file.parent if file else place.home()) / "holders", all_are_here=file is not None)
        self._lock = threading.RLock()
        self._engine: sa.Engine | None = None
        # Version and pieces of each run that grows, as they were last written.
        self._written: dict[str, tuple[int, Sequence[documents.Piece]]] = {}
        # A page asks for the run that it shows at every interaction.
        self._decode = lru_cache(maxsize=16)(self._decode_version)

    # --- writing -----------------------------------------------------------------------------------------------------

    def save(self, run: Run, *, owner: str = "", live: bool = False) -> None:
        """Write what is new of the run, whole or not at all. ``live``: this process measures it."""
        with self._lock, self._faults():
            version, before = self._written.get(run.id, (0, ()))
            row = entries.row(run) | {"holder": self._holders.hold() if live else None}
            with self._writing() as connection:
                now = entries.update(connection, run.id, version, row)
                if now is None:
                    now = entries.next_version(version)
                    row |= {"version": now, "owner": owner, "imported": False}
                    connection.execute(sa.insert(runs).values(row))
                documents.write(connection, run, before)
            if live:
                self._written[run.id] = (now, list(documents.pieces(run)))
            else:
                self._written.pop(run.id, None)

    def add(self, run: Run, owner: str = "") -> bool:
        """Keep a run that comes from elsewhere; False where it is here already. ValueError where another has its id."""
        with self._faults(), self._writing() as connection:
            if connection.execute(sa.select(runs.c.id).where(runs.c.id == run.id)).first() is None:
                more = {"version": entries.next_version(), "holder": None, "owner": owner, "imported": True}
                connection.execute(sa.insert(runs).values(entries.row(run) | more))
                documents.write(connection, run)
                return True
        if self.load(run.id) != run:
            raise ValueError(f"another run with the id {run.id} is here already: delete it before this one is imported")
        return False

    def delete(self, ids: Iterable[str], owner: str | None = None) -> list[str]:
        """Delete runs that have ended, of all owners or of one; the ids of those that are gone."""
        with self._faults(), self._writing() as connection:
            chosen = sa.select(runs.c.id).where(runs.c.id.in_(list(ids)), runs.c.holder.is_(None))
            if owner is not None:
                chosen = chosen.where(runs.c.owner == owner)
            gone = list(connection.execute(chosen).scalars())
            connection.execute(sa.delete(artifacts).where(artifacts.c.run.in_(gone)))
            connection.execute(sa.delete(parts).where(parts.c.run.in_(gone)))
            connection.execute(sa.delete(runs).where(runs.c.id.in_(gone)))
        return gone

    def explain(self, run_id: str, slug: str, why: Why, left: Mapping[str, bytes]) -> bool:
        """Keep why a strategy of a run is as it is, and the artifacts of that; False where the run is gone."""
        with self._lock, self._faults(), self._writing() as connection:
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
        with self._faults():
            asked = sa.select(runs.c.version, runs.c.holder, runs.c.imported).where(runs.c.id == run_id)
            with self._reading() as connection:
                row = connection.execute(asked).one_or_none()
            if row is not None and row.holder is not None and self._recover([row.holder]):
                with self._reading() as connection:
                    row = connection.execute(asked).one_or_none()
            if row is None:
                return None
            run = self._decode(run_id, row.version)
        return Kept(run, row.version, row.holder is not None, row.imported)

    def artifacts(self, run_id: str, slug: str) -> list[str]:
        """Names of what the explanation of a strategy has left."""
        asked = sa.select(artifacts.c.name).where(artifacts.c.run == run_id, artifacts.c.strategy == slug)
        with self._faults(), self._reading() as connection:
            return sorted(connection.execute(asked).scalars())

    def artifact(self, run_id: str, slug: str, name: str) -> bytes | None:
        """An artifact of that name; None where it is not there."""
        chosen = (artifacts.c.run == run_id, artifacts.c.strategy == slug, artifacts.c.name == name)
        with self._faults(), self._reading() as connection:
            document = connection.execute(sa.select(artifacts.c.document).where(*chosen)).scalar()
        return zlib.decompress(document) if document is not None else None

    def count(self, query: Query | None = None) -> int:
        """The number of runs that a query finds, of all without one."""
        with self._faults(), self._reading() as connection:
            return int(connection.execute(entries.count(query or Query())).scalar_one())

    def entries(self, query: Query | None = None, first: int = 0, most: int | None = None) -> list[Entry]:
        """The runs that a query finds, the newest first, from number ``first`` on and at most so many."""
        with self._faults():
            self._recover()
            with self._reading() as connection:
                return [Entry(*row) for row in connection.execute(entries.select(query or Query(), first, most))]

    def values(self) -> dict[str, list[str]]:
        """The workloads and devices that occur, for those who filter by them."""
        with self._faults(), self._reading() as connection:
            return {
                column.name: list(connection.execute(sa.select(column).distinct().order_by(column)).scalars())
                for column in (runs.c.workload, runs.c.device)
            }

    def ids(self) -> list[str]:
        """Ids of all runs, the newest first."""
        return [entry.id for entry in self.entries()]

    def close(self) -> None:
        """Let go of the database and of the lock; the next use opens it again."""
        with self._lock:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None
            self._holders.release()
            self._written.clear()

    # --- inside ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        """Say what goes wrong with the database in a sentence."""
        try:
            yield
        except (sa.exc.SQLAlchemyError, OSError, ImportError) as error:
            reason = str(getattr(error, "orig", None) or getattr(error, "strerror", None) or error)
            _log.warning("%s: %s", self._url.render_as_string(), reason)
            raise StoreError(reason) from error

    def _opened(self) -> sa.Engine:
        with self._lock:
            if self._engine is None:
                try:
                    self._engine = database.connect(self._url)
                except ValueError as error:
                    raise StoreError(str(error)) from None
                self._recover()
            return self._engine

    def _reading(self) -> contextlib.AbstractContextManager[sa.Connection]:
        return self._opened().connect()

    def _writing(self) -> contextlib.AbstractContextManager[sa.Connection]:
        return database.for_writing(self._opened()).begin()

    def _decode_version(self, run_id: str, version: int) -> Run:
        with self._reading() as connection:
            return documents.read(connection, run_id)

    def _recover(self, names: Sequence[str] | None = None) -> bool:
        """Close the runs of those of these holders, or of all that there are, that are gone; True if there was one."""
        if names is None:
            with self._reading() as connection:
                names = holders.known(connection)
        any_gone = False
        for holder in names:
            with self._holders.if_gone(holder) as is_gone:
                if is_gone:
                    any_gone = True
                    with self._writing() as connection:
                        holders.close_runs_of(connection, holder)
        return any_gone
