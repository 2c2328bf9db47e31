"""From samples to levels, and to what differences a run can tell: pure functions, without a process, a clock or a page.

First the rounds' effects are taken out of the samples (`measure.statistics.effects`), then processes are the unit of
evidence (`measure.statistics.intervals`). A strategy with few processes says too little about its own spread; it
borrows the spread that all strategies of the run show together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from measure.model.run import Control, Measurement
from measure.statistics import robust
from measure.statistics.effects import Detrended, detrend
from measure.statistics.intervals import Level, Spread, chance, ratio

# With fewer processes a strategy's own spread is not estimated from them: t with 2 degrees of freedom says nothing.
_OWN_SPREAD_PROCESSES = 4
# Where hardly any strategy of the run has several processes, the spread between processes is taken to be this, or
# nearly this: a relative standard deviation, in the middle of what was seen for calls of 0.02 to 100 ms, with the
# weight of few observations.
ASSUMED_SPREAD = 0.06
_ASSUMED_DEGREES = 4.0


@dataclass(frozen=True)
class Levels:
    """Levels by strategy slug (twins included), the spread between processes that they were made with, and the
    samples that they rest on."""

    by_slug: Mapping[str, Level]
    spread: Spread
    samples: Detrended


def levels_of(measurements: Sequence[Measurement]) -> Levels:
    """The levels of all measurements that have samples."""
    samples = detrend(measurements)
    spread = pooled_spread(samples.logs)
    by_slug = {slug: level(logs, spread, samples.links[slug]) for slug, logs in samples.logs.items()}
    return Levels(by_slug, spread, samples)


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


def control(measurements: Sequence[Measurement], levels: Levels, confidence: float) -> Control | None:
    """The run's resolution by its twin, or None where there is no timed twin.

    Resolution is the farther end of the twin ratio's interval from 1, and at least what the spread between processes
    lets two strategies of as many processes differ by chance.
    """
    for measurement in measurements:
        original = measurement.twin_of
        if original is None or measurement.strategy not in levels.by_slug or original not in levels.by_slug:
            continue
        twin, own = levels.by_slug[measurement.strategy], levels.by_slug[original]
        twins = ratio(twin, own, confidence)
        by_chance = chance(levels.spread, min(twin.processes, own.processes), confidence)
        resolution = max(twins.high - 1, 1 - twins.low, by_chance)
        return Control(strategy=original, ratio=twins.ratio, low=twins.low, high=twins.high, resolution=resolution)
    return None


def resolution(twins: Control | None, levels: Levels, confidence: float) -> float:
    """The smallest difference (relative) that a run can tell: what its control says or, where there is none, what the
    spread between processes lets the two fastest differ by chance; of these the one with fewer processes counts."""
    if twins is not None:
        return twins.resolution
    fastest = sorted(levels.by_slug.values(), key=lambda level: level.log_mean)[:2]
    return chance(levels.spread, min(level.processes for level in fastest), confidence) if fastest else 0.0


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
