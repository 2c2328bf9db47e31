"""From samples to levels, and to what differences a run can tell: pure functions, without a process, a clock or a page.

In order: a process' samples give one number, its lower quartile; of one strategy, the faster half of these numbers is
its level (`measure.statistics.intervals`). So a latency lies between the least and the greatest of its own samples.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from measure.model.run import Analysis, Control, Measurement, Run
from measure.statistics.intervals import Level, Spread, chance, level, lone_level, ratio, shown_level, spread_of

# Other programs make samples longer, never shorter, and do so in stretches: the lower quartile of many short samples
# stays where it is until three quarters of them are disturbed.
QUANTILE = 0.25
# With fewer samples than this, the lower quartile is little else than the least: the median is taken.
_LEAST_FOR_QUANTILE = 5


@dataclass(frozen=True)
class Levels:
    """The evidence of one run. ``by_slug``: the level of each strategy, twins included; ``typical``: the mean over its
    processes of the logarithm of the median of their samples, likewise; ``logs``: one logarithm a process."""

    by_slug: Mapping[str, Level]
    typical: Mapping[str, float]
    logs: Mapping[str, np.ndarray]
    spread: Spread


def levels_of(measurements: Sequence[Measurement]) -> Levels:
    """The levels of all measurements that have samples."""
    timed = {
        item.strategy: kept for item in measurements if (kept := [each for each in item.replicas if each.samples_s])
    }
    logs = {slug: np.array([log_quartile(each.samples_s) for each in replicas]) for slug, replicas in timed.items()}
    medians = {
        slug: np.array([_log_quantile(each.samples_s, 0.5) for each in replicas]) for slug, replicas in timed.items()
    }
    spread = spread_of(list(logs.values()))
    by_slug = {
        slug: level(values, spread) if len(values) > 1 else lone_level(float(values[0]), spread)
        for slug, values in logs.items()
    }
    typical = {slug: float(values.mean()) for slug, values in medians.items()}
    return Levels(by_slug, typical, logs, spread)


def shown_levels(run: Run) -> Mapping[str, Level]:
    """The levels of a run as it shows them: of one that was analysed by an earlier method, those of its intervals."""
    if run.analysis.version == Analysis().version:
        return levels_of(run.measurements).by_slug
    return {
        item.strategy: shown_level(item.latency, sum(bool(each.samples_s) for each in item.replicas), run.analysis)
        for item in run.measurements
        if item.latency is not None
    }


def control(measurements: Sequence[Measurement], levels: Levels, confidence: float) -> Control | None:
    """The run's resolution by its twin, or None where no twin was timed in two processes at the least: one has no
    interval of its own.

    Resolution is the farther end of the twin ratio's interval from 1, and at least what the spread between processes
    lets two strategies of as many processes differ by chance.
    """
    by_slug = levels.by_slug
    # Where the strategy of a twin has failed, that of another leader entered after it.
    for item in reversed(measurements):
        if item.twin_of is not None and {item.strategy, item.twin_of} <= by_slug.keys():
            twin, own = by_slug[item.strategy], by_slug[item.twin_of]
            fewer = min(twin.processes, own.processes)
            if fewer > 1:
                of = ratio(twin, own, confidence)
                resolution = max(of.high - 1, 1 - of.low, chance(levels.spread, fewer, confidence))
                return Control(strategy=item.twin_of, ratio=of.ratio, low=of.low, high=of.high, resolution=resolution)
    return None


def resolution(twins: Control | None, levels: Levels, confidence: float) -> float:
    """The smallest difference (relative) that a run can tell: what its control says or, where there is none, what the
    spread between processes lets the two fastest differ by chance; of these the one with fewer processes counts."""
    if twins is not None:
        return twins.resolution
    fastest = sorted(levels.by_slug.values(), key=lambda level: level.log_mean)[:2]
    return chance(levels.spread, min(level.processes for level in fastest), confidence) if fastest else 0.0


def log_quartile(samples_s: Sequence[float]) -> float:
    """The logarithm of the lower quartile; of few samples, that of their median."""
    return _log_quantile(samples_s, 0.5 if len(samples_s) < _LEAST_FOR_QUANTILE else QUANTILE)


def _log_quantile(samples_s: Sequence[float], share: float) -> float:
    ordered = sorted(samples_s)
    place, part = divmod(share * (len(ordered) - 1), 1)
    low, high = ordered[int(place)], ordered[math.ceil(place + part)]
    return math.log(low + part * (high - low))
