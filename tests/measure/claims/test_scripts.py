"""Scripts of claims: what they report and how they end, whatever they do."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from measure.claims import scripts
from measure.claims.spec import Script
from measure.model.script_end import ScriptEnd
from tests.deadlines import GONE_S, RUN_S
from tests.engine import LEAVE_A_PROCESS, WAIT_UNTIL_LEFT, environment, eventually, is_alive, left_behind

pytestmark = pytest.mark.usefixtures("live")


def end_of(source: str, processes: int = 1, **changes: Any) -> ScriptEnd:
    script = Script(source, processes, seconds=RUN_S)
    return scripts.run(script, **{"is_cancelled": lambda: False} | changes)


def test_what_a_script_reports_are_its_figures():
    """They are kept also where it fails later, and nothing of it is in the environment of others."""
    before = dict(os.environ)
    end = end_of(
        "import os\nreport(a=1, b=[0.5, 2.0])\nreport(b=[1.0], c='ü', d={1})\nprint('so\\0 it is')\n"
        "report(cwd=os.getcwd(), files=os.listdir())\nraise ValueError('after')"
    )
    assert end.figures == {"a": 1, "b": [1.0], "c": "ü", "d": "{1}", "cwd": "<path>", "files": ["printed.txt"]}
    assert end.error == "line 6: ValueError: after" and end.printed.startswith("so it is\n")
    assert end.source.startswith("import os") and dict(os.environ) == before


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("x = 1\n\ndef f():\n    return 1 / 0\n\nf()", "line 4: ZeroDivisionError: division by zero"),
        ("import os\nreport(x=1)\nos._exit(3)", "its process ended with status 3"),
        ("report(x=float('nan'))", "its figures cannot be kept: "),
        ("report(x=2**70)", "its figures cannot be kept: Expected `int` <= 9223372036854775807"),
        ("report(x='y' * 10 * 2**20)", "it reported more than 1,024 KiB of figures"),
        ("open('/nowhere/at/all')", "line 1: FileNotFoundError: [Errno 2] No such file or directory: '<path>'"),
        ("while True:\n    print('x' * 10**6, flush=True)", "line 2: OSError: [Errno 2"),
    ],
)
def test_what_goes_wrong_is_its_error_with_the_line(source: str, error: str):
    end = end_of(source)
    assert end.error.startswith(error) and end.figures == {} and len(end.printed) <= 2_000, end


def test_of_several_processes_figures_are_lists_and_a_part_that_fails_is_a_text(tmp_path: Path):
    count = tmp_path / "count"
    source = f"open({str(count)!r}, 'a').write('x')\n"
    source += f"report(runs=len(open({str(count)!r}).read()), part=tried(lambda: 1 / 0), whole=tried(print))"
    error = "line 2: ZeroDivisionError: division by zero"
    assert end_of(source, 3).figures == {"runs": [1, 2, 3], "part": [error] * 3, "whole": [""] * 3}
    end = end_of(source + f"\nif len(open({str(count)!r}).read()) == 5: raise ValueError('no')", 3)
    assert end.error == "line 3: ValueError: no" and len(count.read_text()) == 5, "the first that fails is the last"


def test_all_processes_of_a_script_end_with_it(tmp_path: Path):
    path = str(tmp_path / "pids")
    source = LEAVE_A_PROCESS.format(path=path) + WAIT_UNTIL_LEFT.format(path=path) + "report(x=1)"
    assert end_of(source).figures == {"x": 1}
    pids = tmp_path / "pids"
    assert len(pids.read_text().split()) == 2
    eventually(lambda: not left_behind(pids), "both are gone", GONE_S)


def test_a_script_that_is_cancelled_takes_far_too_long_or_needs_too_much_memory_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    begun = tmp_path / "begun"
    end = end_of(f"open({str(begun)!r}, 'w').close()\nwhile True:\n    pass", is_cancelled=begun.exists)
    assert end.error == "it was cancelled"
    assert end_of("import time\ntime.sleep(1000)", most_s=1.0).error == "it took more than 1 s and was ended"
    monkeypatch.setattr(scripts, "MOST_BYTES", 2**28)
    end = end_of("import time\nx = bytearray(b'x' * 2**29)\ntime.sleep(1000)")
    assert end.error == "it needs more than 0.25 GiB and was ended"


def test_a_script_ends_with_the_process_that_started_it(tmp_path: Path):
    path = tmp_path / "pid"
    source = f"import os\nopen({str(path)!r}, 'w').write(str(os.getpid()))\nwhile True: pass"
    code = "from measure.claims import scripts\nfrom measure.claims.spec import Script\n"
    code += f"scripts.run(Script({source!r}, seconds={RUN_S}), lambda: False)"
    parent = subprocess.Popen([sys.executable, "-c", code], env=environment())
    pid = int(eventually(lambda: path.exists() and path.read_text(), "it has begun"))
    parent.kill()
    parent.wait()
    eventually(lambda: not is_alive(pid), "it has ended", GONE_S)
