"""Where along a sweep one strategy overtakes another, with an interval. Pure functions of a sweep's points.

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

from measure.model.run import Analysis, Axis, Crossover, Point
from measure.statistics import intervals
from measure.statistics.effects import detrend
from measure.statistics.intervals import Level
from measure.statistics.levels import ASSUMED_SPREAD, level, pooled_spread
from measure.sweep.lines import lines, slug

# Values at which the interpolated ratio is looked at, between two neighbouring points.
_STEPS = 200
# A cell whose processes differ by so many times what is usual says nothing of others.
_OUTLYING = 4.0
_FEW = 3


def crossovers(points: Sequence[Point], axes: Sequence[Axis], analysis: Analysis) -> list[Crossover]:
    """For each pair of strategies that lead somewhere: where one overtakes the other, or why that is nowhere.

    A pair that changes its order several times has several crossovers. A map over two axes has none.
    """
    if len(axes) != 1:
        return []
    axis = axes[0]
    found = _levels(points, axis)
    leading = _leading_levels(found, analysis.confidence) if axis.kind == "option" else _leading(points, axes)
    names = [line for line in found if line in leading]
    return [each for pair in combinations(names, 2) for each in _pair(*pair, found, axis, analysis)]


def _leading(points: Sequence[Point], axes: Sequence[Axis]) -> set[str]:
    """Lines that lead, or tie for the lead, at some point."""
    return {
        slug(item, axes)
        for point in points
        for item in point.measurements
        if point.ranking and item.strategy in point.ranking[0]
    }


def _leading_levels(found: Mapping[str, Mapping[int, Level]], confidence: float) -> set[str]:
    """The same by levels: what a swept option does not concern was measured at one point, and holds at all."""
    leading = set()
    for value in {value for levels in found.values() for value in levels}:
        here = {line: levels[value] for line, levels in found.items() if value in levels}
        best = min(here, key=lambda line: here[line].log_mean)
        leading |= {line for line in here if intervals.ratio(here[line], here[best], confidence).p > 1 - confidence}
    return leading


def sentence(found: Crossover) -> str:
    """«b overtakes a at batch 6 [5, 8]»: the first whole number at which it is faster."""
    if found.value is None or found.low is None or found.high is None:
        return f"{found.a} and {found.b}: no crossing in range, {found.none}"
    at, low, high = (math.floor(each) + 1 for each in (found.value, found.low, found.high))
    return f"{found.b} overtakes {found.a} at {found.axis} {at:,} [{low:,}, {high:,}]"


def point_levels(points: Sequence[Point]) -> list[dict[str, Level]]:
    """Strategy → its level, of each point. The spread between processes is pooled over the whole sweep: a point far
    from any crossing has few of them."""
    samples = [detrend(point.measurements).logs for point in points]
    by_cell = {f"{number} {name}": logs for number, each in enumerate(samples) for name, logs in each.items()}
    spread = pooled_spread(_without_outliers(by_cell))
    return [{name: level(logs, spread) for name, logs in each.items()} for each in samples]


def _without_outliers(by_cell: Mapping[str, Sequence[np.ndarray]]) -> dict[str, Sequence[np.ndarray]]:
    """The cells (strategies at points) but for those whose processes differ far more than others' do. A latency that
    is odd gets more processes because it is odd: what these differ by is true of it, and not of all others."""
    variances = {
        name: float(np.var([np.median(each) for each in logs], ddof=1))
        for name, logs in by_cell.items()
        if len(logs) > 1
    }
    assumed = ASSUMED_SPREAD**2
    # Of few cells it is not known which is the odd one.
    usual = max(assumed, float(np.median([*variances.values(), *[assumed] * _FEW])))
    return {name: logs for name, logs in by_cell.items() if variances.get(name, 0.0) <= _OUTLYING**2 * usual}


def _levels(points: Sequence[Point], axis: Axis) -> dict[str, Mapping[int, Level]]:
    """A line's slug → value of the axis → its level there."""
    by_point = {id(point): each for point, each in zip(points, point_levels(points), strict=True)}
    values = [point.at[axis.name] for point in points]
    made: dict[str, Mapping[int, Level]] = {}
    for line in lines(points, [axis]):
        levels = {
            value: by_point[id(point)][item.strategy]
            for value, point, item in line.points
            if item.outcome == "ok" and item.strategy in by_point[id(point)]
        }
        if levels:
            made[line.slug] = dict.fromkeys(values, *levels.values()) if line.flat else levels
    return made


@dataclass(frozen=True)
class _Pair:
    """Levels of two lines at the values that both were measured at."""

    values: np.ndarray
    first: list[Level]
    second: list[Level]


def _pair(
    one: str, other: str, found: Mapping[str, Mapping[int, Level]], axis: Axis, analysis: Analysis
) -> list[Crossover]:
    common = sorted(found[one].keys() & found[other].keys())
    if not common:
        return [_none(one, other, axis, f"{one} and {other} were never measured at the same {axis.name}")]
    pair = _Pair(np.array(common, float), [found[one][n] for n in common], [found[other][n] for n in common])
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
    """Who is faster where, if nobody overtakes."""
    if len(decided) == len(common):
        return f"{faster} is faster {_throughout(common, axis)}"
    told, tied = (
        [common[index] for index in decided],
        [each for index, each in enumerate(common) if index not in decided],
    )
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
        parts.append((values, first - second, intervals.half_width([*its_terms, *other_terms], confidence)))
    values, difference, half = (np.concatenate(each) for each in zip(*parts, strict=True))
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
    """Where a polyline that starts under zero and ends above it crosses zero."""
    places = np.flatnonzero((heights[:-1] < 0) != (heights[1:] < 0))
    rise = heights[places + 1] - heights[places]
    return (values[places] - heights[places] / rise * (values[places + 1] - values[places])).tolist()
