"""`mapbench decide`: what it writes, prints and refuses."""

from pathlib import Path

import pytest
from msgspec import UNSET

from measure.__main__ import main
from measure.store.store import Store
from tests import synthetic

ID = "0123456789abcdef01234567"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Store:
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    kept = Store()
    kept.add(synthetic.run(ID))
    return kept


def test_texts_are_written_over_those_that_stand_there_until_they_are_cleared(
    kept: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def printed(*options: str) -> list[str]:
        assert main(["decide", ID, *options]) == 0
        return capsys.readouterr().out.splitlines()

    monkeypatch.setenv("LOGNAME", "ann")
    assert printed() == [f"nothing is decided on run {ID}"]
    lines = printed("--title", "Take\n \x1b[31mit", "--decision", "We take it.\nNow.")
    assert lines[:3] == ["Take [31mit", "We take it.", "Now."] and lines[3].startswith("by ann, 20")
    lines = printed("--note", "a note", "--by", "Bob", "--decision", "")
    assert lines[:2] == ["Take [31mit", "a note"] and lines[2].startswith("by Bob, ") and printed() == lines
    assert printed("--by", "Cat")[2].startswith("by Cat, ")
    assert main(["decide", ID, "--decision", "no\ryes"]) == 0 and "\r" not in capsys.readouterr().out
    assert printed("--clear", "--title", "Anew", "--by", "")[0] == "Anew" and kept.load(ID).decision.note == ""
    assert printed("--clear") == printed() and kept.load(ID) == synthetic.run(ID)


def test_what_cannot_be_written_is_refused_in_one_line(kept: Store, capsys: pytest.CaptureFixture[str]):
    kept.begin(synthetic.partial(1, "a" * 24))
    for run_id, words in (("a" * 24, "decided"), ("b" * 24, "decided"), (ID, "d" * 2_001), (ID, "\udc80")):
        assert main(["decide", run_id, "--note", words]) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and printed.err.startswith("error: ") and printed.err.count("\n") == 1
    assert kept.load(ID).decision is UNSET
