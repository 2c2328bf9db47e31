"""The command line: what it prints and where, and its exit statuses."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from measure import __main__ as command_line
from measure import admission
from measure.claims import known
from measure.engine.record import View
from measure.hosting import Limits
from measure.local import Local
from measure.making import FAULT
from measure.pool.launcher import HostState
from measure.run.encoding import decode
from measure.run.run import Run
from tests import claims, synthetic
from tests.deadlines import RUN_S
from tests.engine import ROOT, environment, eventually, measure_here
from tests.subjects import Message, Subjects

SMALL = ("compare", "per_example_gradients", "--size", "batch=4", "--size", "features=8", "--budget", "30")


def answers(
    patch: pytest.MonkeyPatch, run: Run, problem: str = "", ready: Callable[..., bool] = lambda *_: True
) -> None:
    """What measures here has nothing but this answer, once its host is ready."""

    def measure(own: Local, asked: Any, look: Callable[[View], None], **_: Any) -> tuple[Run, str]:
        admission.check(asked, own.host().devices, Limits())
        look(View(run, {}, "timing"))
        return run, problem

    subjects = Subjects()
    subjects.wait_ready = ready
    subjects.state = lambda: HostState("ready", "it ended", ("CPU:0",))
    measure_here(subjects, patch)
    patch.setattr(Local, "measure", measure)


def interrupted(*_: Any) -> bool:
    raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def handlers(monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """What commands set for signals, in place of what these tests have."""
    handlers: dict[int, Any] = {}
    monkeypatch.setattr(signal, "signal", lambda number, handler: handlers.update({number: handler}))
    return handlers


def test_the_status_is_that_of_the_run_and_a_fault_is_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    claim, refusal = known.all_claims()[0], "device 'GPU:63' is not on this machine: CPU:0 can be used"
    for arguments, run in (
        (["compare", "outer_product"], synthetic.run()),
        (["claims", claim.id], claims.run([claim])),
    ):
        for answer, status, says in (
            ((replace(run, status="budget"), {}), 0, ""),
            ((replace(run, status="cancelled"), {}), 3, ""),
            ((replace(run, status="interrupted"), {}), 3, ""),
            ((replace(run, stop_reason=f"{FAULT}: ValueError"), {}), 1, ""),
            ((run, {"ready": lambda *_: False}), 1, "error: nothing can be measured: it ended\n"),
            ((run, {"ready": interrupted}), 3, "interrupted before anything was measured\n"),
        ):
            answers(monkeypatch, answer[0], **answer[1])
            assert command_line.main([*arguments, "--quiet"]) == status
            printed = capsys.readouterr()
            assert bool(printed.out) is not bool(says) and says in printed.err
    answers(monkeypatch, synthetic.run())
    assert command_line.main(["compare", "outer_product", "--device", "GPU:63"]) == 2
    assert capsys.readouterr() == ("", f"error: {refusal}\n")


def test_a_run_that_was_kept_nowhere_is_said_to_be_and_so_is_a_file_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    unsaved, file = {"problem": "Read-only file system"}, tmp_path / "run.json"
    answers(monkeypatch, replace(synthetic.run(), status="interrupted"), **unsaved)
    assert command_line.main(["compare", "outer_product", "--json", str(file)]) == 3
    assert "this run could not be kept (Read-only file system): " in capsys.readouterr().out
    assert decode(file.read_bytes()).warnings == synthetic.run().warnings
    answers(monkeypatch, replace(synthetic.sweep(), status="interrupted"), **unsaved)
    assert command_line.main(["sweep", "outer_product", "--size", "batch=10:100"]) == 3
    printed = "".join(capsys.readouterr())
    assert "this run could not be kept (Read-only file system): " in printed and "continued" not in printed
    answers(monkeypatch, synthetic.run())
    assert command_line.main(["compare", "outer_product", "--json", "/dev/full"]) == 1
    printed = capsys.readouterr()
    assert "--json /dev/full cannot be written: No space left on device" in printed.err
    assert synthetic.run().verdict in printed.out, "and the table is printed"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_has_status_3_and_what_was_measured_is_written(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    handlers: dict[int, Any],
    end: int,
):
    def interrupt(_: Any) -> list[Message]:
        handlers[end](end, None)
        return []

    measure_here(subjects := Subjects(answers={"timing": interrupt}), monkeypatch)
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path / "home"))
    file = tmp_path / "run.json"
    assert command_line.main([*SMALL, "--strategies", "batched.eager,loop.eager", "--json", str(file)]) == 3
    run = decode(file.read_bytes())
    assert run.status == "cancelled" and all(item.memory is not None for item in run.measurements)
    assert run.measurement("batched.eager").outcome == "cancelled"
    assert "batched.eager" in capsys.readouterr().out and subjects.living == []


def test_claims_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert command_line.main(["claims", "--list"]) == 0
    printed = capsys.readouterr()
    assert command_line.main(["claims"]) == 0 and capsys.readouterr().out == printed.out
    assert printed.err == "" and all(claim.id in printed.out for claim in known.all_claims())
    for file in (str(tmp_path / "claims.json"), "-"):
        assert command_line.main(["claims", "--json", file]) == 0
    listed = capsys.readouterr().out
    assert [each["id"] for each in json.loads(listed)] == [claim.id for claim in known.all_claims()]
    assert (tmp_path / "claims.json").read_text() == listed


def test_verdicts_go_to_stdout_as_text_markdown_or_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    claim = claims.of_one_test()
    run = claims.run([claim], claims.evidence(claim.tests[0], True))
    answers(monkeypatch, run)
    assert command_line.main(["claims", claim.id]) == 0
    printed = capsys.readouterr()
    assert f"HOLDS  {claim.id}" in printed.out and printed.err == "timing\n"
    assert command_line.main(["claims", claim.id, "--markdown", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert "| **holds** |" in printed.out and run.id in printed.out and printed.err == ""
    assert command_line.main(["claims", "--all", "--json", "-", "--quiet"]) == 0
    assert decode(capsys.readouterr().out.encode()) == run


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux alone has a file that is always full")
def test_a_full_disk_is_said_in_one_line_and_neither_it_nor_a_reader_that_has_gone_away_costs_the_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    answers(monkeypatch, synthetic.run())
    full, file = "error: nothing more can be written: No space left on device\n", tmp_path / "run.json"
    read, write = os.pipe()
    os.close(read)  # nobody reads it any more
    for place, status, says in (("/dev/full", 1, full), (write, 0, "")):
        with open(place, "w", encoding="utf-8") as stdout, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stdout)
            assert command_line.main(["compare", "outer_product", "--quiet", "--json", str(file)]) == status
        assert capsys.readouterr().err == says and decode(file.read_bytes()) == synthetic.run()
        file.unlink()


@pytest.mark.usefixtures("live")
def test_a_command_that_is_interrupted_while_it_loads_says_so_in_one_line(tmp_path: Path):
    home = environment(MAPBENCH_HOME=str(tmp_path / "home"), MAPBENCH_LOCK=str(tmp_path / "lock"))
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = subprocess.Popen([sys.executable, "-m", "measure", *SMALL], cwd=ROOT, env=home, **pipes)

    def catches() -> bool:
        """True when the process has a handler of its own, as Python by itself has not: it is about to load."""
        status = Path(f"/proc/{command.pid}/status").read_text()
        (mask,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
        return bool(int(mask, 16) >> (signal.SIGTERM - 1) & 1)

    eventually(catches, "it heeds the signal")
    command.send_signal(signal.SIGTERM)
    out, err = command.communicate(timeout=RUN_S)
    assert (command.returncode, out, err) == (3, b"", b"interrupted before anything was measured\n")
