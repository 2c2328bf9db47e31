"""Figures of evidence as predicates ask for them, and their comparison. One that is not there raises `Missing`."""

import math
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from measure.claims.spec import Seen, Truth
from measure.model import text
from measure.model.run import Evidence, Measurement, Run
from measure.model.script_end import ScriptEnd
from measure.statistics import intervals
from measure.statistics.intervals import Level
from measure.statistics.levels import levels_of
from measure.sweep.lines import lines

_LEAST_SAMPLES = 5
# Of the standard normal distribution: 90 % lie within this.
_QUANTILE_90 = 1.645


class Missing(Exception):
    """Figures that a predicate needs are not there: the message says which, and why."""


def run_of(evidence: Evidence) -> Run:
    if evidence.run is None:
        raise Missing(evidence.reason or "it was not measured")
    return evidence.run


def script_of(evidence: Evidence) -> ScriptEnd:
    if evidence.script is None:
        raise Missing(evidence.reason or "its script was not run")
    if evidence.script.ended is True:
        raise Missing(f"its script was not run to its end: {evidence.script.error}")
    return evidence.script


def item_of(run: Run, slug: str) -> Measurement:
    try:
        return run.measurement(slug)
    except KeyError:
        raise Missing(f"{slug} was not measured") from None


def ratio_of(run: Run, over: str, under: str) -> intervals.Ratio:
    for slug in (over, under):
        item = item_of(run, slug)
        if item.outcome != "ok":
            reason = f": {item.error.message}" if item.error else ""
            raise Missing(f"{slug} ended as {item.outcome.replace('_', ' ')}{reason}")
    levels = levels_of(run.measurements, run.analysis).by_slug
    for slug in (over, under):
        if slug not in levels:
            raise Missing(f"{slug} was not timed")
    return intervals.ratio(levels[over], levels[under], run.analysis.confidence)


def levels_along(run: Run, axis: str) -> Mapping[int, Mapping[str, Level]]:
    """Value of the axis → the levels of the strategies that are right there, by their slugs without a swept option.
    One that a swept option does not concern was measured at its first value, and has that level at all."""
    if [known.name for known in run.axes] != [axis]:
        raise Missing(f"it is no sweep over {axis}")
    levels = {point.at[axis]: levels_of(point.measurements, run.analysis).by_slug for point in run.points}
    along: dict[int, dict[str, Level]] = {value: {} for value in sorted(levels)}
    for line in lines(run.points, run.axes):
        for value, _, item in line.points:
            if item.outcome == "ok" and item.strategy in levels[value]:
                for place in along if line.flat else (value,):
                    along[place][line.slug] = levels[value][item.strategy]
    return along


def bytes_of(run: Run, slug: str, figure: str) -> int:
    item = item_of(run, slug)
    if item.memory is None or item.outcome != "ok":
        raise Missing(f"{slug} ended as {item.outcome.replace('_', ' ')}, so its memory is not known")
    return int(getattr(item.memory, figure))


def temporaries_along(run: Run, axis: str, slug: str) -> dict[int, int]:
    """Value of the axis → the temporary bytes of a strategy that is right there."""
    return {
        point.at[axis]: item.memory.temporary_bytes
        for point in run.points
        for item in point.measurements
        if item.strategy == slug and item.outcome == "ok" and item.memory is not None
    }


def figure_of(evidence: Evidence, name: str) -> object:
    end = script_of(evidence)
    if end.error:
        raise Missing(f"its script failed: {end.error}")
    if name not in end.figures:
        raise Missing(f"its script reported no {name}")
    return end.figures[name]


def sampled_ratio(evidence: Evidence, over: str, under: str) -> intervals.Ratio:
    """The ratio of two lists of samples: the median of the ratios of samples that were taken one after the other, which
    what both have in common does not widen. Its interval: that of a median by order statistics (Conover 1999,
    «Practical Nonparametric Statistics», 3.2), and of few samples the middle half."""
    samples: list[Sequence[float]] = []
    for name in (over, under):
        values = figure_of(evidence, name)
        good = isinstance(values, list) and all(isinstance(each, int | float) and each > 0 for each in values)
        if not good or not isinstance(values, list) or len(values) < _LEAST_SAMPLES:
            raise Missing(f"its script took no samples of {name}")
        samples.append(values)
    ratios = [one / other for one, other in zip(*samples, strict=False)]
    half = min(0.25, _QUANTILE_90 / (2 * math.sqrt(len(ratios))))
    low, high = (float(value) for value in np.quantile(ratios, (0.5 - half, 0.5 + half), method="weibull"))
    return intervals.Ratio(median(ratios), low, high, float("nan"))


def words_of_samples(of: intervals.Ratio, evidence: Evidence, a: str, b: str) -> str:
    medians_s = {name: median(_as_samples(figure_of(evidence, name))) for name in (a, b)}
    shown = {name: f"{name.replace('_', ' ')} {text.seconds(value_s)}" for name, value_s in medians_s.items()}
    return f"{shown[a]}, {shown[b]}: {times(of)}"


def _as_samples(values: object) -> Sequence[float]:
    assert isinstance(values, list)
    return values


def seen(truth: Truth, words: str, threshold: str) -> Seen:
    """Return a predicate's answer on a figure with an interval, in which the threshold lies where it is unknown."""
    if truth != "unknown":
        return Seen(truth, words)
    return Seen(truth, words, f"an interval without {threshold} in it, as a longer or calmer run gives", is_near=True)


def times(of: intervals.Ratio) -> str:
    value, interval = text.factor_with_interval(of.ratio, of.low, of.high)
    return f"{value} {interval}"


def above(of: intervals.Ratio, least: float) -> Truth:
    return "yes" if of.low > least else "no" if of.high <= least else "unknown"


def bounds_of(share: float) -> str:
    """The ends of what differs by less than a share, in words."""
    return f"{1 / (1 + share):.3g} × or {1 + share:.3g} ×"


def within_share(of: intervals.Ratio, share: float) -> Truth:
    if 1 / (1 + share) <= of.low and of.high <= 1 + share:
        return "yes"
    return "no" if of.low > 1 + share or of.high < 1 / (1 + share) else "unknown"
