"""The cheapest strategy in total after n calls, the first included: where compiling has paid off. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from measure.judge import break_even
from measure.judge.break_even import Cost
from measure.judge.findings import Findings


@dataclass(frozen=True)
class Stretch:
    """A range of call counts in which ``slug`` has cost the least in total: from ``first`` calls to the next stretch.

    ``low`` and ``high`` are the interval of ``first``; a strategy that leads from the first call has none.
    """

    slug: str
    first: int
    low: int | None = None
    high: int | None = None


def stretches_of(result: Findings) -> list[Stretch]:
    """The stretches of a comparison; none where no strategy has both a first call and a latency."""
    return cheapest(break_even.costs(result.run, result.levels), {row.slug: row.tie for row in result.rows})


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
            tied = ties[slug] is not None and ties[slug] == ties[now]
            crossing = break_even.crossing(cost, costs[now], tied=tied)
            if crossing.pays_off == "calls" and crossing.calls and crossing.low and crossing.high:
                crossings.append((crossing.calls, cost.further.median_s, crossing.low, crossing.high, slug))
        if not crossings:
            return stretches
        calls, _, low, high, now = min(crossings)
        first = max(math.floor(calls) + 1, stretches[-1].first)
        if first == stretches[-1].first:  # cheapest for less than one whole call
            stretches.pop()
        stretches.append(Stretch(now, first, min(math.ceil(low), first), max(math.ceil(high), first)))


def sentence(stretches: Sequence[Stretch]) -> str:
    """«Cheapest in total, first calls included: loop.eager at first, batched.xla from 37 [20, 66] calls on.»"""
    if not stretches:
        return ""
    first, *others = stretches
    if not others:
        return f"Cheapest in total, first calls included: {first.slug}, however many calls are made."
    parts = [f"{first.slug} at first"]
    for stretch in others:
        interval = "" if stretch.low is None else f" [{_whole(stretch.low)}, {_whole(stretch.high)}]"
        parts.append(f"{stretch.slug} from {_whole(stretch.first)}{interval} calls on")
    return f"Cheapest in total, first calls included: {', '.join(parts)}."


def _whole(calls: int | None) -> str:
    return f"{calls or 0:,}".replace(",", " ")
