"""The costs of a call and of an element, latency ≈ a + b·n along an axis of sizes, and the exponent with which latency
grows. Pure functions of a sweep's levels.

A robust straight line through relative residuals: what a call of 30 µs is off by counts as much as what one of 3 s is
off by, and a point that is far off (a cache's edge, a disturbed measurement) counts less (soft L1, Huber's idea in a
smooth form). The interval follows from what differs between processes, pooled over the sweep as for crossovers, or from
the residuals where they are larger than that: there the costs are not quite a straight line.
"""

import math
from collections.abc import Sequence

import numpy as np

from measure.model import text
from measure.model.run import Axis, Fit
from measure.statistics.growth import Growth, growth
from measure.statistics.intervals import Level, student_quantile
from measure.sweep.evidence import Evidence, TimedLine

# A straight line has two numbers: with fewer points there is nothing that it could fail to fit.
_LEAST_POINTS = 3
# Residuals beyond this relative size count as outliers.
_OUTLIER = 0.05
_POOR = 0.15
# An interval above this is clearly faster than in proportion: a cost per element that triples over three decades, as
# where caches end, adds 0.16 to the exponent.
_FAST = 1.2
# No interval is written as ± 0.00.
_LEAST_HALF = 0.01


def fits(known: Evidence, confidence: float) -> list[Fit]:
    """The fit of each strategy that was measured at three sizes or more; none for options and maps."""
    if len(known.axes) != 1 or known.axes[0].kind != "size":
        return []
    return [_fit(along, known.axes[0], confidence) for along in known.lines if len(along.timed) >= _LEAST_POINTS]


def growths(known: Evidence, confidence: float) -> dict[str, Growth]:
    """Strategy → the exponent of its latency in the size, of each that was measured at three sizes or more; none for
    options and maps."""
    if len(known.axes) != 1 or known.axes[0].kind != "size":
        return {}
    grown = {
        along.line.slug: growth({timed.value: timed.level for timed in along.timed}, confidence)
        for along in known.lines
    }
    return {slug: found for slug, found in grown.items() if found is not None}


def power(axis: str, growth: Growth) -> str:
    """A strategy's growth in short: ``batch^1.02 ± 0.05``."""
    return f"{axis}^{growth.exponent:.2f} ± {max(growth.half, _LEAST_HALF):.2f}"


def is_fast(growth: Growth) -> bool:
    """True if latency clearly grows faster than in proportion to the size."""
    return growth.low > _FAST


def _fit(along: TimedLine, axis: Axis, confidence: float) -> Fit:
    sizes = np.array([timed.value for timed in along.timed], float)
    logs = np.array([timed.level.log_mean for timed in along.timed])
    costs = _costs(sizes, np.exp(logs))
    rest = np.log(np.exp(logs) / (costs[0] + costs[1] * sizes))
    half = _halves(sizes, costs, rest, [timed.level for timed in along.timed], confidence)
    (fixed, element), (fixed_half, element_half) = costs.tolist(), half.tolist()
    return Fit(
        strategy=along.line.slug,
        axis=axis.name,
        fixed_s=fixed,
        fixed_low_s=max(0.0, fixed - fixed_half),
        fixed_high_s=fixed + fixed_half,
        per_element_s=element,
        per_element_low_s=max(0.0, element - element_half),
        per_element_high_s=element + element_half,
        note=_note(sizes, rest, axis),
    )


def _costs(sizes: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Fixed seconds and seconds per element, neither below zero."""

    def rest(scaled: np.ndarray) -> np.ndarray:
        return (scaled[0] * scale[0] + scaled[1] * scale[1] * sizes) / seconds - 1

    # Both parameters near 1, whatever the units are.
    scale = np.array([seconds.min(), np.median(seconds / sizes)])
    # Only now: it takes tens of MiB, and a run that is shown has its fits.
    from scipy import optimize

    scaled_costs = optimize.least_squares(rest, [0.5, 0.5], bounds=(0, np.inf), loss="soft_l1", f_scale=_OUTLIER).x
    return scaled_costs * scale


def _halves(
    sizes: np.ndarray, costs: np.ndarray, rest: np.ndarray, levels: Sequence[Level], confidence: float
) -> np.ndarray:
    """Half an interval of both numbers: from what processes and residuals show, through the line's sensitivity."""
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
    quantile = student_quantile(confidence, degrees if scatter > noise.mean() else own)
    return quantile * np.sqrt(np.diag(spread))


def _note(sizes: np.ndarray, rest: np.ndarray, axis: Axis) -> str:
    """Words for where the straight line is farthest off, if that is far."""
    worst = int(np.argmax(np.abs(rest)))
    if abs(rest[worst]) <= math.log1p(_POOR):
        return ""
    what = text.factor(math.exp(rest[worst]))
    return f"poor fit: a call at {axis.name} {sizes[worst]:,.0f} takes {what} what a + b·n says"
