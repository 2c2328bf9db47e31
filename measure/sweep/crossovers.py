"""The places along a sweep at which one strategy overtakes another, with intervals. Pure functions of a sweep's levels.

At every point the pair's ratio is judged as in a comparison: processes are the unit of evidence, on the logarithmic
scale. Between two points that decide for different strategies the ratio is interpolated, and the interval is the set of
values at which the interpolated ratio's own interval contains 1 (inverted, as in Fieller's theorem: what is far apart
in latency but crosses at a small angle gets the wide interval that it deserves).

How latencies run between two points is not known. Costs like a + b·n are straight lines, others are nearer to straight
ones on logarithmic axes: the interval covers both, so that it also says what the grid leaves open, and shrinks when
points are added in between.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from measure.model.run import Analysis, Axis, Crossover
from measure.statistics import intervals
from measure.statistics.intervals import Level
from measure.sweep.evidence import Evidence
from measure.sweep.lines import line_of

# Values at which the interpolated ratio is looked at, between two neighbouring points.
_STEPS = 200


def crossovers(known: Evidence, analysis: Analysis) -> list[Crossover]:
    """Return, for each pair of lines that lead somewhere, where one overtakes the other, or why it does nowhere.

    A pair that changes its order several times has several crossovers. A map over two axes has none.
    """
    if len(known.axes) != 1:
        return []
    axis = known.axes[0]
    levels = _levels(known)
    leading = _leading_levels(levels, analysis.confidence) if axis.kind == "option" else _leading(known)
    slugs = [line for line in levels if line in leading]
    return [each for one, other in combinations(slugs, 2) for each in _crossovers(one, other, levels, axis, analysis)]


def of_two(one: str, other: str, known: Evidence, analysis: Analysis) -> list[Crossover]:
    """The same for two lines along one axis, whether they lead or not; none where one of them was timed nowhere."""
    levels = _levels(known)
    if one not in levels or other not in levels:
        return []
    return _crossovers(one, other, levels, known.axes[0], analysis)


def _leading(known: Evidence) -> set[str]:
    """The lines that lead, or tie for the lead, at some point."""
    return {
        line_of(item.strategy, known.axes)
        for point in known.points
        for item in point.measurements
        if point.ranking and item.strategy in point.ranking[0]
    }


def _leading_levels(levels: Mapping[str, Mapping[int, Level]], confidence: float) -> set[str]:
    """The same by levels: what a swept option does not concern was measured at one point, and holds at all."""
    leading = set()
    for value in {value for along in levels.values() for value in along}:
        here = {line: along[value] for line, along in levels.items() if value in along}
        best = min(here, key=lambda line: here[line].log_mean)
        leading |= {line for line in here if intervals.ratio(here[line], here[best], confidence).p > 1 - confidence}
    return leading


def sentence(crossover: Crossover) -> str:
    """«b overtakes a at batch 6 [5, 8]»: the first whole number at which it is faster."""
    if (where := place(crossover)) is None:
        return f"{crossover.a} and {crossover.b}: no crossing in range, {crossover.none}"
    return f"{crossover.b} overtakes {crossover.a} at {crossover.axis} {where}"


def place(crossover: Crossover) -> str | None:
    """The place of a crossing, «6 [5, 8]»; None where there is no crossing."""
    if crossover.value is None or crossover.low is None or crossover.high is None:
        return None
    at, low, high = (first_beyond(end) for end in (crossover.value, crossover.low, crossover.high))
    return f"{at:,} [{low:,}, {high:,}]"


def first_beyond(value: float) -> int:
    """The first whole number above a value."""
    return math.floor(value) + 1


def _levels(known: Evidence) -> dict[str, Mapping[int, Level]]:
    """A line's slug → value of the axis → its level there."""
    values = [point.at[known.axes[0].name] for point in known.points]
    made: dict[str, Mapping[int, Level]] = {}
    for along in known.lines:
        levels = {timed.value: timed.level for timed in along.timed}
        if levels:
            made[along.line.slug] = dict.fromkeys(values, *levels.values()) if along.line.flat else levels
    return made


@dataclass(frozen=True)
class _Pair:
    """Levels of two lines at the values that both were measured at, ascending."""

    values: np.ndarray
    first: list[Level]
    second: list[Level]


def _pair(one: Mapping[int, Level], other: Mapping[int, Level]) -> _Pair | None:
    common = sorted(one.keys() & other.keys())
    return _Pair(np.array(common, float), [one[n] for n in common], [other[n] for n in common]) if common else None


def _crossovers(
    one: str, other: str, levels: Mapping[str, Mapping[int, Level]], axis: Axis, analysis: Analysis
) -> list[Crossover]:
    """The crossovers of two lines; where they have none, one that says why."""
    pair = _pair(levels[one], levels[other])
    if pair is None:
        return [_none(one, other, axis, f"{one} and {other} were never measured at the same {axis.name}")]
    common = [int(value) for value in pair.values]
    signs = _signs(pair, analysis.confidence)
    decided = [index for index, sign in enumerate(signs) if sign]
    if not decided:
        return [_none(one, other, axis, f"they tie {_throughout(common, axis)}")]
    turns = [(low, high) for low, high in pairwise(decided) if signs[low] != signs[high]]
    if not turns:
        faster, slower = (one, other) if signs[decided[0]] < 0 else (other, one)
        return [_none(faster, slower, axis, _who(faster, common, decided, axis))]
    return [
        _crossing(pair, low, high, *((one, other) if signs[low] < 0 else (other, one)), axis, analysis.confidence)
        for low, high in turns
    ]


def _none(a: str, b: str, axis: Axis, why: str) -> Crossover:
    return Crossover(a=a, b=b, axis=axis.name, none=why)


def _throughout(common: Sequence[int], axis: Axis) -> str:
    whole = common[0] <= axis.values[0] and common[-1] >= axis.values[-1]
    if whole:
        return "throughout the range"
    if len(common) == 1:
        return f"at {axis.name} {common[0]:,}, the only value at which both were measured"
    return f"from {axis.name} {common[0]:,} to {common[-1]:,}, where both were measured"


def _who(faster: str, common: Sequence[int], decided: Sequence[int], axis: Axis) -> str:
    """The words for who is faster where, if nobody overtakes."""
    if len(decided) == len(common):
        return f"{faster} is faster {_throughout(common, axis)}"
    told = [common[index] for index in decided]
    tied = [value for index, value in enumerate(common) if index not in decided]
    # The shorter list is the one that can be read.
    if len(told) < len(tied):
        return f"{faster} is faster at {axis.name} {_listed(told)}; otherwise they tie {_throughout(common, axis)}"
    return f"{faster} is faster {_throughout(common, axis)}, but for ties at {axis.name} {_listed(tied)}"


def _listed(values: Sequence[int]) -> str:
    return ", ".join(f"{value:,}" for value in values)


def _signs(pair: _Pair, confidence: float) -> list[int]:
    """−1 where the first is faster, 1 where it is slower, 0 where that is not decided; all right together with this
    confidence (Bonferroni), since one wrong sign would be two crossings that do not exist."""
    level = (1 - confidence) / len(pair.values)
    signs = []
    for first, second in zip(pair.first, pair.second, strict=True):
        ratio = intervals.ratio(first, second, confidence)
        signs.append(0 if ratio.p >= level or ratio.ratio == 1.0 else -1 if ratio.ratio < 1 else 1)
    return signs


def _crossing(pair: _Pair, low: int, high: int, a: str, b: str, axis: Axis, confidence: float) -> Crossover:
    """``a`` is faster at the place ``low`` of the pair's values, ``b`` at ``high``; between them nothing is decided."""
    roots, ends = [], []
    for straight in (True, False):
        values, difference, half = _interpolated(pair, low, high, axis, confidence, straight=straight)
        difference *= np.sign(difference[-1])
        crossed = _zeros(values, difference)
        roots.append(crossed[len(crossed) // 2])  # several are noise, and then they are odd in number
        ends += [_zeros(values, difference + half)[0], _zeros(values, difference - half)[-1]]
    return Crossover(a=a, b=b, axis=axis.name, value=roots[0], low=min(ends), high=max(ends))


def _interpolated(
    pair: _Pair, low: int, high: int, axis: Axis, confidence: float, *, straight: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values from the place ``low`` to ``high``, the logarithm of the pair's ratio at each, and half its interval.

    Between neighbours latencies are linear in the value (``straight``), or their logarithms in the axis as drawn.
    """
    parts = []
    for place in range(low, high):
        start, end = pair.values[place], pair.values[place + 1]
        values = np.geomspace(start, end, _STEPS) if axis.scale == "log" else np.linspace(start, end, _STEPS)
        share = (values - start) / (end - start) if straight else np.linspace(0.0, 1.0, _STEPS)
        first, its_terms = _between(pair.first[place], pair.first[place + 1], share, straight=straight)
        second, other_terms = _between(pair.second[place], pair.second[place + 1], share, straight=straight)
        terms = [*its_terms, *other_terms]
        quantile = intervals.student_quantile(confidence, min(degrees for _, degrees in terms))
        parts.append((values, first - second, quantile * np.sqrt(sum(variance for variance, _ in terms))))
    values, difference, half = (np.concatenate(part) for part in zip(*parts, strict=True))
    return values, difference, half


def _between(left: Level, right: Level, share: np.ndarray, *, straight: bool) -> tuple[np.ndarray, list]:
    """The logarithm of a latency at these shares of the way from one level to the next, and what both levels
    contribute to its variance, each with its degrees of freedom."""
    if straight:
        far = share * math.exp(right.log_mean - left.log_mean)
        logs = left.log_mean + np.log1p(far - share)
        weight = far / (1 - share + far)
    else:
        logs = left.log_mean + share * (right.log_mean - left.log_mean)
        weight = share
    return logs, [((1 - weight) ** 2 * left.variance, left.degrees), (weight**2 * right.variance, right.degrees)]


def _zeros(values: np.ndarray, heights: np.ndarray) -> list[float]:
    """The places at which a polyline that starts under zero and ends above it crosses zero."""
    places = np.flatnonzero((heights[:-1] < 0) != (heights[1:] < 0))
    rise = heights[places + 1] - heights[places]
    return (values[places] - heights[places] / rise * (values[places + 1] - values[places])).tolist()
