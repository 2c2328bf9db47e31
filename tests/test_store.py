"""Runs on disk: whole or not at all, found by ids that nobody can guess or bend into a path."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from measure import store
from measure.run import Run, decode, encode
from tests import synthetic


@pytest.fixture
def kept(tmp_path: Path) -> store.Store:
    return store.Store(tmp_path / "deep" / "runs")


def a_run(run_id: str = "0123456789abcdef01234567") -> Run:
    return synthetic.run(run_id)


def test_a_run_is_read_as_it_was_written(kept: store.Store):
    run = a_run()
    kept.save(run)
    assert kept.load(run.id) == run
    assert decode(encode(run)) == run


def test_a_run_is_replaced_whole(kept: store.Store):
    kept.save(a_run())
    kept.save(replace(a_run(), verdict="another"))
    loaded = kept.load(a_run().id)
    assert loaded is not None and loaded.verdict == "another"
    assert [path.name for path in kept.folder.iterdir()] == [f"{a_run().id}.json"]


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_fails_while_writing_leaves_the_former_file_and_no_other(
    kept: store.Store, monkeypatch: pytest.MonkeyPatch, fault: BaseException
):
    kept.save(a_run())

    def fail(*_: object) -> None:
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(type(fault)):
            kept.save(replace(a_run(), verdict="another"))
    assert kept.load(a_run().id) == a_run()
    assert [path.name for path in kept.folder.iterdir()] == [f"{a_run().id}.json"]


def test_a_process_that_dies_before_the_replacement_leaves_the_former_file(kept: store.Store):
    kept.save(a_run())
    pid = os.fork()
    if pid == 0:
        try:
            os.replace = lambda *_: os._exit(1)  # what a crash between writing and renaming comes to
            kept.save(replace(a_run(), verdict="another"))
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert kept.load(a_run().id) == a_run()
    assert kept.ids() == [a_run().id], "the half that was left is no run"


def test_ids_cannot_be_guessed():
    ids = {store.new_id() for _ in range(1000)}
    assert len(ids) == 1000 and all(store.is_id(each) and len(each) == 24 for each in ids)


@pytest.mark.parametrize(
    "name",
    ["", "..", "../secret", "/etc/passwd", "0" * 23, "0" * 25, "0" * 23 + "g", "A" * 24, "0" * 24 + "\n", "٣" * 24],
)
def test_what_is_no_id_is_never_looked_up(kept: store.Store, name: str):
    kept.save(a_run())
    (kept.folder.parent / "secret.json").write_bytes(encode(a_run()))
    assert not store.is_id(name)
    assert kept.load(name) is None


def test_an_unknown_id_is_none(kept: store.Store):
    assert kept.load(store.new_id()) is None
    assert kept.ids() == []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a valid run file"),
        (b"{", "not a valid run file"),
        (b"[]", "not a valid run file"),
        (b"\xff\xfe", "not a valid run file"),
        (b'{"schema": "mapbench.run/1"}', "missing required field"),
        (encode(a_run())[:-100], "not a valid run file"),
        (encode(replace(a_run(), schema="mapbench.run/9")), "'mapbench.run/9' is not known: 'mapbench.run/1' is"),
        (encode(a_run()).replace(b'"budget_s": 30.0', b'"budget_s": "long"'), r"\$\.request\.budget_s"),
    ],
)
def test_a_damaged_file_is_said_in_a_sentence(kept: store.Store, data: bytes, says: str):
    kept.folder.mkdir(parents=True)
    (kept.folder / f"{'1' * 24}.json").write_bytes(data)
    with pytest.raises(ValueError, match=says):
        kept.load("1" * 24)


def test_runs_are_listed_the_newest_first_and_nothing_else_is(kept: store.Store):
    ids = [f"{number:024x}" for number in (5, 3, 9)]
    for place, run_id in enumerate(ids):
        kept.save(a_run(run_id))
        os.utime(kept.folder / f"{run_id}.json", (1_000 + place, 1_000 + place))
    (kept.folder / "notes.json").write_text("{}")
    (kept.folder / f".{ids[0]}-x8fj2k").write_text("half a ru")
    assert kept.ids() == ids[::-1]


def test_the_home_of_runs_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "elsewhere"))
    assert store.Store().folder == tmp_path / "elsewhere" / "runs"
    monkeypatch.setenv("MAPBENCH_HOME", "")
    assert store.home() == Path.home() / ".mapbench"
