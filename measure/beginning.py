"""The conditions that a request has to meet before it is queued, beside those of `parse` and `fit`."""

from measure.engine.launcher import Launcher
from measure.jobs import Snapshot
from measure.machine import environment
from measure.model.request import Request, RequestError
from measure.model.run import Point
from measure.sweep import continuing
from measure.sweep.request import SweepRequest


def missing(request: Request, devices: tuple[str, ...]) -> str | None:
    """The sentence that says that the request's device is not there, as far as devices are known by now."""
    if not devices or request.device in devices:
        return None
    return f"device {request.device!r} is not on this machine: {', '.join(devices)} can be used"


def taken_over(request: SweepRequest, run_id: str, snapshot: Snapshot | None, launcher: Launcher) -> list[Point]:
    """The points of a sweep that has ended which a request goes on with. Raises `RequestError` where it cannot."""
    if snapshot is None:
        raise RequestError(f"run {run_id} is not known here: it was measured on another machine, or deleted")
    if snapshot.state != "finished":
        raise RequestError(f"run {run_id} is not finished: cancel it before it is continued")
    if refusal := continuing.refusal(snapshot.run, imported=snapshot.imported):
        raise RequestError(refusal)
    here = environment.collect(
        start_method=launcher.start_method,
        threads=request.base.threads,
        tensorflow=launcher.state().details or {},
    )
    return continuing.taken_over(snapshot.run, request, here)
