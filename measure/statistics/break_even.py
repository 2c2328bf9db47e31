"""After how many calls a compiled strategy, its first call included, has cost less than an eager one, as far as a run
can tell. Pure functions of a run.

n calls cost first + (n − 1) · latency. The difference of two strategies' costs is a sum of four figures that each have
an interval; its own interval is made of theirs by MOVER (Zou and Donner 2008, «Construction of confidence limits about
effect measures: a general approach»), which keeps them lopsided. The numbers of calls at which that interval holds 0
are those at which the run cannot tell who is ahead, and so the interval of the break-even point, as by Fieller (1954,
«Some problems in interval estimation»).

What TensorFlow and XLA spend once per process is no part of a first call (`measure.subject.subject`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from measure.model import text
from measure.model.run import BreakEven, Latency, Measurement, PaysOff, Run
from measure.statistics.intervals import Spread, gap, of_one

# Where hardly any strategy of the run had several first calls, their relative standard deviation is taken to be this,
# or nearly this: between what was seen of outer_product (0.2) and of image_sqrt on a busy machine (0.4).
ASSUMED_SPREAD = 0.3
_ASSUMED_DEGREES = 4.0
# What a difference that is 0 may come to.
_ROUNDING = 1e-9
# In a few lines of text there is room for so many strategies.
_MOST_SENTENCES = 3


@dataclass(frozen=True)
class Cost:
    """What calls of one strategy cost: the first call in seconds, with its interval, and each further one."""

    first: Latency
    further: Latency


def is_compiled(measurement: Measurement) -> bool:
    """Whether its first call compiles something that later calls use."""
    return measurement.mode != "eager" or measurement.options.get("jit_compile") is True


def first_call_spread(measurements: Sequence[Measurement]) -> Spread:
    """How much first calls of one strategy differ: relative standard deviation, pooled over a run, twins included.

    Only a strategy's first process makes its first call alone on the machine; that one is reported. Those of later
    processes may overlap, so they are longer and say nothing of its level. Their scatter about their own mean (of
    logarithms) does say how repeatable first calls are; overlapping can only have added to it.
    """
    squares, degrees = 0.0, 0.0
    for measurement in measurements:
        later = [replica.first_call_s for replica in measurement.replicas[1:] if replica.first_call_s]
        if len(later) >= 2:
            logs = np.log(later)
            squares += float(np.sum((logs - logs.mean()) ** 2))
            degrees += len(later) - 1
    if degrees < _ASSUMED_DEGREES:
        squares += _ASSUMED_DEGREES * ASSUMED_SPREAD**2
        degrees += _ASSUMED_DEGREES
    return Spread(math.sqrt(squares / degrees), degrees)


def cost(measurement: Measurement, spread: Spread, confidence: float) -> Cost | None:
    """What a strategy costs, or None where its first call or its latency is not known. ``spread``: of first calls."""
    if measurement.latency is None or not measurement.first_call_s:
        return None
    return Cost(of_one(measurement.first_call_s, spread, confidence), measurement.latency)


def costs(run: Run) -> dict[str, Cost]:
    """What the strategies of outcome ``ok`` cost, by slug and without twins, in the order of the run."""
    spread = first_call_spread(run.measurements)
    found = {
        item.strategy: cost(item, spread, run.analysis.confidence)
        for item in run.measurements
        if item.outcome == "ok" and item.twin_of is None
    }
    return {slug: each for slug, each in found.items() if each is not None}


@dataclass(frozen=True)
class Crossing:
    """Numbers of calls as in `BreakEven`."""

    pays_off: PaysOff
    calls: float | None = None
    low: float | None = None
    high: float | None = None


def crossing(ours: Cost, theirs: Cost, *, tied: bool = False) -> Crossing:
    """Who is ahead after how many calls. ``tied``: the run has found both equally fast, so that neither is taken to
    be slower per call, whatever their two intervals say."""
    first, further = gap(ours.first, theirs.first), gap(ours.further, theirs.further)
    if not tied and further.value - further.down > 0:
        if first.value > 0:
            return Crossing("never")
        overtaken = crossing(theirs, ours)
        return replace(overtaken, pays_off="until" if overtaken.pays_off == "calls" else "never")
    ahead_at_once = first.value + first.up <= 0
    earliest = 1 + _zero(first.value, further.value, first.down, further.down) if first.value > first.down else 1.0
    if not tied and further.value + further.up < 0:
        if ahead_at_once:
            return Crossing("from_first")
        calls = max(1.0, 1 - first.value / further.value)
        latest = 1 + _zero(-first.value, -further.value, first.up, further.up)
        return Crossing("calls", calls, min(earliest, calls), max(latest, calls))
    if ahead_at_once and (tied or further.value <= 0):
        return Crossing("from_first")
    return Crossing("undecided", low=earliest if math.isfinite(earliest) else None)


def _zero(first: float, further: float, first_error: float, further_error: float) -> float:
    """The x ≥ 0 at which first + further · x = √(first_error² + (further_error · x)²); infinite where there is none."""
    a, b = further**2 - further_error**2, first * further
    c = first**2 - first_error**2
    if a == 0:
        roots = [-c / (2 * b)] if b else []
    else:
        under = (further * first_error) ** 2 + (first**2 - first_error**2) * further_error**2  # b² − a · c
        roots = [(-b - math.sqrt(under)) / a, (-b + math.sqrt(under)) / a] if under >= 0 else []
    # Squaring has added the solutions at which the left side is negative.
    return min((x for x in roots if x >= 0 and first + further * x >= -_ROUNDING * abs(first)), default=math.inf)


def pairs(run: Run) -> dict[str, list[BreakEven]]:
    """For each compiled strategy of a run with its latencies and its ranking, how it fares against each eager one."""
    found = costs(run)
    group = {slug: number for number, slugs in enumerate(run.ranking) for slug in slugs}
    compiled = {item.strategy for item in run.measurements if is_compiled(item)}
    made: dict[str, list[BreakEven]] = {}
    for ours in (slug for slug in found if slug in compiled):
        made[ours] = []
        for theirs in (slug for slug in found if slug not in compiled):
            tied = ours in group and group.get(theirs) == group[ours]
            its = crossing(found[ours], found[theirs], tied=tied)
            made[ours].append(
                BreakEven(against=theirs, calls=its.calls, low=its.low, high=its.high, pays_off=its.pays_off)
            )
    return made


def words(pair: BreakEven) -> str:
    """``110 [66, 356]``, ``from the first call``, ``only for the first 12 [5, 40]``, ``never``, ``cannot be told``."""
    if pair.pays_off == "from_first":
        return "from the first call"
    if pair.pays_off == "never":
        return "never"
    if pair.pays_off == "undecided" or pair.calls is None:
        return f"cannot be told (≥ {_whole(pair.low)})" if pair.low and pair.low > 1 else "cannot be told"
    interval = f"{_whole(pair.calls)} [{_whole(pair.low)}, {_whole(pair.high)}]"
    return f"only for the first {interval}" if pair.pays_off == "until" else interval


def _whole(calls: float | None) -> str:
    """The first whole call from ``calls`` on, three digits of it; nothing is sure where there is none."""
    if calls is None or not math.isfinite(calls):
        return "∞"
    whole = math.ceil(calls - 1e-9)
    if whole >= 999_500:
        return f"{text.number(whole / 1e6)} million"
    return f"{round(whole, min(0, 2 - math.floor(math.log10(max(1, whole))))):,}".replace(",", " ")


def table(run: Run) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The eager strategies that others are compared with, and for each compiled one the `words` against these; both
    in the order of the ranking. They are computed anew, since older files hold less."""
    place = {slug: index for index, slug in enumerate(slug for group in run.ranking for slug in group)}
    found = pairs(run)

    def rank(slug: str) -> int:
        return place.get(slug, len(place))

    columns = sorted({pair.against for each in found.values() for pair in each}, key=lambda slug: (rank(slug), slug))
    lines = []
    for slug in sorted((slug for slug in found if columns), key=rank):
        said = {pair.against: words(pair) for pair in found[slug]}
        lines.append((slug, [said[each] for each in columns]))
    return columns, lines


def sentences(run: Run) -> list[str]:
    """A line for each of the fastest compiled strategies: the leaders, or else the first."""
    columns, lines = table(run)
    leading = [line for line in lines if run.ranking and line[0] in run.ranking[0]] or lines[:1]
    found = []
    for slug, said in leading[:_MOST_SENTENCES]:
        parts = [f"{_calls(each)} against {other}" for each, other in zip(said, columns, strict=True)]
        found.append(f"Break even of {slug}, first calls included: {'; '.join(parts)}.")
    return found


def _calls(said: str) -> str:
    return f"after {said} calls" if said[0].isdigit() else said


def runtime_start_s(measurements: Sequence[Measurement]) -> float | None:
    """The most seconds that TensorFlow and XLA took to start in a strategy's first process, or None if not known."""
    known = [item.why.get("runtime_start_s") for item in measurements]
    numbers = [float(each) for each in known if isinstance(each, int | float) and math.isfinite(each) and each > 0]
    return max(numbers, default=None)
