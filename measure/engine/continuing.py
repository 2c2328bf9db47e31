"""Continuing a sweep that ended early: points of it that are complete are not measured again. Pure functions of a
run."""

from collections.abc import Mapping
from typing import Any

from measure.engine.record import changes
from measure.run.request import Request, RequestError, script_of
from measure.run.run import TIME_OVER, Measurement, Point, Run
from measure.run.sweep_request import SweepRequest

# Of earlier versions: what was not run since it would have taken too long.
_OVER_BUDGET = "OverBudget"


def is_open(run: Run) -> bool:
    """True if a sweep that has ended left something for which there was no time."""
    return run.status != "complete" or any(_lacks_time(item) for point in run.points for item in point.measurements)


def taken_over(run: Run, request: SweepRequest, here: Mapping[str, Any]) -> list[Point]:
    """The points of ``run`` that need not be measured again: those that are complete, of the code that would run now.
    ``here``: the environment of this process. Raises `RequestError` where the run was measured in another one."""
    if other := changes(run, here):
        raise RequestError(f"run {run.id} cannot be continued here, where {other}: measure it anew")
    return [point for point in run.points if _is_whole(point, request.comparison(point.at))]


def _is_whole(point: Point, asked: Request) -> bool:
    """True if a point was measured to its end, and is what would be measured now: what a strategy does may have
    changed."""
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
