"""The places along a sweep at which one strategy overtakes another, with intervals. Pure functions of a run.

At every point the pair's ratio is judged as in a comparison: processes are the unit of evidence, on the logarithmic
scale. Between two points that decide for different strategies the ratio is interpolated, and the interval is the set of
values at which the interpolated ratio's own interval contains 1 (inverted, as in Fieller's theorem: what is far apart
in latency but crosses at a small angle gets the wide interval that it deserves).

How latencies run between two points is not known. Costs like a + b·n are straight lines, others are nearer to straight
ones on logarithmic axes: the interval covers both, so that it also says what the grid leaves open.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import combinations, pairwise

import numpy as np

from measure.judge import intervals, ranking
from measure.judge.intervals import Level
from measure.judge.lines import levels_along
from measure.run import text
from measure.run.run import Analysis, Axis, Crossover, Run

# Values at which the interpolated ratio is looked at, between two neighbouring points.
_STEPS = 200
# Of the points at which a strategy is faster so many are named.
_MOST_NAMED = 6

# A strategy's levels by the values of the axis.
Along = Mapping[int, Level]


def crossovers(run: Run) -> list[Crossover]:
    """Return, for each pair of lines that lead somewhere, or tie for the lead, where one overtakes the other, or why it
    does nowhere.

    A pair that changes its order several times has several crossovers. A map over two axes has none.
    """
    if len(run.axes) != 1:
        return []
    along = levels_along(run)
    leading = set()
    for value in {value for levels in along.values() for value in levels}:
        here = {line: levels[value] for line, levels in along.items() if value in levels}
        leading |= set(ranking.Order(here, run.analysis).groups()[0])
    pairs = combinations([line for line in along if line in leading], 2)
    return [crossing for pair in pairs for crossing in _of_pair(*pair, along, run.axes[0], run.analysis)]


def of_two(run: Run, one: str, other: str) -> list[Crossover]:
    """The same for two lines along one axis, whether they lead or not."""
    return _of_pair(one, other, levels_along(run), run.axes[0], run.analysis)


def sentences(crossings: Iterable[Crossover]) -> str:
    """The answer about a pair that somebody asks about."""
    return f"{'; '.join(map(sentence, crossings))}."


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


def _of_pair(one: str, other: str, along: Mapping[str, Along], axis: Axis, analysis: Analysis) -> list[Crossover]:
    """The crossovers of two lines; where they have none, one that says why."""
    values = sorted(along.get(one, {}).keys() & along.get(other, {}).keys())
    if not values:
        return [Crossover(a=one, b=other, axis=axis.name, none=f"they were never timed at the same {axis.name}")]
    # All right together (Bonferroni), since one wrong sign would be two crossings that do not exist.
    confidence = 1 - (1 - analysis.confidence) / len(values)
    ratios = [intervals.ratio(along[one][value], along[other][value], confidence) for value in values]
    # The places at which it is decided who is faster, and who is.
    faster = {place: one if of.high < 1 else other for place, of in enumerate(ratios) if of.high < 1 or of.low > 1}
    if not faster:
        return [Crossover(a=one, b=other, axis=axis.name, none="they tie wherever both were timed")]
    turns = [(low, high) for low, high in pairwise(faster) if faster[low] != faster[high]]
    if not turns:
        [first] = set(faster.values())
        where = "wherever both were timed"
        if len(faster) < len(values):
            named = text.listed([f"{values[place]:,}" for place in faster], _MOST_NAMED)
            where = f"at {axis.name} {named}, and elsewhere they tie"
        second = other if first == one else one
        return [Crossover(a=first, b=second, axis=axis.name, none=f"{first} is faster {where}")]
    made = []
    for low, high in turns:
        a, b = faster[low], faster[high]
        value, least, most = _crossing(along[a], along[b], values[low : high + 1], axis.scale, analysis.confidence)
        made.append(Crossover(a=a, b=b, axis=axis.name, value=value, low=least, high=most))
    return made


def _crossing(a: Along, b: Along, values: list[int], scale: str, confidence: float) -> tuple[float, float, float]:
    """The value at which ``b`` overtakes ``a``, and its interval: ``a`` is faster at the first of these values, ``b``
    at the last, and between them nothing is decided."""
    roots, ends = [], []
    for straight in (True, False):
        parts = [_between(a, b, start, end, scale, confidence, straight=straight) for start, end in pairwise(values)]
        grid, behind, half = (np.concatenate(part) for part in zip(*parts, strict=True))
        crossed = _zeros(grid, behind)
        roots.append(crossed[len(crossed) // 2])  # several are noise, and then they are odd in number
        ends += [_zeros(grid, behind + half)[0], _zeros(grid, behind - half)[-1]]
    return roots[0], min(ends), max(ends)


def _between(
    a: Along, b: Along, start: int, end: int, scale: str, confidence: float, *, straight: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values from one point to the next, the logarithm of how far ``a`` is behind ``b`` at each, and half its interval.

    Between the points latencies are linear in the value (``straight``), or their logarithms in the axis as drawn.
    """
    grid = np.geomspace(start, end, _STEPS) if scale == "log" else np.linspace(start, end, _STEPS)
    share = (grid - start) / (end - start) if straight else np.linspace(0.0, 1.0, _STEPS)
    logs, variances, degrees = [], [], []
    for left, right in ((a[start], a[end]), (b[start], b[end])):
        rise = right.log_mean - left.log_mean
        far = share * math.exp(rise)
        logs.append(left.log_mean + (np.log1p(far - share) if straight else share * rise))
        weight = far / (1 - share + far) if straight else share
        variances += [(1 - weight) ** 2 * left.variance, weight**2 * right.variance]
        degrees += [left.degrees, right.degrees]
    half = intervals.student_quantile(confidence, min(degrees)) * np.sqrt(sum(variances))
    return grid, logs[0] - logs[1], half


def _zeros(values: np.ndarray, heights: np.ndarray) -> list[float]:
    """The places at which a polyline that starts under zero and ends above it crosses zero."""
    places = np.flatnonzero((heights[:-1] < 0) != (heights[1:] < 0))
    rise = heights[places + 1] - heights[places]
    return (values[places] - heights[places] / rise * (values[places + 1] - values[places])).tolist()
