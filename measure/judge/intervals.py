"""Intervals: how far a figure may be from what was estimated.

A latency is an estimate on the logarithmic scale (`Level`) with a variance, which `measure.judge.levels` makes of
samples; its interval, and that of two latencies' ratio, is Student's.
"""

import math
from dataclasses import dataclass

from scipy import special

# Wider than any interval that says something: its ends stay in the bounds of a run file.
_MOST = 60.0


@dataclass(frozen=True)
class Level:
    """The logarithm of a strategy's latency in seconds: an estimate, its variance (beside others of its run, whose pace
    they share) and that variance's degrees of freedom."""

    log_mean: float
    variance: float
    degrees: float

    def half(self, confidence: float) -> float:
        """Half of the Student-t interval of the logarithm, as far as its ends are still numbers."""
        return min(student_quantile(confidence, self.degrees) * math.sqrt(self.variance), _MOST)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Both ends of the interval, in seconds (of a difference of levels: as a ratio)."""
        half = self.half(confidence)
        return math.exp(self.log_mean - half), math.exp(self.log_mean + half)


@dataclass(frozen=True)
class Ratio:
    """Latency of one strategy over another's, with its interval and Student's two-sided p value of «no difference»."""

    ratio: float
    low: float
    high: float
    p: float


def student_quantile(confidence: float, degrees: float) -> float:
    """The t value that a two-sided interval of ``confidence`` reaches to."""
    return float(special.stdtrit(degrees, 0.5 + confidence / 2))


def difference(a: Level, b: Level) -> Level:
    """The logarithm of ``a`` over ``b``. The variances of one run's levels are one pooled estimate, so that two have no
    more degrees of freedom than one."""
    return Level(a.log_mean - b.log_mean, a.variance + b.variance, min(a.degrees, b.degrees))


def ratio(a: Level, b: Level, confidence: float) -> Ratio:
    """Latency of ``a`` over that of ``b`` (Student's t on the logarithms)."""
    apart = difference(a, b)
    if apart.variance == 0.0:
        times = math.exp(apart.log_mean)
        return Ratio(times, times, times, float(apart.log_mean == 0.0))
    p = 2 * float(special.stdtr(apart.degrees, -abs(apart.log_mean) / math.sqrt(apart.variance)))
    return Ratio(math.exp(apart.log_mean), *apart.interval(confidence), p)
