"""Runs in the database: whole or not at all, shared by processes, closed when their process is gone, never lost."""

import contextlib
import functools
import multiprocessing
import os
import re
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from sqlalchemy.dialects import mysql, postgresql

from measure.machine import environment
from measure.model import place, why
from measure.model.place import StoreError
from measure.model.run import Run
from measure.model.run_file import decode, encode
from measure.store import database, documents, entries, imports, store
from tests import synthetic
from tests.engine import ROOT

ID = "0123456789abcdef01234567"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "home"


@pytest.fixture
def url(home: Path) -> sa.URL:
    return sa.make_url(f"sqlite:///{home / 'runs.db'}")


@pytest.fixture
def kept(home: Path) -> store.Store:
    return store.Store(home)


@pytest.fixture
def other(kept: store.Store, home: Path) -> store.Store:
    """The same database, as another process has it open."""
    return store.Store(home)


@contextlib.contextmanager
def sqlite(home: Path) -> Iterator[sqlite3.Connection]:
    """The database without the store."""
    with contextlib.closing(sqlite3.connect(home / "runs.db")) as connection, connection:
        yield connection


_FINISHED = synthetic.run(ID)
_partial = functools.cache(synthetic.partial)


def a_run(run_id: str = ID, **changes: Any) -> Run:
    return replace(_FINISHED, id=run_id, **changes)


def running(done: int, run_id: str = ID) -> Run:
    return replace(_partial(done), id=run_id, status="interrupted", stop_reason="")


# --- what is written is read -----------------------------------------------------------------------------------------


def test_a_run_is_read_as_it_was_written(kept: store.Store, other: store.Store):
    run = a_run()
    kept.save(run)
    assert kept.load(run.id) == run and other.load(run.id) == run
    assert encode(other.load(run.id)) == encode(run)


def test_runs_are_kept_in_memory_within_a_bound_of_bytes(home: Path, monkeypatch: pytest.MonkeyPatch):
    """A page asks for its run at every interaction: one that fits is not read anew, one that does not is."""
    for most, is_same in ((2**20, True), (2**16, False)):
        monkeypatch.setattr(store, "_DECODED_BYTES", most)
        opened = store.Store(home)
        opened.save(a_run())
        assert (opened.load(ID) is opened.load(ID)) is is_same
        opened.close()


def test_a_run_that_grows_is_read_as_it_last_was(kept: store.Store, other: store.Store):
    for done in (0, 1, 4, 11):
        kept.save(running(done), live=True)
        seen = other.look(ID)
        assert seen is not None and seen.live and seen.run == running(done)
    kept.save(a_run())
    seen = other.look(ID)
    assert seen is not None and not seen.live and seen.run == a_run()


def test_each_save_has_a_version_of_its_own(kept: store.Store, other: store.Store):
    versions = []
    for done in (0, 1, 2):
        kept.save(running(done), live=True)
        versions.append(other.look(ID).version)
    kept.save(a_run())
    versions.append(other.look(ID).version)
    assert versions == sorted(set(versions))


def test_the_first_write_of_a_run_waits_longest_since_without_it_the_run_ends_with_its_server(
    kept: store.Store, home: Path, monkeypatch: pytest.MonkeyPatch
):
    kept.save(synthetic.partial(0, "b" * 24), live=True)
    monkeypatch.setattr(database, "READING_S", 0.0)
    held = sqlite3.connect(home / "runs.db", isolation_level=None, check_same_thread=False)
    held.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError):
        kept.save(synthetic.partial(1, "b" * 24), live=True)
    timer = threading.Timer(0.3, lambda: (held.execute("COMMIT"), held.close()))
    timer.start()
    kept.save(synthetic.partial(0, "c" * 24), live=True)
    timer.join()
    assert kept.load("c" * 24) is not None


@pytest.mark.parametrize("run", [_FINISHED, synthetic.sweep(ID)], ids=["compare", "sweep"])
@pytest.mark.parametrize("what", ["run", "file"])
def test_a_run_that_was_deleted_while_it_grows_is_written_whole(
    run: Run, what: str, kept: store.Store, other: store.Store, home: Path
):
    kept.save(run, live=True)
    if what == "run":
        with sqlite(home) as connection:
            connection.execute("DELETE FROM parts")
            connection.execute("DELETE FROM runs")
    else:
        for path in home.glob("runs.db*"):
            path.unlink()
        assert kept.load(ID) is None
    kept.save(run)
    assert kept.load(ID) == other.load(ID) == run


def test_a_file_that_was_deleted_is_made_anew_by_who_reads(kept: store.Store, home: Path):
    kept.save(a_run())
    for path in home.glob("runs.db*"):
        path.unlink()
    assert kept.look(ID) is None and kept.entries() == [] and kept.count() == 0
    kept.save(a_run())
    assert kept.ids() == [ID]


@pytest.mark.parametrize("run", [_FINISHED, synthetic.sweep(ID)], ids=["compare", "sweep"])
def test_what_has_not_changed_is_not_written_again(run: Run, kept: store.Store, home: Path):
    kept.save(run, live=True)
    with sqlite(home) as connection:
        connection.execute("CREATE TABLE noted (place INTEGER)")
        connection.execute("CREATE TRIGGER note AFTER INSERT ON parts BEGIN INSERT INTO noted VALUES (new.place); END")
    if run.kind == "sweep":
        run = replace(run, points=[*run.points[:3], replace(run.points[3], reason="new"), *run.points[4:]])
    else:
        changed = replace(run.measurements[3], stage="elsewhere")
        run = replace(run, measurements=[*run.measurements[:3], changed, *run.measurements[4:]])
    kept.save(run, live=True)
    with sqlite(home) as connection:
        assert connection.execute("SELECT place FROM noted ORDER BY place").fetchall() == [(0,), (4,)]
    assert kept.load(ID) == run


def test_what_fails_while_it_is_written_leaves_what_was(kept: store.Store, other: store.Store, home: Path):
    kept.save(a_run())
    with sqlite(home) as connection:
        connection.execute("CREATE TRIGGER no BEFORE INSERT ON parts BEGIN SELECT RAISE(ABORT, 'not now'); END")
    with pytest.raises(StoreError, match="not now"):
        kept.save(a_run(verdict="another"))
    assert kept.load(ID) == other.load(ID) == a_run() and kept.entries()[0].verdict == a_run().verdict
    with sqlite(home) as connection:
        connection.execute("DROP TRIGGER no")
    kept.save(a_run(verdict="another"))
    assert kept.load(ID).verdict == "another"


def test_a_process_that_is_killed_while_it_writes_leaves_what_was(kept: store.Store, other: store.Store):
    kept.save(a_run())

    def die(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO parts"):
            os._exit(1)

    pid = os.fork()
    if pid == 0:
        try:
            sa.event.listen(sa.Engine, "before_cursor_execute", die)
            other.save(a_run(verdict="another"))
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert kept.load(ID) == a_run() and kept.entries()[0].verdict == a_run().verdict


def write_many(home: Path, name: str) -> None:
    own = store.Store(home)
    for number in range(20):
        own.save(running(3, f"{name}{number:023x}"), live=True)
        own.save(a_run(f"{name}{number:023x}"))
    own.close()


def test_processes_that_share_the_database_lose_nothing(kept: store.Store, home: Path):
    forked = multiprocessing.get_context("fork")
    running(3)
    writers = [forked.Process(target=write_many, args=(home, name)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert sorted(kept.ids()) == sorted(f"{name}{number:023x}" for name in "abc" for number in range(20))
    assert {entry.status for entry in kept.entries()} == {"complete"}
    assert kept.load(f"a{7:023x}") == a_run(f"a{7:023x}")


def test_a_run_with_fewer_measurements_than_before_has_no_more(kept: store.Store, other: store.Store):
    kept.save(a_run(), live=True)
    fewer = replace(a_run(), measurements=a_run().measurements[:2])
    kept.save(fewer)
    assert other.load(ID) == fewer


# --- ids -------------------------------------------------------------------------------------------------------------


def test_ids_cannot_be_guessed():
    ids = {place.new_id() for _ in range(1000)}
    assert len(ids) == 1000 and all(place.is_id(each) and len(each) == 24 for each in ids)


@pytest.mark.parametrize(
    "name",
    ["", "..", "../secret", "/etc/passwd", "0" * 23, "0" * 25, "0" * 23 + "g", "A" * 24, "0" * 24 + "\n", "٣" * 24],
)
def test_what_is_no_id_is_never_looked_up(kept: store.Store, name: str):
    assert not place.is_id(name)
    assert kept.load(name) is None


def test_an_unknown_id_is_none(kept: store.Store):
    assert kept.load(place.new_id()) is None
    assert kept.ids() == []


# --- runs whose process is gone --------------------------------------------------------------------------------------


def test_a_run_whose_process_is_gone_is_interrupted_with_what_it_had(kept: store.Store, other: store.Store, home: Path):
    kept.save(running(4), live=True)
    assert other.entries()[0].status == "running" and other.look(ID).live
    kept.close()  # the lock is let go of, as when a process ends
    seen = other.look(ID)
    assert seen is not None and not seen.live and seen.run.status == "interrupted"
    assert "ended unexpectedly" in seen.run.stop_reason and seen.run.finished is not None
    done = [m.strategy for m in seen.run.measurements if m.latency is not None]
    assert done == [m.strategy for m in running(4).measurements[:4]]
    assert seen.run.ranking and seen.run.verdict, "what was measured is analysed"
    assert [entry.status for entry in other.entries()] == ["interrupted"]
    assert other.load(ID) == store.Store(home).load(ID), "and this is what is stored"


def test_the_list_finds_it_too(kept: store.Store, other: store.Store):
    kept.save(running(4), live=True)
    assert other.count(store.Query(status="running")) == 1
    kept.close()
    assert [entry.status for entry in other.entries()] == ["interrupted"]
    assert other.count(store.Query(status="running")) == 0


def test_a_run_of_a_process_that_lives_is_left_alone(kept: store.Store, other: store.Store):
    kept.save(running(4), live=True)
    kept.save(running(2, "f" * 24), live=True)
    kept.save(a_run(), live=False)
    assert {entry.id: entry.status for entry in other.entries()} == {ID: "complete", "f" * 24: "running"}
    kept.save(running(5, "f" * 24), live=True)
    assert other.look("f" * 24).run == running(5, "f" * 24)


def test_a_damaged_run_whose_process_is_gone_hinders_no_other(kept: store.Store, other: store.Store, home: Path):
    kept.save(running(4), live=True)
    kept.save(running(4, "f" * 24), live=True)
    with sqlite(home) as connection:
        connection.execute("UPDATE parts SET document = x'00' WHERE run = ? AND place = 2", (ID,))
    kept.close()
    assert other.load("f" * 24).status == "interrupted"
    assert {entry.status for entry in other.entries()} == {"interrupted"}
    with pytest.raises(ValueError, match="damaged"):
        other.load(ID)


# --- the list --------------------------------------------------------------------------------------------------------


@pytest.fixture
def listed(kept: store.Store) -> store.Store:
    for number in range(6):
        run = a_run(f"{number:024x}", created=f"2025-01-0{number + 1}T10:00:00+02:00", verdict=f"Verdict 100%_{number}")
        request = replace(run.request, workload=["square", "top_k"][number % 2], device=["CPU:0", "GPU:0"][number // 3])
        environment = {"cpu_model": "Zen 5", "cores_granted": 8, "gpus": ["H200"] if number > 2 else []}
        kept.save(replace(run, request=request, environment=environment, status=["complete", "budget"][number % 2]))
    return kept


def found(kept: store.Store, *words: object, **query: str) -> list[int]:
    entries = kept.entries(store.Query(*map(str, words), **query))
    assert kept.count(store.Query(*map(str, words), **query)) == len(entries)
    return [int(entry.id, 16) for entry in entries]


def test_runs_are_listed_the_newest_first(listed: store.Store):
    assert found(listed) == [5, 4, 3, 2, 1, 0]
    assert [int(entry.id, 16) for entry in listed.entries(first=1, most=2)] == [4, 3]
    entry = listed.entries()[0]
    assert entry.created == "2025-01-06T08:00:00.000Z" and entry.machine == "H200, Zen 5, 8 cores"
    assert entry.size == "batch 100, height 64, width 64, channels 3"


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({"workload": "square"}, [4, 2, 0]),
        ({"device": "GPU:0"}, [5, 4, 3]),
        ({"status": "budget", "device": "CPU:0"}, [1]),
        ({"text": "TOP_K h200"}, [5, 3]),
        ({"text": "verdict 100%_4"}, [4]),
        ({"text": "100__4"}, []),
        ({"text": f"{2:024x}"}, [2]),
        ({"text": "zen 5 8 cores 2025-01-03"}, [2]),
        ({"text": "' OR 1=1 --"}, []),
        ({"status": "running"}, []),
    ],
)
def test_runs_are_searched_and_filtered(listed: store.Store, query: dict[str, str], numbers: list[int]):
    assert found(listed, **query) == numbers


def test_what_occurs_can_be_chosen_from(listed: store.Store):
    assert listed.values() == {"workload": ["square", "top_k"], "device": ["CPU:0", "GPU:0"]}


# --- imports and deleting --------------------------------------------------------------------------------------------


def test_a_run_from_elsewhere_is_kept_and_marked(kept: store.Store):
    assert kept.add(a_run())
    seen = kept.look(ID)
    assert seen is not None and seen.imported and not seen.live and seen.run == a_run()
    assert not kept.add(a_run()), "it is here already"
    with pytest.raises(ValueError, match=f"another run with the id {ID} is here already"):
        kept.add(a_run(verdict="a forgery"))
    assert kept.load(ID) == a_run()


def test_no_run_weighs_the_list_down(kept: store.Store, home: Path):
    """Not even one that nobody has checked."""
    many = {f"size_{number}": number for number in range(10_000)}
    kept.add(
        a_run(
            request=replace(_FINISHED.request, size=many, workload="w" * 5_000, device="d" * 5_000),
            environment={"gpus": ["x" * 20_000] * 700},
            verdict="v" * 20_000,
        )
    )
    assert len(environment.machine(kept.load(ID).environment)) > 10**6
    (entry,) = kept.entries()
    assert max(map(len, (entry.size, entry.machine, entry.verdict))) <= 500 and entry.verdict.endswith("v…")
    assert len(entry.workload) == len(entry.device) == 200
    with sqlite(home) as connection:
        assert connection.execute("SELECT max(length(words)) FROM runs").fetchone()[0] <= 2_500


def test_what_can_be_imported_fits_its_columns(kept: store.Store):
    def named(length: int) -> bytes:
        return encode(a_run(request=replace(_FINISHED.request, workload="w" * length, device="d" * length)))

    kept.add(imports.read(named(database.NAME)))
    (entry,) = kept.entries()
    assert (entry.workload, entry.device) == ("w" * database.NAME, "d" * database.NAME)
    with pytest.raises(ValueError, match="is too long"):
        imports.read(named(database.NAME + 1))


def test_deleted_runs_are_gone_and_running_ones_stay(kept: store.Store, home: Path):
    for number in range(3):
        kept.save(a_run(f"{number:024x}"))
    kept.save(running(1, "f" * 24), live=True)
    assert kept.delete([f"{1:024x}", "f" * 24, "e" * 24]) == [f"{1:024x}"]
    assert kept.load(f"{1:024x}") is None and len(kept.ids()) == 3
    with sqlite(home) as connection:
        assert connection.execute("SELECT count(*) FROM parts WHERE run = ?", (f"{1:024x}",)).fetchone() == (0,)


def test_an_owner_deletes_only_what_is_theirs(kept: store.Store):
    kept.save(running(0, "a" * 24), live=True, owner="ann")
    kept.save(a_run("a" * 24))  # the end of it is hers as well
    kept.save(a_run("b" * 24), owner="bob")
    kept.add(a_run("c" * 24), owner="ann")
    assert sorted(kept.delete(["a" * 24, "b" * 24, "c" * 24], owner="ann")) == ["a" * 24, "c" * 24]
    assert kept.ids() == ["b" * 24]


def test_a_run_that_comes_back_with_other_contents_is_another_version(kept: store.Store, other: store.Store):
    kept.add(a_run())
    assert other.load(ID) == a_run()
    kept.delete([ID])
    kept.add(a_run(verdict="another"))
    assert other.load(ID).verdict == "another"


# --- versions of the database ----------------------------------------------------------------------------------------


def test_a_database_is_brought_to_the_next_version_with_all_that_is_in_it(kept: store.Store, url: sa.URL):
    kept.save(a_run())
    kept.close()

    def add_notes(connection: sa.Connection) -> None:
        connection.execute(sa.text("ALTER TABLE runs ADD COLUMN note VARCHAR(10) DEFAULT 'none'"))

    for _ in range(2):  # once is enough
        engine = database.connect(url, [*database.MIGRATIONS, add_notes])
        with engine.connect() as connection:
            assert connection.execute(sa.text("SELECT id, note FROM runs")).all() == [(ID, "none")]
            assert connection.execute(sa.text("SELECT version FROM mapbench_store")).scalars().all() == [1, 2, 3, 4]
        engine.dispose()
    with pytest.raises(StoreError, match="made by a newer Mapbench"):
        kept.load(ID)


def test_a_database_of_the_first_version_is_opened_with_all_that_is_in_it(kept: store.Store, home: Path, url: sa.URL):
    """As a Mapbench made it that knew of no explanations: filled by that version's own tables, row by row."""
    engine = database.connect(url, database.MIGRATIONS[:1])
    with database.for_writing(engine).begin() as connection:
        assert not sa.inspect(connection).has_table("artifacts")
        for number in range(3):
            run = a_run(f"{number:024x}")
            more = {"version": number + 1, "holder": None, "owner": "ann", "imported": number == 1}
            connection.execute(sa.insert(database.runs).values(entries.row(run) | more))
            documents.write(connection, run)
    engine.dispose()
    assert sorted(kept.ids()) == [f"{number:024x}" for number in range(3)]
    assert [kept.look(f"{number:024x}").imported for number in range(3)] == [False, True, False]
    assert kept.load(f"{2:024x}") == a_run(f"{2:024x}")
    slug = a_run().measurements[0].strategy
    assert kept.explain(f"{0:024x}", slug, why.Explained(note="now"), {why.GRAPH: b"a graph"})
    assert kept.artifact(f"{0:024x}", slug, why.GRAPH) == b"a graph"
    assert kept.delete([f"{0:024x}"], owner="ann") == [f"{0:024x}"]
    with sqlite(home) as connection:
        assert connection.execute("SELECT version FROM mapbench_store ORDER BY version").fetchall() == [
            (1,),
            (2,),
            (3,),
        ]


def test_a_migration_that_fails_leaves_the_database_as_it_was(kept: store.Store, url: sa.URL):
    kept.save(a_run())
    kept.close()

    def fail(connection: sa.Connection) -> None:
        connection.execute(sa.text("ALTER TABLE runs ADD COLUMN note VARCHAR(10)"))
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        database.connect(url, [*database.MIGRATIONS, fail])
    assert kept.load(ID) == a_run()


# --- other databases, and ones that cannot be used -------------------------------------------------------------------


@pytest.mark.parametrize("dialect", [postgresql.dialect(), mysql.dialect()], ids=["postgresql", "mysql"])
def test_the_tables_can_be_made_in_other_databases(dialect: sa.Dialect):
    tables = [*database.runs.metadata.sorted_tables, database.versions]
    assert {table.name for table in tables} == {
        *("runs", "parts", "artifacts", "marks", "waiting", "gone", "orders", "mapbench_store")
    }
    for table in tables:
        made = str(sa.schema.CreateTable(table).compile(dialect=dialect))
        assert "CREATE TABLE" in made
        # Without a length MySQL's blobs and texts end at 64 KiB.
        assert not re.search(r"\b(BLOB|TEXT)(?!\()", made), made
        for column in table.columns:
            if isinstance(column.type, sa.LargeBinary):
                assert column.type.length >= why.MOST_ARTIFACT_BYTES
        for index in table.indexes:
            assert not any(isinstance(column.type, sa.Text) for column in index.columns), "needs a length elsewhere"


def test_what_only_sqlite_knows_is_in_one_module():
    special = re.compile(r"pragma|sqlite_|begin immediate|dialects|sa\.text\(", re.IGNORECASE)
    sources = {
        path.name: path.read_text() for package in ("measure", "views") for path in (ROOT / package).rglob("*.py")
    }
    assert {name for name, source in sources.items() if special.search(source)} == {"database.py"}


def test_the_place_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "elsewhere"))
    store.Store().save(a_run())
    assert (tmp_path / "elsewhere" / "runs.db").exists()
    monkeypatch.setenv("MAPBENCH_STORE", f"sqlite:///{tmp_path}/shared.db")
    assert store.Store().ids() == []
    assert (tmp_path / "shared.db").exists()
    monkeypatch.setenv("MAPBENCH_HOME", "")
    assert place.home() == Path.home() / ".mapbench"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "is not an URL of a database"),
        ("nosuch://host/name", "nosuch"),
        ("sqlite:////proc/nowhere/runs.db", "No such file|unable to open|Permission"),
    ],
)
def test_a_place_that_cannot_be_used_is_said(monkeypatch: pytest.MonkeyPatch, url: str, says: str):
    monkeypatch.setenv("MAPBENCH_STORE", url)
    with pytest.raises(StoreError, match=says):
        store.Store().ids()


def test_a_file_that_is_no_database_is_said_and_left(kept: store.Store, home: Path):
    path = home / "runs.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"something else" * 100)
    for _ in range(2):
        with pytest.raises(StoreError, match="file is not a database"):
            kept.load(ID)
    assert path.read_bytes() == b"something else" * 100


def test_a_disk_that_is_full_is_said_and_leaves_what_was(kept: store.Store, home: Path):
    kept.save(a_run())
    kept.close()
    with sqlite(home) as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()

    def fill(connection: Any, _: Any) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")

    sa.event.listen(sa.Engine, "connect", fill)
    try:
        with pytest.raises(StoreError, match="database or disk is full"):
            kept.save(a_run("f" * 24, verdict=os.urandom(100_000).hex()))
    finally:
        sa.event.remove(sa.Engine, "connect", fill)
    assert kept.load(ID) == a_run()


def test_a_damaged_document_is_said_in_a_sentence(kept: store.Store, other: store.Store, home: Path):
    kept.save(a_run())
    with sqlite(home) as connection:
        connection.execute("UPDATE parts SET document = x'0011' WHERE place = 1")
    with pytest.raises(ValueError, match="what is stored of it is damaged"):
        other.load(ID)


@pytest.mark.parametrize("strange", [{"times_limit": -1}, {"ops": "many"}, {"note": "x" * 2_001}, "slow", None])
@pytest.mark.parametrize("make", [synthetic.run, synthetic.sweep])
def test_reasons_that_are_not_valid_hide_no_run(
    make: Callable[[str], Run], strange: Any, kept: store.Store, other: store.Store, home: Path
):
    run = make(ID)
    kept.save(run)
    pieces = run.points if run.kind == "sweep" else run.measurements
    raw = msgspec.to_builtins(pieces[0])
    items = raw["measurements"] if run.kind == "sweep" else [raw]
    items[0]["why"] = strange
    with sqlite(home) as connection:
        document = zlib.compress(msgspec.json.encode(raw))
        connection.execute("UPDATE parts SET document = ? WHERE place = 1", (document,))
    read = other.load(ID)
    items[0]["why"] = {}
    now = read.points if run.kind == "sweep" else read.measurements
    assert msgspec.to_builtins(now[0]) == raw and now[1:] == pieces[1:]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a valid run file"),
        (b"{", "not a valid run file"),
        (b"[]", "not a valid run file"),
        (b"\xff\xfe", "not a valid run file"),
        (b'{"schema": "mapbench.run/1"}', "missing required field"),
        (encode(a_run())[:-100], "not a valid run file"),
        (encode(a_run(schema="mapbench.run/9")), "'mapbench.run/9' is not known: 'mapbench.run/1' is"),
        (b'{"schema": "mapbench.run/9", "new": 1}', "'mapbench.run/9' is not known: 'mapbench.run/1' is"),
        (encode(a_run()).replace(b'"budget_s": 30.0', b'"budget_s": "long"'), r"\$\.request\.budget_s"),
    ],
)
def test_a_run_file_that_cannot_be_read_is_said_in_a_sentence(data: bytes, says: str):
    with pytest.raises(ValueError, match=says):
        decode(data)
