"""The program of pyperf's manager and of each of its processes: one strategy's script, its call timed."""

from argparse import Namespace
from pathlib import Path

import pyperf


def _hand_on(command: list[str], arguments: Namespace) -> None:
    command += ["--strategy-file", arguments.strategy_file]


def main() -> None:
    runner = pyperf.Runner(add_cmdline_args=_hand_on, program_args=("-m", "tests.benchmarks.pyperf_worker"))
    runner.argparser.add_argument("--strategy-file", required=True)
    arguments = runner.parse_args()
    if arguments.worker:
        from measure.subject.roles import load

        module = load(Path(arguments.strategy_file).read_text(encoding="utf-8"), "strategy")
        module.strategy(module.elems)  # the first call traces and compiles
        runner.bench_func("strategy", module.strategy, module.elems)
    else:  # the manager only starts processes: it does not pay for TensorFlow, nor for NumPy
        runner.bench_func("strategy", lambda: None)


if __name__ == "__main__":
    main()
