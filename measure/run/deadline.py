"""The time within which a run ends, whatever it is doing, and the least budget with which it can begin to measure.

A budget is for a whole run, from its start to its verdict, which comes within 1.5 times what it was said to take, also
where forecasts are wrong or the machine is slow.
"""

import math

from measure.run import forecast, text
from measure.run.request import Request, case_of

# TensorFlow waits for 10 s before an allocation fails for good (kMaxMillisToWait in tsl's bfc_allocator.cc), and
# several may fail one after the other where memory is limited.
ALLOCATOR_WAITS_S = 35.0


def of(seconds: float) -> float:
    """``seconds``: what the run was said to take."""
    return 1.5 * seconds


def of_comparison(request: Request, *, why: bool = False) -> float:
    """``why``: reasons are asked for too. Where memory is limited, the allocator's waiting comes on top."""
    ahead = forecast.forecast_run(case_of(request), request.strategies, request.budget_s)
    ends_s = of(max(request.budget_s, ahead.seconds)) + (of_explanation(request) if why else 0.0)
    return ends_s + (ALLOCATOR_WAITS_S if request.memory_limit_mib else 0.0)


def of_explanation(request: Request) -> float:
    """An explained process traces and compiles its strategy several times, and profiles a call."""
    ahead = forecast.forecast_run(case_of(request), request.strategies)
    return of(sum(3.0 + 4.0 * (item.first_call_s + item.latency_s) for item in ahead.per_strategy.values()))


def of_claims(seconds: float) -> float:
    """``seconds``: what trying them takes by forecast. Their scripts take what machines differ by."""
    return 60.0 + 2.0 * seconds


def check(request: Request) -> str | None:
    """Return the sentence that says why the budget of a comparison is too short for a single sample, and what is
    enough; None where it is long enough."""
    needed_s = forecast.forecast_run(case_of(request), request.strategies).seconds
    if needed_s <= request.budget_s:
        return None
    budget, needed = text.seconds(request.budget_s), text.seconds(needed_s)
    return (
        f"A budget of {budget} is too short: before the first sample this needs {needed} by forecast; it can be "
        f"measured with budget={math.ceil(needed_s)}, fewer strategies or smaller sizes."
    )
