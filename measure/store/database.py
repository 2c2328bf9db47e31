"""The database of the store: its tables, their versions, and how it is opened. What only SQLite knows is here alone."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import filelock
import sqlalchemy as sa

# How long a reader, and a writer, wait for others. A write takes milliseconds; who waits longer is told so, and tries
# again: a page is drawn meanwhile, and a run is measured.
READING_S, WRITING_S = 3.0, 10.0
# The write-ahead log is cut to this when it has been written back, which SQLite does at about as many bytes.
_JOURNAL_BYTES = 4 * 2**20

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

# Of a run: whether it stays when room is made, and when it was last looked at, in milliseconds since 1970.
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

# The last runs that were deleted: when, and why.
gone = sa.Table(
    "gone",
    _metadata,
    sa.Column("id", sa.String(24), primary_key=True),
    sa.Column("removed", sa.BigInteger, nullable=False, index=True),
    sa.Column("reason", sa.String(16), nullable=False),
)

# What an operator wants of all servers on this store: a word.
orders = sa.Table("orders", _metadata, sa.Column("name", sa.String(32), primary_key=True))

versions = sa.Table("mapbench_store", sa.MetaData(), sa.Column("version", sa.Integer, primary_key=True))

# Pages of 4 KiB that are given back to the disk in one transaction.
_PAGES_AT_ONCE = 4_000

Migration = Callable[[sa.Connection], None]


def _make_tables(connection: sa.Connection) -> None:
    """Version 1, as it was: a later version changes what is there, and brings it to the tables above."""
    as_it_was = sa.MetaData()
    columns = [column._copy() for column in runs.columns]
    holder = sa.Column("holder", sa.String(32), index=True)
    indexes = [sa.Index(index.name, *(column.name for column in index.columns)) for index in runs.indexes]
    sa.Table(runs.name, as_it_was, *columns, holder, *indexes).create(connection)
    _metadata.create_all(connection, [parts])


def _make_artifacts(connection: sa.Connection) -> None:
    artifacts.create(connection)


def _make_marks_and_orders(connection: sa.Connection) -> None:
    _metadata.create_all(connection, [marks, gone, orders])


def _make_jobs(connection: sa.Connection) -> None:
    """Work has rows of its own. What the version before left waiting goes on waiting; whoever measures now is told from
    one that is gone by its lock, as before."""
    _metadata.create_all(connection, [jobs, workers, spent])
    held = sa.table("runs", sa.column("id"), sa.column("owner"), sa.column("holder"))
    nothing = {"kind": "measure", "asked": b"{}", "session": "", "address": "", "forecast_s": 0.0, "order": ""}
    rows = connection.execute(sa.select(held.c.id, held.c.owner, held.c.holder).where(held.c.holder.is_not(None))).all()
    waited = {}
    if sa.inspect(connection).has_table("waiting"):
        waiting = sa.table("waiting", sa.column("run"), sa.column("place"), sa.column("asked"))
        waited = {run: (place, asked) for run, place, asked in connection.execute(sa.select(waiting))}
        connection.execute(sa.text("DROP TABLE waiting"))
    for run_id, owner, holder in rows:
        place, asked = waited.get(run_id, (0, b"{}"))
        its = {"id": run_id, "run": run_id, "owner": owner, "place": place, "asked": asked}
        holder = None if run_id in waited else holder
        connection.execute(sa.insert(jobs).values(nothing | its | {"holder": holder}))
    connection.execute(sa.delete(orders).where(orders.c.name != "drain"))
    connection.execute(sa.text("DROP INDEX ix_runs_holder"))
    connection.execute(sa.text("ALTER TABLE runs DROP COLUMN holder"))


# Each takes the database from the version that is its index to the next one.
MIGRATIONS: tuple[Migration, ...] = (_make_tables, _make_artifacts, _make_marks_and_orders, _make_jobs)


def file_of(url: sa.URL) -> Path | None:
    """The file of an SQLite database; None where the database is somewhere else."""
    is_file = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
    return Path(str(url.database)) if is_file else None


def connect(url: sa.URL, migrations: Sequence[Migration] = MIGRATIONS) -> sa.Engine:
    """The database at ``url``, made or brought to the present version. Raises ValueError where it is a later one."""
    # Those who wait to write hold connections: there are more for those who read.
    pool = {"pool_timeout": READING_S, "max_overflow": 50}
    engine = sa.create_engine(url, **pool, **({"connect_args": {"timeout": READING_S}} if _is_sqlite(url) else {}))
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _set_up)
        sa.event.listen(engine, "begin", _begin)
    try:
        with _alone(url):
            if _version(engine) != len(migrations):  # who finds it up to date waits for no writer
                _migrate(engine, migrations)
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


def give_back(engine: sa.Engine) -> None:
    """Give the pages of the file that are not in use back to the disk; elsewhere the database does so itself. Where
    others are in the way they stay, and are used again."""
    if engine.dialect.name != "sqlite":
        return
    connection = engine.raw_connection()
    with contextlib.closing(connection), contextlib.suppress(engine.dialect.loaded_dbapi.Error):
        cursor = connection.cursor()
        if cursor.execute("PRAGMA auto_vacuum").fetchall() == [(0,)]:  # made by an earlier Mapbench
            cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")
            cursor.execute("VACUUM")
        ((free,),) = cursor.execute("PRAGMA freelist_count").fetchall()
        for _ in range(0, free, _PAGES_AT_ONCE):  # in steps, so that others write between
            cursor.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _version(engine: sa.Engine) -> int | None:
    """The version of the tables that are there; None where there are none."""
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table(versions.name):
            return None
        return connection.execute(sa.select(sa.func.max(versions.c.version))).scalar()


def _migrate(engine: sa.Engine, migrations: Sequence[Migration]) -> None:
    with for_writing(engine, READING_S).begin() as connection:
        versions.create(connection, checkfirst=True)
        version = connection.execute(sa.select(sa.func.max(versions.c.version))).scalar() or 0
        if version > len(migrations):
            raise ValueError(
                f"it was made by a newer Mapbench (version {version} of its tables, and this one knows versions up to "
                f"{len(migrations)})"
            )
        for number, migrate in enumerate(migrations[version:], version + 1):
            migrate(connection)
            connection.execute(sa.insert(versions).values(version=number))


def _is_sqlite(url: sa.URL) -> bool:
    return url.get_backend_name() == "sqlite"


@contextlib.contextmanager
def _alone(url: sa.URL) -> Iterator[None]:
    """One process at a time opens an SQLite file: while its journal is being changed to WAL, others would fail."""
    file = file_of(url)
    if file is None:
        yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(f"{file}.lock")
    try:
        lock.acquire(timeout=READING_S)
    except filelock.Timeout:
        raise ValueError("another Mapbench is opening it: try again in a moment") from None
    try:
        yield
    finally:
        lock.release()


def _set_up(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun by `_begin`, and not by Python's module
    # Readers and a writer do not wait for each other; after a power cut the last transactions may be missing, the rest
    # is whole. A process that is killed loses nothing that it has committed.
    if connection.execute("PRAGMA page_count").fetchone()[0] == 0:  # a file that is made now
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
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
