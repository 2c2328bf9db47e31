"""`gate` at the command line: what it refuses, two stored runs, and two commits of a repository, measured."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from measure import __main__ as command_line
from measure.checkouts import opened
from measure.engine import gate as engine
from measure.run.encoding import encode
from measure.store.store import Store
from tests.measure.judge.test_gate import FIRST, SLOW, coded

# The steps are those of a module beside it, and what is added has no effect.
_CODE = """
import numpy as np
import tensorflow as tf
from steps import MORE

WEIGHTS = np.eye(32, dtype=np.float32)


def rows(batch=8):
    return np.ones((batch, 32, 32), np.float32)


def chain(x):
    y = x = tf.tanh(x)
    for _ in range(MORE):
        y = tf.tanh(tf.matmul(y, WEIGHTS))
    return x + 1e-30 * y
"""
OWN = ("--function", "sub/code.py:chain", "--elems", "rows", "--strategies", "map_fn.graph", "--quiet")


def gate(*words: object) -> int:
    return command_line.main(["gate", *map(str, words)])


def git(*words: str) -> None:
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *author, *words], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["a.json"], "a second run is needed, or --function"),
        (["a.json", "b.json"], "a.json cannot be read"),
        (["a", "b", "--max-regression", "0.05"], "--max-regression '0.05' is not valid: write a percentage, as 5%"),
        (["a", "b", "--json", "-", "--junit", "-"], "'-' is stdout, for one of"),
        (["a", "b", "--junit", "/nowhere/at/all.xml"], "--junit /nowhere/at/all.xml cannot be written"),
        ([".", "--function", "square"], "--function 'square' is not valid: write FILE.py:FUNCTION"),
        ([".", "--function", "/a/code.py:f"], "--function '/a/code.py:f' is not valid: write FILE.py:FUNCTION"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(words, says, capsys: pytest.CaptureFixture[str]):
    assert gate(*words) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and says in printed.err and printed.err.count("\n") == 1


def test_stored_runs_and_files_are_gated_with_the_statuses_that_docs_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    slow, report = tmp_path / "slow.json", tmp_path / "report.xml"
    Store().add(FIRST)
    slow.write_bytes(encode(coded(SLOW, 4)))
    assert gate(FIRST.id, slow, "--max-regression", "30%", "--junit", report, "--json", "-") == 4
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["max_memory"], document["exit_status"]) == ("slower", 0.3, 4)
    assert ElementTree.parse(report).getroot().get("failures") == "1"
    for words, status in ((["30%"], 0), (["0.1%"], 5), (["0.1%", "--lenient"], 0)):
        assert gate(FIRST.id, FIRST.id, "--max-regression", *words) == status
    read, write = os.pipe()
    os.close(read)  # nobody reads the table any more
    with open(write, "w", encoding="utf-8") as stdout, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        assert gate(FIRST.id, slow) == 4
    slow.write_bytes(encode(replace(FIRST, request=replace(FIRST.request, dtype="float64"))))
    assert gate(FIRST.id, slow) == 2 and "different cases" in capsys.readouterr().err


def test_a_folder_can_have_any_name_and_its_modules_come_before_installed_ones(tmp_path: Path):
    folder = tmp_path / os.fsdecode(b"d\xff")
    folder.mkdir()
    with opened(str(folder)) as side:
        assert side.folder == folder and side.name == f"{tmp_path}/d\N{REPLACEMENT CHARACTER}"
        folders = [Path(name).relative_to(folder) for name in side.interpreter("a/b.py").folders]
        assert folders == [Path("a"), Path(), Path("src")]


@pytest.mark.usefixtures("live")
def test_two_commits_are_measured_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    for name, value in (("ROUNDS", 4), ("_MOST_ROUNDS", 4), ("PAIRS", 3)):  # enough for what is decided here
        monkeypatch.setattr(engine, name, value)
    git("init", "-q")
    folder = Path("sub")
    folder.mkdir()
    for more in (0, 100):
        (folder / "code.py").write_text(f"{_CODE}# {more} more\n")
        (folder / "steps.py").write_text(f"MORE = {more}\n")
        git("add", ".")
        git("commit", "-q", "-m", "steps")
    # Slower by far: the folder as it is, against its parent.
    assert gate("HEAD~1", *OWN, "--max-memory", "1000%", "--json", "gate.json", "--markdown", "gate.md") == 4
    document = json.loads(Path("gate.json").read_bytes())
    assert [one["verdict"] for one in document["strategies"]] == ["slower"]
    assert "HEAD (the current folder) against BASE (HEAD\\~1 (" in Path("gate.md").read_text()
    run = Store().load(document["run"])
    assert run is not None and [item.outcome for item in run.measurements] == ["ok", "ok"]
    assert gate("HEAD~1", "HEAD~1", *OWN, "--max-regression", "300%", "--json", "equal.json") == 0
    # Apart from each other they tell nothing: what could be a baseline has changed as well.
    capsys.readouterr()
    assert gate(json.loads(Path("equal.json").read_bytes())["run"], run.id, "--max-memory", "1000%") == 5
    assert "the code of map_fn.graph, the baseline, is another one" in capsys.readouterr().out
    (Path("broken") / "sub").mkdir(parents=True)
    Path("broken/sub/code.py").write_text(f"{_CODE}\n1 / 0\n")
    nothing = "is no folder, no Python and no revision that git can bring: fatal: "
    for sides, says in (
        (["nothing"], nothing),
        ([""], nothing),
        (["HEAD", ""], nothing),
        (["/bin/true"], "/bin/true is no Python that can measure: Input data was truncated"),
        (["broken"], "error: broken: "),
        (["HEAD", "--device", "GPU:99"], "device 'GPU:99' is not on this machine"),
    ):
        assert gate(*sides, *OWN) == 2 and says in capsys.readouterr().err
