"""The database of the store: its tables, their versions, and how it is opened. What only SQLite knows is here alone."""

import contextlib
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import filelock
import sqlalchemy as sa

from measure.run import place
from measure.run.place import StoreError

# How long a reader, and a writer, wait for others. A write takes milliseconds; who waits longer is told so, and tries
# again: a page is drawn meanwhile, and a run is measured.
READING_S, WRITING_S = 3.0, 10.0
# The write-ahead log is cut to this when it has been written back, which SQLite does at about as many bytes.
_JOURNAL_BYTES = 4 * 2**20
# What is deleted makes the file smaller.
_FULL_VACUUM = 1

# Signs of what the list shows and searches; elsewhere than in SQLite a column has a length.
NAME, SHOWN, WORDS = 200, 500, 2_500
# Where a blob has no length, some databases take 64 KiB at most.
_DOCUMENT = sa.LargeBinary(2**27)

_metadata = sa.MetaData()

# What the Runs page searches, lists and filters: small rows, apart from the documents.
runs = sa.Table(
    "runs",
    _metadata,
    sa.Column("id", sa.String(24), primary_key=True),
    # Milliseconds since 1970 of the last save, and more than at the save before.
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("created", sa.String(32), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("workload", sa.String(NAME), nullable=False),
    sa.Column("size", sa.String(SHOWN), nullable=False),
    sa.Column("device", sa.String(NAME), nullable=False),
    sa.Column("machine", sa.String(SHOWN), nullable=False),
    sa.Column("verdict", sa.String(SHOWN), nullable=False),
    # All that can be searched for, in lower case.
    sa.Column("words", sa.String(WORDS), nullable=False),
    # Who asked for it, and whether it came as a file: no part of the run.
    sa.Column("owner", sa.String(64), nullable=False),
    sa.Column("imported", sa.Boolean, nullable=False),
    sa.Index("runs_by_date", "created", "id"),
    sa.Index("runs_by_workload", "workload", "created"),
    sa.Index("runs_by_status", "status", "created"),
    sa.Index("runs_by_device", "device", "created"),
)

# The documents of a run: at place 0 the run without its measurements, from 1 on one measurement each; of a sweep one
# point each, of claims one piece of evidence each. So a result that arrives costs what it weighs, not what the whole
# run does.
parts = sa.Table(
    "parts",
    _metadata,
    sa.Column("run", sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("place", sa.Integer, primary_key=True),
    sa.Column("document", _DOCUMENT, nullable=False),
)

# What an explanation leaves beside its figures, by the name of its file; compressed.
artifacts = sa.Table(
    "artifacts",
    _metadata,
    sa.Column("run", sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("strategy", sa.String(NAME), primary_key=True),
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("document", _DOCUMENT, nullable=False),
)

# The runs that stay when room is made. (``seen`` is of earlier versions.)
marks = sa.Table(
    "marks",
    _metadata,
    sa.Column("run", sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("pinned", sa.Boolean, nullable=False),
    sa.Column("seen", sa.BigInteger, nullable=False),
)

# The work that is not done: a run that is to be measured or is being measured, an explanation of one, the check of a
# function of a person's own. A row without a holder waits; it goes when the work is done.
jobs = sa.Table(
    "jobs",
    _metadata,
    sa.Column("id", sa.String(24), primary_key=True),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("run", sa.ForeignKey("runs.id", ondelete="CASCADE"), index=True),
    sa.Column("place", sa.BigInteger, nullable=False),
    # Beside the run's own request: a `Job`.
    sa.Column("asked", _DOCUMENT, nullable=False),
    # For whom, and by what visitors are counted.
    sa.Column("owner", sa.String(64), nullable=False),
    sa.Column("session", sa.String(64), nullable=False),
    sa.Column("address", sa.String(64), nullable=False),
    # Seconds that it takes by forecast, and within which it ends in any case.
    sa.Column("forecast_s", sa.Float, nullable=False),
    sa.Column("bound_s", sa.Float),
    # The process that does it, from when on in milliseconds since 1970, and how it stands: a `Standing`.
    sa.Column("holder", sa.String(32), index=True),
    sa.Column("begun", sa.BigInteger),
    sa.Column("standing", _DOCUMENT),
    # An order to who does it: cancel or stop.
    sa.Column("order", sa.String(8), nullable=False),
    # Of a check: what came out.
    sa.Column("answer", _DOCUMENT),
)

# The worker of each machine: how it stands, at which time in milliseconds since 1970.
workers = sa.Table(
    "workers",
    _metadata,
    sa.Column("machine", sa.String(NAME), primary_key=True),
    sa.Column("holder", sa.String(32), nullable=False),
    sa.Column("beat", sa.BigInteger, nullable=False),
    sa.Column("state", _DOCUMENT, nullable=False),
)

# The seconds that were measured for an address on a day in UTC.
spent = sa.Table(
    "spent",
    _metadata,
    sa.Column("day", sa.String(10), primary_key=True),
    sa.Column("address", sa.String(64), primary_key=True),
    sa.Column("seconds", sa.Float, nullable=False),
)

# What an operator wants of all servers on this store: a word.
orders = sa.Table("orders", _metadata, sa.Column("name", sa.String(32), primary_key=True))

# Runs with their marks, where they have some; True of one that is pinned, and of one that waits or is measured.
MARKED = runs.outerjoin(marks, marks.c.run == runs.c.id)
PINNED = sa.func.coalesce(marks.c.pinned, sa.false())
GOES_ON = sa.exists().where(jobs.c.run == runs.c.id, jobs.c.kind == "measure")

versions = sa.Table("mapbench_store", sa.MetaData(), sa.Column("version", sa.Integer, primary_key=True))

# The version of the tables above.
VERSION = 4
# Parts of an address that cannot be a password which was not escaped.
_HARMLESS = re.compile(r"[\w./-]*")
log = logging.getLogger("mapbench.store")


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def address() -> sa.URL:
    """``MAPBENCH_STORE``, an URL as SQLAlchemy reads it, or a file in Mapbench's home. Raises `StoreError`."""
    try:
        return sa.make_url(os.environ.get("MAPBENCH_STORE") or f"sqlite:///{place.home() / 'runs.db'}")
    except (sa.exc.ArgumentError, ValueError):  # it is not quoted, since it may hold a password
        raise StoreError("MAPBENCH_STORE is not an URL of a database, as sqlite:////folder/runs.db") from None


def file_of(url: sa.URL) -> Path | None:
    """The file of an SQLite database; None where the database is somewhere else."""
    is_file = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
    return Path(str(url.database)) if is_file else None


class Database:
    """One database, for any thread: opened when it is first used. All methods raise `StoreError` with a sentence."""

    def __init__(self, url: sa.URL, on_opened: Callable[[], object]) -> None:
        """``on_opened``: called when it has been opened."""
        self._url, self._on_opened = url, on_opened
        self._opening = threading.RLock()
        self._engine: sa.Engine | None = None

    @contextlib.contextmanager
    def faults(self) -> Iterator[None]:
        """Say what goes wrong with the database, or with files beside it, in a sentence."""
        try:
            yield
        except (sa.exc.SQLAlchemyError, OSError, ImportError) as error:
            reason = self._without_password(
                str(getattr(error, "orig", None) or getattr(error, "strerror", None) or error)
            )
            log.warning("%s: %s", self._url.get_backend_name(), reason)
            raise StoreError(reason) from None  # the driver's own exception may quote the password

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that reads."""
        with self.faults(), self._opened().connect() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self, patience_s: float = WRITING_S) -> Iterator[sa.Connection]:
        """A transaction that writes, whole or not at all, when no other does. ``patience_s``: how long it waits."""
        with self.faults(), for_writing(self._opened(), patience_s).begin() as connection:
            yield connection

    def close(self) -> None:
        """Let go of the database; the next use opens it again."""
        with self._opening:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    def _opened(self) -> sa.Engine:
        if (engine := self._engine) is not None:
            return engine
        with self._opening:
            if self._engine is None:
                try:
                    self._engine = connect(self._url)
                except (ValueError, TypeError) as error:  # of a driver too, which does not know an option
                    raise StoreError(self._without_password(str(error))) from None
                self._on_opened()
            return self._engine

    def _without_password(self, sentence: str) -> str:
        """A sentence of a driver, which may quote the address. A password that is not escaped is read as parts of the
        host and of others: where one of them looks odd, nothing of the sentence is shown."""
        url, name = self._url, self._url.get_backend_name()
        if name == "sqlite":
            return sentence  # a file has none
        if url.query or not all(_HARMLESS.fullmatch(part or "") for part in (url.host, url.username, url.database)):
            return f"it cannot be used; the reason is not shown, since {name}'s may quote a password"
        return sentence.replace(url.password, "…") if url.password else sentence


def connect(url: sa.URL) -> sa.Engine:
    """The database at ``url``, made or brought to the present version. Raises ValueError where it is a later one."""
    is_sqlite = url.get_backend_name() == "sqlite"
    # Those who wait to write hold connections: there are more for those who read.
    pool = {"pool_timeout": READING_S, "max_overflow": 50}
    engine = sa.create_engine(url, **pool, **({"connect_args": {"timeout": READING_S}} if is_sqlite else {}))
    if is_sqlite:
        sa.event.listen(engine, "connect", _set_up)
        sa.event.listen(engine, "begin", _begin)
    try:
        with _alone(file_of(url)):
            _bring_up_to_date(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def for_writing(engine: sa.Engine, patience_s: float = WRITING_S) -> sa.Engine:
    """The same database, for transactions that write, each when no other does."""
    return engine.execution_options(writes=True, patience_s=patience_s)


def used(connection: sa.Connection) -> int | None:
    """The bytes of the file that are in use; None where the database is no file."""
    if connection.dialect.name != "sqlite":
        return None
    pages, free, size = (
        int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _bring_up_to_date(engine: sa.Engine) -> None:
    """Make what is not there, in one transaction, whatever the version was."""
    with engine.connect() as connection:  # who finds it up to date waits for no writer
        if sa.inspect(connection).has_table(versions.name) and _version(connection) == VERSION:
            return
    with for_writing(engine, READING_S).begin() as connection:
        versions.create(connection, checkfirst=True)
        version = _version(connection)
        if version > VERSION:
            raise ValueError(
                f"it was made by a newer Mapbench (version {version} of its tables, and this one knows versions up to "
                f"{VERSION})"
            )
        if version == VERSION:  # another process was faster
            return
        _metadata.create_all(connection)
        if version > 0:
            _move_work(connection)
        connection.execute(sa.insert(versions).values(version=VERSION))


def _version(connection: sa.Connection) -> int:
    return int(connection.execute(sa.select(sa.func.max(versions.c.version))).scalar() or 0)


def _move_work(connection: sa.Connection) -> None:
    """Before version 4 a run that was not done had its holder in its own row: such a run stays as it was last written,
    interrupted."""
    connection.execute(sa.text("DROP TABLE IF EXISTS waiting"))
    connection.execute(sa.delete(orders).where(orders.c.name != "drain"))
    connection.execute(sa.text("DROP INDEX ix_runs_holder"))
    connection.execute(sa.text("ALTER TABLE runs DROP COLUMN holder"))


@contextlib.contextmanager
def _alone(file: Path | None) -> Iterator[None]:
    """One process at a time opens an SQLite file: while its journal is being changed to WAL, others would fail."""
    if file is None:
        yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(f"{file}.lock", timeout=READING_S):
            yield
    except filelock.Timeout:
        raise ValueError("another Mapbench is opening it: try again in a moment") from None


def _set_up(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun by `_begin`, and not by Python's module
    # Readers and a writer do not wait for each other; after a power cut the last transactions may be missing, the rest
    # is whole. A process that is killed loses nothing that it has committed.
    if connection.execute("PRAGMA auto_vacuum").fetchone()[0] != _FULL_VACUUM:
        with contextlib.suppress(connection.OperationalError):  # of an earlier version, while somebody writes
            connection.execute(f"PRAGMA auto_vacuum = {_FULL_VACUUM}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: sa.Connection) -> None:
    """A transaction that will write takes its turn at once: one that reads first may be refused when it writes."""
    options = connection.get_execution_options()
    patience_s = options.get("patience_s", READING_S)
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(patience_s * 1000)}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes") else "BEGIN")
