"""Runs in the database: whole or not at all, shared by processes, closed when their process is gone, never lost."""

import contextlib
import functools
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from sqlalchemy.dialects import mysql, postgresql

from measure.model import place, why
from measure.model.place import StoreError
from measure.model.run import Run
from measure.model.run_file import encode
from measure.store import database, documents, entries, imports, store
from tests import synthetic
from tests.keeping import put

ID, OTHER = "0123456789abcdef01234567", "f" * 24


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


_partial = functools.cache(synthetic.partial)


def a_run(run_id: str = ID, **changes: Any) -> Run:
    return replace(synthetic.run(ID), id=run_id, **changes)


def running(done: int, run_id: str = ID) -> Run:
    return replace(_partial(done), id=run_id, status="interrupted", stop_reason="")


# --- what is written is read -----------------------------------------------------------------------------------------


def test_a_run_that_grows_is_read_as_it_last_was_and_each_save_is_a_version(kept: store.Store, other: store.Store):
    versions = []
    for done in (0, 1, 4, 11):
        put(kept, running(done), live=True)
        seen = other.look(ID)
        assert seen is not None and seen.work is not None and seen.run == running(done)
        versions.append(seen.version)
    put(kept, a_run())
    seen = other.look(ID)
    assert seen is not None and seen.work is None and seen.run == a_run() and encode(seen.run) == encode(a_run())
    versions.append(seen.version)
    assert versions == sorted(set(versions))
    fewer = replace(a_run(), measurements=a_run().measurements[:2])
    put(kept, fewer)
    assert other.load(ID) == fewer


def test_runs_are_kept_in_memory_within_a_bound_of_bytes(home: Path, monkeypatch: pytest.MonkeyPatch):
    """A page asks for its run at every interaction: one that fits is not read anew, one that does not is."""
    for most, is_same in ((2**20, True), (2**16, False)):
        monkeypatch.setattr(store, "_DECODED_BYTES", most)
        opened = store.Store(home)
        put(opened, a_run())
        assert (opened.load(ID) is opened.load(ID)) is is_same
        opened.close()


def test_a_run_that_is_deleted_while_it_is_measured_is_not_written_again(kept: store.Store, home: Path):
    put(kept, running(1), live=True)
    with sqlite(home) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM runs")
    assert not kept.save(running(2)) and not kept.save(a_run(), ended=True)
    assert kept.load(ID) is None and kept.entries() == []
    for path in home.glob("runs.db*"):
        path.unlink()
    put(kept, a_run())
    assert kept.load(ID) == a_run(), "a database that was deleted is made anew"


def test_what_has_not_changed_is_not_written_again(kept: store.Store, home: Path):
    run = a_run()
    put(kept, run, live=True)
    with sqlite(home) as connection:
        connection.execute("CREATE TABLE noted (place INTEGER)")
        connection.execute("CREATE TRIGGER note AFTER INSERT ON parts BEGIN INSERT INTO noted VALUES (new.place); END")
    changed = replace(run.measurements[3], stage="elsewhere")
    run = replace(run, measurements=[*run.measurements[:3], changed, *run.measurements[4:]])
    put(kept, run, live=True)
    with sqlite(home) as connection:
        assert connection.execute("SELECT place FROM noted ORDER BY place").fetchall() == [(0,), (4,)]
    assert kept.load(ID) == run


def test_what_fails_while_it_is_written_leaves_what_was(kept: store.Store, other: store.Store, home: Path):
    put(kept, running(1), live=True)
    with sqlite(home) as connection:
        connection.execute("CREATE TRIGGER no BEFORE INSERT ON parts BEGIN SELECT RAISE(ABORT, 'not now'); END")
    with pytest.raises(StoreError, match="not now"):
        kept.save(a_run(verdict="another"), ended=True)
    assert kept.load(ID) == other.load(ID) == running(1) and kept.entries()[0].status == "running"
    with sqlite(home) as connection:
        connection.execute("DROP TRIGGER no")
    assert kept.save(a_run(verdict="another"), ended=True) and kept.load(ID).verdict == "another"


def test_ids_cannot_be_guessed_and_what_is_none_is_never_looked_up(kept: store.Store):
    ids = {place.new_id() for _ in range(1000)}
    assert len(ids) == 1000 and all(place.is_id(each) and len(each) == 24 for each in ids)
    for name in ("", "..", "../secret", "0" * 23, "0" * 25, "0" * 23 + "g", "A" * 24, "0" * 24 + "\n", "٣" * 24):
        assert not place.is_id(name) and kept.load(name) is None
    assert kept.load(place.new_id()) is None and kept.ids() == []


# --- runs whose process is gone --------------------------------------------------------------------------------------


def test_a_run_whose_process_is_gone_is_interrupted_with_what_it_had(kept: store.Store, other: store.Store, home: Path):
    put(kept, running(4), live=True)
    assert other.entries()[0].status == "running" and other.count(store.Query(status="running")) == 1
    kept.close()  # the lock is let go of, as when a process ends
    assert [entry.status for entry in other.entries()] == ["interrupted"], "the list finds it too"
    seen = other.look(ID)
    assert seen is not None and seen.work is None and seen.run.status == "interrupted"
    assert "ended unexpectedly" in seen.run.stop_reason and seen.run.finished is not None
    done = [m.strategy for m in seen.run.measurements if m.latency is not None]
    assert done == [m.strategy for m in running(4).measurements[:4]]
    assert seen.run.ranking and seen.run.verdict, "what was measured is analysed"
    assert other.load(ID) == store.Store(home).load(ID), "and this is what is stored"


def test_a_damaged_run_is_said_to_be_and_hinders_no_other(kept: store.Store, other: store.Store, home: Path):
    put(kept, running(4), live=True)
    put(kept, running(4, OTHER), live=True)
    with sqlite(home) as connection:
        connection.execute("UPDATE parts SET document = x'00' WHERE run = ? AND place = 2", (ID,))
    kept.close()
    assert other.load(OTHER).status == "interrupted"
    assert {entry.status for entry in other.entries()} == {"interrupted"}
    with pytest.raises(ValueError, match="what is stored of it is damaged"):
        other.load(ID)


# --- the list --------------------------------------------------------------------------------------------------------


@pytest.fixture
def listed(kept: store.Store) -> store.Store:
    for number in range(6):
        run = a_run(f"{number:024x}", created=f"2025-01-0{number + 1}T10:00:00+02:00", verdict=f"Verdict 100%_{number}")
        request = replace(run.request, workload=["square", "top_k"][number % 2], device=["CPU:0", "GPU:0"][number // 3])
        environment = {"cpu_model": "Zen 5", "cores_granted": 8, "gpus": ["H200"] if number > 2 else []}
        put(kept, replace(run, request=request, environment=environment, status=["complete", "budget"][number % 2]))
    return kept


def test_runs_are_listed_the_newest_first_searched_and_filtered(listed: store.Store):
    assert [int(entry.id, 16) for entry in listed.entries(first=1, most=2)] == [4, 3]
    entry = listed.entries()[0]
    assert entry.created == "2025-01-06T08:00:00.000Z" and entry.machine == "H200, Zen 5, 8 cores"
    assert entry.size == "batch 100, height 64, width 64, channels 3"
    assert listed.values() == {"workload": ["square", "top_k"], "device": ["CPU:0", "GPU:0"]}
    for asked, numbers in (
        ({}, [5, 4, 3, 2, 1, 0]),
        ({"workload": "square"}, [4, 2, 0]),
        ({"device": "GPU:0"}, [5, 4, 3]),
        ({"status": "budget", "device": "CPU:0"}, [1]),
        ({"text": "TOP_K h200"}, [5, 3]),
        ({"text": "verdict 100%_4"}, [4]),
        ({"text": "100__4"}, []),
        ({"text": f"{2:024x}"}, [2]),
        ({"text": "zen 5 8 cores 2025-01-03"}, [2]),
        ({"text": "' OR 1=1 --"}, []),
    ):
        query = store.Query(**asked)
        assert [int(entry.id, 16) for entry in listed.entries(query)] == numbers, asked
        assert listed.count(query) == len(numbers)


def test_what_can_be_imported_fits_its_columns_and_weighs_no_list_down(kept: store.Store):
    kept.add(a_run(environment={"gpus": ["x" * 20_000] * 700}, verdict="v" * 20_000))
    (entry,) = kept.entries()
    assert max(map(len, (entry.size, entry.machine, entry.verdict))) <= database.SHOWN and entry.verdict.endswith("v…")
    for length, is_in in ((database.NAME, True), (database.NAME + 1, False)):
        data = encode(a_run(request=replace(a_run().request, workload="w" * length, device="d" * length)))
        with contextlib.nullcontext() if is_in else pytest.raises(ValueError, match="of length <= 200"):
            imports.read(data)


# --- imports and deleting --------------------------------------------------------------------------------------------


def test_a_run_from_elsewhere_is_kept_and_marked(kept: store.Store, other: store.Store):
    assert kept.add(a_run())
    seen = other.look(ID)
    assert seen is not None and seen.imported and seen.work is None and seen.run == a_run()
    assert not kept.add(a_run()), "it is here already"
    with pytest.raises(ValueError, match=f"another run with the id {ID} is here already"):
        kept.add(a_run(verdict="a forgery"))
    assert kept.load(ID) == a_run()
    kept.delete([ID])
    kept.add(a_run(verdict="another"))
    assert other.load(ID).verdict == "another", "it is another version"


def test_deleted_runs_are_gone_running_ones_stay_and_an_owner_deletes_only_theirs(kept: store.Store, home: Path):
    put(kept, running(0, "a" * 24), live=True, owner="ann")
    put(kept, a_run("a" * 24))  # the end of it is hers as well
    put(kept, a_run("b" * 24), owner="bob")
    kept.add(a_run("c" * 24), owner="ann")
    put(kept, running(1, OTHER), live=True, owner="ann")
    every = [sign * 24 for sign in "abcef"]
    assert sorted(kept.delete(every, owner="ann")) == ["a" * 24, "c" * 24]
    assert kept.delete(every) == ["b" * 24] and kept.ids() == [OTHER]
    with sqlite(home) as connection:
        assert connection.execute("SELECT DISTINCT run FROM parts").fetchall() == [(OTHER,)]


# --- versions of the database ----------------------------------------------------------------------------------------


def test_a_database_is_brought_to_the_next_version_with_all_that_is_in_it(kept: store.Store, url: sa.URL):
    put(kept, a_run())
    kept.close()

    def add_notes(connection: sa.Connection) -> None:
        connection.execute(sa.text("ALTER TABLE runs ADD COLUMN note VARCHAR(10) DEFAULT 'none'"))

    def fail(connection: sa.Connection) -> None:
        add_notes(connection)
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        database.connect(url, [*database.MIGRATIONS, fail])
    assert kept.load(ID) == a_run(), "one that fails leaves what was"
    kept.close()
    for _ in range(2):  # once is enough
        engine = database.connect(url, [*database.MIGRATIONS, add_notes])
        with engine.connect() as connection:
            assert connection.execute(sa.text("SELECT id, note FROM runs")).all() == [(ID, "none")]
            assert connection.execute(sa.text("SELECT version FROM mapbench_store")).scalars().all() == [1, 2, 3, 4, 5]
        engine.dispose()
    with pytest.raises(StoreError, match="made by a newer Mapbench"):
        kept.load(ID)


def test_a_database_of_the_first_version_is_opened_with_all_that_is_in_it(kept: store.Store, url: sa.URL):
    """As a Mapbench made it that knew of no explanations: filled by that version's own tables, row by row."""
    engine = database.connect(url, database.MIGRATIONS[:1])
    ids = [f"{number:024x}" for number in range(3)]
    with database.for_writing(engine).begin() as connection:
        assert not sa.inspect(connection).has_table("artifacts")
        first = sa.Table("runs", sa.MetaData(), autoload_with=connection)
        for number, run_id in enumerate(ids):
            more = {"version": number + 1, "holder": None, "owner": "ann", "imported": number == 1}
            connection.execute(sa.insert(first).values(entries.row(a_run(run_id)) | more))
            documents.write(connection, a_run(run_id))
    engine.dispose()
    assert sorted(kept.ids()) == ids
    assert [kept.look(run_id).imported for run_id in ids] == [False, True, False]
    assert kept.load(ids[2]) == a_run(ids[2])
    slug = a_run().measurements[0].strategy
    assert kept.explain(ids[0], slug, why.Explained(note="now"), {why.GRAPH: b"a graph"})
    assert kept.artifact(ids[0], slug, why.GRAPH) == b"a graph"
    assert kept.delete(ids[:1], owner="ann") == ids[:1]


def test_what_waited_or_was_measured_in_a_database_of_the_third_version_does_so_in_this_one(
    kept: store.Store, url: sa.URL, home: Path
):
    engine = database.connect(url, database.MIGRATIONS[:3])
    with database.for_writing(engine).begin() as connection:
        connection.execute(sa.text("CREATE TABLE waiting (run TEXT, place INTEGER, asked BLOB)"))
        third = sa.Table("runs", sa.MetaData(), autoload_with=connection)
        for number, holder in enumerate((None, "a" * 24, "nobody")):
            more = {"version": 1, "holder": holder, "owner": "ann", "imported": False}
            run = running(1, f"{number:024x}") if holder else a_run(f"{number:024x}")
            connection.execute(sa.insert(third).values(entries.row(run) | more))
            documents.write(connection, run)
        asked = {"run": f"{2:024x}", "place": 7, "asked": b'{"why": true}'}
        connection.execute(sa.text("INSERT INTO waiting VALUES (:run, :place, :asked)"), asked)
        connection.execute(sa.text("INSERT INTO orders VALUES ('drain'), ('explain:0')"))
    engine.dispose()
    (work,) = (work for work in kept.queue.all() if work.holder is None)
    assert (work.run_id, work.kind, work.owner, work.job.why) == (f"{2:024x}", "measure", "ann", True)
    assert {entry.id[-1]: entry.status for entry in kept.entries()} == {
        "0": "complete", "1": "interrupted", "2": "running",
    }  # fmt: skip
    assert kept.queue.is_drained() and kept.queue.resume()


# --- other databases, and ones that cannot be used -------------------------------------------------------------------


@pytest.mark.parametrize("dialect", [postgresql.dialect(), mysql.dialect()], ids=["postgresql", "mysql"])
def test_the_tables_can_be_made_in_other_databases(dialect: sa.Dialect):
    for table in (*database.runs.metadata.sorted_tables, database.versions):
        made = str(sa.schema.CreateTable(table).compile(dialect=dialect))
        # Without a length MySQL's blobs and texts end at 64 KiB.
        assert "CREATE TABLE" in made and not re.search(r"\b(BLOB|TEXT)(?!\()", made), made
        for column in table.columns:
            if isinstance(column.type, sa.LargeBinary):
                assert column.type.length >= why.MOST_ARTIFACT_BYTES
        for index in table.indexes:
            assert not any(isinstance(column.type, sa.Text) for column in index.columns), "needs a length elsewhere"


def test_the_place_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "elsewhere"))
    put(store.Store(), a_run())
    assert (tmp_path / "elsewhere" / "runs.db").exists()
    monkeypatch.setenv("MAPBENCH_STORE", f"sqlite:///{tmp_path}/shared.db")
    assert store.Store().ids() == []
    assert (tmp_path / "shared.db").exists()
    monkeypatch.setenv("MAPBENCH_HOME", "")
    assert place.home() == Path.home() / ".mapbench"


def test_a_place_that_cannot_be_used_is_said_and_left(
    monkeypatch: pytest.MonkeyPatch, kept: store.Store, home: Path, tmp_path: Path
):
    (tmp_path / "file").touch()
    for url, says in (
        ("nonsense", "is not an URL of a database"),
        ("nosuch://host/name", "nosuch"),
        (f"sqlite:///{tmp_path}/file/runs.db", "Not a directory|File exists|unable to open"),
    ):
        monkeypatch.setenv("MAPBENCH_STORE", url)
        with pytest.raises(StoreError, match=says):
            store.Store().ids()
    home.mkdir(parents=True)
    (home / "runs.db").write_bytes(b"something else" * 100)
    for _ in range(2):
        with pytest.raises(StoreError, match="file is not a database"):
            kept.load(ID)
    assert (home / "runs.db").read_bytes() == b"something else" * 100
