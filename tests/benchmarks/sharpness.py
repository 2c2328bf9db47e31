"""How sharp verdicts are, and whether intervals mean what they say.

``python -m tests.benchmarks.sharpness [--only runs,pairs,truth,load,chunks,many] [--runs 20] [--keep FOLDER]``; 80
minutes for all of it. Reruns of default comparisons in alternation: scatter, calibration, resolution, time. Strategies
against themselves, and against themselves with 15 % more to do. Headlines against the same scripts alone in fresh
processes. The order beside a load that comes and goes. The automatic chunk against ten others. A comparison of all
strategies against its forecast.

What disturbed the machine meanwhile stands at the end: processor time that the host gave to others (steal), cores that
other programs used, and how much longer than at its best a fixed computation took between the reruns.
"""

import argparse
import contextlib
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
import numpy as np

from measure.model import text
from measure.model.request import DEFAULT_BUDGET_S
from measure.runner import Runner, Snapshot
from tests.benchmarks import common, repeatability, sharp_figures
from tests.benchmarks.common import Figure, Problem, say, whole_seconds
from tests.benchmarks.disturbances import Disturbances
from tests.benchmarks.repeatability import Keeper
from tests.benchmarks.sharp_figures import Alone, Timed, Truth

PARTS = ("runs", "pairs", "truth", "load", "chunks", "many")
WORKLOADS = (*common.DEFAULT_WORKLOADS, "outer_reduce", "matmul_chain", "square")
CHUNKED = (
    *(Problem("outer_reduce", {"batch": 256, "side": side}) for side in (8, 16)),
    Problem("outer_reduce", {"batch": 64, "side": 32}),
    *(Problem("repeat_sum", {"batch": batch}) for batch in (100, 1_000, 10_000)),
    *(Problem("outer_product", {"batch": 100, "side": side}) for side in (8, 16)),
    Problem("outer_product", {"batch": 400, "side": 16}),
    *(Problem("dp_sgd", {"batch": batch}) for batch in (64, 256, 1_024)),
)
_CHUNKS = 10
# A mapper that does 15 % of its elements twice.
_MORE = "_and_more"
_SLOWER = '''\
"""{slug} with 15 % of the elements done twice: they stand at the front once more."""

import dataclasses

from strategies import {slug}


def map_more(fn, elems, signature):
    more = 15 * tf.nest.flatten(elems)[0].shape[0] // 100
    longer = tf.nest.map_structure(lambda leaf: tf.concat([leaf[:more], leaf], axis=0), elems)
    outputs = map_with_{slug}(fn, longer, signature)
    return tf.nest.map_structure(lambda leaf: leaf[more:], outputs)


MAPPER = dataclasses.replace(
    {slug}.MAPPER, slug="{slug}_and_more", title="{slug} and more", apply=map_more,
    helpers=(*{slug}.MAPPER.helpers, {slug}.map_with_{slug}),
)
'''
PAIRS = (
    (Problem("image_sqrt", {"batch": 100, "height": 16, "width": 16, "channels": 3}), "loop.eager"),
    (Problem("per_example_gradients", {"batch": 400}), "map_fn.graph"),
)
# Busy for a while, then idle for a while, each between these seconds.
_STRETCH_S = (0.3, 5.0)
_COMES_AND_GOES = """
import os, random, sys, time
parent, rng = os.getppid(), random.Random(int(sys.argv[1]))
while os.getppid() == parent:
    end = time.monotonic() + rng.uniform({0}, {1})
    while time.monotonic() < end:
        pass
    time.sleep(rng.uniform({0}, {1}))
"""


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


def rerun(runner: Runner, count: int, keeper: Keeper, between: Callable[[], None]) -> dict[str, list[Timed]]:
    found: dict[str, list[Timed]] = {workload: [] for workload in WORKLOADS}
    for number in range(1, count + 1):
        for workload in WORKLOADS:
            watch = Watch()
            run = common.compare(runner, Problem(workload, {}).request(), watch.look)
            keeper.keep(f"run_{number:02}_{workload}", run)
            milestones = watch.milestones
            found[workload].append(
                Timed(
                    run,
                    watch.rough_s,
                    watch.order_s,
                    milestones.verdict_s or math.inf,
                    milestones.end_s or math.inf,
                )
            )
            between()
            told = text.percent(run.control.resolution) if run.control else "no control"
            say(f"{number} of {count}: {workload} ({run.status}, {told}): {', '.join(run.ranking[0])}")
    return found


def run_figures(found: dict[str, list[Timed]]) -> list[Figure]:
    groups = [[each.run for each in runs] for runs in found.values()]
    first = [each for workload in common.DEFAULT_WORKLOADS for each in found[workload]]
    return [
        *sharp_figures.scatter(groups),
        *sharp_figures.calibration(groups),
        *sharp_figures.resolution(run for runs in groups for run in runs),
        *sharp_figures.times(first),
    ]


def run_rows(found: dict[str, list[Timed]]) -> Iterator[tuple[object, ...]]:
    for workload, runs in found.items():
        deviation = sharp_figures.scatter([[each.run for each in runs]])[0].value
        resolutions = [each.run.control.resolution for each in runs if each.run.control]
        coarse = statistics.median(resolutions) if resolutions else math.inf
        leaders = statistics.median(len(each.run.ranking[0]) for each in runs)
        verdict_s = statistics.median(each.verdict_s for each in runs)
        complete = sum(each.run.status == "complete" for each in runs)
        same = repeatability.agreement([frozenset(each.run.ranking[0]) for each in runs])
        yield (
            workload,
            text.percent(deviation),
            f"{coarse:.0%}",
            leaders,
            f"{same.pairs:.0%}",
            f"{verdict_s:.1f} s",
            f"{complete} of {len(runs)}",
        )


# --- pairs -----------------------------------------------------------------------------------------------------------


def write_slower(folder: Path) -> None:
    """A file for each mapper of `PAIRS` that has 15 % more to do."""
    for mapper in {slug.partition(".")[0] for _, slug in PAIRS}:
        (folder / f"{mapper}{_MORE}.py").write_text(_SLOWER.format(slug=mapper), encoding="utf-8")


def told_apart(runner: Runner, count: int, name: str) -> list[str]:
    """What so many comparisons of `PAIRS` say: right, wrong or tie."""
    said = []
    for number in range(count):
        case, fast = PAIRS[number % len(PAIRS)]
        mapper, _, mode = fast.partition(".")
        run = common.compare(runner, case.request([fast, f"{mapper}{_MORE}.{mode}"]))
        said.append("tie" if len(run.ranking) < 2 else "right" if fast in run.ranking[0] else "wrong")
        say(f"{name}, {number + 1} of {count}: {fast}: {said[-1]}; {run.verdict}")
    return said


def order_right(runner: Runner, count: int) -> list[bool]:
    """Whether the faster one of `PAIRS` stands first beside a load that comes and goes on one core."""
    right = []
    for number in range(count):
        case, fast = PAIRS[number % len(PAIRS)]
        mapper, _, mode = fast.partition(".")
        slow = f"{mapper}{_MORE}.{mode}"
        with comes_and_goes(number):
            run = common.compare(runner, case.request([fast, slow]))
        latencies = {item.strategy: sharp_figures.latency_s(item) for item in sharp_figures.timed(run)}
        right.append(latencies[fast] < latencies[slow])
        say(f"beside a load, {number + 1} of {count}: slower / faster = {latencies[slow] / latencies[fast]:.2f}")
    return right


@contextlib.contextmanager
def comes_and_goes(seed: int) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", _COMES_AND_GOES.format(*_STRETCH_S), str(seed)])
    try:
        yield
    finally:
        process.kill()
        process.wait()


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
    for turn in range(turns):
        for workload in common.DEFAULT_WORKLOADS:
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


# --- chunks, and all strategies --------------------------------------------------------------------------------------


def chunk_ratio(runner: Runner, case: Problem) -> float:
    """Latency of the automatic chunk over that of the best of ten, in one comparison."""
    mapper = "accumulate.graph" if case.workload == "dp_sgd" else "chunked.graph"
    batch = case.request([mapper]).size["batch"]
    values = sorted({round(value) for value in np.geomspace(1, batch, _CHUNKS)})
    run = common.compare(runner, case.request([mapper, *(f"{mapper}?chunk={value}" for value in values)], budget_s=30))
    latencies = {item.strategy: sharp_figures.latency_s(item) for item in sharp_figures.timed(run)}
    best = min(latencies, key=lambda slug: latencies[slug])
    say(f"{case}: {mapper} takes {latencies[mapper] / latencies[best]:.2f} of {best}")
    return latencies[mapper] / latencies[best]


def many(runner: Runner) -> list[Figure]:
    """A comparison of all strategies, and what its forecast said."""
    request = Problem("image_sqrt", {}).request("all")
    watch = Watch()
    run = common.compare(runner, request, watch.look)
    verdict_s = watch.milestones.verdict_s or math.inf
    forecast_s = common.forecast_of(request).seconds
    able = [item for item in run.measurements if item.outcome == "ok" and not item.twin_of]
    ordered = sum(item.latency is not None for item in able)
    resolution = run.control.resolution if run.control else math.inf
    return [
        Figure(f"{len(request.strategies)} strategies: forecast", forecast_s, show=whole_seconds),
        Figure("until their verdict, over the forecast", verdict_s / forecast_s, 1.5, show=text.number),
        Figure("of those that can run here, ordered", ordered, len(able), show=text.number, at_least=True),
        Figure("resolution of their leaders", resolution, 0.10, show=lambda share: f"{share:.0%}"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), metavar="PARTS", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--runs", type=int, default=20, help="reruns of each default comparison (20)")
    parser.add_argument("--pairs", type=int, default=60, help="comparisons of a strategy with itself (60)")
    parser.add_argument("--turns", type=int, default=3, help="fresh processes of each strategy alone (3)")
    parser.add_argument(
        "--apart", type=int, default=40, help="comparisons of two 15 %% apart, idle and beside a load (40)"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the file of each rerun into this folder")
    arguments = parser.parse_args()
    parts = arguments.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"{', '.join(sorted(unknown))} is not known: {', '.join(PARTS)} are")
    common.start("How sharp verdicts are")
    disturbances, figures = Disturbances(), list[Figure]()
    with common.own_folders() as folder, common.engine() as runner:
        if "runs" in parts:
            found = rerun(runner, arguments.runs, Keeper(arguments.keep), disturbances.look)
            head = ("workload", "scatter", "resolution", "leaders", "pairs that agree", "verdict", "complete")
            print(f"{common.table(head, run_rows(found))}\n", flush=True)
            figures += run_figures(found)
        if "pairs" in parts or "load" in parts:
            repeatability.write_aliases(folder / "mappers")
            write_slower(folder / "mappers")
            os.environ["MAPBENCH_MAPPERS"] = str(folder / "mappers")
            figures += pair_figures(runner, parts, arguments)
            del os.environ["MAPBENCH_MAPPERS"]
        if "truth" in parts:
            truths = against_alone(runner, arguments.turns)
            print(f"{common.table(('workload', 'strategy', 'alone', 'headline'), truth_rows(truths))}\n", flush=True)
            figures += sharp_figures.truth(truths)
        if "chunks" in parts:
            ratios = [chunk_ratio(runner, case) for case in CHUNKED]
            figures.append(
                Figure("automatic chunk over the best of ten, farthest", max(ratios), 1.15, show=text.number)
            )
        if "many" in parts:
            figures += many(runner)
    print(f"{common.figures(figures)}\n\n{disturbances.sentence()}")


def pair_figures(runner: Runner, parts: Sequence[str], arguments: argparse.Namespace) -> list[Figure]:
    figures = []
    if "pairs" in parts:
        pairs = repeatability.same_with_itself(runner, arguments.pairs, DEFAULT_BUDGET_S, Keeper(None))
        different = sum(pair.different for pair in pairs)
        figures.append(Figure(f"of {len(pairs)} pairs of equals called different", different, 3, show=text.number))
        said = told_apart(runner, arguments.apart, "15 % apart")
        share = said.count("right") / len(said)
        figures.append(Figure("15 % apart and told apart", share, 0.9, None, text.percent, True))
    if "load" in parts:
        right = statistics.mean(order_right(runner, arguments.apart))
        figures.append(Figure("15 % apart and in order beside a load", right, 0.95, None, text.percent, True))
    return figures


if __name__ == "__main__":
    main()
