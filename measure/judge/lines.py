"""A sweep's points, and lines of them: one strategy along the first axis. Where one line overtakes another, what a call
and an element cost, and how latency grows. Pure functions of data.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from measure.judge.levels import Level, difference, student_quantile
from measure.run import slugs, text
from measure.run.run import Axis, Crossover, Fit, Measurement, Point, Run

# The levels of a line by the values of the axis.
Along = Mapping[int, Level]

# Values at which the ratio of two lines is looked at, between two neighbouring points.
_STEPS = 200
# A straight line has two numbers, and the upper half of two sizes is a single one.
_LEAST_SIZES = 3
# Residuals of a fit beyond this relative size count as outliers; one beyond the other makes it a poor one.
_OUTLIER, _POOR = 0.05, 0.15
# No interval of an exponent is written as ± 0.00.
_LEAST_HALF = 0.01


# --- points and lines ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """One strategy along an axis: ``points`` are (value of the axis, the point, its measurement), ascending.

    ``slug`` is the strategy's without the swept option. ``flat``: the swept option does not concern the strategy, so
    that its one measurement holds all along.
    """

    slug: str
    mapper: str
    mode: str
    points: tuple[tuple[int, Point, Measurement], ...]
    flat: bool


def readable(at: Mapping[str, int]) -> str:
    """A place on the axes: «batch 1,000, side 3»."""
    return ", ".join(f"{name} {value:,}" for name, value in at.items())


def place(point: Point) -> tuple[int, ...]:
    """A point's values along the axes."""
    return tuple(point.at.values())


def measured(run: Run) -> list[Point]:
    """The points that were measured, and have a strategy that is right."""
    return [point for point in run.points if any(point.ranking[:1]) and point.measurements]


def line_of(strategy: str, axes: Sequence[Axis]) -> str:
    """The slug of the line that a strategy's slug belongs to: ``chunked.graph?chunk=8`` over ``chunk`` is of the line
    ``chunked.graph``, and a size that is swept is in no slug."""
    return slugs.without_options(strategy, [axis.name for axis in axes if axis.kind == "option"])


def lines(points: Sequence[Point], axes: Sequence[Axis]) -> list[Line]:
    """The lines along the first axis, in the order in which their strategies first occur; twins are left out."""
    axis = axes[0]
    by_slug: dict[str, list[tuple[int, Point, Measurement]]] = {}
    for point in sorted(points, key=lambda point: point.at[axis.name]):
        for item in point.measurements:
            if item.twin_of is None:
                by_slug.setdefault(line_of(item.strategy, axes), []).append((point.at[axis.name], point, item))
    made = []
    for slug, along in by_slug.items():
        first = along[0][2]
        flat = axis.kind == "option" and not any(axis.name in item.options for _, _, item in along)
        made.append(Line(slug, first.mapper, first.mode, tuple(along[:1] if flat else along), flat))
    return made


# --- where one overtakes another -------------------------------------------------------------------------------------


def sentence(crossover: Crossover) -> str:
    """«b overtakes a at batch 6 [5, 8]»: the first whole number at which it is faster."""
    if crossover.value is None:
        return f"{crossover.a} and {crossover.b}: no crossing in range, {crossover.none}"
    return f"{crossover.b} overtakes {crossover.a} at {crossover.axis} {crossed_at(crossover)}"


def crossed_at(crossover: Crossover) -> str:
    """The place of a crossing: «6 [5, 8]»."""
    at, low, high = (first_beyond(end or 0.0) for end in (crossover.value, crossover.low, crossover.high))
    return f"{at:,} [{low:,}, {high:,}]"


def first_beyond(value: float) -> int:
    """The first whole number above a value."""
    return math.floor(value) + 1


def crossing(a: Along, b: Along, values: list[int], scale: str, confidence: float) -> tuple[float, float, float]:
    """The value at which ``b`` overtakes ``a``, and its interval: ``a`` is faster at the first of these values, ``b``
    at the last, and between them nothing is decided.

    The interval is the set of values at which the interval of the interpolated ratio contains 1 (inverted, as in
    Fieller's theorem): lines that cross at a small angle get the wide one that they deserve. How latencies run between
    two points is not known. Costs like a + b·n are straight lines, others are nearer to straight ones on logarithmic
    axes: the interval covers both, so that it also says what the grid leaves open.
    """
    roots, lows, highs = [], [], []
    for straight in (True, False):
        parts = [_between(a, b, start, end, scale, confidence, straight=straight) for start, end in pairwise(values)]
        grid, behind, half = (np.concatenate(part) for part in zip(*parts, strict=True))
        zeros = _zeros(grid, behind)
        roots.append(zeros[len(zeros) // 2])  # several are noise, and then they are odd in number
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
    return grid, logs[0] - logs[1], student_quantile(confidence, min(degrees)) * np.sqrt(sum(variances))


def _zeros(values: np.ndarray, heights: np.ndarray) -> list[float]:
    """The places at which a polyline that starts under zero and ends above it crosses zero."""
    places = np.flatnonzero((heights[:-1] < 0) != (heights[1:] < 0))
    rise = heights[places + 1] - heights[places]
    return (values[places] - heights[places] / rise * (values[places + 1] - values[places])).tolist()


# --- costs and growth ------------------------------------------------------------------------------------------------


def growth(along: Along, confidence: float) -> tuple[float, float] | None:
    """The exponent with which latency grows, 1 in proportion and 2 with the square, and half of its Student-t interval;
    None of fewer than three sizes.

    It is the slope of log time over log size between both ends of the upper half of the sizes, where fixed costs are
    paid for. That time is no power of the size, as where a cache ends, is not in the interval.
    """
    if len(along) < _LEAST_SIZES:
        return None
    # The least size is not among them: it may be 0, of which there is no logarithm.
    upper = sorted(along)[len(along) // 2 :]
    wide = math.log(upper[-1] / upper[0])
    apart = difference(along[upper[-1]], along[upper[0]])
    return apart.log_mean / wide, apart.half(confidence) / wide


def power(axis: str, exponent: float, half: float) -> str:
    """A growth in short: ``batch^1.02 ± 0.05``."""
    return f"{axis}^{exponent:.2f} ± {max(half, _LEAST_HALF):.2f}"


def fits(axis: Axis, levels: Mapping[str, Along], confidence: float) -> list[Fit]:
    """The costs of a call and of an element, latency ≈ a + b·n, of each line that was timed at three sizes or more.
    There are none for options.

    A robust straight line through relative residuals: what a call of 30 µs is off by counts as much as what one of 3 s
    is off by, and a point that is far off (a cache's edge, a disturbed measurement) counts less (soft L1, Huber's idea
    in a smooth form). The interval follows from what differs between processes, pooled over the sweep as for crossings,
    or from the residuals where they are larger than that: there the costs are not quite a straight line.
    """
    timed = {slug: along for slug, along in levels.items() if len(along) >= _LEAST_SIZES and axis.kind == "size"}
    return [_fit(slug, along, axis, confidence) for slug, along in timed.items()]


def _fit(slug: str, along: Along, axis: Axis, confidence: float) -> Fit:
    # Only now: it takes tens of MiB, and a run that is shown has its fits.
    from scipy import optimize

    sizes, levels = np.array(list(along), float), list(along.values())
    seconds = np.exp([level.log_mean for level in levels])
    # Both parameters near 1, whatever the units are.
    scale = np.array([seconds.min(), np.median(seconds / sizes)])
    columns = np.stack([np.ones_like(sizes), sizes], axis=1)
    solved = optimize.least_squares(
        lambda scaled: columns @ (scaled * scale) / seconds - 1, [0.5, 0.5], bounds=(0, np.inf), loss="soft_l1",
        f_scale=_OUTLIER,
    )  # fmt: skip
    costs = scale * solved.x
    model = columns @ costs
    rest = np.log(seconds / model)
    # The interval: from what processes and residuals show, through the line's sensitivity.
    design, weight = columns / model[:, None], 1 / np.sqrt(1 + (rest / _OUTLIER) ** 2)
    inverse = np.linalg.pinv(design.T @ (weight[:, None] * design))
    noise, degrees = np.array([level.variance for level in levels]), len(sizes) - 2
    # Weighted residuals where they are more than processes explain: the line is not the whole truth then.
    scatter = float(np.sum((weight * rest) ** 2)) / degrees
    if scatter <= noise.mean():
        degrees = sum(level.degrees for level in levels)
    spread = inverse @ (design.T @ ((weight**2 * np.maximum(noise, scatter))[:, None] * design)) @ inverse
    half = student_quantile(confidence, degrees) * np.sqrt(np.diag(spread))
    (fixed_s, per_element_s), low, high = costs.tolist(), np.maximum(0.0, costs - half), costs + half
    worst, note = int(np.argmax(np.abs(rest))), ""
    if abs(rest[worst]) > math.log1p(_POOR):
        off = text.factor(math.exp(rest[worst]))
        note = f"poor fit: a call at {axis.name} {sizes[worst]:,.0f} takes {off} what a + b·n says"
    return Fit(
        strategy=slug, axis=axis.name, fixed_s=fixed_s, fixed_low_s=float(low[0]), fixed_high_s=float(high[0]),
        per_element_s=per_element_s, per_element_low_s=float(low[1]), per_element_high_s=float(high[1]), note=note,
    )  # fmt: skip
