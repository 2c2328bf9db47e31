"""The making of what measures, of a request that somebody asks or of work that waits."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from measure import hosting
from measure.claims.spec import Claim
from measure.claims.tries import Tries, chosen, seconds_of
from measure.engine import continuing, deriving, explanation
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.explanation import Keep
from measure.engine.record import View
from measure.engine.sweep import Sweep
from measure.machine import environment
from measure.pool.launcher import Launcher
from measure.recording import Measuring
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
SETTINGS = Settings()


def bound_s(asked: Asked, *, why: bool = False) -> float:
    """The seconds within which a comparison ends, or a sweep, or as many of these claims are tried as can be. ``why``:
    reasons are asked for too."""
    limits = hosting.limits()
    if isinstance(asked, Request):
        return min(limits.run_s or math.inf, deadline.of_comparison(asked, why=why))
    seconds = (
        deadline.of(asked.base.budget_s) if isinstance(asked, SweepRequest) else deadline.of_claims(seconds_of(asked))
    )
    return min(limits.sweep_s or math.inf, seconds)


def bound_of_explanation_s(request: Request) -> float:
    """The seconds within which an explanation ends."""
    return min(hosting.limits().run_s or math.inf, deadline.of_explanation(request))


def missing(request: Request, devices: Sequence[str]) -> str | None:
    """The sentence that says that the request's device is not there, as far as devices are known by now."""
    if not devices or request.device in devices:
        return None
    return f"device {request.device!r} is not on this machine: {', '.join(devices)} can be used"


class Making:
    """Makes what measures with one launcher. All methods raise `RequestError` where that cannot be."""

    def __init__(self, launcher: Launcher, store: Store, settings: Settings | None = None) -> None:
        """``store``: has the sweep that is to be continued."""
        self._launcher, self._store = launcher, store
        self._settings = replace(settings or SETTINGS, most_bytes=hosting.limits().memory_bytes)

    def look(self, asked: Asked) -> None:
        """Have a function of a person's own executed at sizes at which that was not done yet: the launcher is ready
        then, and the machine nobody else's."""
        requests = [asked] if isinstance(asked, Request) else []
        if isinstance(asked, SweepRequest):
            requests = [asked.comparison(at) for at in asked.points()]
        for request in requests:
            deriving.look(self._launcher, request)

    def measuring(
        self, run_id: str, asked: Asked, publish: Publish, parent: str | None = None, *, keep: Keep | None = None,
        continue_from: str | None = None,
    ) -> Measuring:  # fmt: skip
        """``parent``: the run that this one repeats or goes on with; ``keep``: takes the reasons of a comparison's
        strategies, without it none are looked for; ``continue_from``: the sweep whose points are taken over."""
        make: Callable[..., Measuring]
        if isinstance(asked, Request):
            make = partial(Comparison, run_id, asked, keep=keep, parent=parent)
        elif isinstance(asked, SweepRequest):
            points = self._points(asked, continue_from) if continue_from else []
            make = partial(Sweep, run_id, asked, parent=parent, earlier=points)
        else:
            make = partial(Tries, run_id, [claim.id for claim in asked], parent=parent)
        measuring = self._made(make, publish, bound_s(asked, why=keep is not None))
        if lacking := missing(measuring.request, self._launcher.state().devices):
            raise RequestError(lacking)
        return measuring

    def explanation(self, run: Run, publish: Publish, keep: Keep, *, imported: bool) -> Measuring:
        """The explanation of a run that has ended."""
        if refusal := explanation.refusal(run, self._launcher.state().details, imported=imported):
            raise RequestError(refusal)
        _know_function(run)
        make = partial(explanation.Explanation, run, keep=keep)
        return self._made(make, publish, bound_of_explanation_s(again(run.request)))

    def _made(self, make: Callable[..., Measuring], publish: Publish, ends_s: float) -> Measuring:
        try:
            return make(launcher=self._launcher, publish=publish, settings=replace(self._settings, bound_s=ends_s))
        except (ScriptError, DiscoveryError) as error:
            raise RequestError(str(error)) from error

    def _points(self, asked: SweepRequest, run_id: str) -> list[Point]:
        """The points of a sweep that has ended with which a request goes on."""
        here = environment.collect(
            start_method=self._launcher.start_method,
            threads=asked.base.threads,
            tensorflow=self._launcher.state().details or {},
        )
        return continuing.taken_over(to_continue(self._store, run_id), asked, here)


def asked_of(run: Run) -> Asked:
    """The request of a run that was asked for here. Raises `RequestError` where that cannot be measured here."""
    _know_function(run)
    if run.kind == "claims":
        return chosen(run.claims or ())
    return of_run(run) if run.kind == "sweep" else again(run.request)


def to_continue(store: Store, run_id: str) -> Run:
    """The sweep with which another one goes on. Raises `RequestError` where it cannot be continued."""
    before = ended(store, run_id, "continued")
    if refusal := continuing.refusal(before.run, imported=before.imported):
        raise RequestError(refusal)
    return before.run


def ended(store: Store, run_id: str, what: str) -> Snapshot:
    """A run that has ended. Raises `RequestError` where it is not here, or goes on, and so cannot be ``what``."""
    try:
        snapshot = store.look(run_id)
    except (StoreError, ValueError) as error:
        raise RequestError(f"run {run_id} cannot be read: {error}") from error
    if snapshot is None:
        raise RequestError(f"run {run_id} is not known here: it was measured on another machine, or deleted")
    if snapshot.state != "finished":
        raise RequestError(f"run {run_id} is not finished: cancel it before it is {what}")
    return snapshot


def _know_function(run: Run) -> None:
    """Make a workload of the function of a person's own that a run was asked for, which was given here: what comes from
    elsewhere is never queued."""
    if run.request.own is msgspec.UNSET:
        return
    if places.hosted():
        raise RequestError("no code of a person's own is executed on a hosted server")
    functions.add(run.request.own)
