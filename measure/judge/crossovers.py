"""The places along a sweep at which one strategy overtakes another, with intervals. Pure functions of levels.

Between two points that decide for different strategies the ratio of the pair is interpolated on the logarithmic scale,
and the interval is the set of values at which the interpolated ratio's own interval contains 1 (inverted, as in
Fieller's theorem: what is far apart in latency but crosses at a small angle gets the wide interval that it deserves).

How latencies run between two points is not known. Costs like a + b·n are straight lines, others are nearer to straight
ones on logarithmic axes: the interval covers both, so that it also says what the grid leaves open.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np

from measure.judge import intervals
from measure.judge.intervals import Level
from measure.run.run import Crossover

# Values at which the interpolated ratio is looked at, between two neighbouring points.
_STEPS = 200

# A strategy's levels by the values of the axis.
Along = Mapping[int, Level]


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


def crossing(a: Along, b: Along, values: list[int], scale: str, confidence: float) -> tuple[float, float, float]:
    """The value at which ``b`` overtakes ``a``, and its interval: ``a`` is faster at the first of these values, ``b``
    at the last, and between them nothing is decided."""
    roots, lows, highs = [], [], []
    for straight in (True, False):
        parts = [_between(a, b, start, end, scale, confidence, straight=straight) for start, end in pairwise(values)]
        grid, behind, half = (np.concatenate(part) for part in zip(*parts, strict=True))
        crossed = _zeros(grid, behind)
        roots.append(crossed[len(crossed) // 2])  # several are noise, and then they are odd in number
        # Both decided by little, the interval reaches to the points themselves.
        lows += [*_zeros(grid, behind + half)[:1]] if behind[0] + half[0] < 0 else [float(values[0])]
        highs += [*_zeros(grid, behind - half)[-1:]] if behind[-1] - half[-1] > 0 else [float(values[-1])]
    return roots[0], min(lows), max(highs)


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
