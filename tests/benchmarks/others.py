"""Strategies timed by pyperf and by `timeit`, each in fresh processes, as their users would.

TensorFlow records the Python stack with each eager op, and pyperf has more frames of its own below a call: an op of
10 µs takes 1.08 times as long under it as under `timeit`.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.common import ROOT

# What subjects run with, too; pyperf hands a variable on only where it is named.
_VARIABLES = {"OPENBLAS_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "1"}


class ToolFailed(RuntimeError):
    """A tool's process ended with an error; the message holds the end of what it wrote."""


def timeit(script: str) -> list[float]:
    """Seconds per call of each of `timeit`'s repeats in one fresh process."""
    with tempfile.TemporaryDirectory(prefix="mapbench-timeit-") as folder:
        path = Path(folder) / "strategy.py"
        path.write_text(script, encoding="utf-8")
        return [float(value) for value in json.loads(_run(["-m", "tests.benchmarks.timeit_worker", str(path)]))]


def pyperf(script: str, processes: int | None = None, loops: int | None = None) -> "PyperfResult":
    """The values of one invocation of pyperf, with its own number of processes (20) where none is given.

    ``loops``: calls per value as an earlier invocation found them, which saves the process that finds them.
    """
    with tempfile.TemporaryDirectory(prefix="mapbench-pyperf-") as folder:
        path, output = Path(folder) / "strategy.py", Path(folder) / "out.json"
        path.write_text(script, encoding="utf-8")
        command = ["-m", "tests.benchmarks.pyperf_worker", "--strategy-file", str(path), "--quiet"]
        command += ["--output", str(output), "--inherit-environ", ",".join(_VARIABLES)]
        command += ["--processes", str(processes)] if processes else []
        command += ["--loops", str(loops)] if loops else []
        _run(command)
        return PyperfResult(json.loads(output.read_text(encoding="utf-8")))


class PyperfResult:
    """``values_s``: seconds per call, one list per process, without warm-ups and calibration; ``loops``: calls per
    value."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        (benchmark,) = document["benchmarks"]
        runs = [run for run in benchmark["runs"] if run.get("values")]
        self.values_s: list[list[float]] = [run["values"] for run in runs]
        shared = {**document.get("metadata", {}), **benchmark.get("metadata", {})}
        self.loops = int(runs[-1].get("metadata", {}).get("loops") or shared.get("loops") or 1)


def _run(arguments: Sequence[str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **_VARIABLES, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ToolFailed(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
