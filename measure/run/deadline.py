"""The time within which a run ends, whatever it is doing, and the least budget with which it can begin to measure.

A budget is for a whole run, from its start to its verdict. A run ends within 1.5 times what it was said to take, also
where forecasts are wrong or the machine is slow; a hosted server has bounds of its own.
"""

import math

from measure.run import forecast, text
from measure.run.request import MOST_BUDGET_S, Request, case_of

_TIMES = 1.5
# Scripts of claims take what machines differ by.
_CLAIMS_BESIDE_S, _TIMES_CLAIMS = 60.0, 2.0
# An explained process traces and compiles its strategy several times, and profiles a call.
_EXPLAINED_S, _EXPLAINED_FIRST_CALLS = 3.0, 4.0
# TensorFlow waits for 10 s before an allocation fails for good (kMaxMillisToWait in tsl's bfc_allocator.cc), and
# several may fail one after the other where memory is limited.
ALLOCATOR_WAITS_S = 35.0


def of(seconds: float) -> float:
    """``seconds``: what the run was said to take."""
    return _TIMES * seconds


def of_comparison(request: Request, *, why: bool = False) -> float:
    """``why``: reasons are asked for too. Where memory is limited, the allocator's waiting comes on top."""
    ahead = forecast.forecast_run(case_of(request), request.strategies, request.budget_s)
    asked_s = max(request.budget_s, ahead.seconds) + (_explaining_s(ahead) if why else 0.0)
    return of(asked_s) + (ALLOCATOR_WAITS_S if request.memory_limit_mib else 0.0)


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
    needed_s = forecast.forecast_run(case_of(request), request.strategies).seconds
    if needed_s <= request.budget_s:
        return None
    enough = math.ceil(needed_s)
    longer = f"budget={enough}, or with " if enough <= (most_budget_s or MOST_BUDGET_S) else ""
    budget, needed = text.seconds(request.budget_s), text.seconds(needed_s)
    return (
        f"A budget of {budget} is too short: before the first sample this needs {needed} by forecast; it can be "
        f"measured with {longer}fewer strategies or smaller sizes."
    )


def cannot(seconds: float, bound_s: float, advice: str) -> str:
    """The sentence that refuses what takes so long by forecast. ``advice``: what can end in time."""
    takes, ends = text.seconds(seconds), text.seconds(bound_s)
    return f"This cannot end in time: it takes about {takes} by forecast, and such a run ends after {ends}; {advice}."
