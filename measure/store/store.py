"""Runs that last: every run as it happens, in one database for all Mapbenches of a machine.

A run is written part by part while it grows, by the process that measures it. That process holds a lock for as long as
it lives: whoever opens the store and finds a run whose holder is gone closes it as interrupted, with what was measured.
"""

import contextlib
import logging
import os
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import filelock
import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from measure.judge import analysis
from measure.machine import environment
from measure.model import place
from measure.model.place import StoreError
from measure.model.run import Measurement, Point, Run, decode
from measure.store import database
from measure.store.database import artifacts, parts, runs
from measure.sweep import analysis as sweep_analysis

_log = logging.getLogger("mapbench.store")
_HOLDER_GONE = "the process that measured it ended unexpectedly; what was measured is kept"
# How many run files of the former form are taken over in one transaction.
_BATCH = 100
RUNNING = "running"
_STATUS = sa.case((runs.c.holder.is_not(None), RUNNING), else_=runs.c.status)


@dataclass(frozen=True)
class Kept:
    """A stored run. ``version`` grows with each save; ``live``: a process is measuring it now."""

    run: Run
    version: int
    live: bool
    imported: bool


@dataclass(frozen=True)
class Entry:
    """A run in the list. ``status`` is the run's, or ``running``."""

    id: str
    created: str
    status: str
    workload: str
    size: str
    device: str
    machine: str
    verdict: str
    owner: str
    imported: bool


@dataclass(frozen=True)
class Query:
    """Which runs are listed: those that hold every word of ``text``, and match what else is named."""

    text: str = ""
    workload: str | None = None
    status: str | None = None
    device: str | None = None


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
        self._former = (home or place.home()) / "runs"
        # Beside an SQLite file, so that all who share the file see the locks of its holders.
        self._holders = (file.parent if file else place.home()) / "holders"
        self._holders_are_all_here = file is not None
        self._lock = threading.RLock()
        self._engine: sa.Engine | None = None
        self._holding: filelock.BaseFileLock | None = None
        self._token = place.new_id()
        # What was last written of each run that grows.
        self._written: dict[str, tuple[int, list[Piece]]] = {}
        # A page asks for the run that it shows at every interaction.
        self._decode = lru_cache(maxsize=16)(self._decode_version)

    # --- writing -----------------------------------------------------------------------------------------------------

    def save(self, run: Run, *, owner: str = "", live: bool = False) -> None:
        """Write what is new of the run, whole or not at all. ``live``: this process measures it."""
        with self._lock, self._said():
            version, before = self._written.get(run.id, (0, []))
            version = max(_now_ms(), version + 1)
            if live:
                self._hold()
            row = _row(run) | {"version": version, "holder": self._token if live else None}
            pieces = _pieces(run)
            changed = {0: _packed(_head(run))}
            for number, item in enumerate(pieces):
                if number >= len(before) or before[number] is not item:
                    changed[number + 1] = _packed(item)
            with self._writing() as connection:
                if not connection.execute(sa.update(runs).where(runs.c.id == run.id).values(row)).rowcount:
                    connection.execute(sa.insert(runs).values(row | {"owner": owner, "imported": False}))
                _write_parts(connection, run.id, changed, len(pieces))
            if live:
                self._written[run.id] = (version, pieces)
            else:
                self._written.pop(run.id, None)

    def add(self, run: Run, owner: str = "") -> bool:
        """Keep a run that comes from elsewhere; False where it is here already. ValueError where another has its id."""
        with self._said(), self._writing() as connection:
            if _insert(connection, run, owner, imported=True):
                return True
        if self.load(run.id) != run:
            raise ValueError(f"another run with the id {run.id} is here already: delete it before this one is imported")
        return False

    def delete(self, ids: Iterable[str], owner: str | None = None) -> list[str]:
        """Delete runs that have ended, of all owners or of one; the ids of those that are gone."""
        with self._said(), self._writing() as connection:
            chosen = sa.select(runs.c.id).where(runs.c.id.in_(list(ids)), runs.c.holder.is_(None))
            if owner is not None:
                chosen = chosen.where(runs.c.owner == owner)
            found = list(connection.execute(chosen).scalars())
            connection.execute(sa.delete(artifacts).where(artifacts.c.run.in_(found)))
            connection.execute(sa.delete(parts).where(parts.c.run.in_(found)))
            connection.execute(sa.delete(runs).where(runs.c.id.in_(found)))
        return found

    def explain(self, run_id: str, slug: str, why: dict[str, Any], left: Mapping[str, bytes]) -> bool:
        """Keep why a strategy of a run is as it is, and the artifacts of that; False where the run is gone."""
        with self._lock, self._said(), self._writing() as connection:
            version = connection.execute(sa.select(runs.c.version).where(runs.c.id == run_id)).scalar()
            if version is None:
                return False
            run = _read(connection, run_id)
            changed = {
                number: _packed(replace(item, why=why))
                for number, item in enumerate(run.measurements, 1)
                if item.strategy == slug
            }
            _write_parts(connection, run_id, changed, len(run.measurements))
            connection.execute(sa.delete(artifacts).where(artifacts.c.run == run_id, artifacts.c.strategy == slug))
            rows = [
                {"run": run_id, "strategy": slug, "name": name, "document": zlib.compress(data, 6)}
                for name, data in left.items()
            ]
            if rows:
                connection.execute(sa.insert(artifacts), rows)
            connection.execute(sa.update(runs).where(runs.c.id == run_id).values(version=max(_now_ms(), version + 1)))
        return True

    # --- reading -----------------------------------------------------------------------------------------------------

    def load(self, run_id: str) -> Run | None:
        """The run, or None where there is none of that id. ValueError where what is stored is damaged."""
        kept = self.look(run_id)
        return kept.run if kept is not None else None

    def look(self, run_id: str) -> Kept | None:
        """As `load`, with what the store knows of the run."""
        if not place.is_id(run_id):
            return None
        with self._said():
            asked = sa.select(runs.c.version, runs.c.holder, runs.c.imported).where(runs.c.id == run_id)
            with self._reading() as connection:
                row = connection.execute(asked).one_or_none()
            if row is not None and row.holder is not None and self._close_those_of_the_gone([row.holder]):
                with self._reading() as connection:
                    row = connection.execute(asked).one_or_none()
            if row is None:
                return None
            run = self._decode(run_id, row.version)
        return Kept(run, row.version, row.holder is not None, row.imported)

    def artifacts(self, run_id: str, slug: str) -> list[str]:
        """Names of what the explanation of a strategy has left."""
        asked = sa.select(artifacts.c.name).where(artifacts.c.run == run_id, artifacts.c.strategy == slug)
        with self._said(), self._reading() as connection:
            return sorted(connection.execute(asked).scalars())

    def artifact(self, run_id: str, slug: str, name: str) -> bytes | None:
        """One of them; None where it is not there."""
        chosen = (artifacts.c.run == run_id, artifacts.c.strategy == slug, artifacts.c.name == name)
        with self._said(), self._reading() as connection:
            document = connection.execute(sa.select(artifacts.c.document).where(*chosen)).scalar()
        return zlib.decompress(document) if document is not None else None

    def count(self, query: Query | None = None) -> int:
        with self._said(), self._reading() as connection:
            return int(connection.execute(_matching(sa.select(sa.func.count()), query or Query())).scalar_one())

    def entries(self, query: Query | None = None, first: int = 0, most: int | None = None) -> list[Entry]:
        """Runs, the newest first."""
        with self._said():
            self._recover()
            shown = [_STATUS if name == "status" else runs.c[name] for name in Entry.__dataclass_fields__]
            asked = _matching(sa.select(*shown), query or Query())
            asked = asked.order_by(runs.c.created.desc(), runs.c.id).offset(first).limit(most)
            with self._reading() as connection:
                return [Entry(*row) for row in connection.execute(asked)]

    def values(self) -> dict[str, list[str]]:
        """The workloads and devices that occur, for those who filter by them."""
        with self._said(), self._reading() as connection:
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
            if self._holding is not None:
                self._holding.release()
                with contextlib.suppress(OSError):
                    os.unlink(self._holding.lock_file)
                self._holding, self._token = None, place.new_id()
            self._written.clear()

    # --- inside ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _said(self) -> Iterator[None]:
        """What goes wrong with the database, in a sentence."""
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
                self._take_over()
                self._recover()
            return self._engine

    def _reading(self) -> contextlib.AbstractContextManager[sa.Connection]:
        return self._opened().connect()

    def _writing(self) -> contextlib.AbstractContextManager[sa.Connection]:
        return database.for_writing(self._opened()).begin()

    def _decode_version(self, run_id: str, version: int) -> Run:
        with self._reading() as connection:
            return _read(connection, run_id)

    def _take_over(self) -> None:
        """Move runs that a former Mapbench kept, one JSON file each, into the database; damaged ones stay files."""
        files = sorted(self._former.glob("*.json")) if self._former.is_dir() else []
        for start in range(0, len(files), _BATCH):
            taken = []
            with self._writing() as connection:
                for file in files[start : start + _BATCH]:
                    try:
                        run = decode(file.read_bytes())
                        if not place.is_id(run.id):
                            raise ValueError(f"{run.id!r} is not an id")
                    except (OSError, ValueError) as error:
                        _log.warning("%s is not taken over: %s", file, error)
                        continue
                    _insert(connection, run, "", imported=False)
                    taken.append(file)
            for file in taken:
                file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._former.rmdir()

    # --- runs whose process is gone ----------------------------------------------------------------------------------

    def _hold(self) -> None:
        """Show that this process lives, by a lock that the system lets go of when it ends."""
        if self._holding is None:
            self._holders.mkdir(parents=True, exist_ok=True)
            self._holding = filelock.FileLock(self._holders / f"{self._token}.lock", thread_local=False)
            self._holding.acquire(timeout=0)

    def _recover(self) -> None:
        """Close all runs whose process is gone."""
        with self._reading() as connection:
            holders = list(
                connection.execute(sa.select(runs.c.holder).distinct().where(runs.c.holder.is_not(None))).scalars()
            )
        self._close_those_of_the_gone(holders)

    def _close_those_of_the_gone(self, holders: Sequence[str]) -> bool:
        """Whether any of these holders is gone; its runs are closed then."""
        gone = False
        for holder in holders:
            if holder == self._token:
                continue
            with self._if_gone(holder) as is_gone:
                if is_gone:
                    gone = True
                    self._close_runs_of(holder)
        return gone

    @contextlib.contextmanager
    def _if_gone(self, holder: str) -> Iterator[bool]:
        """Whether a holder has ended. Meanwhile nobody else finds that it has, so that one process closes its runs."""
        path = self._holders / f"{holder}.lock"
        if not path.exists():
            # Of a database elsewhere, a holder may be on another machine, where nothing is known of it here.
            yield self._holders_are_all_here
            return
        lock = filelock.FileLock(path, thread_local=False)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            yield False
            return
        try:
            yield True
            path.unlink(missing_ok=True)
        finally:
            lock.release()

    def _close_runs_of(self, holder: str) -> None:
        with self._writing() as connection:
            held = connection.execute(sa.select(runs.c.id, runs.c.version).where(runs.c.holder == holder)).all()
            for run_id, version in held:
                row: dict[str, Any] = {"status": "interrupted"}
                try:
                    found = _read(connection, run_id)
                    close = sweep_analysis.close if found.kind == "sweep" else analysis.close
                    run = close(found, "interrupted", _HOLDER_GONE, _utc(version))
                except ValueError as error:
                    _log.warning("run %s: %s", run_id, error)
                else:
                    row = _row(run)
                    _write_parts(connection, run_id, _parts_of(run), len(_pieces(run)))
                row |= {"version": max(_now_ms(), version + 1), "holder": None}
                connection.execute(sa.update(runs).where(runs.c.id == run_id).values(row))


# --- documents and rows ----------------------------------------------------------------------------------------------

# What a run grows by: a comparison by measurements, a sweep by points.
Piece = Measurement | Point
_of_measurement = msgspec.json.Decoder(Measurement)
_of_point = msgspec.json.Decoder(Point)


def _packed(part: Run | Piece) -> bytes:
    return zlib.compress(msgspec.json.encode(part), 1)


def _pieces(run: Run) -> list[Piece]:
    return list(run.points) if run.kind == "sweep" else list(run.measurements)


def _head(run: Run) -> Run:
    """The run without its pieces."""
    return replace(run, points=[]) if run.kind == "sweep" else replace(run, measurements=[])


def _parts_of(run: Run) -> dict[int, bytes]:
    return {0: _packed(_head(run)), **{number: _packed(item) for number, item in enumerate(_pieces(run), 1)}}


def _read(connection: sa.Connection, run_id: str) -> Run:
    """The run as its parts make it. ValueError where they are damaged."""
    asked = sa.select(parts.c.document).where(parts.c.run == run_id).order_by(parts.c.place)
    try:
        head, *pieces = (zlib.decompress(document) for document in connection.execute(asked).scalars())
        run = decode(head)
        if run.kind == "sweep":
            return replace(run, points=[_of_point.decode(item) for item in pieces])
        return replace(run, measurements=[_of_measurement.decode(item) for item in pieces])
    except (zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"what is stored of it is damaged ({error})") from None


def _write_parts(connection: sa.Connection, run_id: str, changed: dict[int, bytes], last: int) -> None:
    """Replace these parts of a run whose last part is at place ``last``."""
    former = parts.c.place.in_(list(changed)) | (parts.c.place > last)
    connection.execute(sa.delete(parts).where(parts.c.run == run_id, former))
    connection.execute(
        sa.insert(parts), [{"run": run_id, "place": number, "document": data} for number, data in changed.items()]
    )


def _insert(connection: sa.Connection, run: Run, owner: str, *, imported: bool) -> bool:
    """Whether the run was not there before."""
    if connection.execute(sa.select(runs.c.id).where(runs.c.id == run.id)).first() is not None:
        return False
    more = {"version": _now_ms(), "holder": None, "owner": owner, "imported": imported}
    connection.execute(sa.insert(runs).values(_row(run) | more))
    _write_parts(connection, run.id, _parts_of(run), len(_pieces(run)))
    return True


def _row(run: Run) -> dict[str, Any]:
    """What the list shows of a run, and finds it by."""
    request = run.request
    row = {
        "id": run.id,
        "created": _in_utc(run.created),
        "status": run.status,
        "workload": request.workload[: database.NAME],
        "size": _cut(", ".join((*_swept(run), *_fixed(run)))),
        "device": request.device[: database.NAME],
        "machine": _cut(environment.machine(run.environment)),
        "verdict": _cut(run.verdict),
    }
    return row | {"words": " ".join((*row.values(), request.dtype, run.kind)).lower()[: database.WORDS]}


def _cut(text: str) -> str:
    """As much of it as a list shows: nobody's run weighs the list down for everybody."""
    return text if len(text) <= database.SHOWN else f"{text[: database.SHOWN - 1]}…"


def _swept(run: Run) -> list[str]:
    """The ranges of a sweep."""
    return [f"{axis.name} {min(axis.values):,} to {max(axis.values):,}" for axis in run.axes if axis.values]


def _fixed(run: Run) -> list[str]:
    swept = {axis.name for axis in run.axes if axis.kind == "size"}
    return [f"{name} {value:,}" for name, value in run.request.size.items() if name not in swept]


def _matching(statement: sa.Select[Any], query: Query) -> sa.Select[Any]:
    statement = statement.select_from(runs)
    for word in query.text.lower().split():
        statement = statement.where(runs.c.words.contains(word, autoescape=True))
    shown = ((runs.c.workload, query.workload), (_STATUS, query.status), (runs.c.device, query.device))
    for column, value in shown:
        if value is not None:
            statement = statement.where(column == value)
    return statement


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _utc(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _in_utc(created: str) -> str:
    """A time of day in the form that sorts; as it is where it is none."""
    try:
        return _utc(int(datetime.fromisoformat(created).timestamp() * 1000))
    except (ValueError, OverflowError):
        return created[:32]
