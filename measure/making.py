"""From a request to a run: what measures it is made, and measures while a thread of its own writes into the store and
hears orders from there, so that neither a slow disk nor a locked store holds up what is timed. Functions raise
`RequestError` where a request cannot be measured."""

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import msgspec

from measure import hosting
from measure.claims.spec import Claim
from measure.claims.tries import Tries, seconds_of, still_tried
from measure.engine import deriving, explanation, sweep
from measure.engine.bench import Keep, Settings
from measure.engine.comparison import Comparison
from measure.engine.record import View
from measure.machine import environment
from measure.pool.clock import Clock
from measure.pool.launcher import Launcher
from measure.pool.privacy import without_folders
from measure.run import deadline
from measure.run.place import StoreError
from measure.run.request import Request, RequestError, again
from measure.run.run import Point, Run
from measure.run.sweep_request import SweepRequest, of_run
from measure.run.why import Why
from measure.store.queue import Standing
from measure.store.store import Snapshot, Store, closed
from strategies.script import ScriptError
from workloads import functions, places
from workloads.discovery import DiscoveryError

Publish = Callable[[View], None]
Asked = Request | SweepRequest | tuple[Claim, ...]


class Measuring(Protocol):
    """One piece of work, as it is measured."""

    def run(self) -> Run: ...
    def view(self) -> View: ...
    def cancel(self) -> None: ...
    def stop(self) -> None: ...


SETTINGS = Settings()
# How often orders are looked for, and how often it is told how it stands and what is new is written.
LOOK_S, _STAND_S = 0.5, 1.0
# Pauses between tries to write a run that has ended: a disk may be full for a moment or for a day. A process that ends
# tries so often.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_LAST_TRIES = 3
FAULT = "a fault in Mapbench ended the run"
_log = logging.getLogger("mapbench")


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
    if not devices or {request.device, request.place} & {*devices}:
        return None
    return f"device {request.device!r} is not on {request.machine or 'this machine'}: {', '.join(devices)} can be used"


def measuring(
    run_id: str, asked: Asked, launcher: Launcher, publish: Publish, *, parent: str | None = None,
    keep: Keep | None = None, earlier: Sequence[Point] = (), most_s: float = math.inf,
) -> Measuring:  # fmt: skip
    """The measuring of a request, which begins when it is run. ``parent``: the run that this one repeats or goes on
    with; ``keep``: takes the reasons of a comparison's strategies, without it none are looked for; ``earlier``: points
    that a sweep takes over; ``most_s``: what is left of its time."""
    settings = settings_of(min(most_s, bound_s(asked, why=keep is not None)))
    made: Comparison | sweep.Sweep | Tries
    try:
        if isinstance(asked, Request):
            made = Comparison(run_id, asked, launcher, publish, settings=settings, parent=parent, keep=keep)
        elif isinstance(asked, SweepRequest):
            made = sweep.Sweep(run_id, asked, launcher, publish, settings=settings, parent=parent, earlier=earlier)
        else:
            made = Tries(run_id, asked, launcher, publish, settings=settings, parent=parent)
    except (ScriptError, DiscoveryError) as error:
        raise RequestError(str(error)) from error
    if lacking := missing(made.request, launcher.state().devices):
        raise RequestError(lacking)
    return made


def made(
    store: Store, run_id: str, asked: Asked, launcher: Launcher, publish: Publish, *, parent: str | None = None,
    keep: Keep | None = None, continue_from: str | None = None,
) -> Measuring:  # fmt: skip
    """The measuring of a request by a launcher that is ready, on a machine that is nobody else's: a function of a
    person's own is executed at sizes at which that was not done yet, in the time of the run, and a sweep takes over
    what it goes on with."""
    clock = Clock(bound_s(asked, why=keep is not None))
    requests = [asked.comparison(at) for at in asked.points()] if isinstance(asked, SweepRequest) else [asked]
    with clock.running():
        for request in requests:
            if isinstance(request, Request):
                deriving.look(launcher, request, clock)
    earlier = taken_over(store, continue_from, asked, launcher.start_method, launcher.state().details)
    return measuring(
        run_id, asked, launcher, publish, parent=parent, keep=keep, earlier=earlier, most_s=max(1.0, clock.left_s)
    )


def explaining(
    snapshot: Snapshot, launcher: Launcher, publish: Publish, keep: Keep, tensorflow: Mapping[str, Any] | None
) -> explanation.Explanation:
    """The explanation of a run that has ended. ``tensorflow``: what the host says of its devices, once it does."""
    run = snapshot.run
    if refusal := explanation.refusal(run, tensorflow, imported=snapshot.imported):
        raise RequestError(refusal)
    _know_function(run)
    ends_s = min(hosting.limits().run_s or math.inf, deadline.of_explanation(again(run.request)))
    return explanation.Explanation(run, launcher, publish, keep, settings=settings_of(ends_s))


def settings_of(ends_s: float) -> Settings:
    return replace(SETTINGS, most_bytes=hosting.limits().memory_bytes, bound_s=ends_s)


def asked_of(run: Run) -> Asked:
    """The request of a run that was asked for here."""
    _know_function(run)
    if run.kind == "claims":
        return still_tried(run)
    return of_run(run) if run.kind == "sweep" else again(run.request)


def _know_function(run: Run) -> None:
    """Make a workload of the function of a person's own that a run was asked for, which was given here: what comes from
    elsewhere is never queued."""
    if run.request.own is not msgspec.UNSET:
        if places.hosted():
            raise RequestError("no code of a person's own is executed on a hosted server")
        functions.add(run.request.own)


def to_continue(store: Store, run_id: str) -> Run:
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
    return sweep.taken_over(to_continue(store, run_id), asked, here)


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


# --- measuring while it is recorded ----------------------------------------------------------------------------------


class Recording:
    """Measures one piece of work, and writes what that publishes by `take`."""

    def __init__(self, store: Store, run_id: str, explanation_id: str | None = None, *, is_new: bool = False) -> None:
        """``explanation_id``: of the work that explains a run which has ended, and is written as its reasons arrive;
        ``is_new``: the run is not in the store yet."""
        self._store, self._run_id, self._id = store, run_id, explanation_id or run_id
        self._explains, self._is_new = explanation_id is not None, is_new
        self._view: View | None = None
        self._measuring: Measuring | None = None
        self._cancelled = False
        self._ended = threading.Event()

    def take(self, view: View) -> None:
        """Take how it stands now. Waits for nothing."""
        self._view = view

    def cancel(self) -> None:
        """End what is measured, or will be, with what there is."""
        self._cancelled = True
        if self._measuring is not None:
            self._measuring.cancel()

    def measure(self, measuring: Measuring) -> Run:
        """Measure, write meanwhile and hear orders; a run that was deleted is not measured any further."""
        self._measuring = measuring
        if self._cancelled:
            measuring.cancel()
        thread = threading.Thread(target=self._work, args=(measuring,), name="mapbench-recording", daemon=True)
        thread.start()
        try:
            return measuring.run()
        except Exception as error:
            run = measuring.view().run
            _log.exception("the run %s failed", run.id)
            return closed(run, "interrupted", without_folders(f"{FAULT}: {type(error).__name__}: {error}"))
        finally:
            self._ended.set()
            thread.join()

    def keep(self, slug: str, why: Why, artifacts: dict[str, bytes]) -> bool:
        """Keep the reasons of a strategy with their artifacts; False where the run was deleted. Without a disk the
        reasons alone are kept, in the run."""
        with contextlib.suppress(StoreError):
            return self._store.explain(self._run_id, slug, why, artifacts)
        return True

    def end(self, run: Run, ends: Callable[[], bool]) -> str:
        """Write a run that has ended, again and again until it is written; the sentence why it is not, where that
        failed several times while this process ``ends``, or the run was deleted meanwhile."""
        pause_s, tries = _FIRST_PAUSE_S, 0
        while True:
            try:
                self._begin(run)
                return "" if self._store.save(run, ended=True) else "it was deleted meanwhile"
            except Exception as error:
                problem = without_folders(str(error))
            _log.warning("the run %s is not written yet: %s", run.id, problem)
            tries = tries + 1 if ends() else 0
            if tries >= _LAST_TRIES:
                return problem
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    # --- the thread that writes --------------------------------------------------------------------------------------

    def _work(self, measuring: Measuring) -> None:
        stood_s, written = 0.0, -1  # when that was written last, and which version
        while True:
            try:
                view, now_s = self._view or measuring.view(), time.monotonic()
                self._begin(view.run)
                order = self._store.queue.ordered(self._id)
                if order in (None, "cancel"):
                    measuring.cancel()
                elif order == "stop":
                    measuring.stop()
                if now_s - stood_s >= _STAND_S:
                    stood_s = now_s
                    standing = Standing(**{name: getattr(view, name) for name in Standing.__struct_fields__})
                    self._store.queue.stand(self._id, standing, now_s - (view.started_s or now_s))
                    if not self._explains and view.version != written:
                        self._store.save(view.run)
                        written = view.version
            except StoreError as error:  # it is tried again
                _log.info("the run %s is not written yet: %s", self._id, error)
            except Exception:  # a fault of ours costs no measurement
                _log.exception("the run %s could not be written", self._id)
            if self._ended.wait(LOOK_S):
                return

    def _begin(self, run: Run) -> None:
        """Have the run in the store. Raises `StoreError`."""
        if self._is_new:
            if self._store.queue.ordered(run.id) is None:  # else it was written when a connection was lost
                self._store.begin(run)
            self._is_new = False
