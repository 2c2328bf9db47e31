"""What the runs of `sharpness` amount to: pure functions of runs, of how long they took, and of scripts alone.

Ratios are latencies over that of one reference strategy of the workload, the same in all runs. The pace of the machine,
which moves all strategies together, is not in them.
"""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from measure.model import text
from measure.model.run import Run
from tests.benchmarks.checkouts import Ratio, Rerun
from tests.benchmarks.common import Figure, short, whole_seconds

# Who takes at most so many times as long as the reference is near the leader.
NEAR = 1.5
# A script alone and a run are alike in a ratio that differs by at most this.
ALIKE = 0.12
SCATTER, SCATTER_90 = "ratios between runs: sd, median of strategies", "ratios between runs: sd, 90 % of strategies"
HALF = "half of an interval of a ratio, median"
# What a figure may be at most, as a share of what it was before.
OF_BEFORE = {SCATTER: 1 / 2, SCATTER_90: 1 / 2, HALF: 1 / 3}
# What `Rerun.seconds` are, and their limits.
UNTIL = {"first order": 4.0, "verdict": 12.0, "end": 14.0}


# The reruns of one checkout by workload.
Groups = Mapping[str, Sequence[Rerun]]


def latencies_s(run: Run) -> dict[str, float]:
    return {item.strategy: item.latency.median_s for item in run.measurements if item.latency and not item.twin_of}


def leaders(run: Run) -> frozenset[str]:
    return frozenset(run.ranking[0] if run.ranking else ())


def reference(runs: Sequence[Run]) -> str:
    """The strategy that leads in most of the runs; of several the fastest."""
    often = Counter(slug for run in runs for slug in leaders(run))
    took_s = {slug: _median(found[slug] for run in runs if slug in (found := latencies_s(run))) for slug in often}
    return max(often, key=lambda slug: (often[slug], -took_s[slug]))


def _by_strategy(groups: Groups) -> Iterator[tuple[list[float], list[Ratio]]]:
    """Of each strategy of each workload with a ratio in at least two runs: its latencies there, and its ratios."""
    for reruns in groups.values():
        for slug in dict.fromkeys(slug for each in reruns for slug in each.ratios):
            those = [each for each in reruns if slug in each.ratios]
            if len(those) > 1:
                yield [latencies_s(each.run)[slug] for each in those], [each.ratios[slug] for each in those]


def deviations(groups: Groups) -> list[float]:
    """Of each strategy of each workload, the relative standard deviation of its ratio between runs."""
    return [_deviation(each.ratio for each in ratios) for _, ratios in _by_strategy(groups)]


def drift(groups: Groups) -> list[float]:
    """The same of the latencies themselves, in which the machine's pace is."""
    return [_deviation(seconds) for seconds, _ in _by_strategy(groups)]


def held(groups: Groups) -> Iterator[tuple[bool, bool, float]]:
    """Of each ratio of each run: whether its strategy is near the leader, whether its interval holds the median of the
    other runs' ratios, and half of that interval, relative."""
    for _, ratios in _by_strategy(groups):
        near = statistics.median(each.ratio for each in ratios) <= NEAR
        for number, each in enumerate(ratios):
            other = statistics.median(one.ratio for one in (*ratios[:number], *ratios[number + 1 :]))
            yield near, each.low <= other <= each.high, math.sqrt(each.high / each.low) - 1


def in_common(groups: Groups) -> list[bool]:
    """Of each pair of runs of a workload, whether their leaders have one in common."""
    pairs = (pair for reruns in groups.values() for pair in itertools.combinations(reruns, 2))
    return [bool(leaders(a.run) & leaders(b.run)) for a, b in pairs]


def of_runs(groups: Groups) -> list[Figure]:
    own, intervals = deviations(groups), list(held(groups))
    reruns = [each for group in groups.values() for each in group]
    shares = [_mean(holds for near, holds, _ in intervals if near is which) for which in (True, False)]
    return [
        Figure(SCATTER, _median(own), None, 0.05, _percent),
        Figure(SCATTER_90, _quantile(own, 0.9), None, 0.09, _percent),
        Figure("latencies themselves: sd, median of strategies", _median(drift(groups)), show=_percent),
        Figure(f"intervals that hold the other runs' median, up to {NEAR} ×", shares[0], 0.88, None, _percent, True),
        Figure("the same of slower strategies", shares[1], 0.88, None, _percent, True),
        Figure(HALF, _median(half for _, _, half in intervals), 0.15, None, _percent),
        Figure("pairs of runs with a leader in common", _mean(in_common(groups)), 1.0, None, _percent, True),
        Figure("leaders of a run, median", _median(len(leaders(each.run)) for each in reruns), 4, None, short),
        *(
            Figure(f"until the {name}, longest", max(seconds), limit, None, whole_seconds)
            for (name, limit), seconds in zip(UNTIL.items(), _seconds(reruns), strict=True)
        ),
    ]


WORKLOAD_HEAD = (
    *("sd of ratios", "of latencies", "half-width", "hold", "leaders", "in common"),
    *(f"{name} [s]" for name in UNTIL),
)


def of_workload(reruns: Sequence[Rerun]) -> tuple[str, ...]:
    """A row under `WORKLOAD_HEAD`; of seconds the median and the longest."""
    groups = {"": reruns}
    return (
        _percent(_median(deviations(groups))),
        _percent(_median(drift(groups))),
        _percent(_median(half for _, _, half in held(groups))),
        _percent(_mean(holds for _, holds, _ in held(groups))),
        short(_median(len(leaders(each.run)) for each in reruns)),
        _percent(_mean(in_common(groups))),
        *(f"{_median(each):.1f}, {max(each):.1f}" for each in _seconds(reruns)),
    )


def of_alone(found: Iterable[tuple[Sequence[float], Sequence[float]]]) -> list[Figure]:
    """Of each strategy its ratios to the reference: of runs, and of scripts alone. Each script is beside each run, and
    beside each other script of its strategy, and medians are beside medians. A run need not agree with a script more
    often than another script does."""
    every = list(found)
    off = {
        "a script alone and a run": _off(pair for one in every for pair in itertools.product(*one)),
        "two scripts alone": _off(pair for _, own in every for pair in itertools.combinations(own, 2)),
        "medians of scripts and of runs": _off(
            (statistics.median(runs), statistics.median(own)) for runs, own in every
        ),
    }
    shares = [_mean(each <= ALIKE for each in one) for one in off.values()]
    figures = []
    for who, share, limit in zip(off, shares, (min(0.9, shares[1]), None, None), strict=True):
        figures += [
            Figure(f"{who}: within {text.percent(ALIKE)}", share, limit, None, _percent, True),
            Figure(f"{who}: 90 % are within", _quantile(off[who], 0.9), show=_percent),
        ]
    return figures


def side_by_side(figures: Mapping[str, Sequence[Figure]]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Head and rows of a table of each checkout's figures; the last is judged, by the first too where there are two."""
    first, last = next(iter(figures.values())), list(figures.values())[-1]
    rows: list[Sequence[str]] = []
    for was, figure in zip(first, last, strict=True):
        if was is not figure and (share := OF_BEFORE.get(figure.name)):
            figure = replace(figure, limit=min(figure.limit or math.inf, share * was.value))
        shown = [was.show(was.value)] if len(figures) > 1 else []
        name, *judged = figure.row()
        rows.append((name, *shown, *judged))
    return ("figure", *figures, "limit", "aim", ""), rows


def _seconds(reruns: Iterable[Rerun]) -> list[tuple[float, ...]]:
    """For each of `UNTIL`, those of all runs."""
    return list(zip(*(each.seconds for each in reruns), strict=True))


def _off(pairs: Iterable[tuple[float, float]]) -> list[float]:
    """How much larger, relative, the larger one of each pair is."""
    return [max(pair) / min(pair) - 1 for pair in pairs]


def _deviation(values: Iterable[float]) -> float:
    return float(np.std(np.log(list(values)), ddof=1))


def _quantile(values: Iterable[float], share: float) -> float:
    return float(np.quantile(known, share)) if (known := list(values)) else math.nan


def _median(values: Iterable[float]) -> float:
    return _quantile(values, 0.5)


def _mean(values: Iterable[bool]) -> float:
    return statistics.fmean(known) if (known := list(values)) else math.nan


def _percent(share: float) -> str:
    return text.percent(share) if math.isfinite(share) else "not known"
