"""How far reruns differ, how sharp their verdicts are, whether leaders agree, and whether intervals mean what they say.

``python -m tests.benchmarks.sharpness [--only runs,pairs,truth] [--runs 20] [--keep FOLDER]``; an hour for all of it.
Reruns of default comparisons in alternation: scatter, calibration, resolution, time, leaders in common. Strategies
against themselves, and against themselves with 15 % more to do. Headlines against the same scripts alone in fresh
processes.

A run that can tell little agrees with any other, since it calls many the leaders: so the resolution and the number of
leaders stand beside how often they agree. What disturbed the machine meanwhile stands at the end.
"""

import argparse
import itertools
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from measure.model import text
from measure.model.run_file import encode
from measure.runner import Runner, Snapshot
from tests.benchmarks import common, pairs, sharp_figures
from tests.benchmarks.common import Figure, Problem, say
from tests.benchmarks.disturbances import Disturbances
from tests.benchmarks.sharp_figures import Alone, Timed, Truth

PARTS = ("runs", "pairs", "truth")
WORKLOADS = (*common.DEFAULT_WORKLOADS, "outer_reduce", "matmul_chain", "square")


# --- reruns ----------------------------------------------------------------------------------------------------------


class Watch:
    """Notes when all strategies have a rough figure, which comes with their memory, when all have a latency, and the
    other milestones."""

    def __init__(self) -> None:
        self.milestones, self.rough_s, self.order_s = common.Milestones(), math.inf, math.inf

    def look(self, at_s: float, snapshot: Snapshot) -> None:
        self.milestones.look(at_s, snapshot)
        items = [item for item in snapshot.run.measurements if not item.twin_of and item.outcome in ("ok", "not_run")]
        if self.rough_s == math.inf and items and all(item.memory for item in items):
            self.rough_s = at_s
        if self.order_s == math.inf and items and all(item.latency for item in items):
            self.order_s = at_s


def rerun(runner: Runner, count: int, keep: Path | None, between: Callable[[], None]) -> dict[str, list[Timed]]:
    """``count`` reruns of each default comparison, in alternation; ``keep``: a folder for the file of each."""
    found: dict[str, list[Timed]] = {workload: [] for workload in WORKLOADS}
    for number, workload in itertools.product(range(1, count + 1), WORKLOADS):
        watch = Watch()
        run = common.compare(runner, Problem(workload, {}).request(), watch.look)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"run_{number:02}_{workload}.json").write_bytes(encode(run))
        milestones = watch.milestones
        verdict_s, end_s = milestones.verdict_s or math.inf, milestones.end_s or math.inf
        found[workload].append(Timed(run, watch.rough_s, watch.order_s, verdict_s, end_s))
        between()
        told = text.percent(run.control.resolution) if run.control else "no control"
        say(f"{number} of {count}: {workload} ({run.status}, {told}): {', '.join(run.ranking[0])}")
    return found


def run_figures(found: dict[str, list[Timed]]) -> list[Figure]:
    groups = [[each.run for each in runs] for runs in found.values()]
    return [
        *sharp_figures.scatter(groups),
        *sharp_figures.calibration(groups),
        *sharp_figures.resolution(run for runs in groups for run in runs),
        *sharp_figures.times(each for workload in common.DEFAULT_WORKLOADS for each in found[workload]),
    ]


def run_rows(found: dict[str, list[Timed]]) -> Iterator[tuple[object, ...]]:
    for workload, runs in found.items():
        deviation = sharp_figures.scatter([[each.run for each in runs]])[0].value
        resolutions = [each.run.control.resolution for each in runs if each.run.control]
        coarse = statistics.median(resolutions) if resolutions else math.inf
        leaders = [frozenset(each.run.ranking[0]) for each in runs]
        verdict_s = statistics.median(each.verdict_s for each in runs)
        yield (
            workload,
            text.percent(deviation),
            f"{coarse:.0%}",
            statistics.median(map(len, leaders)),
            f"{sharp_figures.in_common(leaders):.0%}",
            f"{verdict_s:.1f} s",
            f"{sum(each.run.status == 'complete' for each in runs)} of {len(runs)}",
        )


# --- truth -----------------------------------------------------------------------------------------------------------


def alone(script: str) -> Alone:
    """A script in a fresh process that has the machine to itself."""
    with tempfile.TemporaryDirectory(prefix="mapbench-alone-") as folder:
        path = Path(folder) / "strategy.py"
        path.write_text(script, encoding="utf-8")
        command = [sys.executable, "-m", "tests.benchmarks.alone_worker", str(path)]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(command, cwd=common.ROOT, env=environment, capture_output=True, check=True)
    return msgspec.json.decode(done.stdout, type=Alone)


def against_alone(runner: Runner, turns: int) -> list[Truth]:
    """Of each strategy the headlines of ``turns`` comparisons, and as many fresh processes in between."""
    headlines_s: dict[tuple[str, str], list[float]] = {}
    processes: dict[tuple[str, str], list[Alone]] = {}
    for turn, workload in itertools.product(range(turns), common.DEFAULT_WORKLOADS):
        case = Problem(workload, {})
        run = common.compare(runner, case.request())
        for item in random.Random(turn).sample(sharp_figures.timed(run), len(sharp_figures.timed(run))):
            headlines_s.setdefault((workload, item.strategy), []).append(sharp_figures.latency_s(item))
            processes.setdefault((workload, item.strategy), []).append(alone(case.script(item.strategy)))
        say(f"alone, {turn + 1} of {turns}: {workload}")
    return [Truth(*key, headlines_s[key], processes[key]) for key in headlines_s]


def truth_rows(truths: Sequence[Truth]) -> Iterator[tuple[object, ...]]:
    """The strategies that are farthest from what they take alone."""
    for truth in sorted(truths, key=lambda truth: -abs(truth.log))[:8]:
        yield (truth.workload, truth.strategy, text.seconds(truth.alone_s), f"{math.exp(truth.log):.2f}")


def parts(named: str) -> list[str]:
    """The parts that a list names; of `parser` a type."""
    if unknown := set(named.split(",")) - set(PARTS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))} is not known: {', '.join(PARTS)} are")
    return named.split(",")


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(description=__doc__)
    whole.add_argument("--only", type=parts, default=PARTS, metavar="PARTS", help=f"of {', '.join(PARTS)}")
    whole.add_argument("--runs", type=int, default=20, help="reruns of each default comparison (20)")
    whole.add_argument("--pairs", type=int, default=60, help="comparisons of a strategy with itself (60)")
    whole.add_argument("--apart", type=int, default=40, help="comparisons of two that are 15 %% apart (40)")
    whole.add_argument("--turns", type=int, default=3, help="fresh processes of each strategy alone (3)")
    whole.add_argument("--keep", type=Path, metavar="FOLDER", help="write the file of each rerun into this folder")
    return whole


def main() -> None:
    arguments = parser().parse_args()
    common.start("How sharp verdicts are")
    disturbances, figures = Disturbances(), list[Figure]()
    with common.own_folders() as folder, common.engine() as runner:
        if "runs" in arguments.only:
            found = rerun(runner, arguments.runs, arguments.keep, disturbances.look)
            head = ("workload", "scatter", "resolution", "leaders", "pairs that agree", "verdict", "complete")
            print(f"{common.table(head, run_rows(found))}\n", flush=True)
            figures += run_figures(found)
        if "pairs" in arguments.only:
            with pairs.mappers(folder / "mappers"):
                figures += pairs.figures(runner, arguments.pairs, arguments.apart)
        if "truth" in arguments.only:
            truths = against_alone(runner, arguments.turns)
            print(f"{common.table(('workload', 'strategy', 'alone', 'headline'), truth_rows(truths))}\n", flush=True)
            figures += sharp_figures.truth(truths)
    print(f"{common.figures(figures)}\n\n{disturbances.sentence()}")


if __name__ == "__main__":
    main()
