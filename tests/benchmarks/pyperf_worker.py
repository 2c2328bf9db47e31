"""What pyperf runs, as its manager and again as each of its processes: one strategy's script, its call timed."""

import threading
import time
import types
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyperf

from measure.subject import load


def _seconds(loops: int, strategy: Callable[[Any], Any], elems: Any) -> float:
    """Seconds of so many calls in a row. TensorFlow records the Python stack with each eager op, so that pyperf's own
    frames would be timed too: they are not below a thread."""
    found: list[float] = []

    def run() -> None:
        repeat = range(loops)
        start = time.perf_counter()
        for _ in repeat:
            strategy(elems)
        found.append(time.perf_counter() - start)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def _hand_on(command: list[str], arguments: Namespace) -> None:
    command += ["--strategy-file", arguments.strategy_file]


def main() -> None:
    runner = pyperf.Runner(add_cmdline_args=_hand_on, program_args=("-m", "tests.benchmarks.pyperf_worker"))
    runner.argparser.add_argument("--strategy-file", required=True)
    arguments = runner.parse_args()
    if arguments.worker:
        module = load(Path(arguments.strategy_file).read_text(encoding="utf-8"), "strategy")
        module.strategy(module.elems)  # the first call traces and compiles
        if isinstance(module.strategy, types.FunctionType):  # eager
            runner.bench_time_func("strategy", _seconds, module.strategy, module.elems)
        else:
            runner.bench_func("strategy", module.strategy, module.elems)
    else:  # the manager only starts processes: it does not pay for TensorFlow
        runner.bench_func("strategy", lambda: None)


if __name__ == "__main__":
    main()
