"""Names and defaults of all options, exit statuses, and the columns of what is written."""

import argparse
import contextlib
import io
import json
import shlex
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest

import strategies
import workloads
from measure.__main__ import main
from tests.browser import ROOT
from tests.golden import present
from tests.golden.renew import FOLDER, differences, golden

FILES = [ROOT / path for path in ("tests/data/run_1.json", "tests/data/sweep_1.json", "views/example_claims.json")]


class _Made(BaseException):
    """Carries the parser that the command line has made."""


def options() -> dict[str, Any]:
    """Command → option or argument → its kind, what is valid, and its default; help is not in it."""

    def caught(own: argparse.ArgumentParser, *_: Any) -> None:
        raise _Made(own)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", caught)
        with pytest.raises(_Made) as made:
            main([])
    return _options(made.value.args[0])


def _options(parser: argparse.ArgumentParser) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            made |= {name: _options(command) for name, command in action.choices.items()}
        elif not isinstance(action, argparse._HelpAction):
            facts = {"kind": type(action).__name__, "metavar": action.metavar, "nargs": action.nargs,
                     "choices": action.choices, "default": action.default or None}  # fmt: skip
            name = " ".join(action.option_strings) or action.dest
            made[name] = {key: value for key, value in facts.items() if value is not None}
    return made


def columns() -> dict[str, list[str]]:
    """Frozen file and form → the columns of its CSV."""
    made = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        for path in FILES:
            assert main(["export", str(path), "--csv", "--samples", "--into", folder]) == 0
            for ending in ("csv", "samples.csv"):
                text = Path(folder, f"{path.stem}.{ending}").read_text("utf-8")
                made[f"{path.stem} {ending}"] = text.partition("\n")[0].strip().split(",")
    return made


def test_options_defaults_and_columns_are_as_they_were() -> None:
    assert differences(golden("options"), options()) == []
    assert differences(golden("columns"), columns()) == []


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    monkeypatch.setenv("MAPBENCH_WORKLOADS", "")  # which --workload-file changes
    return tmp_path


@pytest.mark.parametrize("line", (FOLDER / "refused.txt").read_text("utf-8").splitlines())
def test_what_cannot_be_done_has_status_2(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says why, or argparse's usage."""
    kind, *arguments = shlex.split(line)
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = ended.code
    printed = capsys.readouterr()
    assert status == 2 and printed.out == "" and printed.err.startswith(f"{kind}: ")
    assert kind == "usage" or printed.err.count("\n") == 1


def test_a_database_that_is_frozen_opens_and_its_runs_are_listed_exported_pinned_and_deleted(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It holds two of the frozen runs, the first of them pinned and with a graph."""
    compared, swept = "1" * 24, "2" * 24
    with contextlib.closing(sqlite3.connect(home / "runs.db")) as connection:
        connection.executescript((FOLDER / "store.sql").read_text("utf-8"))
    assert main(["admin", "list", "--json"]) == 0
    listed = {each["id"]: each["pinned"] for each in json.loads(capsys.readouterr().out)}
    assert listed == {compared: True, swept: False}
    for run_id, path in ((compared, FILES[0]), (swept, FILES[1])):
        assert main(["export", run_id, "--json", "--into", "-"]) == 0
        of_store = capsys.readouterr().out
        assert main(["export", str(path), "--json", "--into", "-"]) == 0
        changed = differences(json.loads(capsys.readouterr().out), json.loads(of_store))
        assert [each for each in changed if not each.startswith(("$.id ", "$.measurements[0].why."))] == []
    forms = ["--json", "--csv", "--samples", "--markdown", "--graph"]
    assert main(["export", compared, *forms, "--into", str(home / "out")]) == 0
    names = {f"{compared}.{ending}" for ending in ("json", "csv", "samples.csv", "md", "batched.xla.graph.txt")}
    assert {path.name for path in (home / "out").iterdir()} == names
    assert {Path(line).name for line in capsys.readouterr().out.splitlines()} == names
    for order in ("unpin", "pin", "delete"):
        assert main(["admin", order, compared]) == 0
    assert main(["export", compared, "--csv"]) == 2


def test_a_comparison_and_a_sweep_end_with_status_0_their_table_on_stdout_progress_on_stderr_and_the_run_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, of_two = tmp_path / "run.json", ("--strategies", "batched.graph,loop.eager", "--json")
    with present.simulated():
        assert main(["compare", "square", "--size", "batch=50", *of_two, str(file)]) == 0
        printed, run = capsys.readouterr(), json.loads(file.read_bytes())
        assert run["schema"] == "mapbench.run/1" and run["ranking"] == [["batched.graph"], ["loop.eager"]]
        assert "  batched.graph: " in printed.err and "  loop.eager: " in printed.err
        assert run["verdict"] in printed.out and printed.out.split()[:3] == ["rank", "strategy", "latency"]
        assert all("def strategy" in item["code"]["source"] for item in run["measurements"])
        assert main(["sweep", "square", "--size", "batch=1:50:2", *of_two, "-", "--quiet"]) == 0
        swept = json.loads(capsys.readouterr().out)
        assert (swept["kind"], swept["axes"][0]["values"]) == ("sweep", [1, 50])
        assert main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {each["slug"] for each in listed["workloads"]} == set(workloads.names())
    assert {each["slug"] for each in listed["mappers"]} == {each.slug for each in strategies.mappers()}
    assert "CPU:0" in listed["devices"]
