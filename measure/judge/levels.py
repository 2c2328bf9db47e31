"""From samples to levels, intervals and ranks: pure functions, without a process, a clock or a page.

One model: log(latency) = strategy + round + process + slice, of lower quartiles throughout, since other programs make
calls longer and never shorter. A slice gives the quartile of its samples, a round what it does to all strategies alike,
a process the quartile of its slices without their rounds, and a strategy the mean of its processes. Intervals are
Student's: from what processes of one strategy differ by, pooled over the run, from what slices of each strategy differ
by, and from what reruns differ by. Ranks are ties up to what intervals separate.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean, median

import numpy as np
from msgspec import UNSET
from scipy import special

from measure.run import text
from measure.run.run import BASE, DEFAULT_MEMORY, Analysis, Control, Latency, Measurement, Replica, Run

# Other programs make samples longer, never shorter.
_QUANTILE = 0.25
# In two runs of one comparison a ratio differs by more than the processes of either show: with this relative standard
# deviation, intervals hold what ``python -m tests.benchmarks.sharpness`` says of them.
RERUN = 0.04
# What slows the machine slows strategies that differ much not alike: the logarithm of a ratio is off by this share of
# itself times the relative standard deviation of rounds. With it, of ratios measured beside a load 95% hold what is
# measured without (``python -m tests.benchmarks.busy``).
_UNEVEN = 0.75
# Where no strategy has two processes, nothing tells what they differ by. One in some dozens is twice as slow.
UNKNOWN_DEVIATION, UNKNOWN_DEGREES = 0.3, 4.0
# A round is held to the usual pace as if by so many turns more: one in which a single process took its turn would
# otherwise take what is that process' own for the machine's.
_USUAL_TURNS = 1.0
# Strategies and rounds are fitted in alternation; more steps change the last digits of noise.
_STEPS = 15
# A strategy's own spread of slices is shrunk to that of the run, with the weight of this many slices; no spread is less
# than a clock's noise.
_USUAL_SLICES, _LEAST_SLICE_VARIANCE = 10, 1e-6
# A ratio needs this many processes and slices of both sides: two slices may both be in a burst of other programs.
LEAST_PROCESSES, LEAST_SLICES = 2, 5
# Wider than any interval that says something: its ends stay in the bounds of a run file.
_MOST_HALF = 60.0


# --- intervals -------------------------------------------------------------------------------------------------------


def student_quantile(confidence: float, degrees: float) -> float:
    """The t value that a two-sided interval of ``confidence`` reaches to."""
    return float(special.stdtrit(degrees, 0.5 + confidence / 2))


@dataclass(frozen=True)
class Level:
    """The logarithm of a strategy's latency in seconds: an estimate, its variance (beside others of its run, whose pace
    they share) and that variance's degrees of freedom; ``uneven``: how much of a difference to another level is not
    sure, relative, as the machine's pace was not even."""

    log_mean: float
    variance: float
    degrees: float
    uneven: float = 0.0

    def half(self, confidence: float) -> float:
        """Half of the Student-t interval of the logarithm, as far as its ends are still numbers."""
        return min(student_quantile(confidence, self.degrees) * math.sqrt(self.variance), _MOST_HALF)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Both ends of the interval, in seconds (of a difference of levels: as a ratio)."""
        half = self.half(confidence)
        return math.exp(self.log_mean - half), math.exp(self.log_mean + half)

    def ratio(self, confidence: float) -> "Ratio":
        """The ratio whose logarithm this is, as a difference of levels is."""
        return Ratio(math.exp(self.log_mean), *self.interval(confidence))


@dataclass(frozen=True)
class Ratio:
    """Latency of one strategy over another's, with its interval."""

    ratio: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """``13.2× (12.9–13.5)``."""
        return "{} ({})".format(*text.factor_with_interval(self.ratio, self.low, self.high))


def difference(a: Level, b: Level) -> Level:
    """The logarithm of ``a`` over ``b``, by which they are ranked. The variances of one run's levels are pooled
    estimates, so that two have no more degrees of freedom than one."""
    return Level(a.log_mean - b.log_mean, a.variance + b.variance, min(a.degrees, b.degrees))


def relative(a: Level, b: Level) -> Level:
    """The logarithm of ``a`` over ``b``, as an amount: how far they are apart is less sure than that they are."""
    plain = difference(a, b)
    return replace(plain, variance=plain.variance + (max(a.uneven, b.uneven) * plain.log_mean) ** 2)


def ratio(a: Level, b: Level, confidence: float) -> Ratio:
    """Latency of ``a`` over that of ``b`` (Student's t on the logarithms)."""
    return relative(a, b).ratio(confidence)


class Pairs:
    """The `difference` of each pair of many levels, a row at a time."""

    def __init__(self, levels: Sequence[Level], confidence: float) -> None:
        self._log_means = np.array([level.log_mean for level in levels])
        self._variances = np.array([level.variance for level in levels])
        degrees, places = np.unique([level.degrees for level in levels], return_inverse=True)
        self._quantiles = np.array([student_quantile(confidence, one) for one in degrees])[places]

    def behind(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """Of the level at ``place`` and of all behind it: the logarithm of the ratio to that at ``place``, and half of
        its interval's width; float64 [levels]."""
        quantiles = np.maximum(self._quantiles[place:], self._quantiles[place])  # of the fewer degrees of freedom
        halves = quantiles * np.sqrt(self._variances[place:] + self._variances[place])
        return self._log_means[place:] - self._log_means[place], np.minimum(halves, _MOST_HALF)


# --- levels ----------------------------------------------------------------------------------------------------------


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
    fit = _fit({slug: replicas for slug, replicas in sampled.items() if replicas})
    of_sweep = analysis.spread if analysis is not None else UNSET
    spread = _run_spread(fit) if of_sweep is UNSET else Spread(of_sweep[0], max(1.0, of_sweep[1]))
    by_slug = {}
    for slug, values in fit.logs.items():
        # A sweep's spread between processes is of all that they differ by.
        of_slices = 0.0 if of_sweep is not UNSET else float(fit.variances[slug].sum()) / len(values) ** 2
        of_mean, of_reruns = spread.deviation**2 / len(values) + of_slices, RERUN**2 / 2
        # By Welch and Satterthwaite, the constant having infinitely many.
        degrees = (spread.degrees or UNKNOWN_DEGREES) * ((of_mean + of_reruns) / max(of_mean, 1e-3 * of_reruns)) ** 2
        by_slug[slug] = Level(float(values.mean()), of_mean + of_reruns, degrees, _UNEVEN * fit.pace)
    return Levels(by_slug, fit.logs, spread, fit.pace)


def spread_of(logs: Iterable[np.ndarray]) -> Spread:
    """The spread between processes, slices included. ``logs``: one logarithm a process, float64 [processes] of each
    strategy."""
    several = [values for values in logs if len(values) > 1]
    degrees = float(sum(len(values) - 1 for values in several))
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in several)
    return Spread(math.sqrt(squares / degrees) if degrees else UNKNOWN_DEVIATION, degrees)


def _run_spread(fit: "_Fit") -> Spread:
    """The spread between processes beyond that of their slices, by the method of moments (Searle, Casella and McCulloch
    1992, "Variance Components", chapter 3). Strategies count for less the more their slices differ."""
    several = [(values, fit.variances[slug]) for slug, values in fit.logs.items() if len(values) > 1]
    if not several:
        return Spread(UNKNOWN_DEVIATION, 0.0)
    degrees = np.array([len(values) - 1.0 for values, _ in several])
    weights = np.array([1 / (variances.mean() + RERUN**2) for _, variances in several])
    beyond = [
        ((values - values.mean()) ** 2).sum() - variances.sum() * (1 - 1 / len(values)) for values, variances in several
    ]
    variance = float((weights * beyond).sum() / (weights * degrees).sum())
    return Spread(math.sqrt(max(0.0, variance)), float((weights * degrees).sum() ** 2 / (weights**2 * degrees).sum()))


def slices_of(item: Measurement) -> tuple[int, int]:
    """Return the numbers of a strategy's processes that were sampled and of their slices."""
    slices = [len({*replica.rounds}) for replica in item.replicas if replica.samples_s]
    return len(slices), sum(slices)


def has_samples(item: Measurement) -> bool:
    """True of a strategy with enough processes and slices for a ratio."""
    processes, slices = slices_of(item)
    return processes >= LEAST_PROCESSES and slices >= LEAST_SLICES


def shown_levels(run: Run) -> Mapping[str, Level]:
    """The levels of a run that was analysed by an earlier method: those of the intervals that it shows."""
    by_slug = {}
    for item in run.measurements:
        if (shown := item.latency) is not None:
            degrees = max(1.0, sum(bool(replica.samples_s) for replica in item.replicas) - 1.0)
            half = math.log(shown.high_s / shown.low_s) / 2
            deviation = half / student_quantile(run.analysis.confidence, degrees)
            by_slug[item.strategy] = Level(math.log(shown.median_s), deviation**2, degrees)
    return by_slug


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
    pairs = [(twin, own) for twin, own in twins.items() if own in by_slug and not twin.endswith((DEFAULT_MEMORY, BASE))]
    if not pairs or not levels.spread.degrees:
        return None
    twin, own = pairs[-1]  # where the strategy of a twin has failed, that of another leader entered after it
    of = ratio(by_slug[twin], by_slug[own], analysis.confidence)
    resolution = Order({slug: level for slug, level in by_slug.items() if slug not in twins}, analysis).resolution
    return Control(strategy=own, ratio=of.ratio, low=of.low, high=of.high, resolution=resolution)


@dataclass(frozen=True)
class _Fit:
    """What is left once rounds are taken out. ``logs``: the logarithm of each process, the lower quartile of its
    slices, with its variance, float64 [processes] of each strategy; ``pace``: the relative standard deviation of
    rounds."""

    logs: dict[str, np.ndarray]
    variances: dict[str, np.ndarray]
    pace: float


def _fit(timed: Mapping[str, Sequence[Replica]]) -> _Fit:
    """Fit strategies and rounds in alternation, by quartiles (median polish, Tukey 1977, of another quantile)."""
    processes = [(place, replica) for place, replicas in enumerate(timed.values()) for replica in replicas]
    turns = [
        (place, number, round_number, value)
        for number, (place, replica) in enumerate(processes)
        for round_number, value in turns_of(replica)
    ]
    if not turns:
        return _Fit({}, {}, 0.0)
    strategy, process, of_turns, value = map(np.array, zip(*turns, strict=True))
    rounds, places = np.unique(of_turns, return_inverse=True)
    # What fetches its memory anew scatters by more than a round does: the rounds are those of all others.
    is_usual = np.array([not slug.endswith(DEFAULT_MEMORY) for slug in timed])[strategy]
    if not is_usual.any():
        is_usual[:] = True
    usual_counts = np.bincount(places[is_usual], minlength=len(rounds))
    of_rounds, of_strategies = np.zeros(len(rounds)), np.zeros(len(timed))
    for _ in range(_STEPS):
        of_strategies = _quartiles(value - of_rounds[places], strategy, len(timed))
        rest = (value - of_strategies[strategy])[is_usual]
        of_rounds = _quartiles(rest, places[is_usual], len(rounds)) * usual_counts / (usual_counts + _USUAL_TURNS)
        of_rounds -= np.median(of_rounds)
    alone = value - of_rounds[places]
    logs, counts = _quartiles(alone, process, len(processes)), np.bincount(process)
    variances = _slice_variances(alone - of_strategies[strategy], strategy, len(timed))
    of_processes = variances[np.array([place for place, _ in processes])] / counts
    ends = np.cumsum([len(replicas) for replicas in timed.values()])[:-1]
    of_logs, of_variances = (dict(zip(timed, np.split(each, ends), strict=True)) for each in (logs, of_processes))
    return _Fit(of_logs, of_variances, float(of_rounds.std()))


def _quartiles(values: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """The lower quartile of the values of each group, float64 [count]; 0 of a group without any."""
    ordered = values[np.lexsort((values, groups))]
    sizes = np.bincount(groups, minlength=count)
    starts, places = np.cumsum(sizes) - sizes, _QUANTILE * np.maximum(sizes - 1, 0)
    low, high = (np.minimum(starts + end(places).astype(int), len(values) - 1) for end in (np.floor, np.ceil))
    part = places - np.floor(places)
    return np.where(sizes > 0, ordered[low] * (1 - part) + ordered[high] * part, 0.0)


def _slice_variances(rest: np.ndarray, strategy: np.ndarray, count: int) -> np.ndarray:
    """The variance of the lower quartile of one slice of each strategy; that of n slices is a n-th of it. The density
    at the quartile is that between two others (Siddiqui 1960, see Koenker 2005, "Quantile Regression", 3.4)."""
    low, high = _QUANTILE - 0.15, _QUANTILE + 0.15
    own = [rest[strategy == number] for number in range(count)]
    squares = np.array([(np.subtract(*np.quantile(values, (high, low))) / (high - low)) ** 2 for values in own])
    sizes = np.array([len(values) for values in own])
    usual = float(np.median(squares[sizes >= _USUAL_SLICES])) if (sizes >= _USUAL_SLICES).any() else squares.mean()
    pooled = (sizes * squares + _USUAL_SLICES * usual) / (sizes + _USUAL_SLICES)
    return np.maximum(_QUANTILE * (1 - _QUANTILE) * pooled, _LEAST_SLICE_VARIANCE)


def turns_of(replica: Replica) -> Iterator[tuple[int, float]]:
    """The rounds of a process' turns, each with the logarithm of the lower quartile of its samples."""
    turns: dict[int, list[float]] = {}
    for number, sample_s in zip(replica.rounds, replica.samples_s, strict=True):
        turns.setdefault(number, []).append(sample_s)
    for number, samples_s in turns.items():
        ordered = sorted(samples_s)  # a million turns of a large sweep are too many for np.quantile
        place, part = divmod(_QUANTILE * (len(ordered) - 1), 1)
        low, high = ordered[int(place)], ordered[math.ceil(place + part)]
        yield number, math.log(low + part * (high - low))


# --- ranks -----------------------------------------------------------------------------------------------------------


class Order:
    """Strategies (or other things that have a `Level`), fastest first, and which of them the data separate.

    Two are separated where the interval of their ratio leaves out 1. All comparisons with the fastest, whichever that
    is, hold together with the analysis' confidence: each has Bonferroni's share («multiple comparisons with the best»,
    Hsu 1984).
    """

    def __init__(self, levels: Mapping[str, Level], analysis: Analysis) -> None:
        self.fastest_first = sorted(levels, key=lambda name: (levels[name].log_mean, name))
        self._levels = levels
        self._of_each = 1 - (1 - analysis.confidence) / max(1, len(levels) - 1)

    def separated(self, slower: str, faster: str) -> bool:
        """True if the one is slower than the other beyond chance."""
        return difference(self._levels[slower], self._levels[faster]).interval(self._of_each)[0] > 1

    @property
    def resolution(self) -> float:
        """The smallest difference (relative) that is told between the two fastest; 0 of a single one."""
        if len(self.fastest_first) < 2:
            return 0.0
        first, second = (self._levels[name] for name in self.fastest_first[:2])
        return math.expm1(difference(second, first).half(self._of_each))

    def within(self, factor: float) -> list[str]:
        """The fastest, and all that are less than ``factor`` times slower, fastest first."""
        most = min((level.log_mean for level in self._levels.values()), default=0.0) + math.log(factor)
        return [name for name in self.fastest_first if self._levels[name].log_mean < most]

    def groups(self) -> list[list[str]]:
        """Tie groups, fastest first: the fastest of those that are left, and all up to the slowest that is not
        separated from it. So none is called slower than a leader that it may tie with, and ranks are in the order of
        latencies, although one between them may be separated."""
        groups, first = [], 0
        pairs = Pairs([self._levels[name] for name in self.fastest_first], self._of_each)
        while first < len(self.fastest_first):
            logs, halves = pairs.behind(first)
            ties = int(np.flatnonzero(logs <= halves)[-1]) + 1  # the first one ties with itself
            groups.append(self.fastest_first[first : first + ties])
            first += ties
        return groups


def by_memory(tied: Sequence[str], peak_bytes: Mapping[str, int]) -> list[str]:
    """A tie group with those first that need less memory; those within 1% of the least of them keep their order, and
    those whose memory is not known come last."""
    left, ordered = [slug for slug in tied if slug in peak_bytes], list[str]()
    while left:
        least = min(peak_bytes[slug] for slug in left)
        ordered += [slug for slug in left if peak_bytes[slug] <= 1.01 * least]
        left = [slug for slug in left if slug not in ordered]
    return ordered + [slug for slug in tied if slug not in peak_bytes]


def ranks(groups: Sequence[Sequence[str]]) -> dict[str, int]:
    """Each slug's rank: 1 plus the number of strategies in faster tie groups, so that ties share theirs: 1, 1, 3."""
    by_slug: dict[str, int] = {}
    for group in groups:
        by_slug |= dict.fromkeys(group, len(by_slug) + 1)
    return by_slug
