"""Runs in the database: whole or not at all, shared by processes, closed when their process is gone, and bounded."""

import functools
import logging
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import filelock
import pytest
import sqlalchemy as sa
from msgspec import UNSET
from msgspec.structs import replace

from measure.run import decision, place, why
from measure.run.encoding import encode
from measure.run.place import StoreError
from measure.run.run import Run
from measure.store import database, entries, imports, store
from measure.store.queue import Work, WorkerState
from tests import synthetic
from tests.engine import ROOT
from tests.keeping import ids, put
from tests.measure.store.conftest import execute
from workloads import elems_file

ID, OTHER = "0123456789abcdef01234567", "f" * 24
MIB, MOST = 2**20, 24 * 2**20
PASSWORD = "Tr0ub4dor"
New = Callable[..., store.Store]


# Of what only SQLite has, as files.
in_a_file = pytest.mark.parametrize("new", ["sqlite"], indirect=True)


def a_run(run_id: str = ID, **changes: Any) -> Run:
    return replace(synthetic.run(ID), id=run_id, **changes)


@functools.cache
def running(done: int, run_id: str = ID) -> Run:
    return replace(synthetic.partial(done), id=run_id, status="interrupted", stop_reason="")


def test_a_run_that_grows_is_read_as_it_last_was_and_each_save_is_a_version(kept: store.Store, other: store.Store):
    versions = []
    for done in (0, 1, 4, 11):
        put(kept, running(done), live=True)
        seen = other.look(ID)
        assert seen is not None and seen.state != "finished" and seen.run == running(done)
        versions.append(seen.version)
    for run in (a_run(), a_run(measurements=a_run().measurements[:2])):
        put(kept, run)
        seen = other.look(ID)
        assert seen is not None and seen.state == "finished" and encode(seen.run) == encode(run)
        versions.append(seen.version)
    assert versions[:5] == sorted(set(versions[:5]))


def test_what_fails_while_it_is_written_leaves_what_was(kept: store.Store, other: store.Store):
    put(kept, running(1), live=True)
    execute(kept, "ALTER TABLE parts RENAME COLUMN document TO elsewhere")
    with pytest.raises(StoreError, match=r"no column named document|postgresql cannot be used \(UndefinedColumn\)"):
        kept.save(a_run(verdict="another"), ended=True)
    execute(kept, "ALTER TABLE parts RENAME COLUMN elsewhere TO document")
    assert kept.load(ID) == other.load(ID) == running(1) and kept.entries()[0].status == "running"
    assert kept.save(a_run(verdict="another"), ended=True) and kept.load(ID).verdict == "another"


def test_what_is_no_id_is_not_there(kept: store.Store):
    assert place.is_id(place.new_id()) and place.new_id() != place.new_id()
    for name in ("", "../secret", "0" * 23, "0" * 25, "A" * 24, "0" * 24 + "\n", "٣" * 24, "\0"):
        assert not place.is_id(name) and kept.load(name) is None


def test_a_run_whose_process_is_gone_is_interrupted_with_what_it_had(kept: store.Store, other: store.Store, new: New):
    put(kept, running(4), live=True)
    assert other.entries()[0].status == "running" and other.count(store.Query(status="running")) == 1
    kept.close()  # the lock is let go of, as when a process ends
    assert [entry.status for entry in other.entries()] == ["interrupted"], "the list finds it too"
    seen = other.look(ID)
    assert seen is not None and seen.state == "finished" and seen.run.status == "interrupted"
    assert "ended unexpectedly" in seen.run.stop_reason and seen.run.finished is not None
    done = [m.strategy for m in seen.run.measurements if m.latency is not None]
    assert done == [m.strategy for m in running(4).measurements[:4]]
    assert seen.run.ranking and seen.run.verdict, "what was measured is analysed"
    assert other.load(ID) == new().load(ID), "and this is what is stored"


def test_as_many_runs_stay_decoded_as_their_documents_take_so_many_bytes(
    kept: store.Store, monkeypatch: pytest.MonkeyPatch
):
    made, decoded = store._made, list[int]()
    monkeypatch.setattr(store, "_made", lambda documents: decoded.append(1) or made(documents))

    def count(signs: str) -> int:
        decoded.clear()
        for sign in signs:
            assert kept.load(sign * 24) == a_run(sign * 24)
        return len(decoded)

    for sign in "abcde":
        put(kept, a_run(sign * 24))
    assert count("abcd") == 4 and count("abcd") == 0
    monkeypatch.setattr(store, "_DECODED_BYTES", sum(one.bytes for one in kept._decoded.values()))
    assert count("e") == 1 and count("cdeb") == 0 and count("a") == 1 and count("b") == 0
    monkeypatch.setattr(store, "_DECODED_BYTES", 1)
    assert count("cc") == 1 and count("d") == 1, "one stays in any case"


def test_a_damaged_run_is_said_to_be_and_hinders_no_other(kept: store.Store, other: store.Store):
    put(kept, running(4), live=True)
    put(kept, running(4, OTHER), live=True)
    execute(kept, f"UPDATE parts SET document = :data WHERE run = '{ID}' AND place = 2", data=b"0")
    kept.close()
    assert other.load(OTHER).status == "interrupted"
    assert {entry.status for entry in other.entries()} == {"interrupted"}
    with pytest.raises(ValueError, match="what is stored of it is damaged"):
        other.load(ID)


def test_runs_are_listed_the_newest_first_searched_and_filtered(kept: store.Store):
    for number in range(6):
        run = a_run(f"{number:024x}", created=f"2025-01-0{number + 1}T10:00:00+02:00", verdict=f"Verdict 100%_{number}")
        request = replace(run.request, workload=["square", "top_k"][number % 2], device=["CPU:0", "GPU:0"][number // 3])
        environment = {"cpu_model": "Zen 5", "cores_granted": 8, "gpus": ["H200"] if number > 2 else []}
        put(kept, replace(run, request=request, environment=environment, status=["complete", "budget"][number % 2]))
    assert [int(entry.id, 16) for entry in kept.entries(first=1, most=2)] == [4, 3]
    entry = kept.entries()[0]
    assert entry.created == "2025-01-06T08:00:00.000Z" and entry.machine == "H200, Zen 5, 8 cores"
    assert kept.values() == {"workload": ["square", "top_k"], "device": ["CPU:0", "GPU:0"]}
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
        assert [int(entry.id, 16) for entry in kept.entries(query)] == numbers, asked
        assert kept.count(query) == len(numbers)
    many = store.Query(" ".join(f"word{number}" for number in range(5_000)))
    assert str(entries.select(many)).count(" LIKE ") == entries.MOST_WORDS and kept.count(many) == 0
    assert kept.count(store.Query("2025 " * 5_000)) == 6 and kept.count(store.Query("x" * 10**6)) == 0


def test_what_can_be_imported_fits_its_columns_and_weighs_no_list_down(kept: store.Store):
    kept.add(a_run(environment={"gpus": ["x" * 20_000] * 700}, verdict="nul\0sign" + "v" * 20_000))
    assert kept.count(store.Query("NUL\0sign")) == 1
    (entry,) = kept.entries()
    assert max(map(len, (entry.size, entry.machine, entry.verdict))) <= database.SHOWN and entry.verdict.endswith("v …")
    data = encode(a_run(request=replace(a_run().request, workload="w" * (database.NAME + 1))))
    with pytest.raises(ValueError, match="of length <= 200"):
        imports.read(data)


def test_deleted_runs_are_gone_running_ones_stay_and_an_owner_deletes_only_theirs(kept: store.Store):
    put(kept, running(0, "a" * 24), live=True, owner="ann")
    put(kept, a_run("a" * 24))  # the end of it is hers as well
    put(kept, a_run("b" * 24), owner="bob")
    kept.add(a_run("c" * 24), owner="ann")
    put(kept, running(1, OTHER), live=True, owner="ann")
    every = [sign * 24 for sign in "abcef"]
    assert sorted(kept.delete(every, owner="ann")) == ["a" * 24, "c" * 24]
    assert kept.delete(every) == ["b" * 24] and ids(kept) == [OTHER]
    assert [*kept.sizes()] == [OTHER]


@in_a_file
def test_what_an_earlier_version_had_begun_is_interrupted_and_its_drain_goes_on(kept: store.Store, home: Path):
    home.mkdir(parents=True)
    with sqlite3.connect(home / "runs.db") as connection:
        connection.executescript((ROOT / "tests/data/golden/store.sql").read_text("utf-8"))
        connection.execute("UPDATE runs SET holder = 'nobody', status = 'interrupted' WHERE workload = 'image_sqrt'")
        connection.execute("INSERT INTO orders VALUES ('drain'), ('explain:0')")
    assert {entry.status for entry in kept.entries()} == {"interrupted"}
    assert kept.queue.all() == [] and kept.queue.is_drained() and kept.queue.resume()
    assert kept.delete(["2" * 24]) == ["2" * 24]


def test_a_decision_is_written_on_a_run_that_has_ended_by_its_owner_and_is_listed_found_and_taken_along(
    kept: store.Store, other: store.Store, monkeypatch: pytest.MonkeyPatch
):
    put(kept, a_run(digest={}), owner="ann")
    put(kept, running(1, OTHER), live=True)
    before, rows = kept.look(ID), store._rows
    monkeypatch.setattr(store, "_rows", lambda *run: written.extend(rows(*run)) or rows(*run))
    written: list[dict[str, Any]] = []
    made = decision.make("Take batched", "Settled", f"a note {synthetic.HOSTILE}", "Ann")
    assert not kept.decide(ID, made, "bob") and not kept.decide(OTHER, made) and not kept.decide("a" * 24, made)
    assert kept.look(ID) == before and kept.decide(ID, made, "ann")
    assert [row["place"] for row in written] == [0], "the head alone changes"
    now = other.look(ID)
    assert now.run == a_run(decision=made, digest={}) and now.version > before.version
    (entry,) = other.entries(store.Query("batched settled onerror=alert(1) ann"))
    assert entry.id == ID and entry.verdict == f"Take batched · {a_run().verdict}"
    first, *others = a_run().measurements
    assert kept.explain(ID, first.strategy, why.Explained(note="so"), {})
    stored, derived = kept.load(ID), [replace(item, latency=None, break_even=[]) for item in a_run().measurements]
    for older in (a_run(digest={}), a_run(measurements=derived, ranking=[], verdict="of an earlier version")):
        assert not kept.add(older) and kept.load(ID) == stored
    for changes in ({"measurements": [replace(first, replicas=[]), *others]}, {"created": "2025-01-15T09:30:01Z"}):
        with pytest.raises(ValueError, match="another run with the id"):
            kept.add(a_run(**changes))
    kept.explain(ID, first.strategy, first.why, {})
    assert kept.decide(ID, UNSET) and encode(kept.load(ID)) == encode(a_run(digest={}))
    assert kept.entry(ID).verdict == a_run().verdict


@pytest.mark.parametrize(("version", "kind"), [(4, ""), (5, "compare")])
def test_a_database_of_the_versions_before_is_brought_up_to_date(kept: store.Store, version: int, kind: str):
    put(kept, a_run())
    kept.ask(Work("b" * 24, "measure", None))
    kept.close()
    back = [
        "ALTER TABLE jobs DROP COLUMN machine",
        "DROP TABLE holders",
        f"UPDATE mapbench_store SET version = {version}",
    ]
    execute(kept, *back, *(["ALTER TABLE runs DROP COLUMN kind"] if version == 4 else []))
    assert kept.load(ID) == a_run() and kept.queue.next().id == "b" * 24
    put(kept, a_run(OTHER))
    assert {entry.id: entry.kind for entry in kept.entries()} == {ID: kind, OTHER: "compare"}


def test_work_of_a_machine_is_that_machines_alone_and_holds_up_no_other(kept: store.Store, other: store.Store):
    for run_id, machine in ((ID, "lab"), (OTHER, ""), ("b" * 24, "lab")):
        kept.ask(Work(run_id, "measure", run_id, machine=machine), running(0, run_id))
    assert [kept.look(run_id).position for run_id in (ID, OTHER, "b" * 24)] == [0, 0, 1]
    assert other.queue.waits() and other.queue.next().id == OTHER
    assert not other.queue.waits() and other.queue.next() is None and other.queue.waits("lab")
    assert other.queue.next("lab").id == ID and {work.machine for work in kept.queue.all()} == {"lab", ""}


@pytest.mark.parametrize(("version", "age"), [(99, "newer"), (1, "much older")])
def test_a_database_of_another_version_is_left_as_it_is(kept: store.Store, version: int, age: str):
    ids(kept)
    kept.close()
    execute(kept, f"UPDATE mapbench_store SET version = {version}")
    with pytest.raises(StoreError, match=f"made by a {age} Mapbench"):
        kept.load(ID)


def test_a_worker_of_another_version_is_said_to_be(kept: store.Store):
    kept.queue.tell(WorkerState("ready", ""))
    execute(kept, "UPDATE workers SET state = :state", state=b'{"mood": "fine"}')
    worker = kept.queue.worker()
    assert worker and worker.state == "failed" and "another version" in worker.message


def test_the_home_and_all_in_it_is_this_accounts_alone_once_it_was_of_an_earlier_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("MAPBENCH_HOME", str(home := tmp_path / "home"))

    def others_may() -> set[Path]:
        return {one for one in (home, *home.glob("*"), *home.glob("*/*.lock")) if one.stat().st_mode & 0o077}

    put(kept := store.Store(), running(1), live=True)
    assert len([*home.glob("*/*.lock")]) == 1 and len([*home.glob("runs.db*")]) == 4
    assert others_may() == {home / "holders"}
    kept.close()
    for one in (home, home / "runs.db"):
        one.chmod(0o755)
    assert ids(store.Store()) == [ID] and others_may() == {home / "holders"}
    home.chmod(0o755)
    assert ids(store.Store()) == [ID] and home in others_may(), "somebody wants it so"
    monkeypatch.setenv("MAPBENCH_STORE", f"sqlite:///{tmp_path}/shared/runs.db")
    ids(store.Store())
    (usual := tmp_path / "usual").touch()
    assert (tmp_path / "shared/runs.db").stat().st_mode == usual.stat().st_mode, "it is in nobody's home"
    monkeypatch.setenv("MAPBENCH_HOME", "")
    assert place.home() == Path.home() / ".mapbench"


def test_the_arrays_of_a_run_go_with_the_last_run_that_has_them(
    monkeypatch: pytest.MonkeyPatch, kept: store.Store, tmp_path: Path
):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    copies, own = tmp_path / "elems", synthetic.of_function(a_run())
    for sign, content in ("a1", "b1", "c2", "d3"):
        (tmp_path / "rows.npy").write_text(content)
        given = replace(own.request.own.given, code=elems_file.store(str(tmp_path / "rows.npy")))
        run = replace(own, id=sign * 24, request=replace(own.request, own=replace(own.request.own, given=given)))
        kept.add(run) if sign == "d" else put(kept, run)
    assert [copy.stat().st_mode & 0o777 for copy in copies.iterdir()] == [0o600] * 3
    for sign, left in (("a", 3), ("b", 2), ("c", 1), ("d", 1)):
        kept.delete([sign * 24])
        assert len([*copies.iterdir()]) == left, "a file from elsewhere names what it likes"


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path: Path):
    (usual := tmp_path / "usual").touch()
    place.write(file := tmp_path / "run.json", [b"1", b"2"])
    assert file.read_bytes() == b"12" and file.stat().st_mode == usual.stat().st_mode
    file.chmod(0o640)
    place.write(file, [b"3"])
    with pytest.raises(ZeroDivisionError):
        place.write(file, (bytes([4 // left]) for left in (1, 0)))
    assert file.read_bytes() == b"3" and file.stat().st_mode & 0o777 == 0o640 and {*tmp_path.iterdir()} == {file, usual}
    (link := tmp_path / "link").symlink_to(file)
    place.write(link, [b"4"])
    assert link.is_symlink() and file.read_bytes() == b"4", "as a terminal or a pipe"


@in_a_file
def test_a_place_that_cannot_be_used_is_said_and_left(
    monkeypatch: pytest.MonkeyPatch, kept: store.Store, home: Path, tmp_path: Path
):
    (tmp_path / "file").touch()
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as where it is not installed
    for url, says in (
        ("nonsense", "is not an URL of a database"),
        ("nosuch://host/name", "nosuch"),
        ("postgresql+psycopg://host/name", "needs psycopg.binary., which Mapbench's extra «postgresql» installs"),
        (f"sqlite:///{tmp_path}/file/runs.db", "Not a directory|File exists|unable to open"),
    ):
        monkeypatch.setenv("MAPBENCH_STORE", url)
        with pytest.raises(StoreError, match=says):
            ids(store.Store())
    home.mkdir(parents=True)
    (home / "runs.db").write_bytes(b"something else" * 100)
    for _ in range(2):
        with pytest.raises(StoreError, match="file is not a database"):
            kept.load(ID)
    assert (home / "runs.db").read_bytes() == b"something else" * 100


# --- a store that others hold ----------------------------------------------------------------------------------------


def test_who_reads_waits_for_nobody_who_writes(kept: store.Store, other: store.Store, monkeypatch: pytest.MonkeyPatch):
    put(kept, a_run())
    put(kept, running(4, OTHER), live=True)
    ids(other)
    kept.close()  # its process is gone, which nobody can write down
    monkeypatch.setattr(database, "READING_S", 0.01)
    with other._database.writing():
        assert other.load(ID) == a_run() and other.count() == 2 and other.values() and other.load("e" * 24) is None
        assert other.look(OTHER).run == running(4, OTHER)
        assert {entry.id: entry.status for entry in other.entries()} == {ID: "complete", OTHER: "running"}
    assert other.look(OTHER).run.status == "interrupted"


@in_a_file
def test_one_process_at_a_time_opens_a_file(kept: store.Store, home: Path, monkeypatch: pytest.MonkeyPatch):
    ids(kept)
    monkeypatch.setattr(database, "READING_S", 0.01)
    with filelock.FileLock(home / "runs.db.lock"), pytest.raises(StoreError, match="another Mapbench is opening it"):
        ids(store.Store(home))


def test_no_address_shows_its_password(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    def said(written: str) -> str:
        monkeypatch.setenv("MAPBENCH_STORE", written)
        with caplog.at_level(logging.DEBUG), pytest.raises(StoreError) as caught:
            ids(store.Store())
        return f"{caught.value}{caught.value.__cause__}{caplog.text}"

    for written in (
        "postgresql:/user:{}@host/name", "postgres//user:{}@host/name", "postgresql://user:{}@host:port/name",
        "postgress://user:{}@host/name", "postgresql+driver://user:{}@host/name", "postgresql://user:{}@[::1/name",
        "{}@host", "sqlite://user:{}@host/name", f"sqlite:///{tmp_path}/runs.db?timeout={{}}",
    ):  # fmt: skip
        assert PASSWORD not in said(written.format(PASSWORD)), written
    for fault in (sa.exc.OperationalError("", {}, Exception(PASSWORD)), ValueError(PASSWORD), RuntimeError(PASSWORD)):
        monkeypatch.setattr(database, "connect", mock.Mock(side_effect=fault))
        printed = said(f"postgresql://user:{PASSWORD}@host/name")
        name = type(getattr(fault, "orig", fault)).__name__
        assert PASSWORD not in printed and f"postgresql cannot be used ({name})" in printed


# --- the room that runs take -----------------------------------------------------------------------------------------


def heavy(number: int) -> Run:
    """A run of some 1 MiB that nothing makes smaller."""
    return replace(synthetic.run(f"{number:024x}"), measurements=[], ranking=[], stop_reason=os.urandom(MIB).hex())


@pytest.fixture
def bounded(new: New) -> store.Store:
    return new(MOST)


def numbers(kept: store.Store) -> list[int]:
    return sorted(int(run_id, 16) for run_id in ids(kept))


def on_disk(kept: store.Store) -> int:
    file = database.file_of(kept._database._url)
    if file is None:
        return sum(kept.sizes().values())
    return sum(path.stat().st_size for path in file.parent.glob("runs.db*"))


def test_runs_and_imports_stay_under_their_bytes_and_the_oldest_go_first(bounded: store.Store):
    for number in range(24):
        put(bounded, heavy(number)) if number % 2 else bounded.add(heavy(number))
        assert on_disk(bounded) <= MOST
    left = numbers(bounded)
    assert left == list(range(left[0], 24)) and 10 < len(left) < 20, "no more go than have to"


def test_what_alone_is_more_than_the_room_is_refused_and_what_explanations_leave_is_left_out(bounded: store.Store):
    for number in range(4):
        put(bounded, heavy(number))
    with pytest.raises(ValueError, match=r"it takes 1[0-9]\."):
        bounded.add(replace(heavy(9), verdict="", stop_reason=os.urandom(12 * MIB).hex()))
    assert numbers(bounded) == [0, 1, 2, 3], "nothing goes for what does not come"
    put(bounded, synthetic.run(ID))
    slugs, noted = list(synthetic.TIMED)[:6], why.Explained(note="so")
    for slug in slugs:
        assert bounded.explain(ID, slug, noted, {why.TRACE: os.urandom(3 * MIB)}) and on_disk(bounded) <= MOST
    assert bounded.artifacts(ID, slugs[0]) and not bounded.artifacts(ID, slugs[-1])
    assert [bounded.load(ID).measurement(slug).why for slug in slugs] == [noted] * 6


@in_a_file
def test_without_a_bound_nothing_goes_and_the_room_of_what_is_deleted_is_given_back(kept: store.Store):
    for number in range(10):
        put(kept, heavy(number))
    assert numbers(kept) == list(range(10))
    before = on_disk(kept)
    kept.delete([f"{number:024x}" for number in range(10)])
    put(kept, a_run(OTHER))  # what is written next cuts the journal
    assert on_disk(kept) < before / 2


def test_what_an_owner_has_pinned_and_what_goes_on_stays_and_not_more_than_half_of_the_room(bounded: store.Store):
    for number in range(12):
        put(bounded, heavy(number), owner="ann")
    first, *_ = ids = [f"{number:024x}" for number in range(12)]
    assert bounded.pin(ids, True, owner="bob") == []
    with pytest.raises(ValueError, match="more than half of this server's room"):
        bounded.pin(ids, True, owner="ann")
    assert not any(entry.pinned for entry in bounded.entries()), "none of them is"
    assert bounded.pin([first, "e" * 24], True, owner="ann") == [first]
    put(bounded, running(2, OTHER), live=True)
    for number in range(12, 24):
        put(bounded, heavy(number))
    left = numbers(bounded)
    assert 0 in left and int(OTHER, 16) in left and not {1, 2, 3} & set(left)
    assert bounded.pin([first], False) == [first]
    for number in range(24, 42):
        put(bounded, heavy(number))
    assert 0 not in numbers(bounded), "it goes in the end, as all others do"
