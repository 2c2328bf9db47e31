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

from measure.judge.levels import Ratio, ratio, shown_levels
from measure.run.run import Run
from measure.run.text import percent
from tests.benchmarks.checkouts import Rerun
from tests.benchmarks.common import Figure

# Who takes at most so many times as long as the reference is near the leader.
NEAR = 1.5
# A script alone and a run are alike in a ratio that differs by at most this.
ALIKE = 0.12
SCATTER, SCATTER_90 = "ratios between runs: sd, median of strategies", "ratios between runs: sd, 90% of strategies"
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
    took_s = {
        slug: statistics.median(found[slug] for run in runs if slug in (found := latencies_s(run))) for slug in often
    }
    return max(often, key=lambda slug: (often[slug], -took_s[slug]))


def ratios(run: Run, reference: str) -> dict[str, Ratio]:
    """The latencies of a run over that of ``reference``, each with the interval that the run shows; none without it."""
    levels, shown = shown_levels(run), latencies_s(run)
    if reference not in shown:
        return {}
    others = [slug for slug in shown if slug != reference]
    return {slug: ratio(levels[slug], levels[reference], run.analysis.confidence) for slug in others}


def _by_strategy(groups: Groups) -> Iterator[tuple[list[float], list[Ratio]]]:
    """Of each strategy of each workload with a ratio in at least two runs: its latencies there, and its ratios."""
    for reruns in groups.values():
        for slug in dict.fromkeys(slug for each in reruns for slug in each.ratios):
            those = [each for each in reruns if slug in each.ratios]
            if len(those) > 1:
                yield [latencies_s(each.run)[slug] for each in those], [each.ratios[slug] for each in those]


def held(groups: Groups) -> Iterator[tuple[bool, bool, float]]:
    """Of each ratio of each run: whether its strategy is near the leader, whether its interval holds the median of the
    other runs' ratios, and half of that interval, relative."""
    for _, ratios in _by_strategy(groups):
        near = statistics.median(one.ratio for one in ratios) <= NEAR
        for number, one in enumerate(ratios):
            other = statistics.median(one.ratio for one in (*ratios[:number], *ratios[number + 1 :]))
            yield near, one.low <= other <= one.high, math.sqrt(one.high / one.low) - 1 if one.low else math.inf


def in_common(groups: Groups) -> list[bool]:
    """Of each pair of runs of a workload, whether their leaders have one in common."""
    pairs = (pair for reruns in groups.values() for pair in itertools.combinations(reruns, 2))
    return [bool(leaders(a.run) & leaders(b.run)) for a, b in pairs]


def of_runs(groups: Groups) -> list[Figure]:
    # Of each strategy of each workload between runs: of its ratio, and of its latency, in which the machine's pace is.
    scatter = [_deviation([one.ratio for one in ratios]) for _, ratios in _by_strategy(groups)]
    drift = [_deviation(seconds) for seconds, _ in _by_strategy(groups)]
    intervals, reruns = list(held(groups)), [one for group in groups.values() for one in group]
    leading = statistics.median(len(leaders(one.run)) for one in reruns)
    near, slower = (_mean(holds for is_near, holds, _ in intervals if is_near is which) for which in (True, False))
    return [
        Figure(SCATTER, _quantile(scatter, 0.5), None, percent),
        Figure(SCATTER_90, _quantile(scatter, 0.9), None, percent),
        Figure("latencies themselves: sd, median of strategies", _quantile(drift, 0.5), None, percent),
        Figure(f"intervals that hold the other runs' median, up to {NEAR}×", near, 0.88, percent, True),
        Figure("the same of slower strategies", slower, 0.88, percent, True),
        Figure(HALF, _quantile([half for _, _, half in intervals], 0.5), 0.15, percent),
        Figure("pairs of runs with a leader in common", _mean(in_common(groups)), 1.0, percent, True),
        Figure("leaders of a run, median", leading, 4, "{:.3g}".format),
        *(
            Figure(f"until the {name}, longest", max(one.seconds[place] for one in reruns), limit)
            for place, (name, limit) in enumerate(UNTIL.items())
        ),
    ]


WORKLOAD_HEAD = ("intervals that hold", "a leader in common", *(f"{name}: median, longest [s]" for name in UNTIL))


def of_workload(reruns: Sequence[Rerun]) -> tuple[str, ...]:
    """A row under `WORKLOAD_HEAD`."""
    groups, seconds = {"": reruns}, zip(*(one.seconds for one in reruns), strict=True)
    return (
        percent(_mean(holds for _, holds, _ in held(groups))),
        percent(_mean(in_common(groups))),
        *(f"{statistics.median(until):.1f}, {max(until):.1f}" for until in seconds),
    )


def of_alone(found: Iterable[tuple[Sequence[float], Sequence[float]]]) -> list[Figure]:
    """Of each strategy its ratios to the reference: of runs, and of scripts alone. Each script is beside each run, and
    beside each other script of its strategy. A run need not agree with a script more often than another script does."""
    every = list(found)
    with_runs = _alike(pair for one in every for pair in itertools.product(*one))
    with_scripts = _alike(pair for _, own in every for pair in itertools.combinations(own, 2))
    alike = f"within {percent(ALIKE)}"
    return [
        Figure(f"a script alone and a run: {alike}", with_runs, min(0.9, with_scripts), percent, True),
        Figure(f"two scripts alone: {alike}", with_scripts, None, percent),
    ]


def side_by_side(figures: Mapping[str, Sequence[Figure]]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Head and rows of a table of each checkout's figures; the last is judged, by the first too where there are two."""
    first, last = next(iter(figures.values())), list(figures.values())[-1]
    rows: list[Sequence[str]] = []
    for was, figure in zip(first, last, strict=True):
        if was is not figure and (share := OF_BEFORE.get(figure.name)):
            figure = replace(figure, limit=min(figure.limit or math.inf, share * was.value))
        name, *judged = figure.row()
        rows.append((name, *([was.show(was.value)] if len(figures) > 1 else []), *judged))
    return ("figure", *figures, "limit", ""), rows


def _alike(pairs: Iterable[tuple[float, float]]) -> float:
    """Of how many pairs the larger one is larger by at most `ALIKE`."""
    return _mean(max(pair) / min(pair) - 1 <= ALIKE for pair in pairs)


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(np.log(values), ddof=1))


def _quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share)) if values else math.nan


def _mean(values: Iterable[bool]) -> float:
    return statistics.fmean(known) if (known := list(values)) else math.nan
