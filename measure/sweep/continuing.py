"""Continuing a sweep that ended early, with what of it is as good as new. Pure functions of a run."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from measure.engine.dialogue import TIME_OVER
from measure.machine import environment
from measure.model.request import RequestError, script_of
from measure.model.run import Measurement, Point, Run, Stage
from measure.sweep.lines import line_of
from measure.sweep.omissions import OVER_BUDGET
from measure.sweep.request import SweepRequest, of_run

# What latencies of one sweep have to share.
_SAME = ("cpu_model", "cores_granted", "python", "tensorflow", "numpy", "start_method", "flags")
# How a process ended that was not sampled as often as was planned.
_CUT_SHORT = ("cancelled", "interrupted")
# Where a strategy stands that is still to be sampled.
_UNTIMED: Stage = "memory"


def is_open(run: Run) -> bool:
    """True if a sweep that has ended left something for which there was no time."""
    return run.status != "complete" or any(map(_lacks_time, run.points))


def refusal(run: Run, *, imported: bool) -> str | None:
    """The sentence why a sweep can be continued nowhere here: what it holds has to have been measured here."""
    if imported:
        return (
            f"run {run.id} comes from elsewhere, and what it holds cannot be vouched for here: «Measure again here» "
            "measures all of it anew"
        )
    return None


def taken_over(run: Run, request: SweepRequest, here: Mapping[str, Any]) -> list[Point]:
    """The points of ``run`` that need not be measured again, where it asked the same, of the same code, and was
    measured on what is ``here``, the environment of this process: points that are complete as they are; points of the
    grid where something is missing as ``waiting`` ones that hold the rest. Raises `RequestError` with one sentence."""
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
    taken = points_kept(run, request)
    _look_at_code(run, request, taken)
    return taken


def points_kept(run: Run, request: SweepRequest) -> list[Point]:
    """The points of ``run`` that can be taken over, wherever and of whichever code they were measured."""
    grid = request.points()
    taken = []
    for point in run.points:
        if not {item.strategy for item in point.measurements} <= set(request.slugs(point.at).values()):
            continue  # a file from elsewhere
        if point.status == "complete" and not _lacks_time(point):
            taken.append(point)
        elif point.at in grid and (known := list(_known(point.measurements))):
            taken.append(
                structs.replace(point, status="waiting", reason="", measurements=known, ranking=[], verdict="")
            )
    return taken


def _lacks_time(point: Point) -> bool:
    """True if the budget kept a strategy from being measured at a point."""
    return any(item.error is not None and item.error.type == OVER_BUDGET for item in point.measurements)


def _known(measurements: Iterable[Measurement]) -> Iterable[Measurement]:
    """Measurements, as far as they are known, of a point that is not complete: outcomes that settle the matter,
    processes that were sampled as planned, and at least memory and correctness."""
    for item in measurements:
        cut_short = item.error is not None and item.error.type == TIME_OVER
        if item.outcome not in ("ok", "wrong", "not_run", "cancelled") and not cut_short:
            yield item
        elif item.memory is not None and item.correctness is not None:
            whole = [process for process in item.replicas if process.samples_s and process.ended not in _CUT_SHORT]
            ok = item.correctness.ok
            yield structs.replace(
                item,
                outcome="ok" if ok else "wrong",
                error=None if ok else item.error,
                stage=item.stage if whole else _UNTIMED,
                first_call_s=item.first_call_s if whole else None,
                latency=item.latency if whole else None,
                replicas=[structs.replace(process, id=number) for number, process in enumerate(whole)],
            )


def _look_at_code(run: Run, request: SweepRequest, points: Sequence[Point]) -> None:
    """Refuse to mix what two versions of a workload or of a mapper did. The script of each strategy is made anew where
    it was first measured, as the same sources make it at all points; each source is hashed."""
    seen = set()
    for point in points:
        asked = request.comparison(point.at)
        for item in point.measurements:
            if item.code is None:
                continue
            same = item.code.sha256 == hashlib.sha256(item.code.source.encode()).hexdigest()
            if (line := line_of(item.strategy, request.axes)) not in seen:
                seen.add(line)
                same = same and item.code.source == script_of(asked, item.strategy)
            if not same:
                raise RequestError(
                    f"run {run.id} cannot be continued: the code of {item.strategy} for {asked.workload} has changed "
                    "since it was measured; measure it anew"
                )
