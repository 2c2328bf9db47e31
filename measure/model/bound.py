"""The time within which a run ends, whatever it is doing, and the least budget with which it can begin to measure.

A budget is for a whole run, from its start to its verdict. On a person's own machine the bound follows from it, for
forecasts may be wrong and machines are slow; a hosted server has bounds of its own.
"""

import math
from collections.abc import Collection
from dataclasses import replace

from measure.model import fit, forecast, text
from measure.model.request import MOST_BUDGET_S, Request, case_of

# A step that has begun is waited for, by forecasts that are right within a factor of three; explanations come after.
_BESIDE_S = 60.0
_TIMES_BUDGET, _TIMES_SWEEP_BUDGET = 10.0, 2.0
# What claims need is measured once, and where that does not tell, once more for three times as long.
_TIMES_CLAIMS = 4.0
# So many strategies at most are named that would have to be left out.
_MOST_NAMED = 4


def of_comparison(budget_s: float) -> float:
    return _BESIDE_S + _TIMES_BUDGET * budget_s


def of_sweep(budget_s: float) -> float:
    return _BESIDE_S + _TIMES_SWEEP_BUDGET * budget_s


def of_claims(seconds: float) -> float:
    """``seconds``: what trying them takes by forecast."""
    return _BESIDE_S + _TIMES_CLAIMS * seconds


def check(request: Request, most_budget_s: float | None) -> str | None:
    """Return the sentence that says why the budget of a comparison is too short for a single sample, and what is
    enough; None where it is long enough. ``most_budget_s``: the longest that may be asked for here."""
    case = case_of(request)
    estimates = {slug: forecast.estimate(case, slug) for slug in request.strategies}
    needed_s = forecast.needed_s(case, estimates.values())
    if needed_s <= request.budget_s:
        return None

    def batch_can(batch: int) -> bool:
        smaller = replace(case, size={**case.size, "batch": batch})
        return forecast.forecast_run(smaller, request.strategies).seconds <= request.budget_s

    def can_without(slugs: Collection[str]) -> bool:
        left = [estimate for slug, estimate in estimates.items() if slug not in slugs]
        return bool(left) and forecast.needed_s(case, left) <= request.budget_s

    ways = []
    if math.ceil(needed_s) <= (most_budget_s or MOST_BUDGET_S):
        ways.append(f"with budget={math.ceil(needed_s)}")
    if nearest := fit.largest_batch(case.batch, batch_can):
        ways.append(f"with batch={nearest} at most")
    dearest = sorted(estimates, key=lambda slug: estimates[slug].first_call_s, reverse=True)
    for count in range(1, _MOST_NAMED + 1):
        if can_without(dearest[:count]):
            ways.append(f"without {text.listed(dearest[:count])}")
            break
    can = f"it can be measured {text.either(ways)}" if ways else "fewer strategies or smaller sizes may be measured"
    budget, needed = text.seconds(request.budget_s), text.seconds(needed_s)
    return f"A budget of {budget} is too short: before the first sample this needs {needed} by forecast; {can}."


def cannot(seconds: float, bound_s: float, advice: str) -> str:
    """The sentence that refuses what takes so long by forecast. ``advice``: what can end in time."""
    takes, ends = text.seconds(seconds), text.seconds(bound_s)
    return f"This cannot end in time: it takes about {takes} by forecast, and such a run ends after {ends}; {advice}."
