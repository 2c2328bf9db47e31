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
from pathlib import Path

import psutil

from measure.machine import control_groups

ROOT = Path(__file__).resolve().parent.parent
# Seconds of a start of Python that imports NumPy, on an idle laptop.
REFERENCE_S = 0.125
SLOWEST = 8.0
# More live failures than this are no noise.
MOST_AGAIN = 8
CALM_WITHIN_S = 60.0
CALM_PERCENT = 20.0
# Exit statuses of pytest: all have passed, and there were none.
GREEN = (0, 5)
_PR_SET_CHILD_SUBREAPER = 36


def pace() -> float:
    """Return how many times slower than the reference this machine is now, between 1 and `SLOWEST`."""
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import numpy"], check=True)
        taken.append(time.perf_counter() - began)
    return min(max(statistics.median(taken) / REFERENCE_S, 1.0), SLOWEST)


def tool(*arguments: str) -> int:
    """Run a module of the environment; its exit status."""
    print(f"\n== {' '.join(arguments)}", flush=True)
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=False).returncode


def tests(tier: str, *arguments: str) -> int:
    """Run the tests of a tier in a process of their own; its exit status."""
    return tool("pytest", "-q", f"--tier={tier}", *arguments)


def calm_down() -> None:
    """Wait until the machine has nothing else to do, or `CALM_WITHIN_S`."""
    end = time.monotonic() + CALM_WITHIN_S
    while psutil.cpu_percent(interval=2.0) > CALM_PERCENT and time.monotonic() < end:
        pass


def live_tests(*arguments: str) -> int:
    """The live tier, with a second chance for a few failures, each of which is named."""
    with tempfile.TemporaryDirectory() as cache:
        status = tests("live", f"--override-ini=cache_dir={cache}", *arguments)
        noted = Path(cache) / "v/cache/lastfailed"
        failed = list(json.loads(noted.read_text(encoding="utf-8"))) if noted.exists() else []
    if status in GREEN or not 0 < len(failed) <= MOST_AGAIN:
        return status
    calm_down()
    again = tests("live", *failed)
    if again in GREEN:
        print(*(f"FLAKY {name}: it failed once, as is said above" for name in failed), sep="\n")
    return again


def check(arguments: Sequence[str]) -> int:
    """The exit status of the whole check."""
    began = time.monotonic()
    speed = pace()
    os.environ["MAPBENCH_TEST_PACE"] = f"{speed:.2f}"
    print(f"pace {speed:.1f}: deadlines are {speed:.1f} times those of an idle laptop")
    mypy = ("mypy", "--cache-dir", str(Path(sys.prefix) / "mypy"))
    if not arguments and any(tool(*one) for one in (("ruff", "check", "."), ("ruff", "format", "--check", "."), mypy)):
        return 1
    # A container may grant less than the machine has; a worker takes some 0.5 GiB.
    cores, room = control_groups.cores_granted(), control_groups.available_memory() // 2**30
    workers = str(max(1, min(math.ceil(cores), room)))
    statuses = [
        tests("deterministic", "--numprocesses", workers, "--dist", "worksteal", *arguments),
        live_tests(*arguments),
    ]
    # Of a part of the tests, all may be of one tier.
    some = any if arguments else all
    ok = all(status in GREEN for status in statuses) and some(status == 0 for status in statuses)
    seconds = int(time.monotonic() - began)
    print(f"\ntests/run: {'green' if ok else 'RED'} after {seconds // 60} min {seconds % 60:02d} s at pace {speed:.1f}")
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
