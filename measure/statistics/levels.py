"""From samples to levels, and to what differences a run can tell: pure functions, without a process, a clock or a page.

One model: log(latency) = strategy + round + process + rest. A turn gives the lower quartile of its samples; least
squares take out the rounds, which hold what the machine does to all strategies alike; a process gives the mean of its
turns, and a strategy the mean of its processes. What processes of one strategy differ by is one variance, pooled over
all strategies of the run: it gives every level its interval, that of a strategy with a single process too.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import UNSET

from measure.model.run import DEFAULT_MEMORY, Analysis, Control, Latency, Measurement, Replica, Run
from measure.statistics.intervals import Level, ratio, shown_level
from measure.statistics.ranking import Order

# Other programs make samples longer, never shorter.
QUANTILE = 0.25
# In two runs of one comparison a ratio differs by more than the processes of either show: by this relative standard
# deviation, as ``python -m tests.benchmarks.sharpness`` has measured it.
RERUN = 0.03
# Where no strategy has two processes, nothing tells what they differ by. One in some dozens is twice as slow.
UNKNOWN_DEVIATION, _UNKNOWN_DEGREES = 0.3, 4.0
# A round is held to the usual pace as if by so many turns more: one in which a single process took its turn would
# otherwise take what is that process' own for the machine's.
_USUAL_TURNS = 1.0


@dataclass(frozen=True)
class Spread:
    """The relative standard ``deviation`` between processes of one strategy, over a run, and its degrees of freedom: 0
    where no strategy has two processes."""

    deviation: float
    degrees: float


@dataclass(frozen=True)
class Levels:
    """The evidence of one run. ``by_slug``: the level of each strategy, twins included; ``logs``: one logarithm a
    process, rounds taken out; ``pace``: the relative standard deviation of rounds, in which all strategies share."""

    by_slug: Mapping[str, Level]
    logs: Mapping[str, np.ndarray]
    spread: Spread
    pace: float


def levels_of(measurements: Sequence[Measurement], analysis: Analysis | None = None) -> Levels:
    """The levels of all measurements that have samples; ``analysis``: of the run, which may be a part of a sweep."""
    timed = {
        item.strategy: kept for item in measurements if (kept := [each for each in item.replicas if each.samples_s])
    }
    logs, pace = _without_rounds(timed)
    of_sweep = analysis.spread if analysis is not None else UNSET
    spread = spread_of(logs.values()) if of_sweep is UNSET else Spread(of_sweep[0], max(1.0, of_sweep[1]))
    by_slug = {slug: _level(values, spread) for slug, values in logs.items()}
    return Levels(by_slug, logs, spread, pace)


def spread_of(logs: Iterable[np.ndarray]) -> Spread:
    """The spread between processes. ``logs``: one logarithm a process, float64 [processes] of each strategy."""
    several = [values for values in logs if len(values) > 1]
    degrees = float(sum(len(values) - 1 for values in several))
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in several)
    return Spread(math.sqrt(squares / degrees) if degrees else UNKNOWN_DEVIATION, degrees)


def shown_levels(run: Run) -> Mapping[str, Level]:
    """The levels of a run as it shows them: of one that was analysed by an earlier method, those of its intervals."""
    if run.analysis.version == Analysis().version:
        return levels_of(run.measurements, run.analysis).by_slug
    return {
        item.strategy: shown_level(item.latency, sum(bool(each.samples_s) for each in item.replicas), run.analysis)
        for item in run.measurements
        if item.latency is not None
    }


def latency(item: Measurement, levels: Levels, confidence: float) -> Latency | None:
    """The latency of a strategy in seconds, which is never beyond its own samples, with an interval that holds the pace
    of the machine too; None where it was not timed."""
    if item.strategy not in levels.by_slug:
        return None
    level = levels.by_slug[item.strategy]
    samples_s = [sample_s for replica in item.replicas for sample_s in replica.samples_s]
    median_s = min(max(math.exp(level.log_mean), min(samples_s)), max(samples_s))
    low_s, high_s = Level(math.log(median_s), level.variance + levels.pace**2, level.degrees, 0).interval(confidence)
    medians_s = [float(np.median(replica.samples_s)) for replica in item.replicas if replica.samples_s]
    typical_s = math.exp(sum(map(math.log, medians_s)) / len(medians_s))
    return Latency(median_s=median_s, low_s=low_s, high_s=high_s, typical_s=typical_s)


def control(measurements: Sequence[Measurement], levels: Levels, analysis: Analysis) -> Control | None:
    """The ratio of the run's twin to its original, and the smallest difference (relative) that the run can tell between
    its two fastest; None where no twin was timed, or no strategy in two processes."""
    by_slug = levels.by_slug
    twins = {item.strategy: item.twin_of for item in measurements if item.twin_of and item.strategy in by_slug}
    pairs = [(twin, own) for twin, own in twins.items() if own in by_slug and not twin.endswith(DEFAULT_MEMORY)]
    if not pairs or not levels.spread.degrees:
        return None
    twin, own = pairs[-1]  # where the strategy of a twin has failed, that of another leader entered after it
    of = ratio(by_slug[twin], by_slug[own], analysis.confidence)
    told = Order({slug: level for slug, level in by_slug.items() if slug not in twins}, analysis).resolution
    return Control(strategy=own, ratio=of.ratio, low=of.low, high=of.high, resolution=told)


def _without_rounds(timed: Mapping[str, Sequence[Replica]]) -> tuple[dict[str, np.ndarray], float]:
    """One logarithm a process, float64 [processes] for each strategy, and the relative standard deviation of rounds."""
    turns = [
        (strategy, process, number, value)
        for strategy, replicas in enumerate(timed.values())
        for process, replica in enumerate(replicas)
        for number, value in _turns(replica).items()
    ]
    if not turns:
        return {}, 0.0
    strategy, process, number, value = map(np.array, zip(*turns, strict=True))
    rounds, places = np.unique(number, return_inverse=True)
    # Columns: strategies, rounds; one row a turn, and one a round that holds it to the usual pace.
    rows = np.zeros((len(turns) + len(rounds), len(timed) + len(rounds)))
    rows[np.arange(len(turns)), strategy] = 1
    rows[np.arange(len(turns)), len(timed) + places] = 1
    rows[len(turns) :, len(timed) :] = math.sqrt(_USUAL_TURNS) * np.eye(len(rounds))
    wanted = np.concatenate([value, np.zeros(len(rounds))])
    # What fetches its memory anew scatters by more than a round does: the rounds are those of all others.
    aside = np.array([slug.endswith(DEFAULT_MEMORY) for slug in timed])[strategy]
    rows[: len(turns)][aside], wanted[: len(turns)][aside] = 0, 0
    of_rounds = np.linalg.lstsq(rows, wanted, rcond=None)[0][len(timed) :]
    value = value - of_rounds[places]
    logs = {
        slug: np.array([value[(strategy == place) & (process == each)].mean() for each in range(len(replicas))])
        for place, (slug, replicas) in enumerate(timed.items())
    }
    return logs, float(of_rounds.std())


def _turns(replica: Replica) -> dict[int, float]:
    """The logarithm of the lower quartile of each turn's samples, by the turn's round."""
    rounds, samples_s = np.array(replica.rounds), np.array(replica.samples_s)
    return {int(each): math.log(np.quantile(samples_s[rounds == each], QUANTILE)) for each in np.unique(rounds)}


def _level(logs: np.ndarray, spread: Spread) -> Level:
    of_mean, of_reruns = spread.deviation**2 / len(logs), RERUN**2 / 2
    # By Welch and Satterthwaite, the constant having infinitely many.
    degrees = (spread.degrees or _UNKNOWN_DEGREES) * ((of_mean + of_reruns) / max(of_mean, 1e-3 * of_reruns)) ** 2
    return Level(float(logs.mean()), of_mean + of_reruns, degrees, len(logs))
