"""The time within which a run ends, whatever it is doing: memory, correctness, first calls and explanations included.

A budget says for how long latencies are measured. On a person's own machine the bound follows from it, so that whoever
asks for more figures gets more time for all of it; a hosted server has bounds of its own.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from measure.model import fit, forecast, text
from measure.model.request import MOST_BUDGET_S, Request, case_of
from strategies.spec import Estimate

# The start of processes, the reference, memory and correctness of a usual comparison, on a machine that is slow.
_BESIDE_S = 60.0
# First calls, memory and explanations take their time beside the budget, by forecasts that are right within a factor
# of three. A sweep's budget is for all of it, and leaves out what it has no time for.
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


def check(request: Request, bound_of: Callable[[float], float]) -> str | None:
    """Return the sentence that says why a comparison cannot end in time and what can; None where it can.

    ``bound_of``: budget → the seconds within which a comparison with it ends.
    """
    case, bound_s = case_of(request), bound_of(request.budget_s)
    estimates = {slug: forecast.estimate(case, slug) for slug in request.strategies}
    takes_s = forecast.run_s(case, estimates.values(), request.budget_s)
    if takes_s <= bound_s:
        return None

    def batch_can_end(batch: int) -> bool:
        smaller = replace(case, size={**case.size, "batch": batch})
        return forecast.forecast_run(smaller, request.strategies, request.budget_s).seconds <= bound_s

    def can_end_without(slugs: Collection[str]) -> bool:
        left = [estimate for slug, estimate in estimates.items() if slug not in slugs]
        return bool(left) and forecast.run_s(case, left, request.budget_s) <= bound_s

    def budget_can_end(budget_s: int) -> bool:
        return forecast.run_s(case, estimates.values(), budget_s) <= bound_of(budget_s)

    ways = []
    if nearest := fit.largest_batch(case.batch, batch_can_end):
        ways.append(f"with batch={nearest} at most")
    dearest = sorted(estimates, key=lambda slug: _visit_s(estimates[slug]), reverse=True)
    for count in range(1, _MOST_NAMED + 1):
        if can_end_without(dearest[:count]):
            ways.append(f"without {text.listed(dearest[:count])}")
            break
    if budget_s := _least(int(MOST_BUDGET_S), budget_can_end):
        ways.append(f"with budget={budget_s}")
    may = "fewer strategies or smaller sizes may" if len(estimates) > 1 else "smaller sizes may"
    return cannot(takes_s, bound_s, f"it can {text.either(ways)}" if ways else may)


def cannot(seconds: float, bound_s: float, advice: str) -> str:
    """The sentence that refuses what takes so long by forecast. ``advice``: what can end in time."""
    takes, ends = text.seconds(seconds), text.seconds(bound_s)
    return f"This cannot end in time: it takes about {takes} by forecast, and such a run ends after {ends}; {advice}."


def _visit_s(estimate: Estimate) -> float:
    return forecast.visit_s(estimate.first_call_s, estimate.latency_s)


def _least(most: int, can: Callable[[int], bool]) -> int | None:
    """The least whole number up to ``most`` that can, where all that are greater can too; None where none can."""
    if not can(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if can(middle) else (middle, high)
    return high
