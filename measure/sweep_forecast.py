"""What a sweep will need, before it is run: its time and peak memory, and what of it is not run, with the reason.

Pure arithmetic on metadata, as `forecast` is.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import workloads
from measure import fit, forecast, text
from measure.run import Error
from measure.sweep_request import SweepRequest
from strategies.spec import Estimate

# Types of errors of strategies that are left out at a point, for want of memory and of time.
DOES_NOT_FIT, OVER_BUDGET = "DoesNotFit", "OverBudget"
# Of the budget, what the grid's points may take together; the rest is for refining crossings and ties.
GRID_SHARE = 0.8
# A map is filled adaptively: about this share of its cells is measured.
_MAP_SHARE = 0.5
# Forecasts of memory are right within this factor.
_MEMORY_FACTOR = 1.5
# One cell's processes beside their calls, with two memory subjects at a time; the reference of a point.
_CELL_S, _POINT_S = 0.2, 0.3
_NOT_RUN = "not run here: "
_MOST_LISTED = 4
# Calls of one cell: after the first ones, with its memory, until its pace is steady, and in rounds.
_CALLS = 8

At = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class SweepForecast:
    """Wall-clock seconds (at most the budget), bytes at the worst moment, the points that are not run, and at others
    strategies that are not: each with the reason."""

    seconds: float
    peak_bytes: int
    skipped: list[tuple[dict[str, int], str]]
    left_out: list[tuple[dict[str, int], str, str]]

    def strategies_left_out(self) -> list[str]:
        """A sentence for each strategy that is not run everywhere."""
        found: dict[str, list[tuple[str, str]]] = {}
        for at, slug, reason in self.left_out:
            place = " ".join(f"{name} {value:,}" for name, value in at.items())
            found.setdefault(slug, []).append((place, reason.removeprefix(_NOT_RUN)))
        return [
            f"{slug} is not run at {_listed([place for place, _ in places])}: {places[-1][1]}"
            for slug, places in found.items()
        ]


@dataclass(frozen=True)
class Plan:
    """What is left out: whole points, and strategies of points, each with its reason. Points are keyed by `key`."""

    forecast: SweepForecast
    skipped: dict[At, str]
    left_out: dict[At, dict[str, Error]]


def _listed(places: list[str]) -> str:
    if len(places) <= _MOST_LISTED:
        return ", ".join(places)
    return f"{len(places)} points, the first of them {places[0]}"


def key(at: dict[str, int]) -> At:
    return tuple(at.items())


def forecast_sweep(request: SweepRequest, available_bytes: int) -> SweepForecast:
    return plan(request, available_bytes).forecast


def plan(request: SweepRequest, available_bytes: int, taken: Mapping[At, Collection[str]] | None = None) -> Plan:
    """Share the budget out, so that every point gets its minimum: where all would take longer, the cells (a strategy at
    a point) that take longest are left out, but never the quickest of a point. ``taken``: strategies of points that
    cost nothing, since they were measured before."""
    budget_s = request.base.budget_s
    share = _MAP_SHARE if len(request.axes) == 2 else 1.0
    skipped: dict[At, str] = {}
    left_out: dict[At, dict[str, Error]] = {}
    costs: dict[tuple[At, str], float] = {}
    total_s, peak_bytes = 0.0, 0
    for at in request.points():
        asked = request.comparison(at)
        known = (taken or {}).get(key(at), ())
        if set(asked.strategies) <= set(known):
            continue
        if refusal := fit.check(asked, available_bytes):
            skipped[key(at)] = refusal
            continue
        found = forecast.forecast_run(
            workloads.get(asked.workload), asked.size, asked.dtype, asked.strategies, asked.workload_options
        )
        reasons = left_out[key(at)] = {}
        open_ = {slug: each for slug, each in found.per_strategy.items() if slug not in known}
        for slug, each in open_.items():
            if asked.memory_limit_mib is None and each.peak_bytes / _MEMORY_FACTOR > available_bytes:
                reasons[slug] = Error(
                    type=DOES_NOT_FIT,
                    message=f"{_NOT_RUN}it would need about {text.size(each.peak_bytes)}, "
                    f"and {text.size(available_bytes)} are available",
                )
        kept = {slug: _cell_s(each) for slug, each in open_.items() if slug not in reasons}
        # The quickest of a point stays, so that no point is empty.
        for slug in sorted(kept, key=lambda slug: kept[slug])[0 if known else 1 :]:
            costs[key(at), slug] = kept[slug]
        total_s += _POINT_S + sum(kept.values())
        peak_bytes = max(peak_bytes, min(found.peak_bytes, available_bytes))
    for (where, slug), cost_s in sorted(costs.items(), key=lambda item: -item[1]):
        if share * total_s <= GRID_SHARE * budget_s:
            break
        total_s -= cost_s
        left_out[where][slug] = Error(
            type=OVER_BUDGET,
            message=f"{_NOT_RUN}it would take about {text.seconds(cost_s)} of the sweep's {budget_s:.0f} s; "
            "with a larger budget it is measured",
        )
    seconds = min(share * total_s / GRID_SHARE, budget_s)
    points = [(dict(at), reason) for at, reason in skipped.items()]
    cells = [(dict(at), slug, error.message) for at, each in left_out.items() for slug, error in each.items()]
    return Plan(SweepForecast(seconds, peak_bytes, points, cells), skipped, left_out)


def _cell_s(estimate: Estimate) -> float:
    """Seconds of one strategy at one point."""
    return _CELL_S + 1.5 * estimate.first_call_s + _CALLS * estimate.latency_s
