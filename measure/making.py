"""The making of what measures, of a request that somebody asks or of work that waits. Functions raise `RequestError`
where that cannot be."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from measure import hosting
from measure.claims.spec import Claim
from measure.claims.tries import Tries, seconds_of, still_tried
from measure.engine import continuing, deriving, explanation
from measure.engine.bench import Keep, Settings
from measure.engine.comparison import Comparison
from measure.engine.explanation import Explanation
from measure.engine.record import View
from measure.engine.sweep import Sweep
from measure.machine import environment
from measure.pool.launcher import Launcher
from measure.run import deadline
from measure.run.place import StoreError
from measure.run.request import Request, RequestError, again
from measure.run.run import Point, Run
from measure.run.sweep_request import SweepRequest, of_run
from measure.store.store import Snapshot, Store
from strategies.script import ScriptError
from workloads import functions, places
from workloads.discovery import DiscoveryError

Publish = Callable[[View], None]
Asked = Request | SweepRequest | tuple[Claim, ...]
Measuring = Comparison | Explanation | Sweep | Tries
SETTINGS = Settings()


def bound_s(asked: Asked, *, why: bool = False) -> float:
    """The seconds within which a comparison ends, or a sweep, or as many of these claims are tried as can be. ``why``:
    reasons are asked for too."""
    limits = hosting.limits()
    if isinstance(asked, Request):
        return min(limits.run_s or math.inf, deadline.of_comparison(asked, why=why))
    if isinstance(asked, SweepRequest):
        return min(limits.sweep_s or math.inf, deadline.of(asked.base.budget_s))
    return min(limits.sweep_s or math.inf, deadline.of_claims(seconds_of(asked)))


def missing(request: Request, devices: Sequence[str]) -> str | None:
    """The sentence that says that the request's device is not there, as far as devices are known by now."""
    if not devices or request.device in devices:
        return None
    return f"device {request.device!r} is not on this machine: {', '.join(devices)} can be used"


def measuring(
    run_id: str, asked: Asked, launcher: Launcher, publish: Publish, *, parent: str | None = None,
    keep: Keep | None = None, earlier: Sequence[Point] = (),
) -> Measuring:  # fmt: skip
    """The measuring of a request, which begins when it is run. ``parent``: the run that this one repeats or goes on
    with; ``keep``: takes the reasons of a comparison's strategies, without it none are looked for; ``earlier``: points
    that a sweep takes over."""
    settings = _settings(bound_s(asked, why=keep is not None))
    made: Measuring
    try:
        if isinstance(asked, Request):
            made = Comparison(run_id, asked, launcher, publish, settings=settings, parent=parent, keep=keep)
        elif isinstance(asked, SweepRequest):
            made = Sweep(run_id, asked, launcher, publish, settings=settings, parent=parent, earlier=earlier)
        else:
            made = Tries(run_id, asked, launcher, publish, settings=settings, parent=parent)
    except (ScriptError, DiscoveryError) as error:
        raise RequestError(str(error)) from error
    if lacking := missing(made.request, launcher.state().devices):
        raise RequestError(lacking)
    return made


def explaining(
    snapshot: Snapshot, launcher: Launcher, publish: Publish, keep: Keep, tensorflow: Mapping[str, Any] | None
) -> Explanation:
    """The explanation of a run that has ended. ``tensorflow``: what the host says of its devices, once it does."""
    run = snapshot.run
    if refusal := explanation.refusal(run, tensorflow, imported=snapshot.imported):
        raise RequestError(refusal)
    _know_function(run)
    ends_s = min(hosting.limits().run_s or math.inf, deadline.of_explanation(again(run.request)))
    return Explanation(run, launcher, publish, keep, settings=_settings(ends_s))


def _settings(ends_s: float) -> Settings:
    return replace(SETTINGS, most_bytes=hosting.limits().memory_bytes, bound_s=ends_s)


def look(asked: Asked, launcher: Launcher) -> None:
    """Have a function of a person's own executed at sizes at which that was not done yet: the launcher is ready then,
    and the machine nobody else's."""
    if isinstance(asked, Request):
        deriving.look(launcher, asked)
    elif isinstance(asked, SweepRequest):
        for at in asked.points():
            deriving.look(launcher, asked.comparison(at))


def asked_of(run: Run) -> Asked:
    """The request of a run that was asked for here."""
    _know_function(run)
    if run.kind == "claims":
        return still_tried(run)
    return of_run(run) if run.kind == "sweep" else again(run.request)


def _know_function(run: Run) -> None:
    """Make a workload of the function of a person's own that a run was asked for, which was given here: what comes from
    elsewhere is never queued."""
    if run.request.own is msgspec.UNSET:
        return
    if places.hosted():
        raise RequestError("no code of a person's own is executed on a hosted server")
    functions.add(run.request.own)


def to_continue(store: Store, run_id: str) -> Run:
    """The sweep with which another one goes on."""
    before = ended(store, run_id, "continued")
    if before.imported:
        raise RequestError(
            f"run {run_id} comes from elsewhere, and what it holds cannot be vouched for here: «Measure again here» "
            "measures all of it anew"
        )
    _know_function(before.run)
    return before.run


def taken_over(
    store: Store, run_id: str | None, asked: Asked, start_method: str, tensorflow: Mapping[str, Any] | None
) -> list[Point]:
    """The points that a request takes over from the sweep that it goes on with, if from any."""
    if run_id is None or not isinstance(asked, SweepRequest):
        return []
    threads = asked.base.threads
    here = environment.collect(start_method=start_method, threads=threads, tensorflow=tensorflow or {})
    return continuing.taken_over(to_continue(store, run_id), asked, here)


def ended(store: Store, run_id: str, what: str) -> Snapshot:
    """A run that has ended, and so can be ``what``."""
    try:
        snapshot = store.look(run_id)
    except (StoreError, ValueError) as error:
        raise RequestError(f"run {run_id} cannot be read: {error}") from error
    if snapshot is None:
        raise RequestError(f"run {run_id} is not known here: it was measured on another machine, or deleted")
    if snapshot.state != "finished":
        raise RequestError(f"run {run_id} is not finished: cancel it before it is {what}")
    return snapshot
