"""Intervals: how far a figure may be from what was estimated. Every interval of the project is computed here.

The unit of evidence is the *process* (replica). Samples of one process share its memory layout and thread placement,
and processes of one strategy differ by up to several percent. So a strategy's latency is the geometric mean of its
processes' medians, and its interval a Student-t interval on their logarithms; two strategies are compared with Welch's
t test on the same numbers (Welch 1947, «The generalization of Student's problem»).

Of a figure made of others that have intervals of their own, the interval is made of theirs by MOVER (Zou and Donner
2008, «Construction of confidence limits about effect measures: a general approach»), which keeps them lopsided.

A strategy with few processes says too little about its own spread; it borrows the spread that all strategies of the run
show together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from scipy import special

from measure.model.run import Latency
from measure.statistics import robust

# Degrees of freedom that are as good as infinitely many.
_MANY = 1e6
# With fewer processes a strategy's own spread is not estimated from them: t with 2 degrees of freedom says nothing.
_OWN_SPREAD_PROCESSES = 4
# Where hardly any strategy of the run has several processes, the spread between processes is taken to be this, or
# nearly this: a relative standard deviation, in the middle of what was seen for calls of 0.02 to 100 ms, with the
# weight of few observations.
ASSUMED_SPREAD = 0.06
_ASSUMED_DEGREES = 4.0


@dataclass(frozen=True)
class Spread:
    """Relative standard deviation between processes of one strategy, pooled over a run."""

    deviation: float
    degrees: float


@dataclass(frozen=True)
class Level:
    """A strategy's latency on the logarithmic scale: its mean, the mean's variance and that variance's degrees.

    ``link``: what the effects of its rounds add to the uncertainty, as a vector. The squared distance between the
    vectors of two strategies of one run is the variance of the difference between the effects that were taken out of
    them: 0 where both took part in the same rounds.
    """

    log_mean: float
    variance: float
    degrees: float
    processes: int
    link: tuple[float, ...] = ()

    def interval(self, confidence: float) -> tuple[float, float]:
        """Both ends of the Student-t interval, in seconds (of a difference of levels: as a ratio)."""
        alone = self.alone()
        half = student_quantile(confidence, alone.degrees) * math.sqrt(alone.variance)
        return math.exp(self.log_mean - half), math.exp(self.log_mean + half)

    def alone(self) -> "Level":
        """The level for comparisons with those of other runs, whose rounds were others."""
        return _widened(replace(self, link=()), self.link)


@dataclass(frozen=True)
class Ratio:
    """Latency of one strategy over another's, with the interval and Welch's two-sided p value of «no difference»."""

    ratio: float
    low: float
    high: float
    p: float


def pooled_spread(by_slug: Mapping[str, Sequence[np.ndarray]]) -> Spread:
    """The spread between processes, pooled over all strategies that have several.

    ``by_slug``: slug → logarithms of samples, one array per process.
    """
    squares, degrees = 0.0, 0
    for logs in by_slug.values():
        medians = _medians(logs)
        if len(medians) >= 2:
            squares += float(np.sum((medians - medians.mean()) ** 2))
            degrees += len(medians) - 1
    if degrees < _ASSUMED_DEGREES:
        # One or two differences between processes say less about their spread than what was seen of others.
        squares += _ASSUMED_DEGREES * ASSUMED_SPREAD**2
        return Spread(math.sqrt(squares / (degrees + _ASSUMED_DEGREES)), degrees + _ASSUMED_DEGREES)
    return Spread(math.sqrt(squares / degrees), float(degrees))


def level(logs: Sequence[np.ndarray], spread: Spread, link: tuple[float, ...] = ()) -> Level:
    """A strategy's latency from the logarithms of its samples, one array per process."""
    medians = _medians(logs)
    count = len(medians)
    if count >= _OWN_SPREAD_PROCESSES:
        variance, degrees = float(medians.var(ddof=1)) / count, float(count - 1)
    else:
        # Two that disagree more than others do are not trusted more than that.
        deviation = max(spread.deviation, float(medians.std(ddof=1))) if count > 1 else spread.deviation
        variance, degrees = (deviation**2 + _median_variance(logs)) / count, spread.degrees
    return Level(float(medians.mean()), variance, degrees, count, link)


def _medians(logs: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([robust.median(of_process) for of_process in logs])


def _median_variance(logs: Sequence[np.ndarray]) -> float:
    """Variance of a process median's logarithm that comes from its few, scattered samples; the mean over processes."""
    variances = [
        (robust.MEDIAN_ERROR * robust.deviation(of_process)) ** 2 / len(of_process)
        for of_process in logs
        if len(of_process) >= 2
    ]
    return float(np.mean(variances)) if variances else 0.0


def student_quantile(confidence: float, degrees: float) -> float:
    """The t value that a two-sided interval of ``confidence`` reaches to."""
    return float(special.stdtrit(degrees, 0.5 + confidence / 2))


def p_value(t: float, degrees: float) -> float:
    """The two-sided p value of Student's ``t``."""
    return 2 * float(special.stdtr(degrees, -abs(t)))


def latency(level: Level, confidence: float) -> Latency:
    """The level in seconds: geometric mean of process medians and its interval."""
    low_s, high_s = level.interval(confidence)
    return Latency(median_s=math.exp(level.log_mean), low_s=low_s, high_s=high_s)


def difference(a: Level, b: Level) -> Level:
    """The logarithm of ``a`` over ``b``, two of one run (Welch–Satterthwaite degrees of freedom)."""
    variance = a.variance + b.variance
    degrees = _degrees([(a.variance, a.degrees), (b.variance, b.degrees)]) if variance else min(a.degrees, b.degrees)
    apart = [x - y for x, y in zip_longest(a.link, b.link, fillvalue=0.0)]
    return _widened(Level(a.log_mean - b.log_mean, variance, degrees, min(a.processes, b.processes)), apart)


def ratio(a: Level, b: Level, confidence: float) -> Ratio:
    """Latency of ``a`` over that of ``b``, two of one run (Welch's t on the logarithms)."""
    apart = difference(a, b)
    if apart.variance == 0.0:
        times = math.exp(apart.log_mean)
        return Ratio(times, times, times, float(apart.log_mean == 0.0))
    low, high = apart.interval(confidence)
    return Ratio(
        math.exp(apart.log_mean), low, high, p_value(apart.log_mean / math.sqrt(apart.variance), apart.degrees)
    )


def half_width(terms: Sequence[tuple[np.ndarray, float]], confidence: float) -> np.ndarray:
    """Half of the Student-t interval of a sum of independent estimates. ``terms``: the variance of each, float64 arrays
    of one shape, and its degrees of freedom."""
    with np.errstate(invalid="ignore"):
        degrees = np.nan_to_num(_degrees(terms), nan=_MANY)
    variance = sum(variance for variance, _ in terms)
    half: np.ndarray = special.stdtrit(np.minimum(degrees, _MANY), 0.5 + confidence / 2) * np.sqrt(variance)
    return half


def of_one(value_s: float, spread: Spread, confidence: float) -> Latency:
    """A figure that was seen once, with the interval of others' ``spread``."""
    factor = math.exp(student_quantile(confidence, spread.degrees) * spread.deviation)
    return Latency(median_s=value_s, low_s=value_s / factor, high_s=value_s * factor)


def chance(spread: Spread, processes: int, confidence: float) -> float:
    """The relative difference by chance between two strategies of so many processes each."""
    return math.expm1(student_quantile(confidence, spread.degrees) * spread.deviation * math.sqrt(2 / processes))


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


def _widened(level: Level, link: Sequence[float]) -> Level:
    """Return the level with the variance of the rounds' effects, taken as known: they rest on so many samples."""
    more = sum(share * share for share in link)
    if not more or not level.variance:
        return replace(level, variance=level.variance + more)
    variance = level.variance + more
    return replace(level, variance=variance, degrees=level.degrees * (variance / level.variance) ** 2)
