"""From ``pip install`` to the first verdict of a function of one's own; and the time in which a check answers.

``python -m tests.benchmarks.first_verdict [--checks 3]``; half a minute.

A new environment sees the packages of this one, into which pip installs the project from its source; then the command
compares a function by the default strategies within the default budget, to the end of its table. A check executes the
code and derives what is to be known of it, with the host ready, or waiting for its import of TensorFlow.
"""

import argparse
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure.local import Local
from tests.benchmarks import common
from tests.benchmarks.common import Figure, say
from tests.functions import CODE, KERAS
from tests.test_install import copy_source, outside
from workloads.functions import Given

VERDICT_S, CHECK_S = 60.0, 3.0
CHECKED = [
    *(Given(code=CODE, function=name, elems=elems) for name, elems in (
        ("contrast", "images"), ("to_number", "numbers_as_text"), ("solve", "systems"), ("branchy", "vectors"))),
    *(Given(code=KERAS, function=name, elems="vectors") for name in ("dense", "gradient")),
]  # fmt: skip


def first_verdict(folder: Path) -> list[Figure]:
    source, venv = folder / "source", folder / "venv"
    source.mkdir()
    copy_source(source)
    say("an environment that has TensorFlow")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    here = next(venv.glob("lib/python*/site-packages"))
    (here / "these.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    (folder / "my_code.py").write_text(CODE, encoding="utf-8")
    say("pip install")
    pip = (sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "--quiet", "install", "--no-index")
    installed_s = _seconds(outside, folder, *pip, "--no-deps", "--no-build-isolation", "--ignore-installed", source)
    say("the first comparison")
    command = (venv / "bin" / "mapbench", "compare", "my_code.py:contrast", "--elems", "images")
    compared_s = _seconds(outside, folder, *command)
    return [
        Figure("pip install", installed_s),
        Figure("mapbench compare, to its end", compared_s),
        Figure("both: from pip install to the first verdict", installed_s + compared_s, VERDICT_S),
    ]


def _seconds(call: Callable[..., object], *arguments: object) -> float:
    begun = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - begun


def checks(rounds: int) -> list[Figure]:
    """The seconds of a check that waits for the host, and of those after it, each function once in each round."""
    local = Local("a benchmark")
    try:
        say("a check that waits for the host")
        cold_s = _seconds(local.give, CHECKED[0])
        say(f"{rounds} rounds of checks")
        taken_s = [_seconds(local.give, given) for _ in range(rounds) for given in CHECKED]
    finally:
        local.close()
    return [
        Figure("a check that waits for TensorFlow's import", cold_s),
        Figure(f"host ready: median of {len(taken_s)} checks", statistics.median(taken_s), CHECK_S),
        Figure("host ready: the longest check", max(taken_s), CHECK_S),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("--checks", type=int, default=3, help="rounds of checks")
    arguments = parser.parse_args()
    common.start("The first verdict of a function of one's own")
    with tempfile.TemporaryDirectory(prefix="mapbench-benchmark-") as folder:
        os.environ |= {"MAPBENCH_HOME": f"{folder}/home", "MAPBENCH_LOCK": f"{folder}/measure.lock"}
        figures = [*first_verdict(Path(folder)), *checks(arguments.checks)]
    print(common.table(("figure", "measured", "limit", ""), [figure.row() for figure in figures]))


if __name__ == "__main__":
    main()
