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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from measure.judge.intervals import Level, student_quantile
from measure.run.run import BreakEven, Latency, Measurement, Run

# Where hardly any strategy of the run had several first calls, their relative standard deviation is taken to be this,
# or nearly this: between what was seen of outer_product (0.2) and of image_sqrt on a busy machine (0.4).
ASSUMED_SPREAD = 0.3
_ASSUMED_DEGREES = 4.0
# What a difference that is 0 may come to.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Cost:
    """The cost of one strategy's calls in seconds, with intervals: of the first one, and of each further one."""

    first: Latency
    further: Latency


def is_compiled(measurement: Measurement) -> bool:
    """True if the first call compiles something that later calls use."""
    return measurement.mode != "eager" or measurement.options.get("jit_compile") is True


def first_call_spread(measurements: Sequence[Measurement]) -> tuple[float, float]:
    """The relative standard deviation between first calls of one strategy, and its degrees of freedom, pooled over a
    run, twins included. Only a strategy's first process makes its first call alone on the machine; that one is
    reported. Those of later processes overlap, so they are longer; their scatter about their own mean (of logarithms)
    does say how repeatable first calls are."""
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
    return math.sqrt(squares / degrees), degrees


def costs(run: Run, levels: Mapping[str, Level]) -> dict[str, Cost]:
    """The costs of the strategies of outcome ``ok``, by slug and without twins, in the order of the run; of those alone
    whose first call and latency are known. Intervals of latencies are without the pace of the machine, in which all
    share; that of a first call, which was seen once, is what others' scatter gives it."""
    confidence = run.analysis.confidence
    deviation, degrees = first_call_spread(run.measurements)
    factor = math.exp(student_quantile(confidence, degrees) * deviation)
    by_slug = {}
    for item in run.measurements:
        if item.outcome != "ok" or item.twin_of or not item.latency or not item.first_call_s:
            continue
        if item.strategy in levels:
            first_s, (low_s, high_s) = item.first_call_s, levels[item.strategy].interval(confidence)
            by_slug[item.strategy] = Cost(
                Latency(median_s=first_s, low_s=first_s / factor, high_s=first_s * factor),
                Latency(median_s=item.latency.median_s, low_s=low_s, high_s=high_s),
            )
    return by_slug


@dataclass(frozen=True)
class Gap:
    """A difference of two figures, and how far its interval reaches down and up from it."""

    value: float
    down: float
    up: float


def gap(a: Latency, b: Latency) -> Gap:
    """``a`` − ``b`` in seconds, its interval made of theirs by MOVER."""
    return Gap(
        a.median_s - b.median_s,
        math.hypot(a.median_s - a.low_s, b.high_s - b.median_s),
        math.hypot(a.high_s - a.median_s, b.median_s - b.low_s),
    )


def crossing(ours: Cost, theirs: Cost, against: str = "", *, tied: bool = False) -> BreakEven:
    """The number of calls after which ``ours`` is ahead of ``theirs``, the strategy ``against``. ``tied``: the run has
    found both equally fast, so that neither is taken to be slower per call, whatever their two intervals say."""
    first, further = gap(ours.first, theirs.first), gap(ours.further, theirs.further)
    if not tied and further.value - further.down > 0:
        if first.value > 0:
            return BreakEven(against=against, pays_off="never")
        overtaken = crossing(theirs, ours, against)
        return replace(overtaken, pays_off="until" if overtaken.pays_off == "calls" else "never")
    ahead_at_once = first.value + first.up <= 0
    earliest = 1 + _zero(first.value, further.value, first.down, further.down) if first.value > first.down else 1.0
    if not tied and further.value + further.up < 0:
        if ahead_at_once:
            return BreakEven(against=against, pays_off="from_first")
        calls = max(1.0, 1 - first.value / further.value)
        latest = 1 + _zero(-first.value, -further.value, first.up, further.up)
        low, high = min(earliest, calls), max(latest, calls)
        return BreakEven(against=against, pays_off="calls", calls=calls, low=low, high=high)
    if ahead_at_once and (tied or further.value <= 0):
        return BreakEven(against=against, pays_off="from_first")
    return BreakEven(against=against, pays_off="undecided", low=earliest if math.isfinite(earliest) else None)


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


def pairs(run: Run, levels: Mapping[str, Level]) -> dict[str, list[BreakEven]]:
    """The break-even points of each compiled strategy against each eager one, by slug of the compiled. ``run``: with
    its latencies and its ranking."""
    of = costs(run, levels)
    group = {slug: number for number, slugs in enumerate(run.ranking) for slug in slugs}
    compiled = {item.strategy for item in run.measurements if is_compiled(item)}
    return {
        ours: [
            crossing(of[ours], of[theirs], theirs, tied=ours in group and group.get(theirs) == group[ours])
            for theirs in of
            if theirs not in compiled
        ]
        for ours in of
        if ours in compiled
    }


def runtime_start_s(measurements: Sequence[Measurement]) -> float | None:
    """The most seconds that TensorFlow and XLA took to start in a strategy's first process, or None if not known."""
    starts_s = [item.why.runtime_start_s for item in measurements]
    return max((seconds for seconds in starts_s if isinstance(seconds, float) and seconds > 0), default=None)
