"""From ``pip install`` to the first verdict of a function of one's own; and the time in which a check answers.

``python -m tests.benchmarks.first_verdict [--checks 3]``; half a minute.

The installation is that of a machine that has TensorFlow: a new environment that sees the packages of this one, into
which pip installs the project from its source, without the network. Then the command compares a function by the default
strategies within the default budget, from nothing: the time ends with its table, which follows the verdict after the
limit and the process peaks. That is all at once in the worst case; a page shows the verdict earlier.

A check executes the code in a process that is thrown away, and derives what is to be known of it. Its time begins where
a person asks for it, with the host ready, as it is some seconds after a page was opened: a page's server starts the
host by itself. Beside it is printed what a check takes that has to wait for the host to import TensorFlow, as the first
one of a command does.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

from measure.local import Local
from tests.benchmarks import common
from tests.benchmarks.common import ROOT, Figure, say, whole_seconds
from tests.functions import CODE, KERAS
from workloads.functions import Given

# Seconds.
VERDICT_S = 60.0
CHECK_S = 3.0
CHECKED = {
    "contrast": Given(code=CODE, function="contrast", elems="images"),
    "to_number": Given(code=CODE, function="to_number", elems="numbers_as_text"),
    "solve": Given(code=CODE, function="solve", elems="systems"),
    "branchy": Given(code=CODE, function="branchy", elems="vectors"),
    "Keras, dense": Given(code=KERAS, function="dense", elems="vectors"),
    "Keras, gradient": Given(code=KERAS, function="gradient", elems="vectors"),
}
_BUILT_FROM = ("pyproject.toml", "setup.py", "requirements.txt", "README.md", "app.py", ".streamlit")
_PACKAGES = ("mapbench", "measure", "strategies", "views", "workloads")


def first_verdict(folder: Path) -> list[Figure]:
    source, venv = folder / "source", folder / "venv"
    source.mkdir()
    for name in (*_BUILT_FROM, *_PACKAGES):  # a build leaves files beside what it builds
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, source / name)
    say("an environment that has TensorFlow")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    here = next(venv.glob("lib/python*/site-packages"))
    (here / "these.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    (folder / "my_code.py").write_text(CODE, encoding="utf-8")
    say("pip install")
    pip = [sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "--quiet"]
    installed_s = _seconds(
        [*pip, "install", "--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed", source], folder
    )
    say("the first comparison")
    compared_s = _seconds([venv / "bin" / "mapbench", "compare", "my_code.py:contrast", "--elems", "images"], folder)
    return [
        Figure("pip install", installed_s, show=whole_seconds),
        Figure("mapbench compare, to its end", compared_s, show=whole_seconds),
        Figure("both: from pip install to the first verdict", installed_s + compared_s, VERDICT_S, show=whole_seconds),
    ]


def _seconds(command: Sequence[str | Path], folder: Path) -> float:
    """The time that a command takes that cannot import this working tree."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    took_s = time.perf_counter() - begun
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    print(done.stdout, file=sys.stderr)
    return took_s


def checks(rounds: int) -> list[Figure]:
    """The seconds of checks, each function once in each round."""
    say("a check that waits for the host")
    local = Local("a benchmark")
    try:
        cold_s = _check(local, CHECKED["contrast"])
    finally:
        local.close()
    taken_s: dict[str, list[float]] = {name: [] for name in CHECKED}
    with common.engine() as ready:
        for number in range(rounds):
            say(f"checks, round {number + 1} of {rounds}")
            for name, given in CHECKED.items():
                taken_s[name].append(_check(ready, given))
    return check_figures(cold_s, taken_s)


def _check(local: Local, given: Given) -> float:
    begun = time.perf_counter()
    local.give(given)
    return time.perf_counter() - begun


def check_figures(cold_s: float, taken_s: dict[str, list[float]]) -> list[Figure]:
    every = [seconds for of_one in taken_s.values() for seconds in of_one]
    first = next(iter(taken_s.values()))[0]
    return [
        Figure("a check that waits for TensorFlow's import", cold_s, show=whole_seconds),
        Figure("host ready: the first check", first, CHECK_S, show=whole_seconds),
        *(
            Figure(f"host ready: {name}, median of {len(of_one)}", statistics.median(of_one), show=whole_seconds)
            for name, of_one in taken_s.items()
        ),
        Figure(f"host ready: median of all {len(every)} checks", statistics.median(every), CHECK_S, show=whole_seconds),
        Figure("host ready: the longest check", max(every), CHECK_S, show=whole_seconds),
    ]


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    whole.add_argument("--checks", type=int, default=3, help="rounds of checks")
    return whole


def main() -> None:
    arguments = parser().parse_args()
    common.start("The first verdict of a function of one's own")
    with common.own_folders() as folder:
        print(common.figures([*first_verdict(folder), *checks(arguments.checks)]))


if __name__ == "__main__":
    main()
