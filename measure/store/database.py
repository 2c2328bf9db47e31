"""The database of the store: its tables, their versions, and how it is opened. What only SQLite or PostgreSQL knows is
here alone.

In either, a transaction that reads sees one state, and those that write take turns: most of them read first, and what
they have read stays as it is until they end. SQLite does that by itself. In PostgreSQL one lock of the database does,
which is plainer than the right locks of rows in each of them: a turn takes milliseconds, a worker needs two a second.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import filelock
import sqlalchemy as sa

from measure.run import place
from measure.run.place import StoreError

# How long a reader, and a writer, wait for others. A write takes milliseconds; who waits longer is told so.
READING_S, WRITING_S = 3.0, 10.0
# Of a server: the name of the writers' lock, and how long a writer may do something else before it loses its turn.
_TURN, _IDLE_MS = 0x6D617062, 30_000
# A server that is gone without a word is given up after half a minute, in place of the system's hours.
_SERVER = {
    "connect_timeout": "10", "tcp_user_timeout": "30000", "keepalives_idle": "10", "keepalives_interval": "5",
    "keepalives_count": "4",
}  # fmt: skip
# The write-ahead log is cut to this when it has been written back, which SQLite does at about as many bytes.
_JOURNAL_BYTES = 4 * 2**20
_FULL_VACUUM = 1  # what is deleted makes the file smaller

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
    sa.Column("version", sa.BigInteger, nullable=False),  # milliseconds since 1970 of the last save; it grows with each
    sa.Column("created", sa.String(32), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("workload", sa.String(NAME), nullable=False),
    sa.Column("size", sa.String(SHOWN), nullable=False),
    sa.Column("device", sa.String(NAME), nullable=False),
    sa.Column("machine", sa.String(SHOWN), nullable=False),
    sa.Column("verdict", sa.String(SHOWN), nullable=False),
    sa.Column("words", sa.String(WORDS), nullable=False),  # all that can be searched for, in lower case
    sa.Column("owner", sa.String(64), nullable=False),  # who asked for it
    sa.Column("imported", sa.Boolean, nullable=False),
    # Of earlier versions empty.
    sa.Column("kind", sa.String(8), nullable=False, server_default=""),
    sa.Index("runs_by_date", "created", "id"),
    sa.Index("runs_by_workload", "workload", "created"),
    sa.Index("runs_by_status", "status", "created"),
    sa.Index("runs_by_device", "device", "created"),
)

# The documents of a run, see `measure.store.store`.
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

# The runs that stay when room is made. (``seen`` is of earlier versions, and so are rows that are not pinned.)
marks = sa.Table(
    "marks",
    _metadata,
    sa.Column("run", sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("pinned", sa.Boolean, nullable=False, default=True),
    sa.Column("seen", sa.BigInteger, nullable=False, default=0),
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
    sa.Column("asked", _DOCUMENT, nullable=False),  # a `Job`
    # For whom, and by what visitors are counted.
    sa.Column("owner", sa.String(64), nullable=False),
    sa.Column("session", sa.String(64), nullable=False),
    sa.Column("address", sa.String(64), nullable=False),
    sa.Column("forecast_s", sa.Float, nullable=False),
    sa.Column("bound_s", sa.Float),
    # The process that does it, since when in milliseconds since 1970, how it stands: a `Standing`, and an order to it.
    sa.Column("holder", sa.String(32), index=True),
    sa.Column("begun", sa.BigInteger),
    sa.Column("standing", _DOCUMENT),
    sa.Column("order", sa.String(8), nullable=False),
    sa.Column("answer", _DOCUMENT),  # of a check: an `Answer`
    # The machine that is to do it; empty: any worker that was given no name.
    sa.Column("machine", sa.String(NAME), nullable=False, server_default=""),
)

# Where no file tells whether a holder lives: until when it does, in milliseconds since 1970 by the database's clock.
holders = sa.Table(
    "holders",
    _metadata,
    sa.Column("holder", sa.String(32), primary_key=True),
    sa.Column("lease", sa.BigInteger, nullable=False),
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

# The version of the tables above.
VERSION = 6
_OLDEST = 3
# The clock of a PostgreSQL server, and when it was started, in milliseconds since 1970.
CLOCK: sa.ColumnElement[int] = sa.cast(sa.extract("epoch", sa.func.clock_timestamp()) * 1000, sa.BigInteger)
STARTED: sa.ColumnElement[int] = sa.cast(sa.extract("epoch", sa.func.pg_postmaster_start_time()) * 1000, sa.BigInteger)
versions = sa.Table("mapbench_store", sa.MetaData(), sa.Column("version", sa.Integer, primary_key=True))
log = logging.getLogger("mapbench.store")


def now_ms(connection: sa.Connection) -> int:
    """Milliseconds since 1970, by the clock of a PostgreSQL server where there is one: those who share it may be on
    several machines, each with a clock of its own."""
    if connection.dialect.name != "postgresql":
        return time.time_ns() // 1_000_000
    return int(connection.execute(sa.select(CLOCK)).scalar_one())


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
    def reading(self, **options: Any) -> Iterator[sa.Connection]:
        """A transaction that reads; ``options`` are those of `_begin`. What goes wrong with the database, or with files
        beside it, is said in a sentence."""
        try:
            with self._opened().execution_options(**options).begin() as connection:
                yield connection
        except (sa.exc.SQLAlchemyError, OSError, ImportError) as error:
            raise self._failure(error) from None  # it may quote the password

    def writing(
        self, patience_s: float = WRITING_S, *, in_turn: bool = True
    ) -> contextlib.AbstractContextManager[sa.Connection]:
        """A transaction that writes, whole or not at all, when no other does. ``patience_s``: how long it waits;
        ``in_turn``: False of one that locks its rows itself where others can write at the same time."""
        return self.reading(writes=True, patience_s=patience_s, in_turn=in_turn)

    def close(self) -> None:
        with self._opening:
            if self._engine is not None:
                self._engine.dispose()
                self._engine = None

    def _opened(self) -> sa.Engine:
        with self._opening:
            if self._engine is None:
                try:
                    self._engine = connect(self._url)
                except StoreError:
                    raise
                except Exception as error:  # of a driver, which may be of any kind
                    raise self._failure(error) from None
                self._on_opened()
            return self._engine

    def _failure(self, error: Exception) -> StoreError:
        """A driver may quote the password of an address, escaped or not; that of a file without options has none."""
        name, reason = self._url.get_backend_name(), type(getattr(error, "orig", None) or error).__name__
        if name == "postgresql" and isinstance(error, ImportError):
            reason = f"PostgreSQL needs psycopg[binary], which Mapbench's extra «postgresql» installs: {error}"
        elif (name == "sqlite" and self._url.host is None and not self._url.query) or isinstance(error, ImportError):
            reason = str(getattr(error, "orig", None) or getattr(error, "strerror", None) or error)
        else:
            reason = f"{name} cannot be used ({reason}); what it says is not shown, since that may quote a password"
        log.warning("%s: %s", name, reason)
        return StoreError(reason)


def connect(url: sa.URL) -> sa.Engine:
    """The database at ``url``, made or brought to the present version. Raises `StoreError` where it is of another one,
    or another process is opening it, and what drivers raise."""
    file = file_of(url)
    if url.get_driver_name() == "psycopg":
        url = url.update_query_dict({**_SERVER, **url.query})
    # Those who wait to write hold connections: there are more for those who read. A server has 100 for all processes.
    engine = sa.create_engine(url, pool_timeout=READING_S, max_overflow=50 if file else 15, pool_pre_ping=file is None)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _set_up)
        sa.event.listen(engine, "begin", _begin)
    elif engine.dialect.name == "postgresql":
        sa.event.listen(engine, "begin", _begin_on_server)
    if file is None:
        _bring_up_to_date(engine)
        return engine
    is_home = file.parent == place.home()
    file.parent.mkdir(mode=0o700 if is_home else 0o777, parents=True, exist_ok=True)
    try:
        # One process at a time: while the journal is being changed to WAL, others would fail.
        with filelock.FileLock(f"{file}.lock", timeout=READING_S):
            if is_home:
                _make_private(file)
            _bring_up_to_date(engine)
    except filelock.Timeout:
        raise StoreError("another Mapbench is opening it: try again in a moment") from None
    return engine


def _make_private(file: Path) -> None:
    """Have Mapbench's home be this account's alone, and the database with what is beside it: SQLite makes its files
    with the mode of the database. Where the database is private already, it was done: whoever has opened the folder to
    others since wants it so."""
    if file.exists() and not file.stat().st_mode & 0o077:
        return
    with contextlib.suppress(PermissionError):  # it is another account's
        file.touch(0o600)
        file.parent.chmod(0o700)
        for one in file.parent.glob(f"{file.name}*"):
            one.chmod(0o600)


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
    """Make what is not there, in one transaction; who finds it up to date waits for no writer."""
    with engine.connect() as connection:
        if _version(connection) == VERSION:
            return
    with engine.execution_options(writes=True).begin() as connection:
        if (version := _version(connection)) == VERSION:  # by now, since another process has made it so
            return
        versions.create(connection, checkfirst=True)
        _metadata.create_all(connection)
        if 0 < version < 5:
            connection.execute(sa.text("ALTER TABLE runs ADD COLUMN kind VARCHAR(8) DEFAULT '' NOT NULL"))
        if version in (4, 5):
            connection.execute(sa.text(f"ALTER TABLE jobs ADD COLUMN machine VARCHAR({NAME}) DEFAULT '' NOT NULL"))
        if version == 3:
            # A run that was not done had its holder in its own row: it stays as it was last written, interrupted.
            connection.execute(sa.text("DROP TABLE IF EXISTS waiting"))
            connection.execute(sa.delete(orders).where(orders.c.name != "drain"))
            connection.execute(sa.text("DROP INDEX ix_runs_holder"))
            connection.execute(sa.text("ALTER TABLE runs DROP COLUMN holder"))
        connection.execute(sa.insert(versions).values(version=VERSION))


def _version(connection: sa.Connection) -> int:
    """The version of the tables, 0 where there are none. Raises `StoreError` where it cannot be used."""
    is_new = not sa.inspect(connection).has_table(versions.name)
    version = 0 if is_new else connection.execute(sa.select(sa.func.max(versions.c.version))).scalar() or 0
    if version and not _OLDEST <= version <= VERSION:
        age = "newer" if version > VERSION else "much older"
        raise StoreError(f"it was made by a {age} Mapbench: {version} is the version of its tables, not {VERSION}")
    return version


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
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(1000 * options.get('patience_s', READING_S))}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes") else "BEGIN")


def _begin_on_server(connection: sa.Connection) -> None:
    """The same in PostgreSQL. A process that is stopped within its turn holds up all others: its session ends then."""
    options = connection.get_execution_options()
    if not options.get("writes"):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return
    patience_ms = round(1000 * options.get("patience_s", READING_S))
    statements = [f"SET LOCAL lock_timeout = {patience_ms}"]
    statements.append(f"SET LOCAL idle_in_transaction_session_timeout = {_IDLE_MS}")
    if options.get("in_turn", True):
        statements.append(f"SELECT pg_advisory_xact_lock({_TURN})")
    connection.exec_driver_sql("; ".join(statements))
