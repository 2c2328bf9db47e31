"""From samples to intervals: pure functions of a run's samples, without a process, a clock or a page.

First the rounds: all subjects that take part in a round meet the same machine, so what a round adds to all of them is
taken out (`detrend`), and strategies are compared within rounds. Those that never met in a round are compared through
processes that took part in both of their rounds; what these leave open is in the variance (`Level.link`). Then the
processes: the unit of evidence is the *process* (replica). Samples of one process share its memory layout and thread
placement, and processes of one strategy differ by up to several percent. So a strategy's latency is the geometric mean
of its processes' medians, and its interval a Student-t interval on their logarithms; two strategies are compared with
Welch's t test on the same numbers (Welch 1947, «The generalization of Student's problem»). A strategy with few
processes says too little about its own spread; it borrows the spread that all strategies of the run show together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
from scipy import special
from scipy.sparse import csgraph

from measure.model.run import CONTENDER_PROCESSES, Control, Latency, Measurement

# With fewer processes a strategy's own spread is not estimated from them: t with 2 degrees of freedom says nothing.
_OWN_SPREAD_PROCESSES = 4
# Where hardly any strategy of the run has several processes, the spread between processes is taken to be this, or
# nearly this: a relative standard deviation, in the middle of what was seen for calls of 0.02 to 100 ms, with the
# weight of few observations.
ASSUMED_SPREAD = 0.06
_ASSUMED_DEGREES = 4.0
# A round in which at least so many processes take part has an effect of its own. Where they are fewer, neighbouring
# rounds of the same processes have one together: two would share each other's scatter between them.
_PAIRED = 3
# Residuals beyond this many deviations count less. So low, a third of the processes may change their pace at once, and
# 94 % of that are still told as theirs; of normal samples it makes as much use as of 79 % of them by least squares.
_HUBER = 0.5
# The fit converges in a few steps; one that changes no effect by this much (0.01 %) is the last.
_FITS = 30
_FITTED = 1e-4
# The standard error of a median is this much larger than that of a mean, for normal samples.
_MEDIAN_ERROR = math.sqrt(math.pi / 2)


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
        alone = self.alone()
        half = student_quantile(confidence, alone.degrees) * math.sqrt(alone.variance)
        return math.exp(self.log_mean - half), math.exp(self.log_mean + half)

    def alone(self) -> "Level":
        """The level for comparisons with those of other runs, whose rounds were others."""
        return _widened(replace(self, link=()), self.link)


def difference(a: Level, b: Level) -> Level:
    """The logarithm of ``a`` over ``b``, two of one run (Welch–Satterthwaite degrees of freedom)."""
    variance = a.variance + b.variance
    spread = a.variance**2 / a.degrees + b.variance**2 / b.degrees
    degrees = variance**2 / spread if spread else min(a.degrees, b.degrees)
    apart = [x - y for x, y in zip_longest(a.link, b.link, fillvalue=0.0)]
    return _widened(Level(a.log_mean - b.log_mean, variance, degrees, min(a.processes, b.processes)), apart)


def _widened(level_: Level, link: Sequence[float]) -> Level:
    """With the variance of the rounds' effects, which rest on so many samples that it is taken as known."""
    more = sum(each * each for each in link)
    if not more or not level_.variance:
        return replace(level_, variance=level_.variance + more)
    variance = level_.variance + more
    return replace(level_, variance=variance, degrees=level_.degrees * (variance / level_.variance) ** 2)


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
    """Samples with the effect of their round taken out. ``logs``: slug → the logarithms of those that count, one
    float64 array per replica that has samples, in order. ``effects``: what was taken out of all in a round, as a
    logarithm, float64 [rounds], around 0 in each phase. ``phases``: the number of each round's phase, int64 [rounds]: a
    phase begins where processes do. ``steps``: how much longer than at the leaders' own time those took that lived
    through both, as a logarithm, float64 [rounds], the same for all rounds of a phase. ``links``: slug →
    `Level.link`."""

    logs: Mapping[str, Sequence[np.ndarray]]
    effects: np.ndarray
    phases: np.ndarray
    steps: np.ndarray
    links: Mapping[str, tuple[float, ...]]


def detrend(measurements: Sequence[Measurement]) -> Detrended:
    """Take out of every sample what its round did to all that took part in it.

    An additive model, logarithm = process + round + rest, fitted by least squares that a few disturbed samples do not
    move (Huber 1964, «Robust estimation of a location parameter»). It reaches through the whole run: a process that
    lives through two rounds links all that took part in either.

    Between phases, though, processes do not only meet another machine: fewer take turns, and each has longer to come
    to its pace, which short calls need and long ones do not. So what changed for those that lived through both may
    concern the others wholly or not at all. Nothing of it is taken out, and that all of it may have to be is in
    ``links``, as the second moment of the one or the other with equal probability.
    """
    processes = [(item.strategy, replica) for item in measurements for replica in item.replicas if replica.samples_s]
    if not processes:
        return Detrended({}, np.zeros(0), np.zeros(0, int), np.zeros(0), {})
    numbers = np.unique(np.concatenate([replica.rounds for _, replica in processes]))
    table = np.full((len(processes), len(numbers)), np.nan)
    for row, (_, replica) in enumerate(processes):
        table[row, np.searchsorted(numbers, replica.rounds)] = np.log(replica.samples_s)
    present = ~np.isnan(table)
    rows: dict[str, list[int]] = {}
    for row, (slug, _) in enumerate(processes):
        rows.setdefault(slug, []).append(row)
    counted = {slug: _that_count(present[own]) for slug, own in rows.items()}
    effects, factor = _fit(table)
    phases = np.searchsorted(np.unique(np.argmax(present, axis=1)), np.arange(len(numbers)), side="right") - 1
    means = (phases[:, None] == phases).astype(np.float64)
    means /= means.sum(1, keepdims=True)
    steps = np.array([np.median(effects[phases == phase]) for phase in phases])
    effects = effects - steps
    # The strategy with the most processes is the one that the others are compared with.
    best_known = counted[max(rows, key=lambda slug: len(rows[slug]))]
    at_best: np.ndarray = np.any(best_known, axis=0, keepdims=False)
    for part in _parts(present):
        best = part[at_best[part]]
        steps[part] -= np.median(steps[best if len(best) else part])
    between = np.column_stack([means @ factor, steps]) / math.sqrt(2)
    factor = np.column_stack([factor - means @ factor, between])
    logs, links = {}, {}
    for slug, own in rows.items():
        shares = counted[slug] / counted[slug].sum(1, keepdims=True)
        logs[slug] = [table[row, counts] - effects[counts] for row, counts in zip(own, counted[slug], strict=True)]
        links[slug] = tuple(map(float, shares.mean(0) @ factor))
    return Detrended(logs, effects, phases, steps, links)


def _that_count(present: np.ndarray) -> np.ndarray:
    """Which samples of a strategy count: bool [processes, rounds], as ``present`` is. A process that has none of them
    counts with all that it has."""
    # From when it had the processes of a contender, or all that it has: before, it was scouted, with less time to come
    # to its pace, and by a process that was picked for what it showed then.
    together = present & (present.sum(0) >= min(len(present), CONTENDER_PROCESSES))
    return np.where(together.any(1, keepdims=True), together, present)


def _fit(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Effects of the columns of ``table``, float64 [processes, rounds] with NaN where a process took no part, and a
    factor of their covariance: F with F·Fᵀ = Cov, float64 [rounds, blocks of rounds]."""
    present = ~np.isnan(table)
    values = np.where(present, table, 0.0)
    of_block = _blocks(present)
    weights = present.astype(np.float64)
    effects, inverse, deviation = np.zeros(of_block.shape[1]), np.zeros((0, 0)), 0.0
    for _ in range(_FITS):
        by_process = weights.sum(1, keepdims=True)
        by_block = weights @ of_block
        # The normal equations with the processes eliminated: the Laplacian of «a process links two blocks».
        laplacian = np.diag(by_block.sum(0)) - by_block.T @ (by_block / by_process)
        inverse = np.linalg.pinv(laplacian, rcond=1e-10, hermitian=True)
        own = (weights * values).sum(1, keepdims=True) / by_process
        before, effects = effects, inverse @ ((weights * (values - own)) @ of_block).sum(0)
        rest = values - of_block @ effects
        rest -= (weights * rest).sum(1, keepdims=True) / by_process
        deviation = _robust_deviation(rest[present])
        if np.abs(effects - before).max() < _FITTED:
            break
        # What is left of an exact fit is rounding.
        weights = present * np.minimum(1.0, _HUBER * max(deviation, _FITTED) / np.maximum(np.abs(rest), 1e-12))
    eigenvalues, vectors = np.linalg.eigh(inverse)
    factor = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    return of_block @ effects, of_block @ factor * (_MEDIAN_ERROR * deviation)


def _blocks(present: np.ndarray) -> np.ndarray:
    """Which rounds share an effect: float64 [rounds, blocks], 1 where a round is of a block. ``present``: bool
    [processes, rounds]."""
    count, numbers = 0, []
    for index in range(present.shape[1]):
        few = present[:, index].sum() < _PAIRED
        if index and not (few and np.array_equal(present[:, index], present[:, index - 1])):
            count += 1
        numbers.append(count)
    return np.eye(count + 1)[numbers]


def _parts(present: np.ndarray) -> list[np.ndarray]:
    """The rounds, in parts that processes link: integer arrays. ``present``: bool [processes, rounds]."""
    if present.all(1).any():
        return [np.arange(present.shape[1])]
    count, labels = csgraph.connected_components(present.T.astype(int) @ present.astype(int), directed=False)
    return [np.flatnonzero(labels == label) for label in range(count)]


def _median(values: np.ndarray) -> float:
    """Like `np.median`, which takes ten times as long for few values."""
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _log_medians(logs: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([_median(each) for each in logs])


def _robust_deviation(values: np.ndarray) -> float:
    """Estimates a normal's standard deviation and ignores a few disturbed values: 1.4826 × the median absolute one."""
    return 1.4826 * _median(np.abs(values - _median(values)))


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


def level(logs: Sequence[np.ndarray], spread: Spread, link: tuple[float, ...] = ()) -> Level:
    """A strategy's latency from the logarithms of its samples, one array per process."""
    medians = _log_medians(logs)
    count = len(medians)
    if count >= _OWN_SPREAD_PROCESSES:
        variance, degrees = float(medians.var(ddof=1)) / count, float(count - 1)
    else:
        # Two that disagree more than others do are not trusted more than that.
        deviation = max(spread.deviation, float(medians.std(ddof=1))) if count > 1 else spread.deviation
        variance, degrees = (deviation**2 + _median_variance(logs)) / count, spread.degrees
    return Level(float(medians.mean()), variance, degrees, count, link)


def latency(level_: Level, confidence: float) -> Latency:
    """The level in seconds: geometric mean of process medians and its interval."""
    low_s, high_s = level_.interval(confidence)
    return Latency(median_s=math.exp(level_.log_mean), low_s=low_s, high_s=high_s)


def ratio(a: Level, b: Level, confidence: float) -> Ratio:
    """Latency of ``a`` over that of ``b``, two of one run (Welch's t on the logarithms)."""
    found = difference(a, b)
    if found.variance == 0.0:
        times = math.exp(found.log_mean)
        return Ratio(times, times, times, float(found.log_mean == 0.0))
    low, high = found.interval(confidence)
    p = 2 * float(special.stdtr(found.degrees, -abs(found.log_mean) / math.sqrt(found.variance)))
    return Ratio(math.exp(found.log_mean), low, high, p)


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
    by_slug = {slug: level(each, spread, samples.links[slug]) for slug, each in samples.logs.items()}
    return Levels(by_slug, spread, samples)


def chance(spread: Spread, processes: int, confidence: float) -> float:
    """By how much (relative) two strategies of so many processes each differ by chance."""
    return math.expm1(student_quantile(confidence, spread.degrees) * spread.deviation * math.sqrt(2 / processes))


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
        by_chance = chance(found.spread, min(twin.processes, own.processes), confidence)
        resolution = max(twins.high - 1, 1 - twins.low, by_chance)
        return Control(strategy=original, ratio=twins.ratio, low=twins.low, high=twins.high, resolution=resolution)
    return None


def resolution(control_: Control | None, found: Levels, confidence: float) -> float:
    """The smallest difference (relative) that a run can tell: what its control says or, where there is none, what the
    spread between processes lets the two fastest differ by chance; of these the one with fewer processes counts."""
    if control_ is not None:
        return control_.resolution
    fastest = sorted(found.by_slug.values(), key=lambda each: each.log_mean)[:2]
    return chance(found.spread, min(each.processes for each in fastest), confidence) if fastest else 0.0
