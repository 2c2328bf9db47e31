"""Intervals: how far a figure may be from what was estimated. Every interval of the project is computed here.

The unit of evidence is the *process* (replica). Samples of one process share its memory layout and thread placement,
and processes of one strategy differ by up to several percent. So a strategy's latency is the geometric mean of one
number a process, over the faster half of them, and its interval a Student-t interval on their logarithms; two
strategies are compared with Welch's t test on the same numbers (Welch 1947, «The generalization of Student's problem»).

Of a figure made of others that have intervals of their own, the interval is made of theirs by MOVER (Zou and Donner
2008, «Construction of confidence limits about effect measures: a general approach»), which keeps them lopsided.

A strategy with few processes says too little about its own spread: its variance is moderated by the one that all
strategies of the run show together, as if that had been seen in a few processes more (Smyth 2004, «Linear models and
empirical Bayes methods»).
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from measure.model.run import Analysis, Latency

# Degrees of freedom that are as good as infinitely many.
_MANY = 1e6
# Where hardly any strategy of the run has several processes, the spread between processes is taken to be this, or
# nearly this: a relative standard deviation, in the middle of what was seen for calls of 0.02 to 100 ms, with the
# weight of few observations.
ASSUMED_SPREAD = 0.04
_ASSUMED_DEGREES = 4.0
# The run's spread counts as much for a strategy as so many observations of its own.
_PRIOR_DEGREES = 4.0
# Of normal values: the variance of the mean of the lower half, over that of the mean of all, by simulation for two to
# twelve values; and what makes a mean distance a standard deviation.
_OF_HALF = 1.35
_OF_DISTANCES = math.sqrt(math.pi / 2)
# Two processes of one strategy may be this far apart, as a factor, where a run has seen no more.
_APART = 1.3


@dataclass(frozen=True)
class Spread:
    """The spread between processes of one strategy, over a run: ``deviation``, a relative standard deviation, and
    ``most``, the farthest that any two are apart, a difference of logarithms."""

    deviation: float
    most: float


@dataclass(frozen=True)
class Level:
    """A strategy's latency on the logarithmic scale: its mean, the mean's variance and that variance's degrees."""

    log_mean: float
    variance: float
    degrees: float
    processes: int

    def interval(self, confidence: float) -> tuple[float, float]:
        """Both ends of the Student-t interval, in seconds (of a difference of levels: as a ratio)."""
        half = student_quantile(confidence, self.degrees) * math.sqrt(self.variance)
        return math.exp(self.log_mean - half), math.exp(self.log_mean + half)


@dataclass(frozen=True)
class Ratio:
    """Latency of one strategy over another's, with the interval and Welch's two-sided p value of «no difference»."""

    ratio: float
    low: float
    high: float
    p: float


def spread_of(logs: Sequence[np.ndarray]) -> Spread:
    """The spread between processes of one strategy, over a run. ``logs``: one logarithm a process, one array for each
    strategy."""
    several = [values for values in logs if len(values) > 1]
    degrees = float(sum(len(values) - 1 for values in several))
    squares = _ASSUMED_DEGREES * ASSUMED_SPREAD**2
    if several:
        distances = sum(float(np.abs(values - statistics.median(values)).sum()) for values in several)
        squares += degrees * (_OF_DISTANCES * distances / degrees) ** 2
    most = max([math.log(_APART), *(float(np.ptp(values)) for values in several)])
    return Spread(math.sqrt(squares / (degrees + _ASSUMED_DEGREES)), most)


def level(logs: np.ndarray, spread: Spread) -> Level:
    """A strategy's latency from one logarithm a process, float64 [processes]: the mean of the faster half of them.

    What disturbs a process makes it slower, and often throughout: two threads that share a processor, or a neighbour on
    the same machine. The spread is that of the faster half about the median, as of a normal's lower side.
    """
    count, ordered = len(logs), np.sort(logs)
    half, degrees = count // 2, _PRIOR_DEGREES + (count - 1) / 2  # half of the degrees that all squares have
    squares = _PRIOR_DEGREES * spread.deviation**2
    squares += float(np.sum((ordered[:half] - statistics.median(logs)) ** 2))
    return Level(float(ordered[: count - half].mean()), _of_mean(count) * squares / degrees, degrees, count)


def lone_level(log: float, spread: Spread) -> Level:
    """The latency of a strategy with one process, where nothing else tells whether that is an odd one: its interval is
    as wide as any two processes of one strategy are apart in the run."""
    return Level(log, (spread.most / student_quantile(0.95, _MANY)) ** 2, _MANY, 1)


def shown_level(latency: Latency, processes: int, analysis: Analysis) -> Level:
    """The level whose interval a run shows."""
    degrees = max(1.0, processes - 1.0)
    deviation = math.log(latency.high_s / latency.low_s) / 2 / student_quantile(analysis.confidence, degrees)
    return Level(math.log(latency.median_s), deviation**2, degrees, processes)


def student_quantile(confidence: float, degrees: float) -> float:
    """The t value that a two-sided interval of ``confidence`` reaches to."""
    return float(special.stdtrit(degrees, 0.5 + confidence / 2))


def latency(level: Level, confidence: float) -> Latency:
    """The level in seconds with its interval."""
    low_s, high_s = level.interval(confidence)
    return Latency(median_s=math.exp(level.log_mean), low_s=low_s, high_s=high_s)


def difference(a: Level, b: Level) -> Level:
    """The logarithm of ``a`` over ``b`` (Welch–Satterthwaite degrees of freedom)."""
    variance = a.variance + b.variance
    degrees = _degrees([(a.variance, a.degrees), (b.variance, b.degrees)]) if variance else min(a.degrees, b.degrees)
    return Level(a.log_mean - b.log_mean, variance, degrees, min(a.processes, b.processes))


def ratio(a: Level, b: Level, confidence: float) -> Ratio:
    """Latency of ``a`` over that of ``b``, two of one run (Welch's t on the logarithms)."""
    apart = difference(a, b)
    if apart.variance == 0.0:
        times = math.exp(apart.log_mean)
        return Ratio(times, times, times, float(apart.log_mean == 0.0))
    p = 2 * float(special.stdtr(apart.degrees, -abs(apart.log_mean) / math.sqrt(apart.variance)))
    return Ratio(math.exp(apart.log_mean), *apart.interval(confidence), p)


def half_width(terms: Sequence[tuple[np.ndarray, float]], confidence: float) -> np.ndarray:
    """Half of the Student-t interval of a sum of independent estimates. ``terms``: the variance of each, float64 arrays
    of one shape, and its degrees of freedom."""
    with np.errstate(invalid="ignore"):
        degrees = np.nan_to_num(_degrees(terms), nan=_MANY)
    variance = sum(variance for variance, _ in terms)
    half: np.ndarray = special.stdtrit(np.minimum(degrees, _MANY), 0.5 + confidence / 2) * np.sqrt(variance)
    return half


def of_one(value_s: float, deviation: float, degrees: float, confidence: float) -> Latency:
    """A figure that was seen once, with the interval that others' relative ``deviation`` gives it."""
    factor = math.exp(student_quantile(confidence, degrees) * deviation)
    return Latency(median_s=value_s, low_s=value_s / factor, high_s=value_s * factor)


def chance(spread: Spread, processes: int, confidence: float) -> float:
    """The relative difference by chance between two strategies of so many processes each."""
    variance = spread.deviation**2 * _of_mean(processes)
    return math.expm1(student_quantile(confidence, _PRIOR_DEGREES + processes - 1) * math.sqrt(2 * variance))


def _of_mean(processes: int) -> float:
    """The variance of the mean of the faster half of so many processes, over that of one process."""
    return 1.0 if processes == 1 else _OF_HALF / processes


@dataclass(frozen=True)
class Gap:
    """A difference of two figures, and how far its interval reaches down and up from it."""

    value: float
    down: float
    up: float


def gap(a: Latency, b: Latency) -> Gap:
    """``a`` − ``b`` in seconds, its interval made of theirs by MOVER."""
    return Gap(
        a.median_s - b.median_s,
        math.hypot(a.median_s - a.low_s, b.high_s - b.median_s),
        math.hypot(a.high_s - a.median_s, b.median_s - b.low_s),
    )


def _degrees(terms: Sequence[tuple[Any, float]]) -> Any:
    """Degrees of freedom of a sum of independent estimates, by Welch and Satterthwaite. ``terms``: the variance of
    each, floats or arrays of one shape, and its degrees of freedom."""
    variance = sum(variance for variance, _ in terms)
    return variance**2 / sum(variance**2 / degrees for variance, degrees in terms)
