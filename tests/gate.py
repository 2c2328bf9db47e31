"""The whole check, in the order in which it costs: lint, format, types, then the tests in two tiers.

``python -m tests.gate`` in the tests' environment, which `tests/run` makes. Arguments are pytest's, and leave out lint
and types.

*Deterministic* tests start no process and import no TensorFlow: they run in parallel, and a failure is a failure.
*Live* ones measure, serve pages and drive a browser: they run one after the other, so that the suite does not load the
machine that it measures, and what fails is tried once more in a fresh process, as the machine may have been busy.
"""

import contextlib
import ctypes
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from measure.machine import control_groups, processor

ROOT = Path(__file__).resolve().parent.parent
# Seconds of a start of Python that imports NumPy, on an idle laptop.
REFERENCE_S = 0.125
SLOWEST = 8.0
# More live failures than this are no noise.
MOST_AGAIN = 8
CALM_WITHIN_S = 60.0
CALM_PERCENT = 20.0
_NO_TESTS = 5
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Result:
    """One pytest process: its exit status, the tests that passed, and those that failed with what was said of them."""

    status: int
    passed: int = 0
    failures: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_green(self) -> bool:
        return self.status in (0, _NO_TESTS)


def pace() -> float:
    """Return how many times slower than the reference this machine is now, between 1 and `SLOWEST`."""
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import numpy"], check=True)
        taken.append(time.perf_counter() - began)
    return min(max(statistics.median(taken) / REFERENCE_S, 1.0), SLOWEST)


def step(title: str) -> None:
    print(f"\n== {title}", flush=True)


def tool(*arguments: str) -> bool:
    """Run a module of the environment, and return that it was content."""
    step(" ".join(arguments))
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=False).returncode == 0


def tests(tier: str, *arguments: str) -> Result:
    """Run the tests of a tier in a process of their own."""
    step(f"{tier} tests")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pytest", "-q", f"--tier={tier}", f"--report={report}", *arguments]
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        told = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return Result(status, seconds=time.monotonic() - began, **told)


def calm_down() -> None:
    """Wait until the machine has nothing else to do, or `CALM_WITHIN_S`."""
    end = time.monotonic() + CALM_WITHIN_S
    while psutil.cpu_percent(interval=2.0) > CALM_PERCENT and time.monotonic() < end:
        pass


def live_tests(*arguments: str) -> Result:
    """The live tier, with a second chance for a few failures, each of which is told."""
    first = tests("live", *arguments)
    if first.is_green or not 0 < len(first.failures) <= MOST_AGAIN:
        return first
    calm_down()
    again = tests("live", *first.failures)
    flaky = {name: one for name, one in first.failures.items() if name not in again.failures}
    for name, one in flaky.items():
        print(f"FLAKY {name}: {one['error']} (load {one['load']:.1f})")
    return Result(again.status, first.passed + len(flaky), again.failures, first.seconds + again.seconds)


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def check(arguments: Sequence[str]) -> int:
    """The exit status of the whole check."""
    began = time.monotonic()
    speed = pace()
    os.environ["MAPBENCH_TEST_PACE"] = f"{speed:.2f}"
    print(f"pace {speed:.1f}: deadlines are {speed:.1f} times those of an idle laptop")
    if not arguments and not (
        tool("ruff", "check", ".")
        and tool("ruff", "format", "--check", ".")
        and tool("mypy", "--cache-dir", str(Path(sys.prefix) / "mypy"))
    ):
        return 1
    # A container may grant less than the machine has; a worker takes some 0.5 GiB.
    cores, room = processor.granted(Path("/")), control_groups.available_memory() // 2**30
    workers = str(max(1, min(math.ceil(cores), room)))
    results = [
        tests("deterministic", "--numprocesses", workers, "--dist", "worksteal", *arguments),
        live_tests(*arguments),
    ]
    deterministic, live = results
    failed = sum(len(result.failures) for result in results)
    # Of a part of the tests, all may be of one tier.
    some = any if arguments else all
    ok = all(result.is_green for result in results) and some(result.status == 0 for result in results)
    print(
        f"\ntests/run: {'green' if ok else 'RED'} after {minutes(time.monotonic() - began)} at pace {speed:.1f}"
        f" (deterministic {minutes(deterministic.seconds)}, live {minutes(live.seconds)}):"
        f" {sum(result.passed for result in results)} passed, {failed} failed"
    )
    return 0 if ok else 1


def end_family() -> None:
    """End all that this process has started, whoever its parent is by now."""
    end = time.monotonic() + 10.0
    while (family := psutil.Process().children(recursive=True)) and time.monotonic() < end:
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(family, timeout=1.0)


def stop(number: int, _: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


def main() -> int:
    # Servers, hosts and browsers have sessions of their own: as their adopter, this process finds them all.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        return check(sys.argv[1:])
    finally:
        end_family()


if __name__ == "__main__":
    sys.exit(main())
