"""Gates beside a load that comes and goes: ``python -m tests.benchmarks.gate``; an hour or more.

Copies of a checkout are gated: identical ones, which may not alarm, and one that calls 24 of the same ops in place of
20, which has to be found, the command's start included. The exit status is 1 if a figure is outside its limit.
"""

import argparse
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from measure.gate_command import CANNOT_TELL, WORSE
from tests.benchmarks.common import ROOT, Figure, report, say, start

# A load that lasts so long, and then rests as long, drawn anew each time.
_LOAD_S = 0.5, 3.0
_FOUND_WITHIN_S = 60.0
_CODE = """
import numpy as np
import tensorflow as tf

WEIGHTS = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32) / 8


def rows(batch=16):
    return np.random.default_rng(1).standard_normal((batch, 64, 64)).astype(np.float32)


def chain(x):
    y = x
    for step in range({steps}):
        y = tf.tanh(tf.matmul(y, WEIGHTS))
        x = y if step == 19 else x
    return x + 1e-30 * y
"""


def burn(seed: int) -> None:
    """Use a processor, and rest, in turns that are those of all processes with this seed."""
    own = random.Random(seed)
    while True:
        end_s = time.monotonic() + own.uniform(*_LOAD_S)
        while time.monotonic() < end_s:
            sum(range(1_000))
        time.sleep(own.uniform(*_LOAD_S))


def gates(number: int, head: str, folder: Path) -> list[tuple[int, float]]:
    """Exit status and seconds of so many gates of ``head``."""
    own = {"PYTHONPATH": str(ROOT), "MAPBENCH_HOME": str(folder / "home"), "MAPBENCH_LOCK": str(folder / "lock")}
    ended = []
    asked = f"gate base {head} --function code.py:chain --elems rows --quiet --json gate.json".split()
    for count in range(1, number + 1):
        begun_s = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "measure", *asked], env={**os.environ, **own}, cwd=folder, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        if done.returncode not in (0, WORSE, CANNOT_TELL):
            raise RuntimeError(done.stderr)
        ended.append((done.returncode, time.monotonic() - begun_s))
        sentence = msgspec.json.decode((folder / "gate.json").read_bytes())["sentence"]
        say(f"{head}, {count} of {number}: exit status {done.returncode}, {ended[-1][1]:.0f} s: {sentence}")
    return ended


def main() -> int:
    parser = argparse.ArgumentParser(description="Gates beside a load that comes and goes.")
    parser.add_argument("--gates", type=int, default=60, help="of identical code")
    parser.add_argument("--slower", type=int, default=30, help="of code with 20%% more to do")
    asked = parser.parse_args()
    start(f"{asked.gates} gates of identical code, and {asked.slower} of code with 20% more to do")
    for _ in range(os.cpu_count() or 1):
        multiprocessing.get_context("spawn").Process(target=burn, args=(0,), daemon=True).start()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        for name, steps in (("base", 20), ("same", 20), ("slower", 24)):
            (folder / name).mkdir()
            (folder / name / "code.py").write_text(_CODE.format(steps=steps), encoding="utf-8")
        same, slower = gates(asked.gates, "same", folder), gates(asked.slower, "slower", folder)
    count, alarms = "{:.0f}".format, [status for status, _ in same].count(WORSE)
    found = sum(status == WORSE and seconds <= _FOUND_WITHIN_S for status, seconds in slower)
    return report([
        Figure(f"of {asked.gates} gates of identical code, alarms", alarms, asked.gates / 20, count),
        Figure("and those that could not tell", [status for status, _ in same].count(CANNOT_TELL), None, count),
        Figure(f"of {asked.slower} with 20% more to do, found within 60 s", found, 0.8 * asked.slower, count, True),
        Figure("a command with its start: median", statistics.median(seconds for _, seconds in same + slower)),
        Figure("longest", max(seconds for _, seconds in same + slower)),
    ])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
