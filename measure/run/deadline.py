"""The time within which a run ends, whatever it is doing, and the least budget with which it can begin to measure.

A run ends within 1.5 times what it was forecast to take at most, from its start to its end, also where the forecast was
wrong or the machine is slow.
"""

import math

from measure.run import text
from measure.run.request import Request, forecast_of


def of(seconds: float) -> float:
    """``seconds``: what the run was said to take."""
    return 1.5 * seconds


def of_comparison(request: Request, *, why: bool = False) -> float:
    """``why``: reasons are asked for too."""
    return of(forecast_of(request).max_seconds) + (of_explanation(request) if why else 0.0)


def of_explanation(request: Request) -> float:
    """An explained process traces and compiles its strategy several times, and profiles a call."""
    ahead = forecast_of(request)
    return of(sum(3.0 + 4.0 * (item.first_call_s + item.latency_s) for item in ahead.per_strategy.values()))


def of_claims(seconds: float) -> float:
    """``seconds``: what trying them takes by forecast. Their scripts take what machines differ by."""
    return 60.0 + 2.0 * seconds


def check(request: Request) -> str | None:
    """Return the sentence that says why the budget of a comparison is too short for a single sample, and what is
    enough; None where it is long enough."""
    needed_s = forecast_of(request).needed_s
    if needed_s <= request.budget_s:
        return None
    budget, needed = text.seconds(request.budget_s), text.seconds(needed_s)
    return (
        f"A budget of {budget} is too short: before the first sample this needs {needed} by forecast; it can be "
        f"measured with budget={math.ceil(needed_s)}, fewer strategies or smaller sizes."
    )
