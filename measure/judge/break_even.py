"""After how many calls a strategy, its first call included, has cost less than another, as far as a run can tell; and
who is the cheapest as calls grow. Pure functions of a run.

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

from measure.judge.findings import Findings
from measure.judge.levels import Level, student_quantile
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


@dataclass(frozen=True)
class Stretch:
    """A range of call counts in which ``slug`` has cost the least in total: from ``first`` calls to the next stretch.

    ``low`` and ``high`` are the interval of ``first``; a strategy that leads from the first call has none.
    """

    slug: str
    first: int
    low: int | None = None
    high: int | None = None


# --- costs -----------------------------------------------------------------------------------------------------------


def costs(run: Run, levels: Mapping[str, Level]) -> dict[str, Cost]:
    """The costs of the strategies of outcome ``ok``, by slug and without twins, in the order of the run; of those alone
    whose first call and latency are known. Intervals of latencies are without the pace of the machine, in which all
    share; that of a first call, which was seen once, is what others' scatter gives it."""
    confidence = run.analysis.confidence
    factor = math.exp(_first_call_half(run.measurements, confidence))
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


def _first_call_half(measurements: Sequence[Measurement], confidence: float) -> float:
    """Half of the interval of a first call's logarithm, by what first calls of one strategy differ by, pooled over a
    run. Only a strategy's first process makes its first call alone on the machine; that one is reported. Those of later
    processes overlap, so they are longer; their scatter about their own mean does say how repeatable they are."""
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
    return student_quantile(confidence, degrees) * math.sqrt(squares / degrees)


# --- two strategies --------------------------------------------------------------------------------------------------


def pairs(run: Run, levels: Mapping[str, Level]) -> dict[str, list[BreakEven]]:
    """The break-even points of each compiled strategy against each eager one, by slug of the compiled. ``run``: with
    its latencies and its ranking."""
    of = costs(run, levels)
    group = {slug: number for number, slugs in enumerate(run.ranking) for slug in slugs}
    # Where the first call compiles something that later calls use.
    compiled = {m.strategy for m in run.measurements if m.mode != "eager" or m.options.get("jit_compile") is True}
    return {
        ours: [
            crossing(of[ours], of[theirs], theirs, tied=ours in group and group.get(theirs) == group[ours])
            for theirs in of
            if theirs not in compiled
        ]
        for ours in of
        if ours in compiled
    }


def crossing(ours: Cost, theirs: Cost, against: str = "", *, tied: bool = False) -> BreakEven:
    """The number of calls after which ``ours`` is ahead of ``theirs``, the strategy ``against``. ``tied``: the run has
    found both equally fast, so that neither is taken to be slower per call, whatever their two intervals say."""
    (first, down, up), (more, more_down, more_up) = _gap(ours.first, theirs.first), _gap(ours.further, theirs.further)
    if not tied and more - more_down > 0:
        if first > 0:
            return BreakEven(against=against, pays_off="never")
        overtaken = crossing(theirs, ours, against)
        return replace(overtaken, pays_off="until" if overtaken.pays_off == "calls" else "never")
    is_faster = not tied and more + more_up < 0
    if first + up <= 0 and (is_faster or tied or more <= 0):
        return BreakEven(against=against, pays_off="from_first")
    earliest = 1 + _zero(first, more, down, more_down) if first > down else 1.0
    if not is_faster:
        return BreakEven(against=against, pays_off="undecided", low=earliest if math.isfinite(earliest) else None)
    calls = max(1.0, 1 - first / more)
    latest = 1 + _zero(-first, -more, up, more_up)
    return BreakEven(against=against, pays_off="calls", calls=calls, low=min(earliest, calls), high=max(latest, calls))


def _gap(a: Latency, b: Latency) -> tuple[float, float, float]:
    """``a`` − ``b`` in seconds, and how far its interval, made of theirs by MOVER, reaches down and up from it."""
    return (
        a.median_s - b.median_s,
        math.hypot(a.median_s - a.low_s, b.high_s - b.median_s),
        math.hypot(a.high_s - a.median_s, b.median_s - b.low_s),
    )


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


# --- all strategies --------------------------------------------------------------------------------------------------


def stretches_of(result: Findings) -> list[Stretch]:
    """The stretches of a comparison; none where no strategy has both a first call and a latency."""
    return cheapest(costs(result.run, result.levels), {row.slug: row.tie for row in result.rows})


def cheapest(costs: Mapping[str, Cost], ties: Mapping[str, int | None]) -> list[Stretch]:
    """Who has cost the least after n calls as n grows: the lower envelope of straight lines.

    A strategy that cannot be shown to overtake the cheapest so far, or that ties with it, is passed over. ``ties``: the
    tie group of each.
    """
    if not costs:
        return []
    now = min(costs, key=lambda slug: (costs[slug].first.median_s, costs[slug].further.median_s, slug))
    stretches = [Stretch(now, 1)]
    while True:
        crossings = []
        for slug, cost in costs.items():
            point = crossing(cost, costs[now], tied=ties[slug] is not None and ties[slug] == ties[now])
            if point.pays_off == "calls" and point.calls and point.low and point.high:
                crossings.append((point.calls, cost.further.median_s, point.low, point.high, slug))
        if not crossings:
            return stretches
        calls, _, low, high, now = min(crossings)
        first = max(math.floor(calls) + 1, stretches[-1].first)
        if first == stretches[-1].first:  # cheapest for less than one whole call
            stretches.pop()
        stretches.append(Stretch(now, first, min(math.ceil(low), first), max(math.ceil(high), first)))


def sentence(stretches: Sequence[Stretch], missing: Sequence[str] = ()) -> str:
    """Return "Cheapest in total, first call included: loop.eager at first, batched.xla from 37 calls (20–66)."
    ``missing``: strategies that were not timed and may be cheaper."""
    if not stretches:
        return ""
    parts = [f"{stretches[0].slug} at first" if len(stretches) > 1 else f"{stretches[0].slug}, at any number of calls"]
    for stretch in stretches[1:]:
        parts.append(f"{stretch.slug} from {stretch.first:,} calls ({stretch.low or 0:,}–{stretch.high or 0:,})")
    of_timed = " of the strategies that were timed" if missing else ""
    return f"Cheapest in total{of_timed}, first call included: {', '.join(parts)}."
