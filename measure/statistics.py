"""From samples to intervals: pure functions of a run's samples, without a process, a clock or a page.

The unit of evidence is the *process* (replica): samples of one process share its memory layout and thread placement,
and processes of one strategy differ by up to several percent. So a strategy's latency is the geometric mean of its
processes' medians, and its interval a Student-t interval on their logarithms; two strategies are compared with
Welch's t test on the same numbers (Welch 1947, «The generalization of Student's problem»). A strategy with fewer than
three processes says too little about its own spread; it borrows the spread that the run's other strategies show.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from measure.run import Control, Latency, Measurement

# With fewer processes a strategy's own spread is not estimated from them.
_OWN_SPREAD_PROCESSES = 3
# Where no strategy of the run has enough processes, the spread between processes is taken to be this (a relative
# standard deviation, the upper end of what was seen for calls of 0.3 to 10 ms) with the weight of few observations.
ASSUMED_SPREAD = 0.03
_ASSUMED_DEGREES = 4.0
# The standard error of a median is this much larger than that of a mean, for normal samples.
_MEDIAN_ERROR = math.sqrt(math.pi / 2)


@dataclass(frozen=True)
class Level:
    """A strategy's latency on the logarithmic scale: its mean, the mean's variance and that variance's degrees."""

    log_mean: float
    variance: float
    degrees: float
    processes: int

    def interval(self, confidence: float) -> tuple[float, float]:
        half = student_quantile(confidence, self.degrees) * math.sqrt(self.variance)
        return math.exp(self.log_mean - half), math.exp(self.log_mean + half)


@dataclass(frozen=True)
class Ratio:
    """Latency of one strategy over another's, with the interval and Welch's two-sided p value of «no difference»."""

    ratio: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Spread:
    """Relative standard deviation between processes of one strategy, pooled over a run."""

    deviation: float
    degrees: float


def student_quantile(confidence: float, degrees: float) -> float:
    """The t value that a two-sided interval of ``confidence`` reaches to."""
    return float(special.stdtrit(degrees, 0.5 + confidence / 2))


def process_log_medians(measurement: Measurement) -> np.ndarray:
    """Logarithms of the medians of the replicas that have samples, float64 [processes]."""
    return np.array(
        [math.log(float(np.median(replica.samples_s))) for replica in measurement.replicas if replica.samples_s]
    )


def _median_variance(measurement: Measurement) -> float:
    """Variance of a process median's logarithm that comes from its few, scattered samples; the mean over processes."""
    variances = []
    for replica in measurement.replicas:
        if len(replica.samples_s) >= 2:
            logs = np.log(np.array(replica.samples_s))
            # 1.4826 × the median absolute deviation estimates a normal's deviation and ignores a few disturbed samples.
            deviation = 1.4826 * float(np.median(np.abs(logs - np.median(logs))))
            variances.append((_MEDIAN_ERROR * deviation) ** 2 / len(logs))
    return float(np.mean(variances)) if variances else 0.0


def pooled_spread(measurements: Iterable[Measurement]) -> Spread:
    """The spread between processes, pooled over all strategies that have at least three processes."""
    squares, degrees = 0.0, 0
    for measurement in measurements:
        logs = process_log_medians(measurement)
        if len(logs) >= _OWN_SPREAD_PROCESSES:
            squares += float(np.sum((logs - logs.mean()) ** 2))
            degrees += len(logs) - 1
    if not degrees:
        return Spread(ASSUMED_SPREAD, _ASSUMED_DEGREES)
    return Spread(math.sqrt(squares / degrees), float(degrees))


def level(measurement: Measurement, spread: Spread) -> Level | None:
    """A strategy's latency, or None where it has no sample."""
    logs = process_log_medians(measurement)
    count = len(logs)
    if not count:
        return None
    if count >= _OWN_SPREAD_PROCESSES:
        variance, degrees = float(logs.var(ddof=1)) / count, float(count - 1)
    else:
        variance, degrees = (spread.deviation**2 + _median_variance(measurement)) / count, spread.degrees
    return Level(float(logs.mean()), variance, degrees, count)


def latency(level_: Level, confidence: float) -> Latency:
    """The level in seconds: geometric mean of process medians and its interval."""
    low_s, high_s = level_.interval(confidence)
    return Latency(median_s=math.exp(level_.log_mean), low_s=low_s, high_s=high_s)


def ratio(a: Level, b: Level, confidence: float) -> Ratio:
    """Latency of ``a`` over that of ``b`` (Welch's t on the logarithms, Welch–Satterthwaite degrees of freedom)."""
    difference = a.log_mean - b.log_mean
    variance = a.variance + b.variance
    if variance == 0.0:
        return Ratio(math.exp(difference), math.exp(difference), math.exp(difference), float(difference == 0.0))
    degrees = variance**2 / (a.variance**2 / a.degrees + b.variance**2 / b.degrees)
    half = student_quantile(confidence, degrees) * math.sqrt(variance)
    p = 2 * float(special.stdtr(degrees, -abs(difference) / math.sqrt(variance)))
    return Ratio(math.exp(difference), math.exp(difference - half), math.exp(difference + half), p)


def levels(measurements: Sequence[Measurement]) -> dict[str, Level]:
    """Levels of all measurements that have samples, by strategy slug (twins included)."""
    spread = pooled_spread(measurements)
    found = ((measurement.strategy, level(measurement, spread)) for measurement in measurements)
    return {slug: level_ for slug, level_ in found if level_ is not None}


def control(measurements: Sequence[Measurement], by_slug: Mapping[str, Level], confidence: float) -> Control | None:
    """What the twin says of the run's resolution, or None where there is no timed twin.

    Resolution is the farther end of the twin ratio's interval from 1, and at least what the spread between processes
    lets two strategies of as many processes differ by chance.
    """
    for measurement in measurements:
        original = measurement.twin_of
        if original is None or measurement.strategy not in by_slug or original not in by_slug:
            continue
        twin, own = by_slug[measurement.strategy], by_slug[original]
        twins = ratio(twin, own, confidence)
        spread = pooled_spread(measurements)
        processes = min(twin.processes, own.processes)
        chance = student_quantile(confidence, spread.degrees) * spread.deviation * math.sqrt(2 / processes)
        resolution = max(twins.high - 1, 1 - twins.low, math.expm1(chance))
        return Control(strategy=original, ratio=twins.ratio, low=twins.low, high=twins.high, resolution=resolution)
    return None
