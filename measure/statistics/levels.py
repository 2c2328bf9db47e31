"""From samples to levels, and to what differences a run can tell: pure functions, without a process, a clock or a page.

First the rounds' effects are taken out of the samples (`measure.statistics.effects`), then each strategy's level is
made of its processes (`measure.statistics.intervals`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from measure.model.run import Control, Measurement
from measure.statistics.effects import Detrended, detrend
from measure.statistics.intervals import Level, Spread, chance, level, pooled_spread, ratio


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
