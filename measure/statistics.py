"""From samples to intervals: pure functions of a run's samples, without a process, a clock or a page.

First the rounds: all subjects that take part in a round meet the same machine, so what a round adds to all of them is
taken out (`detrend`), and strategies are compared within rounds. Then the processes: the unit of evidence is the
*process* (replica). Samples of one process share its memory layout and thread placement, and processes of one strategy
differ by up to several percent. So a strategy's latency is the geometric mean of its
processes' medians, and its interval a Student-t interval on their logarithms; two strategies are compared with
Welch's t test on the same numbers (Welch 1947, «The generalization of Student's problem»). A strategy with few
processes says too little about its own spread; it borrows the spread that all strategies of the run show together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from measure.run import Control, Latency, Measurement

# With fewer processes a strategy's own spread is not estimated from them: t with 2 degrees of freedom says nothing.
_OWN_SPREAD_PROCESSES = 4
# Where hardly any strategy of the run has several processes, the spread between processes is taken to be this, or
# nearly this: a relative standard deviation, in the middle of what was seen for calls of 0.02 to 100 ms, with the
# weight of few observations.
ASSUMED_SPREAD = 0.06
_ASSUMED_DEGREES = 4.0
# A round's effect is told from its subjects' where at least so many take part.
_PAIRED = 3
# Median polish converges in a few sweeps; a sweep that changes no effect by this much (0.01 %) is the last.
_POLISHES = 10
_POLISHED = 1e-4
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


@dataclass(frozen=True)
class Detrended:
    """Samples with the effect of their round taken out. ``logs``: slug → the logarithms, one float64 array per replica
    that has samples, in order. ``effects``: what each round did to all in it, as a logarithm, float64 [rounds]."""

    logs: Mapping[str, Sequence[np.ndarray]]
    effects: np.ndarray


def detrend(measurements: Sequence[Measurement]) -> Detrended:
    """Take out of every sample what its round did to all that took part in it.

    An additive model, logarithm = process + round + rest, fitted by median polish (Tukey 1977, «Exploratory Data
    Analysis», chapter 11), which a few disturbed samples do not move. A round that fewer than `_PAIRED` processes took
    part in has no effect of its own: it could not be told from the processes'. The median of the effects is 0.
    """
    processes = [(item.strategy, replica) for item in measurements for replica in item.replicas if replica.samples_s]
    if not processes:
        return Detrended({}, np.zeros(0))
    numbers = np.unique(np.concatenate([replica.rounds for _, replica in processes]))
    table = np.full((len(processes), len(numbers)), np.nan)
    for row, (_, replica) in enumerate(processes):
        table[row, np.searchsorted(numbers, replica.rounds)] = np.log(replica.samples_s)
    effects = _polish(table)
    logs: dict[str, list[np.ndarray]] = {}
    for slug, replica in processes:
        own = np.log(replica.samples_s) - effects[np.searchsorted(numbers, replica.rounds)]
        logs.setdefault(slug, []).append(own)
    return Detrended(logs, effects)


def _polish(table: np.ndarray) -> np.ndarray:
    """Effects of the columns of ``table``, float64 [processes, rounds] with NaN where a process took no part."""
    paired = np.sum(~np.isnan(table), axis=0) >= _PAIRED
    effects = np.zeros(table.shape[1])
    for _ in range(_POLISHES):
        rest = table - effects
        change = np.where(paired, _medians(rest - _medians(rest, 1)[:, None], 0), 0.0)
        effects += change
        if np.abs(change).max() < _POLISHED:
            break
    return effects - np.median(effects)


def _medians(table: np.ndarray, axis: int) -> np.ndarray:
    """Medians along an axis of what is not NaN; like `np.nanmedian`, which loops in Python over small tables."""
    ordered = np.sort(table, axis=axis)  # NaN goes last
    counts = np.sum(~np.isnan(table), axis=axis, keepdims=True)
    low = np.take_along_axis(ordered, np.maximum(counts - 1, 0) // 2, axis)
    high = np.take_along_axis(ordered, np.minimum(counts // 2, table.shape[axis] - 1), axis)
    return ((low + high) / 2).squeeze(axis)


def _log_medians(logs: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([float(np.median(each)) for each in logs])


def _robust_deviation(values: np.ndarray) -> float:
    """Estimates a normal's standard deviation and ignores a few disturbed values: 1.4826 × the median absolute one."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _median_variance(logs: Sequence[np.ndarray]) -> float:
    """Variance of a process median's logarithm that comes from its few, scattered samples; the mean over processes."""
    variances = []
    for each in logs:
        if len(each) >= 2:
            variances.append((_MEDIAN_ERROR * _robust_deviation(each)) ** 2 / len(each))
    return float(np.mean(variances)) if variances else 0.0


def pooled_spread(by_slug: Mapping[str, Sequence[np.ndarray]]) -> Spread:
    """The spread between processes, pooled over all strategies that have several.

    ``by_slug``: slug → logarithms of samples, one array per process.
    """
    squares, degrees = 0.0, 0
    for logs in by_slug.values():
        medians = _log_medians(logs)
        if len(medians) >= 2:
            squares += float(np.sum((medians - medians.mean()) ** 2))
            degrees += len(medians) - 1
    if degrees < _ASSUMED_DEGREES:
        # One or two differences between processes say less about their spread than what was seen of others.
        squares += _ASSUMED_DEGREES * ASSUMED_SPREAD**2
        return Spread(math.sqrt(squares / (degrees + _ASSUMED_DEGREES)), degrees + _ASSUMED_DEGREES)
    return Spread(math.sqrt(squares / degrees), float(degrees))


def level(logs: Sequence[np.ndarray], spread: Spread) -> Level:
    """A strategy's latency from the logarithms of its samples, one array per process."""
    medians = _log_medians(logs)
    count = len(medians)
    if count >= _OWN_SPREAD_PROCESSES:
        variance, degrees = float(medians.var(ddof=1)) / count, float(count - 1)
    else:
        # Two that disagree more than others do are not trusted more than that.
        deviation = max(spread.deviation, float(medians.std(ddof=1))) if count > 1 else spread.deviation
        variance, degrees = (deviation**2 + _median_variance(logs)) / count, spread.degrees
    return Level(float(medians.mean()), variance, degrees, count)


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


@dataclass(frozen=True)
class Levels:
    """Levels by strategy slug (twins included), the spread between processes that they were made with, and the
    samples that they rest on."""

    by_slug: Mapping[str, Level]
    spread: Spread
    samples: Detrended


def levels(measurements: Sequence[Measurement]) -> Levels:
    """Levels of all measurements that have samples."""
    samples = detrend(measurements)
    spread = pooled_spread(samples.logs)
    return Levels({slug: level(each, spread) for slug, each in samples.logs.items()}, spread, samples)


def control(measurements: Sequence[Measurement], found: Levels, confidence: float) -> Control | None:
    """What the twin says of the run's resolution, or None where there is no timed twin.

    Resolution is the farther end of the twin ratio's interval from 1, and at least what the spread between processes
    lets two strategies of as many processes differ by chance.
    """
    for measurement in measurements:
        original = measurement.twin_of
        if original is None or measurement.strategy not in found.by_slug or original not in found.by_slug:
            continue
        twin, own = found.by_slug[measurement.strategy], found.by_slug[original]
        twins = ratio(twin, own, confidence)
        spread, processes = found.spread, min(twin.processes, own.processes)
        chance = student_quantile(confidence, spread.degrees) * spread.deviation * math.sqrt(2 / processes)
        resolution = max(twins.high - 1, 1 - twins.low, math.expm1(chance))
        return Control(strategy=original, ratio=twins.ratio, low=twins.low, high=twins.high, resolution=resolution)
    return None
