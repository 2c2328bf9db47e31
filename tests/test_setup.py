"""The project asks for what it imports, in versions that are known; and one command checks all of it."""

import contextlib
import importlib.metadata
import os
import signal
import subprocess
import sys
from typing import Any

import psutil
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import gate
from tests.deadlines import ANSWER_S, GONE_S
from tests.engine import eventually, is_alive
from tests.gate import Result
from tests.test_house import ROOT, everywhere, targets, trees

# Modules whose package has another name.
DISTRIBUTIONS = {"vl_convert": "vl-convert-python"}
OWN = {"__future__", "app", "mapbench", "measure", "strategies", "views", "workloads"}


def named(file: str) -> set[str]:
    """The packages of a list of requirements, whose versions are those of the constraints."""
    lines = [line.split("#")[0].strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    wanted = [Requirement(line) for line in lines if line and not line.startswith("-c ")]
    if file != "constraints.txt":
        assert f"-c {'../' * file.count('/')}constraints.txt" in lines
    assert {str(one.specifier)[:2] for one in wanted} == {"==" if file == "constraints.txt" else ""}, file
    return {canonicalize_name(one.name) for one in wanted}


def test_every_package_that_gets_installed_is_pinned() -> None:
    pins = named("constraints.txt")
    all_of_it = named("requirements.txt")
    assert all_of_it ^ named("requirements-cpu.txt") == {"tensorflow", "tensorflow-cpu"}
    assert all_of_it ^ named("requirements-viewer.txt") == {"tensorflow"}
    waiting, seen = [*all_of_it, *named("tests/requirements.txt")], set[str]()
    while waiting:
        if (name := waiting.pop()) in seen:
            continue
        seen.add(name)
        needed = [Requirement(text) for text in importlib.metadata.requires(name) or []]
        waiting += [
            canonicalize_name(one.name) for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})
        ]
    assert seen <= pins
    assert "protobuf" in seen  # reached through TensorFlow: the walk went below the first level


def test_what_the_project_imports_is_what_it_asks_for() -> None:
    tops = {name.partition(".")[0] for tree in trees().values() for name, _ in targets(everywhere(tree), trees())}
    foreign = {canonicalize_name(DISTRIBUTIONS.get(name, name)) for name in tops - OWN - sys.stdlib_module_names}
    assert foreign == named("requirements.txt")


def failing(*names: str) -> Result:
    return Result(1, 10, {name: {"error": f"in call: {name} said no", "load": 3.0} for name in names})


def test_a_few_live_failures_are_tried_again_and_told_and_many_are_red_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, ...]] = []

    def answer_with(*results: Result) -> None:
        answers = iter(results)
        asked.clear()

        def tests(*arguments: str) -> Result:
            asked.append(arguments)
            return next(answers)

        monkeypatch.setattr(gate, "tests", tests)

    monkeypatch.setattr(gate, "calm_down", lambda: None)
    answer_with(failing("a", "b"), Result(0, 2))
    again = gate.live_tests("-k", "x")
    assert again.is_green and again.passed == 12 and not again.failures
    assert asked == [("live", "-k", "x"), ("live", "a", "b")]
    assert "FLAKY a: in call: a said no (load 3.0)" in capsys.readouterr().out

    answer_with(failing("a", "b"), failing("b"))
    again = gate.live_tests()
    assert not again.is_green and set(again.failures) == {"b"}
    told = capsys.readouterr().out
    assert "FLAKY a:" in told and "FLAKY b:" not in told

    many = failing(*(str(number) for number in range(gate.MOST_AGAIN + 1)))
    answer_with(many)
    assert gate.live_tests() == many and len(asked) == 1


# A check that starts a process with a session of its own, which ends only if it is ended, and waits for it.
_CHECK = """
import subprocess, sys
from tests import gate

def check(arguments):
    waits = "import signal; print('started', flush=True); signal.pause()"
    return subprocess.Popen([sys.executable, "-c", waits], start_new_session=True).wait()

gate.check = check
sys.exit(gate.main())
"""


@pytest.mark.usefixtures("live")
def test_a_check_that_is_ended_ends_what_it_has_started() -> None:
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(ROOT)}
    check = subprocess.Popen([sys.executable, "-c", _CHECK], cwd=ROOT, env=environment, stdout=subprocess.PIPE)
    family: list[psutil.Process] = [psutil.Process(check.pid)]
    try:
        assert check.stdout is not None and check.stdout.readline() == b"started\n"
        family += family[0].children()
        check.send_signal(signal.SIGTERM)
        assert check.wait(ANSWER_S) == 128 + signal.SIGTERM
        assert len(family) == 2
        eventually(lambda: not is_alive(family[1].pid), "what it has started is gone", GONE_S)
    finally:
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        check.communicate()
