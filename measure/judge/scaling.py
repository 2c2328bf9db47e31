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
from measure.run import text
from measure.run.run import Axis, Fit

# A straight line has two numbers, and the upper half of two sizes is a single one.
_LEAST_SIZES = 3
# Residuals beyond this relative size count as outliers.
_OUTLIER = 0.05
_POOR = 0.15
# No interval is written as ± 0.00.
_LEAST_HALF = 0.01


@dataclass(frozen=True)
class Growth:
    """An exponent, 1 in proportion and 2 with the square, and half of its interval."""

    exponent: float
    half: float


def fits(axis: Axis, levels: Mapping[str, Mapping[int, Level]], confidence: float) -> list[Fit]:
    """The fit of each strategy that was timed at three sizes or more; none for options. ``levels``: strategy → size →
    level."""
    timed = {slug: along for slug, along in levels.items() if len(along) >= _LEAST_SIZES and axis.kind == "size"}
    return [_fit(slug, along, axis, confidence) for slug, along in timed.items()]


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
    wide = math.log(upper[-1] / upper[0])
    apart = difference(along[upper[-1]], along[upper[0]])
    return Growth(apart.log_mean / wide, apart.half(confidence) / wide)


def power(axis: str, growth: Growth) -> str:
    """A strategy's growth in short: ``batch^1.02 ± 0.05``."""
    return f"{axis}^{growth.exponent:.2f} ± {max(growth.half, _LEAST_HALF):.2f}"


def _fit(slug: str, along: Mapping[int, Level], axis: Axis, confidence: float) -> Fit:
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
