"""Scripts of claims: what they report and how they end, whatever they do."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from measure.claims import scripts
from measure.model.script_end import ScriptEnd
from tests.engine import (
    DEADLINE_S,
    GONE_WITHIN_S,
    LEAVE_A_PROCESS,
    WAIT_UNTIL_LEFT,
    environment,
    eventually,
    is_alive,
    left_behind,
)

QUICK_S = 5.0


def end_of(source: str, **changes: Any) -> ScriptEnd:
    return scripts.run(source, **{"seconds": QUICK_S, "is_cancelled": lambda: False} | changes)


def test_what_a_script_reports_are_its_figures():
    end = end_of("report(a=1, b=[0.5, 2.0])\nreport(b=[1.0], c='ü')\nprint('so\\0 it is')")
    assert end.figures == {"a": 1, "b": [1.0], "c": "ü"} and end.error == "" and end.printed == "so it is\n"
    assert end.source.startswith("report(a=1") and 0 < end.seconds < DEADLINE_S


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("x = 1\n\ndef f():\n    return 1 / 0\n\nf()", "line 4: ZeroDivisionError: division by zero"),
        ("x = 1\ny = (", "line 2: SyntaxError: '(' was never closed (script.py, line 2)"),
        ("import sys\nsys.exit(3)", "line 2: SystemExit: 3"),
        ("import os\nreport(x=1)\nos._exit(3)", "its process ended with status 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "its process ended with status -11"),
        ("raise KeyboardInterrupt", "line 1: KeyboardInterrupt: "),
        ("report(x=float('nan'))", "its figures cannot be kept: Out of range float values are not JSON compliant"),
        ("report({(1, 2): 3})", "its figures cannot be kept: keys must be str, int, float, bool or None, not tuple"),
        ("x = []\nx.append(x)\nreport(x=x)", "its figures cannot be kept: Circular reference detected"),
        ("report(x=2**70)", "its figures cannot be kept: a whole number is larger than 64 bits"),
        ("report(x='a\\0')", "its figures cannot be kept: a text has up to 20,000 signs that can be shown"),
        ("report(x='y' * 10 * 2**20)", "it reported more than 1,024 KiB of figures"),
        ("report(x='y' * 100 * 2**20)", "it reported more than 1,024 KiB of figures"),
        ("open('/nowhere/at/all')", "line 1: FileNotFoundError: [Errno 2] No such file or directory: '<path>'"),
    ],
)
def test_what_goes_wrong_is_its_error_with_the_line(source: str, error: str):
    end = end_of(source)
    assert end.error.startswith(error) and end.figures == {}, end


def test_figures_until_a_failure_are_kept():
    end = end_of("report(before=1)\nraise ValueError('after')")
    assert (end.figures, end.error) == ({"before": 1}, "line 2: ValueError: after")


def test_an_object_is_reported_as_text():
    assert end_of("report(x={1}, y=[object])").figures == {"x": "{1}", "y": ["<class 'object'>"]}


def test_a_script_that_prints_without_end_fills_no_disk():
    end = end_of("while True:\n    print('x' * 10**6, flush=True)")
    assert end.error == "line 2: OSError: [Errno 27] File too large" and end.printed == "x" * 2_000


def test_all_processes_of_a_script_end_with_it(tmp_path: Path):
    path = str(tmp_path / "pids")
    source = LEAVE_A_PROCESS.format(path=path) + WAIT_UNTIL_LEFT.format(path=path) + "report(x=1)"
    assert end_of(source).figures == {"x": 1}
    pids = tmp_path / "pids"
    assert len(pids.read_text().split()) == 2
    eventually(lambda: not left_behind(pids), "both are gone", GONE_WITHIN_S)


def test_a_script_that_is_cancelled_ends(tmp_path: Path):
    begun = tmp_path / "begun"
    end = end_of(f"open({str(begun)!r}, 'w').close()\nwhile True:\n    pass", is_cancelled=begun.exists)
    assert end.error == "it was cancelled" and end.seconds < DEADLINE_S


def test_a_script_that_takes_far_too_long_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scripts, "_PATIENCE_S", -3.5)
    end = end_of("import time\ntime.sleep(1000)")
    assert end.error == "it took more than 2 s and was ended" and end.figures == {}


def test_a_script_that_needs_too_much_memory_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scripts, "MOST_BYTES", 2**28)
    end = end_of("import time\nx = bytearray(b'x' * 2**29)\ntime.sleep(1000)")
    assert end.error == "it needs more than 0.25 GiB and was ended"


def test_a_script_ends_with_the_process_that_started_it(tmp_path: Path):
    path = tmp_path / "pid"
    source = f"import os\nopen({str(path)!r}, 'w').write(str(os.getpid()))\nwhile True: pass"
    code = f"from measure.claims import scripts\nscripts.run({source!r}, 100.0, lambda: False)"
    parent = subprocess.Popen([sys.executable, "-c", code], env=environment())
    pid = int(eventually(lambda: path.exists() and path.read_text(), "it has begun"))
    parent.kill()
    parent.wait()
    eventually(lambda: not is_alive(pid), "it has ended", GONE_WITHIN_S)


def test_nothing_of_a_script_is_in_the_environment_of_others():
    before = dict(os.environ)
    end = end_of("import os\nreport(cwd=os.getcwd(), files=os.listdir())")
    assert dict(os.environ) == before and end.figures["cwd"] == "<path>"
    assert end.figures["files"] == ["printed.txt"], "a folder of its own, gone afterwards"
