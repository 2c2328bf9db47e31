"""Continuing a sweep that ended early, with the points of it that are complete. Pure functions of a run."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from measure.machine import environment
from measure.model.request import RequestError, script_of
from measure.model.run import Point, Run
from measure.sweep import findings
from measure.sweep.lines import line_of
from measure.sweep.request import SweepRequest, of_run

# What latencies of one sweep have to share.
_SAME = ("cpu_model", "cores_granted", "python", "tensorflow", "numpy", "start_method", "flags")


def is_open(run: Run) -> bool:
    """True if a sweep that has ended left something for which there was no time."""
    return run.status != "complete" or any(
        findings.lacks_time(item) for point in run.points for item in point.measurements
    )


def refusal(run: Run, *, imported: bool) -> str | None:
    """The sentence why a sweep can be continued nowhere here: what it holds has to have been measured here."""
    if imported:
        return (
            f"run {run.id} comes from elsewhere, and what it holds cannot be vouched for here: «Measure again here» "
            "measures all of it anew"
        )
    return None


def taken_over(run: Run, request: SweepRequest, here: Mapping[str, Any]) -> list[Point]:
    """The points of ``run`` that need not be measured again: those that are complete, where it asked the same, of the
    same code, and was measured on what is ``here``, the environment of this process. Raises `RequestError` with one
    sentence."""
    before = of_run(run)
    if replace(before, base=structs.replace(before.base, budget_s=request.base.budget_s)) != request:
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
    taken = complete(run, request)
    _look_at_code(run, request, taken)
    return taken


def complete(run: Run, request: SweepRequest) -> list[Point]:
    """The points of ``run`` of which nothing is missing, wherever and of whichever code they were measured."""
    return [
        point
        for point in run.points
        if point.status == "complete"
        and not any(map(findings.lacks_time, point.measurements))
        # A file from elsewhere may hold anything.
        and {item.strategy for item in point.measurements if not item.twin_of} <= set(request.slugs(point.at).values())
    ]


def _look_at_code(run: Run, request: SweepRequest, points: Sequence[Point]) -> None:
    """Refuse to mix what two versions of a workload or of a mapper did. The script of each strategy is made anew where
    it was first measured, as the same sources make it at all points; each source is hashed."""
    lines = set()
    for point in points:
        asked = request.comparison(point.at)
        for item in point.measurements:
            if item.code is None or item.twin_of:
                continue
            same = item.code.sha256 == hashlib.sha256(item.code.source.encode()).hexdigest()
            if (line := line_of(item.strategy, request.axes)) not in lines:
                lines.add(line)
                same = same and item.code.source == script_of(asked, item.strategy)
            if not same:
                raise RequestError(
                    f"run {run.id} cannot be continued: the code of {item.strategy} for {asked.workload} has changed "
                    "since it was measured; measure it anew"
                )
