"""The needs of a sweep, before it is run: its time and peak memory, and what of it is not run, with the reason.

Pure arithmetic on metadata, as `forecast` is.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from measure.model import bound, fit, forecast
from measure.model.request import Request, case_of
from measure.model.run import Error, Point
from measure.sweep import contenders, omissions
from measure.sweep.request import SweepRequest
from strategies.spec import Estimate

# Of the budget, what the grid's points may take together; the rest is for refining crossings and ties.
GRID_SHARE = 0.8
# A map is filled adaptively: about this share of its cells is measured.
_MAP_SHARE = 0.5
# Forecasts of memory are right within this factor.
_MEMORY_FACTOR = 1.5
# One cell's memory beside its calls, with two subjects at a time; the reference of a point.
_CELL_S, _POINT_S = 0.15, 0.3
_MOST_LISTED = 4
# The last strategy of a point is dear where it takes so many times a point's even share of the budget.
_DEAR = 2.0
_LEAST_POINTS = 2

At = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class SweepForecast:
    """Wall-clock seconds, bytes at the worst moment, the points that are not run, and at others
    strategies that are not: each with the reason."""

    seconds: float
    peak_bytes: int
    skipped: list[tuple[dict[str, int], str]]
    left_out: list[tuple[dict[str, int], str, str]]

    def strategies_left_out(self) -> list[str]:
        """A sentence for each strategy that is not run everywhere."""
        by_slug: dict[str, list[tuple[str, str]]] = {}
        for at, slug, reason in self.left_out:
            place = " ".join(f"{name} {value:,}" for name, value in at.items())
            by_slug.setdefault(slug, []).append((place, reason))
        return [
            f"{slug} is not run at {_listed([place for place, _ in places])}: {places[-1][1]}"
            for slug, places in by_slug.items()
        ]


@dataclass(frozen=True)
class Plan:
    """The parts that are left out, by `key` of the point: whole points, and strategies, each with its reason."""

    forecast: SweepForecast
    skipped: dict[At, str]
    left_out: dict[At, dict[str, Error]]


def _listed(places: list[str]) -> str:
    if len(places) <= _MOST_LISTED:
        return ", ".join(places)
    return f"{len(places)} points, the first of them {places[0]}"


def key(at: dict[str, int]) -> At:
    return tuple(at.items())


def forecast_sweep(
    request: SweepRequest, available_bytes: int, taken: Iterable[Point] = (), bound_s: float = math.inf
) -> SweepForecast:
    """The forecast of what will be run: ``taken`` are the points that are taken over where a sweep is continued."""
    return plan(request, available_bytes, known_before(taken), bound_s).forecast


def known_before(taken: Iterable[Point]) -> dict[At, list[str]]:
    """The strategies that cost nothing, of each point that is taken over."""
    return {
        key(point.at): [
            item.strategy
            for item in point.measurements
            if point.status == "complete" or item.replicas or item.outcome != "ok"
        ]
        for point in taken
    }


@dataclass(frozen=True)
class _PointForecast:
    """The forecast of one point: its request, and the estimate of each strategy that is to be run."""

    asked: Request
    estimates: Mapping[str, Estimate]

    def peak_bytes(self, slugs: Iterable[str]) -> int:
        """Bytes of all processes at the worst moment, if these are run; an allocator gives no more than its limit."""
        limit_bytes = _limit_bytes(self.asked)
        peaks = [self.estimates[slug].peak_bytes for slug in slugs]
        if limit_bytes is not None:
            peaks = [min(peak, limit_bytes) for peak in peaks]
        return forecast.together_bytes(case_of(self.asked), peaks)


def plan(
    request: SweepRequest,
    available_bytes: int,
    taken: Mapping[At, Collection[str]] | None = None,
    bound_s: float = math.inf,
) -> Plan:
    """The plan of a sweep. What cannot fit is left out; then the budget is shared out, so that every point gets its
    minimum: where all would take longer, the cells (a strategy at a point) that take longest are left out, and with its
    last one a point. Points without which the sweep can end within ``bound_s``, and with which it cannot, are skipped.
    ``taken``: strategies of points that cost nothing, since they were measured before."""
    budget_s = min(request.base.budget_s, bound_s)
    share = _MAP_SHARE if len(request.axes) == 2 else 1.0
    skipped: dict[At, str] = {}
    left_out: dict[At, dict[str, Error]] = {}
    forecasts: dict[At, _PointForecast] = {}
    costs: dict[At, dict[str, float]] = {}
    begun = set()
    for at in request.points():
        asked = request.comparison(at)
        known = (taken or {}).get(key(at), ())
        if set(asked.strategies) <= set(known):
            continue
        if refusal := fit.check(asked, available_bytes):
            skipped[key(at)] = refusal
            continue
        estimates = forecast.forecast_run(case_of(asked), asked.strategies).per_strategy
        reasons = left_out[key(at)] = {}
        open_ = {slug: estimate for slug, estimate in estimates.items() if slug not in known}
        for slug, estimate in open_.items():
            if error := _too_large(asked, estimate, available_bytes):
                reasons[slug] = error
        kept = {slug: estimate for slug, estimate in open_.items() if slug not in reasons}
        forecasts[key(at)] = _PointForecast(asked, kept)
        costs[key(at)] = {slug: _cell_s(estimate) for slug, estimate in kept.items()}
        if len(request.axes) == 2:
            # No cell of a map is won by one process of what may lead.
            for slug in sorted(kept, key=lambda slug: kept[slug].latency_s)[: contenders.MOST_LEADERS]:
                costs[key(at)][slug] += forecast.process_s(kept[slug].first_call_s, kept[slug].latency_s)
        if known:
            begun.add(key(at))
    for where, slug in over_budget(costs, begun, GRID_SHARE * budget_s / share):
        cost_s = costs[where].pop(slug)
        left_out[where][slug] = omissions.over_budget(cost_s, budget_s)
    for where in beyond_bound(costs, bound_s / share):
        skipped[where] = _too_long(forecasts[where], costs.pop(where), bound_s)
    grid_s = share * sum(map(_point_s, costs.values()))
    seconds = max(grid_s, min(grid_s / GRID_SHARE, budget_s))
    peak_bytes = max([forecasts[where].peak_bytes(cells) for where, cells in costs.items() if cells], default=0)
    points = [(dict(at), reason) for at, reason in skipped.items()]
    cells = [
        (dict(at), slug, omissions.reason(error)) for at, errors in left_out.items() for slug, error in errors.items()
    ]
    return Plan(
        SweepForecast(seconds, min(peak_bytes, available_bytes), points, cells),
        skipped,
        left_out,
    )


def beyond_bound(costs: Mapping[At, Mapping[str, float]], bound_s: float) -> list[At]:
    """The points to skip so that the rest takes at most ``bound_s`` seconds: what takes longest first."""
    total_s = sum(map(_point_s, costs.values()))
    beyond = []
    for where in sorted(costs, key=lambda where: _point_s(costs[where]), reverse=True):
        if total_s > bound_s:
            beyond.append(where)
            total_s -= _point_s(costs[where])
    return beyond


def _too_long(point: _PointForecast, cells: Mapping[str, float], bound_s: float) -> str:
    """The sentence that says why a point cannot be measured in time, and of which batch one could be."""
    case = case_of(point.asked)

    def can_end(batch: int) -> bool:
        smaller = replace(case, size={**case.size, "batch": batch})
        return _POINT_S + sum(_cell_s(forecast.estimate(smaller, slug)) for slug in cells) <= bound_s

    nearest = fit.largest_batch(case.batch, can_end)
    can = f"by itself, batch={nearest} is the largest that can" if nearest else "smaller sizes may"
    return bound.cannot(_point_s(cells), bound_s, can)


def _point_s(cells: Mapping[str, float]) -> float:
    """Seconds of a point with these cells."""
    return _POINT_S + sum(cells.values())


def _too_large(asked: Request, estimate: Estimate, available_bytes: int) -> Error | None:
    """The error of a strategy that cannot fit, by a forecast that is right within a factor; None where it can."""
    least_bytes = int(estimate.peak_bytes / _MEMORY_FACTOR)
    limit_bytes = _limit_bytes(asked)
    if limit_bytes is not None:
        read_bytes = case_of(asked).read_bytes
        if least_bytes + read_bytes > limit_bytes:
            return omissions.beyond_limit(estimate.peak_bytes + read_bytes, limit_bytes)
    if least_bytes > available_bytes:
        return omissions.beyond_available(estimate.peak_bytes, available_bytes)
    return None


def _limit_bytes(asked: Request) -> int | None:
    return None if asked.memory_limit_mib is None else asked.memory_limit_mib * 2**20


def over_budget(
    costs: Mapping[At, Mapping[str, float]], begun: Collection[At], allowed_s: float
) -> list[tuple[At, str]]:
    """The cells to leave out so that the rest takes at most ``allowed_s`` seconds: what takes longest first. The last
    cell of a point that has nothing yet stays, so that no point is empty, unless it is dear, or would stay beyond a
    hole in its line; two points stay in any case. ``costs``: seconds of each cell; ``begun``: points that have
    something already."""
    total_s = sum(map(_point_s, costs.values()))
    dear_s = _DEAR * allowed_s / max(1, len(costs))
    left = {where: set(cells) for where, cells in costs.items()}
    spared: dict[str, list[At]] = {}
    dropped: list[tuple[At, str]] = []

    def drop(where: At, slug: str) -> None:
        nonlocal total_s
        last = len(left[where]) == 1 and where not in begun
        if total_s > allowed_s and not (last and sum(map(bool, left.values())) <= _LEAST_POINTS):
            left[where].remove(slug)
            total_s -= costs[where][slug]
            dropped.append((where, slug))

    for cost_s, where, slug in sorted(
        ((cost_s, where, slug) for where, cells in costs.items() for slug, cost_s in cells.items()), reverse=True
    ):
        if len(left[where]) == 1 and where not in begun and cost_s <= dear_s:
            spared.setdefault(slug, []).append(where)
            continue
        for beyond in spared.pop(slug, []):
            drop(beyond, slug)
        drop(where, slug)
    return dropped


def _cell_s(estimate: Estimate) -> float:
    """Seconds of one strategy at one point."""
    memory_s = 0.5 * estimate.first_call_s + forecast.MEMORY_CALLS * estimate.latency_s
    return _CELL_S + memory_s + forecast.process_s(estimate.first_call_s, estimate.latency_s)
