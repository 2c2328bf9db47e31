"""From samples to levels, and to what differences a run can tell: pure functions, without a process, a clock or a page.

One model: log(latency) = strategy + round + process + rest. A turn gives the lower quartile of its samples; least
squares take out the rounds, which hold what the machine does to all strategies alike; a process gives the mean of its
turns, and a strategy the mean of its processes. What processes of one strategy differ by is one variance, pooled over
all strategies of the run: it gives every level its interval, that of a strategy with a single process too.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

import numpy as np
from msgspec import UNSET

from measure.judge.intervals import Level, ratio, student_quantile
from measure.judge.ranking import Order
from measure.run.run import DEFAULT_MEMORY, Analysis, Control, Latency, Measurement, Replica, Run

# Other programs make samples longer, never shorter.
_QUANTILE = 0.25
# In two runs of one comparison a ratio differs by more than the processes of either show: with this relative standard
# deviation, intervals hold what ``python -m tests.benchmarks.sharpness`` says of them.
RERUN = 0.03
# Where no strategy has two processes, nothing tells what they differ by. One in some dozens is twice as slow.
UNKNOWN_DEVIATION, UNKNOWN_DEGREES = 0.3, 4.0
# A round is held to the usual pace as if by so many turns more: one in which a single process took its turn would
# otherwise take what is that process' own for the machine's.
_USUAL_TURNS = 1.0
# Strategies and rounds are fitted in turns, until they stand still: a file from elsewhere may have very many of both.
_MOST_STEPS, _EXACT = 200, 1e-13


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
    sampled = {item.strategy: [replica for replica in item.replicas if replica.samples_s] for item in measurements}
    logs, pace = _without_rounds({slug: replicas for slug, replicas in sampled.items() if replicas})
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
        item.strategy: _shown(item.latency, sum(bool(replica.samples_s) for replica in item.replicas), run.analysis)
        for item in run.measurements
        if item.latency is not None
    }


def _shown(latency: Latency, processes: int, analysis: Analysis) -> Level:
    degrees = max(1.0, processes - 1.0)
    deviation = math.log(latency.high_s / latency.low_s) / 2 / student_quantile(analysis.confidence, degrees)
    return Level(math.log(latency.median_s), deviation**2, degrees)


def latency(item: Measurement, levels: Levels, confidence: float) -> Latency | None:
    """The latency of a strategy in seconds, which is never beyond its own samples, with an interval that holds the pace
    of the machine too; None where it was not timed."""
    if item.strategy not in levels.by_slug:
        return None
    level = levels.by_slug[item.strategy]
    samples_s = [sample_s for replica in item.replicas for sample_s in replica.samples_s]
    median_s = min(max(math.exp(level.log_mean), min(samples_s)), max(samples_s))
    low_s, high_s = Level(math.log(median_s), level.variance + levels.pace**2, level.degrees).interval(confidence)
    typical_s = geometric_mean(median(replica.samples_s) for replica in item.replicas if replica.samples_s)
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
    resolution = Order({slug: level for slug, level in by_slug.items() if slug not in twins}, analysis).resolution
    return Control(strategy=own, ratio=of.ratio, low=of.low, high=of.high, resolution=resolution)


def _without_rounds(timed: Mapping[str, Sequence[Replica]]) -> tuple[dict[str, np.ndarray], float]:
    """One logarithm a process, float64 [processes] for each strategy, and the relative standard deviation of rounds."""
    processes = [(place, replica) for place, replicas in enumerate(timed.values()) for replica in replicas]
    turns = [
        (place, number, round_number, value)
        for number, (place, replica) in enumerate(processes)
        for round_number, value in _turns(replica)
    ]
    if not turns:
        return {}, 0.0
    strategy, process, of_turns, value = map(np.array, zip(*turns, strict=True))
    rounds, places = np.unique(of_turns, return_inverse=True)
    # What fetches its memory anew scatters by more than a round does: the rounds are those of all others.
    weight = np.array([not slug.endswith(DEFAULT_MEMORY) for slug in timed], dtype=float)[strategy]
    of_rounds = np.zeros(len(rounds))
    for _ in range(_MOST_STEPS):
        of_strategies = np.bincount(strategy, value - of_rounds[places]) / np.bincount(strategy)
        sums = np.bincount(places, weight * (value - of_strategies[strategy]))
        shrunk = sums / (np.bincount(places, weight) + _USUAL_TURNS)
        before, of_rounds = of_rounds, shrunk - shrunk.mean()
        if np.abs(of_rounds - before).max() < _EXACT:
            break
    means = np.bincount(process, value - of_rounds[places]) / np.bincount(process)
    ends = np.cumsum([len(replicas) for replicas in timed.values()])
    return dict(zip(timed, np.split(means, ends[:-1]), strict=True)), float(of_rounds.std())


def _turns(replica: Replica) -> Iterator[tuple[int, float]]:
    """The rounds of a process' turns, each with the logarithm of the lower quartile of its samples."""
    turns: dict[int, list[float]] = {}
    for number, sample_s in zip(replica.rounds, replica.samples_s, strict=True):
        turns.setdefault(number, []).append(sample_s)
    for number, samples_s in turns.items():
        ordered = sorted(samples_s)  # a million turns of a large sweep are too many for np.quantile
        place, part = divmod(_QUANTILE * (len(ordered) - 1), 1)
        low, high = ordered[int(place)], ordered[math.ceil(place + part)]
        yield number, math.log(low + part * (high - low))


def _level(logs: np.ndarray, spread: Spread) -> Level:
    of_mean, of_reruns = spread.deviation**2 / len(logs), RERUN**2 / 2
    # By Welch and Satterthwaite, the constant having infinitely many.
    degrees = (spread.degrees or UNKNOWN_DEGREES) * ((of_mean + of_reruns) / max(of_mean, 1e-3 * of_reruns)) ** 2
    return Level(float(logs.mean()), of_mean + of_reruns, degrees)
