"""The time within which a run ends, whatever it is doing, and the least budget with which it can begin to measure.

A budget is for a whole run, from its start to its verdict. A run ends within 1.5 times what it was said to take, also
where forecasts are wrong or the machine is slow; a hosted server has bounds of its own.
"""

import math
from collections.abc import Collection
from dataclasses import replace

from measure.model import fit, forecast, text
from measure.model.request import MOST_BUDGET_S, Request, case_of

_TIMES = 1.5
# Scripts of claims take what machines differ by.
_CLAIMS_BESIDE_S, _TIMES_CLAIMS = 60.0, 2.0
# An explained process traces and compiles its strategy several times, and profiles a call.
_EXPLAINED_S, _EXPLAINED_FIRST_CALLS = 3.0, 4.0
# TensorFlow waits for 10 s before an allocation fails for good (kMaxMillisToWait in tsl's bfc_allocator.cc), and
# several may fail one after the other. A strategy that is forecast to need this share of the limit may run into it.
TIGHT_SHARE, ALLOCATOR_WAITS_S = 0.5, 35.0
# So many strategies at most are named that would have to be left out.
_MOST_NAMED = 4


def of(seconds: float) -> float:
    """``seconds``: what the run was said to take."""
    return _TIMES * seconds


def of_comparison(request: Request, *, why: bool = False) -> float:
    """``why``: reasons are asked for too. Where a memory limit is tight, the allocator's waiting comes on top."""
    case = case_of(request)
    ahead = forecast.forecast_run(case, request.strategies, request.budget_s)
    said_s = max(request.budget_s, ahead.seconds) + (_explaining_s(ahead) if why else 0.0)
    limit_bytes = TIGHT_SHARE * 2**20 * (request.memory_limit_mib or math.inf)
    needs = (estimate.peak_bytes + case.tensor_bytes for estimate in ahead.per_strategy.values())
    return of(said_s) + (ALLOCATOR_WAITS_S if any(bytes_ > limit_bytes for bytes_ in needs) else 0.0)


def of_explanation(request: Request) -> float:
    return of(_explaining_s(forecast.forecast_run(case_of(request), request.strategies)))


def _explaining_s(ahead: forecast.RunForecast) -> float:
    estimates = ahead.per_strategy.values()
    return sum(_EXPLAINED_S + _EXPLAINED_FIRST_CALLS * (item.first_call_s + item.latency_s) for item in estimates)


def of_claims(seconds: float) -> float:
    """``seconds``: what trying them takes by forecast."""
    return _CLAIMS_BESIDE_S + _TIMES_CLAIMS * seconds


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
