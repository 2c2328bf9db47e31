"""Continuing a sweep that ended early: which of its points are as good as new ones. Pure functions of a run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from measure import environment
from measure.request import RequestError
from measure.run import Point, Run
from measure.sweep_forecast import OVER_BUDGET
from measure.sweep_request import SweepRequest, of_run

# What latencies of one sweep have to share.
_SAME = ("cpu_model", "cores_granted", "python", "tensorflow", "numpy", "start_method", "flags")


def is_open(run: Run) -> bool:
    """Whether a sweep that has ended left something for which there was no time."""
    return run.status != "complete" or any(map(_lacks_time, run.points))


def finished_points(run: Run, request: SweepRequest, here: Mapping[str, Any]) -> list[Point]:
    """The finished points of ``run``, where it asked the same and was measured on what is ``here``, the environment of
    this process. Raises `RequestError` with one sentence."""
    before = of_run(run)
    if replace(before, base=replace(before.base, budget_s=request.base.budget_s)) != request:
        raise RequestError(f"run {run.id} was asked something else: only its budget may differ where it is continued")
    keys = (*_SAME, "gpus") if request.base.device.startswith("GPU") else _SAME
    labels = {fact.key: fact.label for fact in environment.FACTS}
    for key in keys:
        # A sweep that was cancelled before it began knows nothing of where.
        if run.environment and run.environment.get(key) != here.get(key):
            was, now = run.environment.get(key), here.get(key)
            raise RequestError(
                f"run {run.id} cannot be continued here: {labels[key]} was {was or 'not known'}, "
                f"and is {now or 'not known'}; measure it anew"
            )
    return [point for point in run.points if point.status == "complete" and not _lacks_time(point)]


def _lacks_time(point: Point) -> bool:
    """Whether the budget kept a strategy from being measured at a point."""
    return any(item.error is not None and item.error.type == OVER_BUDGET for item in point.measurements)
