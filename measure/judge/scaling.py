"""The costs of a call and of an element, latency ≈ a + b·n along an axis of sizes, and the exponent with which latency
grows. Pure functions of levels.

A robust straight line through relative residuals: what a call of 30 µs is off by counts as much as what one of 3 s is
off by, and a point that is far off (a cache's edge, a disturbed measurement) counts less (soft L1, Huber's idea in a
smooth form). The interval follows from what differs between processes, pooled over the sweep as for crossovers, or from
the residuals where they are larger than that: there the costs are not quite a straight line.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from measure.judge.intervals import Level, difference, student_quantile
from measure.judge.lines import levels_along
from measure.run import text
from measure.run.run import Axis, Fit, Run

# A straight line has two numbers, and the upper half of two sizes is a single one.
_LEAST_SIZES = 3
# Residuals beyond this relative size count as outliers.
_OUTLIER = 0.05
_POOR = 0.15
# No interval is written as ± 0.00.
_LEAST_HALF = 0.01


@dataclass(frozen=True)
class Growth:
    """An exponent, 1 in proportion and 2 with the square, half of its interval, and the two sizes it is between."""

    exponent: float
    half: float
    smallest: int
    largest: int

    @property
    def low(self) -> float:
        return self.exponent - self.half

    @property
    def high(self) -> float:
        return self.exponent + self.half


def fits(run: Run) -> list[Fit]:
    """The fit of each strategy that was timed at three sizes or more; none for options and maps."""
    if len(run.axes) != 1 or run.axes[0].kind != "size":
        return []
    of_lines = {slug: along for slug, along in levels_along(run).items() if len(along) >= _LEAST_SIZES}
    return [_fit(slug, along, run.axes[0], run.analysis.confidence) for slug, along in of_lines.items()]


def growths(run: Run) -> dict[str, Growth]:
    """Strategy → the exponent of its latency in the size, of each that has a fit."""
    along, confidence = levels_along(run), run.analysis.confidence
    grown = {fit.strategy: growth(along.get(fit.strategy, {}), confidence) for fit in run.fits}
    return {slug: exponent for slug, exponent in grown.items() if exponent is not None}


def growth(along: Mapping[int, Level], confidence: float) -> Growth | None:
    """The slope of log time over log size between both ends of the upper half of the sizes, where fixed costs are paid
    for, with its Student-t interval from what differs between processes. ``along``: size → level. None of fewer than
    three sizes.

    That time is no power of the size, as where a cache ends, is not in the interval.
    """
    if len(along) < _LEAST_SIZES:
        return None
    # The least size is not among them: it may be 0, of which there is no logarithm.
    upper = sorted(along)[len(along) // 2 :]
    smallest, largest = upper[0], upper[-1]
    apart = difference(along[largest], along[smallest])
    half = student_quantile(confidence, apart.degrees) * math.sqrt(apart.variance)
    wide = math.log(largest / smallest)
    return Growth(apart.log_mean / wide, half / wide, smallest, largest)


def power(axis: str, growth: Growth) -> str:
    """A strategy's growth in short: ``batch^1.02 ± 0.05``."""
    return f"{axis}^{growth.exponent:.2f} ± {max(growth.half, _LEAST_HALF):.2f}"


def _fit(slug: str, along: Mapping[int, Level], axis: Axis, confidence: float) -> Fit:
    sizes = np.array(list(along), float)
    seconds = np.exp([level.log_mean for level in along.values()])
    costs = _costs(sizes, seconds)
    rest = np.log(seconds / (costs[0] + costs[1] * sizes))
    low, high = _interval(sizes, costs, rest, list(along.values()), confidence)
    return Fit(
        strategy=slug,
        axis=axis.name,
        fixed_s=float(costs[0]),
        fixed_low_s=float(low[0]),
        fixed_high_s=float(high[0]),
        per_element_s=float(costs[1]),
        per_element_low_s=float(low[1]),
        per_element_high_s=float(high[1]),
        note=_note(sizes, rest, axis),
    )


def _costs(sizes: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Fixed seconds and seconds per element, neither below zero."""
    # Only now: it takes tens of MiB, and a run that is shown has its fits.
    from scipy import optimize

    # Both parameters near 1, whatever the units are.
    scale = np.array([seconds.min(), np.median(seconds / sizes)])

    def rest(scaled: np.ndarray) -> np.ndarray:
        return (scaled[0] * scale[0] + scaled[1] * scale[1] * sizes) / seconds - 1

    return scale * optimize.least_squares(rest, [0.5, 0.5], bounds=(0, np.inf), loss="soft_l1", f_scale=_OUTLIER).x


def _interval(
    sizes: np.ndarray, costs: np.ndarray, rest: np.ndarray, levels: list[Level], confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of both numbers' intervals: from what processes and residuals show, through the line's sensitivity."""
    model = costs[0] + costs[1] * sizes
    design = np.stack([np.ones_like(sizes), sizes], axis=1) / model[:, None]
    weight = 1 / np.sqrt(1 + (rest / _OUTLIER) ** 2)
    inverse = np.linalg.pinv(design.T @ (weight[:, None] * design))
    noise = np.array([level.variance for level in levels])
    degrees = len(sizes) - 2
    # Weighted residuals where they are more than processes explain: the line is not the whole truth then.
    scatter = float(np.sum((weight * rest) ** 2)) / degrees
    variance = np.maximum(noise, scatter)
    spread = inverse @ (design.T @ ((weight**2 * variance)[:, None] * design)) @ inverse
    own = float(np.sum([level.degrees for level in levels]))
    half = student_quantile(confidence, degrees if scatter > noise.mean() else own) * np.sqrt(np.diag(spread))
    return np.maximum(0.0, costs - half), costs + half


def _note(sizes: np.ndarray, rest: np.ndarray, axis: Axis) -> str:
    """Words for where the straight line is farthest off, if that is far."""
    worst = int(np.argmax(np.abs(rest)))
    if abs(rest[worst]) <= math.log1p(_POOR):
        return ""
    what = text.factor(math.exp(rest[worst]))
    return f"poor fit: a call at {axis.name} {sizes[worst]:,.0f} takes {what} what a + b·n says"
