"""The runner: one per server process. A queue, first come first served, one job at a time, whoever asks.

Measurements never overlap: in this process because one thread runs them, on this machine because that thread holds a
file lock while it does. The runner lives as long as the process: it is a module's, not a page's or a cache's.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from measure.beginning import missing, taken_over
from measure.claims.ending import CLOSE
from measure.claims.tries import Tries
from measure.engine import explanation
from measure.engine.bench import Settings, clear_leftovers
from measure.engine.comparison import Comparison
from measure.engine.deriving import Deriving
from measure.engine.explanation import Explanation
from measure.engine.launcher import HOST_START_S, HostState, Launcher
from measure.engine.machine_lock import machine_lock
from measure.engine.privacy import without_folders
from measure.engine.record import View
from measure.engine.start_method import launcher
from measure.jobs import Job, Jobs, Measuring, Snapshot
from measure.judge.verdict import verdict
from measure.machine import environment
from measure.model import fit, place
from measure.model.place import utc_now
from measure.model.request import Request, RequestError
from measure.model.run import Point, Run
from measure.sweep.needs import forecast_sweep
from measure.sweep.request import SweepRequest
from measure.sweep.sweep import Sweep
from strategies.script import ScriptError
from workloads.discovery import DiscoveryError
from workloads.functions import Given

if TYPE_CHECKING:
    from measure.store.store import Store

# How often is looked whether another process still holds the machine's lock.
_LOCK_POLL_S = 0.2


class Runner:
    """Takes requests, runs them one after the other, and tells how they stand. Safe to use from any thread."""

    def __init__(
        self,
        *,
        store_: "Store | None" = None,
        launcher_: Launcher | None = None,
        settings: Settings | None = None,
        name: str = "the app",
        host_delay_s: float = 0.0,
        patient: bool = True,
    ) -> None:
        """``name``: who measures, as others on this machine are told; ``host_delay_s``: how long the start of the host
        may wait for somebody to need it; ``patient``: a function of a person's own is looked at when nobody measures
        any more, where it is refused otherwise."""
        self._store = store_
        self._store_lock = threading.Lock()
        clear_leftovers()
        self._launcher = launcher_ or launcher(place.home() / "host.log", host_delay_s)
        self._settings = settings or Settings()
        self._name = name
        self._deriving = Deriving(self._launcher, name, patient=patient)
        self._jobs = Jobs(lambda: self.store)
        self._thread = threading.Thread(target=self._work, name="mapbench-runner", daemon=True)
        self._thread.start()

    @property
    def store(self) -> "Store":
        """The store of runs, opened on first use. Raises `StoreError` if the setting that places it makes no sense."""
        with self._store_lock:
            if self._store is None:
                # Only now, since loading SQLAlchemy takes a moment: a first visitor's page does without.
                from measure.store.store import Store

                self._store = Store()
            return self._store

    def host(self) -> HostState:
        return self._launcher.state()

    def close(self) -> None:
        """Cancel everything and end the host."""
        for run_id in reversed(self.queue()):
            self.cancel(run_id)
        self._jobs.close()
        self._thread.join(10)
        self._launcher.close()
        if self._store is not None:
            self._store.close()

    # --- what can be asked for ---------------------------------------------------------------------------------------

    def submit(self, request: Request, parent: str | None = None, owner: str = "", *, why: bool = False) -> str:
        """Queue a comparison; its id. ``parent``: the run that it repeats; ``owner``: whose it is, by whom it may be
        deleted; ``why``: its strategies are explained in the end. Raises `RequestError` where it cannot fit, names a
        device that is not there, or where the sources of its workload and a mapper do not make a script, or one of them
        cannot be asked."""
        self._deriving.complete(request)
        if refusal := missing(request, self.host().devices) or fit.check(request, environment.available_memory()):
            raise RequestError(refusal)
        return self._queued(
            lambda run_id, publish: Comparison(
                run_id,
                request,
                self._launcher,
                publish,
                settings=self._settings,
                parent=parent,
                keep=partial(self._jobs.keep_artifacts, run_id) if why else None,
            ),
            owner,
        )

    def submit_sweep(
        self, request: SweepRequest, parent: str | None = None, owner: str = "", continue_from: str | None = None
    ) -> str:
        """Queue a sweep; its id. ``continue_from``: the sweep whose measurements are taken over, and which becomes the
        parent. Raises `RequestError` as `submit` does, and where no point can fit or that sweep cannot be
        continued."""
        self._deriving.complete(*map(request.comparison, request.points()))
        taken: list[Point] = []
        if continue_from is not None:
            taken = taken_over(request, continue_from, self.snapshot(continue_from), self._launcher)
            parent = continue_from
        skipped = forecast_sweep(request, environment.available_memory()).skipped
        if len(skipped) == len(request.points()):
            raise RequestError(skipped[0][1])
        if refusal := missing(request.base, self.host().devices):
            raise RequestError(refusal)
        return self._queued(
            lambda run_id, publish: Sweep(
                run_id,
                request,
                self._launcher,
                publish,
                settings=self._settings,
                parent=parent,
                taken=taken,
            ),
            owner,
        )

    def submit_claims(self, ids: Sequence[str] = (), parent: str | None = None, owner: str = "") -> str:
        """Queue what claims need, of all claims where none is named; its id. Raises `RequestError` where one is not
        known."""
        return self._queued(
            lambda run_id, publish: Tries(run_id, ids, self._launcher, publish, settings=self._settings, parent=parent),
            owner,
        )

    def explain(self, run_id: str) -> str:
        """Queue the explanation of a run that has ended; the id of the job, which is not the run's. Raises
        `RequestError` where it cannot be explained here, and what `snapshot` does."""
        snapshot = self.snapshot(run_id)
        if snapshot is None or snapshot.state != "finished":
            raise RequestError("a run can be explained when it has ended")
        going_on = self.explanation(run_id)
        if going_on is not None and going_on[1].state != "finished":
            return going_on[0]
        job_id = place.new_id()
        try:
            if refusal := explanation.refusal(snapshot.run, self.host().details, imported=snapshot.imported):
                raise RequestError(refusal)
            take, keep = partial(self._jobs.take, job_id), partial(self._jobs.keep_reasons, run_id)
            explaining = Explanation(snapshot.run, self._launcher, take, keep, settings=self._settings)
        except (ScriptError, DiscoveryError) as error:
            raise RequestError(str(error)) from error
        self._jobs.add(job_id, Job(explaining, explaining.view(), explains=run_id, saved=True))
        return job_id

    def give(self, given: Given, size: Mapping[str, int] | None = None, seed: int = 0) -> str:
        """Execute a function of a person's own in a process that is thrown away, and make it a workload; its slug.
        Sizes that are left out have their defaults. Raises `RequestError` with a sentence where it cannot be
        measured."""
        return self._deriving.give(given, size or {}, seed)

    def _queued(self, make: Callable[[str, Callable[[View], None]], Measuring], owner: str) -> str:
        """Queue what is made for an id, which is returned."""
        run_id = place.new_id()
        try:
            measuring = make(run_id, partial(self._jobs.take, run_id))
        except (ScriptError, DiscoveryError) as error:
            raise RequestError(str(error)) from error
        job = Job(measuring, measuring.view(), owner)
        self._jobs.save(job, live=True)
        self._jobs.add(run_id, job)
        return run_id

    # --- how it stands -----------------------------------------------------------------------------------------------

    def queue(self) -> tuple[str, ...]:
        """Ids of the runs that are not finished, the running one first."""
        return self._jobs.queue()

    def snapshot(self, run_id: str) -> Snapshot | None:
        """Return the state of a run, live or as it is stored; None if its id is not known. Raises ValueError if the
        stored run is damaged, `StoreError` if the store cannot be read."""
        job = self._jobs.get(run_id)
        if (snapshot := self._jobs.snapshot(run_id)) is not None:
            return snapshot
        # Another server may have deleted or explained what this one has measured.
        kept = self.store.look(run_id) if place.is_id(run_id) else None
        if kept is None:
            self._jobs.forget(run_id)
            return None
        return Snapshot(
            run=kept.run,
            state="running" if kept.live else "finished",
            message="another Mapbench on this machine is measuring" if kept.live else "",
            version=kept.version,
            fault=job is not None and job.fault,
            here=job is not None,
            imported=kept.imported,
        )

    def explanation(self, run_id: str) -> tuple[str, Snapshot] | None:
        """The last explanation of a run that this process knows of, as its job's id and how it stands."""
        job_id = self._jobs.explaining(run_id)
        snapshot = None if job_id is None else self._jobs.snapshot(job_id)
        return None if job_id is None or snapshot is None else (job_id, snapshot)

    def finished(self) -> list[Run]:
        """The runs that this process has measured lately, the newest last."""
        return self._jobs.finished()

    def wait(self, run_id: str, timeout_s: float | None = None) -> bool:
        """Wait until the run has finished; False if that takes longer than ``timeout_s``."""
        job = self._jobs.get(run_id)
        return job is None or job.finished.wait(timeout_s)

    def cancel(self, run_id: str) -> None:
        """End a run, or take it out of the queue; what was measured is kept. Unknown ids are ignored."""
        self._jobs.cancel(run_id, _without_measuring)

    def stop(self, run_id: str) -> None:
        """Have a run that is measured end with what is known by now, verdict, limit and peaks included. Others, and
        unknown ids, are ignored."""
        self._jobs.stop(run_id)

    def delete(self, ids: Iterable[str], owner: str | None = None) -> list[str]:
        """Delete runs that have ended, of all owners or of one; the ids of those that are gone."""
        gone = self.store.delete(ids, owner)
        for run_id in gone:
            self._jobs.forget(run_id)
        return gone

    # --- the thread that measures ------------------------------------------------------------------------------------

    def _work(self) -> None:
        # One thread for good, so that the kernel ends subjects started from it only when the whole process ends.
        while (following := self._jobs.next()) is not None:
            run_id, job = following
            try:
                self._run(job)
            except Exception as error:  # a fault of ours must not end the only thread that measures
                logging.getLogger("mapbench").exception("the run %s failed", run_id)
                job.fault = True
                reason = without_folders(f"a fault in Mapbench ended the run: {type(error).__name__}: {error}")
                run = replace(job.view.run, status="interrupted", finished=utc_now(), stop_reason=reason)
                if run.kind != "compare":
                    # The analysis may be what is at fault.
                    with contextlib.suppress(Exception):
                        run = CLOSE[run.kind](run, "interrupted", reason, utc_now())
                self._jobs.finish(job, run)

    def _run(self, job: Job) -> None:
        """Run a job as soon as nobody else measures on this machine, and the host is ready."""

        def wait(who: str) -> None:
            job.state = "locked"
            job.message = f"waiting for {who}, which is measuring on this machine"
            self._jobs.pause(_LOCK_POLL_S)

        measuring = job.measuring
        with machine_lock(self._name, lambda: measuring.cancelled, wait) as free:
            if free:
                job.message = "TensorFlow is being loaded"
                ready = self._launcher.wait_ready(HOST_START_S, lambda: measuring.cancelled)
                lacking = missing(measuring.request, self.host().devices)
                if ready and not lacking and not measuring.cancelled:
                    job.state, job.message = "running", ""
                    self._jobs.finish(job, measuring.run())
                    return
                if not measuring.cancelled:
                    reason = lacking or f"the measuring process is not available: {self._launcher.state().message}"
                    run = replace(_without_measuring(job.view.run), status="interrupted", stop_reason=reason)
                    self._jobs.finish(job, run)
                    return
        self._jobs.finish(job, _without_measuring(job.view.run))


def _without_measuring(run: Run) -> Run:
    """The run as it ends where it was cancelled before it began."""
    if run.kind != "compare":
        return CLOSE[run.kind](run, "cancelled", "cancelled before it began", utc_now())
    measurements = [replace(item, outcome="cancelled") for item in run.measurements]
    run = replace(
        run, status="cancelled", stop_reason="cancelled before it began", finished=utc_now(), measurements=measurements
    )
    return replace(run, verdict=verdict(run))


# The first page is drawn before TensorFlow is loaded: on two cores both at once would keep its visitor waiting.
_SHARED_HOST_DELAY_S = 1.5

_shared: Runner | None = None
_shared_lock = threading.Lock()


def shared() -> Runner:
    """The runner of this process; made, with its host, at the first call."""
    global _shared
    with _shared_lock:
        if _shared is None:
            # A visitor's page does not wait for minutes: it says who measures.
            _shared = Runner(host_delay_s=_SHARED_HOST_DELAY_S, patient=False)
        return _shared
