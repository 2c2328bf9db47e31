"""The database of the store: its tables, their versions, and how it is opened. What only SQLite knows is here alone."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import filelock
import sqlalchemy as sa

# How long a writer waits for another one. A write takes milliseconds; a migration may take longer.
_PATIENCE_S = 60.0

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
    # Which process measures it; null when it has ended.
    sa.Column("holder", sa.String(32), index=True),
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

versions = sa.Table("mapbench_store", sa.MetaData(), sa.Column("version", sa.Integer, primary_key=True))

Migration = Callable[[sa.Connection], None]


def _make_tables(connection: sa.Connection) -> None:
    """Version 1. A later version changes what is there, and brings the tables above to what it has made of them."""
    _metadata.create_all(connection, [runs, parts])


def _make_artifacts(connection: sa.Connection) -> None:
    artifacts.create(connection)


# Each takes the database from the version that is its index to the next one.
MIGRATIONS: tuple[Migration, ...] = (_make_tables, _make_artifacts)


def file_of(url: sa.URL) -> Path | None:
    """The file of an SQLite database; None where the database is somewhere else."""
    is_file = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
    return Path(str(url.database)) if is_file else None


def connect(url: sa.URL, migrations: Sequence[Migration] = MIGRATIONS) -> sa.Engine:
    """The database at ``url``, made or brought to the present version. Raises ValueError where it is a later one."""
    engine = sa.create_engine(url, **({"connect_args": {"timeout": _PATIENCE_S}} if _is_sqlite(url) else {}))
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _set_up)
        sa.event.listen(engine, "begin", _begin)
    try:
        with _alone(url):
            _migrate(engine, migrations)
    except BaseException:
        engine.dispose()
        raise
    return engine


def for_writing(engine: sa.Engine) -> sa.Engine:
    """The same database, for transactions that write."""
    return engine.execution_options(writes=True)


def _migrate(engine: sa.Engine, migrations: Sequence[Migration]) -> None:
    with for_writing(engine).begin() as connection:
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
    with filelock.FileLock(f"{file}.lock", timeout=_PATIENCE_S):
        yield


def _set_up(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun by `_begin`, and not by Python's module
    # Readers and a writer do not wait for each other; after a power cut the last transactions may be missing, the rest
    # is whole. A process that is killed loses nothing that it has committed.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: sa.Connection) -> None:
    """A transaction that will write takes its turn at once: one that reads first may be refused when it writes."""
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
