"""Continuing a sweep that ended early: points of it that are complete are not measured again. Pure functions of a
run."""

from collections.abc import Mapping
from typing import Any

from measure.machine import environment
from measure.run.request import Request, RequestError, script_of
from measure.run.run import TIME_OVER, Measurement, Point, Run
from measure.run.sweep_request import SweepRequest

# Of earlier versions: what was not run since it would have taken too long.
_OVER_BUDGET = "OverBudget"
# What latencies of one sweep have to share.
_SAME = ("cpu_model", "cores_granted", "python", "tensorflow", "numpy", "start_method", "flags", "gpus")


def is_open(run: Run) -> bool:
    """True if a sweep that has ended left something for which there was no time."""
    return run.status != "complete" or any(_lacks_time(item) for point in run.points for item in point.measurements)


def refusal(run: Run, *, imported: bool) -> str | None:
    """The sentence that says why a sweep cannot be continued: its points have to be measured here."""
    if imported:
        return (
            f"run {run.id} comes from elsewhere, and what it holds cannot be vouched for here: «Measure again here» "
            "measures all of it anew"
        )
    return None


def taken_over(run: Run, request: SweepRequest, here: Mapping[str, Any]) -> list[Point]:
    """The points of ``run`` that need not be measured again: those that are complete, of the code that would run now.
    ``here``: the environment of this process. Raises `RequestError` where the run was measured in another one."""
    # A sweep that was cancelled before it began says nothing of where.
    other = [environment.label(key) for key in _SAME if run.environment and run.environment.get(key) != here.get(key)]
    if other:
        raise RequestError(
            f"run {run.id} cannot be continued here, where other things hold ({', '.join(other)}): measure it anew"
        )
    return [point for point in run.points if _is_whole(point, request.comparison(point.at))]


def _is_whole(point: Point, asked: Request) -> bool:
    """True if a point was measured to its end, and is what would be measured now: a file may hold anything, and what a
    strategy does may have changed."""
    items = [item for item in point.measurements if not item.twin_of]
    return (
        point.status == "complete"
        and {item.strategy for item in items} == {*asked.strategies}
        and not any(_lacks_time(item) for item in items)
        and all(item.code is None or item.code.source == script_of(asked, item.strategy) for item in items)
    )


def _lacks_time(item: Measurement) -> bool:
    """True if the budget left a strategy no time."""
    return item.error is not None and item.error.type in (TIME_OVER, _OVER_BUDGET)
