"""The sharpness of a comparison before it is run: from forecast, budget, and what earlier runs showed. Pure."""

import statistics
from collections.abc import Iterable

from measure.model.forecast import LEADERS, RunForecast, visit_s
from measure.model.processes import CONTENDER
from measure.model.run import Run
from measure.statistics.intervals import Spread, chance, spread_of
from measure.statistics.levels import levels_of


def spread(runs: Iterable[Run]) -> Spread:
    """The spread between processes that comparisons have shown, the median of them; where there is none, what is
    assumed of any machine."""
    known = [levels_of(run.measurements).spread for run in runs if run.control is not None]
    if not known:
        return spread_of([])
    return Spread(statistics.median(each.deviation for each in known), statistics.median(each.most for each in known))


# Time budgets that are proposed, in seconds.
_BUDGETS_S = (20.0, 40.0, 60.0, 120.0, 300.0)


def enough(needs: RunForecast, spread: Spread, least: float, *, more_than_s: float) -> float | None:
    """The least time budget in seconds with which a comparison visits all its strategies and tells a difference of
    ``least`` between its leaders; None where none of those that are proposed does."""
    first_visits_s = sum(visit_s(item.first_call_s, item.latency_s) for item in needs.per_strategy.values())
    for budget_s in _BUDGETS_S:
        if budget_s > more_than_s and budget_s > first_visits_s and resolution(needs, budget_s, spread) <= least:
            return budget_s
    return None


def resolution(needs: RunForecast, budget_s: float, spread: Spread, confidence: float = 0.95) -> float:
    """The smallest difference (relative) that a comparison will tell between its leaders, if they are three with the
    twin and if it takes its whole budget, up to what a contender gets at first."""
    costs_s = sorted(visit_s(item.first_call_s, item.latency_s) for item in needs.per_strategy.values())
    left_s = max(0.0, budget_s - sum(costs_s))
    round_s = max(1e-9, LEADERS * statistics.mean(costs_s[:LEADERS]))
    return chance(spread, max(1, min(CONTENDER, 1 + int(left_s / round_s))), confidence)
