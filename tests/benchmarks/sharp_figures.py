"""What the runs of `sharpness` amount to: pure functions of runs and of how long they took."""

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from measure.model import text
from measure.model.run import Measurement, Run
from tests.benchmarks.common import Figure, whole_seconds

# A script that keeps more cores busy than this computes with several threads.
_SEVERAL_CORES = 1.2


@dataclass(frozen=True)
class Timed:
    """A run, and the seconds from its request until all strategies had a rough figure, and a latency, its verdict
    stood, and it ended."""

    run: Run
    rough_s: float
    order_s: float
    verdict_s: float
    end_s: float


def timed(run: Run) -> list[Measurement]:
    return [item for item in run.measurements if item.latency is not None and not item.twin_of]


def by_strategy(runs: Sequence[Run]) -> dict[str, list[tuple[Run, Measurement]]]:
    """The measurements of each strategy with the runs that they are of, where at least three runs have one."""
    found: dict[str, list[tuple[Run, Measurement]]] = {}
    for run in runs:
        for item in timed(run):
            found.setdefault(item.strategy, []).append((run, item))
    return {slug: both for slug, both in found.items() if len(both) > 2}


def latency_s(item: Measurement) -> float:
    assert item.latency is not None
    return item.latency.median_s


def half_width(item: Measurement) -> float:
    """Of the 95 % interval, relative."""
    assert item.latency is not None
    return math.sqrt(item.latency.high_s / item.latency.low_s) - 1


def processes(item: Measurement) -> int:
    return sum(bool(replica.samples_s) for replica in item.replicas)


def scatter(groups: Iterable[Sequence[Run]]) -> list[Figure]:
    """Of runs of one case each: how far the latency of a strategy differs between runs."""
    deviations = [
        float(np.std([math.log(latency_s(item)) for _, item in both], ddof=1))
        for runs in groups
        for both in by_strategy(runs).values()
    ]
    return [
        Figure("scatter between runs, median", float(np.median(deviations)), 0.03, 0.02, text.percent),
        Figure(
            "scatter between runs, 90 % of strategies", float(np.quantile(deviations, 0.9)), 0.06, 0.04, text.percent
        ),
    ]


def calibration(groups: Iterable[Sequence[Run]]) -> list[Figure]:
    """How often a run's interval holds the median of the other runs, among leaders and among the others; strategies of
    a single process have no interval of their own."""
    held: dict[bool, list[bool]] = {True: [], False: []}
    widths: dict[bool, list[float]] = {True: [], False: []}
    for runs in groups:
        for both in by_strategy(runs).values():
            for run, item in both:
                assert item.latency is not None
                if processes(item) < 2:
                    continue
                leads = item.strategy in run.ranking[0]
                other = statistics.median(latency_s(found) for other_run, found in both if other_run is not run)
                held[leads].append(item.latency.low_s <= other <= item.latency.high_s)
                widths[leads].append(half_width(item))
    found = []
    for leads, who, limit, aim in ((True, "leaders", 0.07, 0.04), (False, "the others", 0.12, None)):
        if not held[leads]:
            continue
        share = statistics.mean(held[leads])
        found += [
            Figure(f"intervals of {who} that hold the other runs' median", share, 0.90, None, text.percent, True),
            Figure(f"and no more than is meant, {who}", share, 0.99, None, text.percent),
            Figure(f"half of an interval, median, {who}", float(np.median(widths[leads])), limit, aim, text.percent),
        ]
    return found


def resolution(runs: Iterable[Run]) -> list[Figure]:
    known = [run.control.resolution if run.control else math.inf for run in runs]
    return [
        Figure("resolution, median", float(np.median(known)), 0.05, 0.03, _percent),
        Figure("resolution, 95 % of runs", float(np.quantile(known, 0.95, method="lower")), 0.10, None, _percent),
    ]


def times(found: Iterable[Timed]) -> list[Figure]:
    every = list(found)
    return [
        Figure("until all have a rough figure, median", _median(each.rough_s for each in every), 5, show=whole_seconds),
        Figure(
            "until all strategies are ordered, median", _median(each.order_s for each in every), 6, 4, whole_seconds
        ),
        Figure("until the verdict, median", _median(each.verdict_s for each in every), 12, 8, whole_seconds),
        Figure(
            "until the end, limit and peaks included", _median(each.end_s for each in every), 15, None, whole_seconds
        ),
    ]


def in_common(leaders: Sequence[frozenset[str]]) -> float:
    """The share of all pairs of runs whose leaders have one in common."""
    return statistics.fmean(bool(a & b) for a, b in itertools.combinations(leaders, 2)) if len(leaders) > 1 else 1.0


class Alone(msgspec.Struct, frozen=True):
    """A script in a fresh process: seconds per call, and the cores that it kept busy."""

    seconds: float
    cores: float


@dataclass(frozen=True)
class Truth:
    """The headlines of a strategy, seconds of several comparisons, and fresh processes of its script."""

    workload: str
    strategy: str
    headlines_s: Sequence[float]
    processes: Sequence[Alone]

    @property
    def alone_s(self) -> float:
        return statistics.median(process.seconds for process in self.processes)

    @property
    def log(self) -> float:
        """The logarithm of the median headline over what the script takes alone."""
        return math.log(statistics.median(self.headlines_s) / self.alone_s)

    @property
    def kinds(self) -> tuple[str, str]:
        several = statistics.median(process.cores for process in self.processes) > _SEVERAL_CORES
        mode = self.strategy.partition("?")[0].rpartition(".")[2]
        return {"xla": "XLA"}.get(mode, mode), "several threads" if several else "one thread"


def truth(truths: Sequence[Truth]) -> list[Figure]:
    off = [abs(math.expm1(item.log)) for item in truths]
    within = float(np.quantile(off, 0.9))
    figures = []
    if several := [item.processes for item in truths if len(item.processes) > 1]:
        # The machine's part: of one process each, minutes apart.
        alone = [float(np.std([math.log(each.seconds) for each in processes], ddof=1)) for processes in several]
        figures.append(Figure("scatter of scripts alone, median", float(np.median(alone)), show=text.percent))
    figures += [
        Figure("headline over alone: within this, 90 % of strategies", within, 0.1, None, text.percent),
        Figure("headline over alone: farthest", max(off), 0.2, None, text.percent),
    ]
    for kind in ("eager", "graph", "XLA", "one thread", "several threads"):
        own = [item.log for item in truths if kind in item.kinds]
        if own:
            figures.append(Figure(f"bias of {kind}", abs(math.expm1(statistics.median(own))), 0.05, None, text.percent))
    return figures


def slower(paces_s: Sequence[float]) -> dict[float, float]:
    """How many times longer than at its best a computation took → the share of its times that were longer than that.
    Its best is the least but for one of twenty."""
    best_s = float(np.quantile(paces_s, 0.05))
    return {times: float(np.mean(np.asarray(paces_s) > times * best_s)) for times in (1.1, 1.3, 1.5)}


def _median(values: Iterable[float]) -> float:
    return float(np.median(list(values)))


def _percent(share: float) -> str:
    return text.percent(share) if math.isfinite(share) else "not known"
