"""Scripts of claims: what they report and how they end, whatever they do."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from measure.claims import needs, scripts
from measure.claims.spec import Script
from measure.run.run import ScriptEnd
from tests.deadlines import GONE_S, RUN_S
from tests.engine import LEAVE_A_PROCESS, WAIT_UNTIL_LEFT, environment, eventually, is_alive, left_behind

_HEAD = scripts.whole("").count("\n")
pytestmark = pytest.mark.usefixtures("live")


def end_of(source: str, processes: int = 1, **changes: Any) -> ScriptEnd:
    script = Script(source, processes, seconds=RUN_S)
    return scripts.run(script, **{"is_cancelled": lambda: False} | changes)


def test_what_a_script_reports_are_its_figures():
    """They are kept also where it fails later, and nothing of it is in the environment of others."""
    before = dict(os.environ)
    end = end_of(
        "import os\nreport(a=1, b=[0.5, 2.0])\nreport(b=[1.0], c='ü')\nprint('so it is')\n"
        "report(cwd=os.getcwd())\nraise ValueError('after')"
    )
    assert end.figures == {"a": 1, "b": [1.0], "c": "ü", "cwd": "<path>"}
    assert end.error == f"line {_HEAD + 6}: ValueError: after" and end.printed == "so it is\n"
    assert end.source.startswith(scripts.whole("import os")) and dict(os.environ) == before
    end = end_of("import os\nreport(x=1)\nos._exit(3)")
    assert (end.error, end.figures) == ("its process ended with status 3", {})


def test_of_several_processes_figures_are_lists_and_a_part_that_fails_is_a_text(tmp_path: Path):
    count = tmp_path / "count"
    source = f"open({str(count)!r}, 'a').write('x')\n"
    source += f"report(runs=len(open({str(count)!r}).read()), part=tried(lambda: 1 / 0), whole=tried(print))"
    error = f"line {_HEAD + 2}: ZeroDivisionError: division by zero"
    assert end_of(source, 3).figures == {"runs": [1, 2, 3], "part": [error] * 3, "whole": [""] * 3}
    end = end_of(source + f"\nif len(open({str(count)!r}).read()) == 5: raise ValueError('no')", 3)
    assert (end.error, len(count.read_text())) == (f"line {_HEAD + 3}: ValueError: no", 5), "the first failure ends it"


def test_a_script_that_is_cancelled_or_takes_far_too_long_is_ended_with_all_that_it_has_started(tmp_path: Path):
    left = tmp_path / "left"
    leaves = LEAVE_A_PROCESS.format(path=str(left)) + WAIT_UNTIL_LEFT.format(path=str(left))
    large = "memory = b'x' * 2**29\n"  # takes a while to die
    end = end_of(large + leaves + "while True:\n    pass", is_cancelled=lambda: len(left_behind(left)) == 2)
    assert end.error == "it was cancelled" and not left_behind(left)
    left.unlink()
    assert end_of(leaves).error == "" and len(left.read_text().split()) == 2 and not left_behind(left)
    assert end_of("import time\ntime.sleep(1000)", most_s=1.0).error == "it took more than 1 s and was ended"


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


def test_each_side_of_a_condition_computes_its_own_elements_alone():
    figures = scripts.run(needs.SIDES, lambda: False).figures
    assert (figures["by_element"], figures["by_flag"]) == ("", "") and "a negative" in str(figures["always"])
