"""The runner: one per server process. A queue, first come first served, one job at a time, whoever asks.

Measurements never overlap: in this process because one thread runs them, on this machine because that thread holds a
file lock while it does. The runner lives as long as the process: it is a module's, not a page's or a cache's.
"""

import contextlib
import dataclasses
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import filelock
import msgspec
from msgspec.structs import replace

from measure.engine import explanation as why_job
from measure.engine.bench import Settings, clear_leftovers
from measure.engine.comparison import Comparison
from measure.engine.launcher import HostState, Launcher
from measure.engine.privacy import without_folders
from measure.engine.record import View
from measure.engine.start_method import launcher
from measure.judge import advice
from measure.judge.verdict import verdict
from measure.machine import environment
from measure.model import fit, place
from measure.model.place import StoreError, utc_now
from measure.model.request import Request, RequestError
from measure.model.run import Point, Run, Warning
from measure.sweep import analysis as sweep_analysis
from measure.sweep import continuing
from measure.sweep.forecast import forecast_sweep
from measure.sweep.request import SweepRequest
from measure.sweep.sweep import Sweep
from strategies.script import ScriptError
from workloads.discovery import DiscoveryError

if TYPE_CHECKING:
    from measure.store.store import Store

# Outcomes are written as they arrive, samples as well, but not more often than this.
_SAVE_EVERY_S = 1.0
_HOST_START_S = 120.0
# Finished runs that are kept in memory too, for pages that are about to look.
_FINISHED_KEPT = 20
_NOT_SAVED = advice.not_saved("").code


@dataclass(frozen=True)
class Snapshot:
    """A run as a page sees it. ``stages``: slug → where the strategy stands. ``version`` grows with each new result.

    ``state``: queued (``position`` jobs are before it), locked (another process measures on this machine), starting
    (TensorFlow is being loaded), running, finished.
    """

    run: Run
    state: Literal["queued", "locked", "starting", "running", "finished"]
    position: int = 0
    message: str = ""
    stages: Mapping[str, str] = field(default_factory=dict)
    elapsed_s: float | None = None
    remaining_s: float | None = None
    version: int = 0
    fault: bool = False  # whether a fault of Mapbench itself ended the run
    here: bool = True  # whether this process measures it, or has
    imported: bool = False


class _Measuring(Protocol):
    """A `Comparison` or a `Sweep`."""

    request: Request

    @property
    def cancelled(self) -> bool: ...

    def view(self) -> View: ...

    def warn(self, warning: Warning) -> None: ...

    def cancel(self) -> None: ...

    def run(self) -> Run: ...


@dataclass
class _Job:
    measuring: _Measuring
    view: View
    owner: str
    state: Literal["queued", "locked", "starting", "running", "finished"] = "queued"
    message: str = ""
    saved_at: float = 0.0
    fault: bool = False
    saved: bool = False
    finished: threading.Event = field(default_factory=threading.Event)
    explains: str | None = None  # the run that an explanation belongs to, which is in the store already


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
    ) -> None:
        self._store = store_
        clear_leftovers()
        self._launcher = launcher_ or launcher(place.home() / "host.log", host_delay_s)
        self._settings = settings or Settings()
        self._name = name
        self._lock = threading.Condition()
        self._queue: list[str] = []
        self._jobs: dict[str, _Job] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="mapbench-runner", daemon=True)
        self._thread.start()

    # --- for pages and the command line ------------------------------------------------------------------------------

    @property
    def store(self) -> "Store":
        """Where the runs are kept. Raises `StoreError` where what says where makes no sense."""
        with self._lock:
            if self._store is None:
                # Only now, since loading SQLAlchemy takes a moment: a first visitor's page does without.
                from measure.store.store import Store

                self._store = Store()
            return self._store

    def submit(self, request: Request, parent: str | None = None, owner: str = "", *, why: bool = False) -> str:
        """Queue a comparison; its id. ``parent``: the run that it repeats; ``owner``: whose it is, by whom it may be
        deleted; ``why``: whether the strategies are explained in the end. Raises `RequestError` where it cannot fit,
        names a device that is not there, or where the sources of its workload and a mapper do not make a script, or
        one of them cannot be asked."""
        refusal = self._missing(request) or fit.check(request, environment.available_memory())
        if refusal:
            raise RequestError(refusal)
        return self._queued(
            lambda run_id: Comparison(
                run_id,
                request,
                self._launcher,
                lambda view: self._take(run_id, view),
                settings=self._settings,
                parent=parent,
                keep=partial(self._keep_artifacts, run_id) if why else None,
            ),
            owner,
        )

    def submit_sweep(
        self, request: SweepRequest, parent: str | None = None, owner: str = "", continue_from: str | None = None
    ) -> str:
        """Queue a sweep; its id. ``continue_from``: the sweep whose measurements are taken over, and which becomes the
        parent. Raises `RequestError` as `submit` does, and where no point can fit or that sweep cannot be
        continued."""
        taken: list[Point] = []
        if continue_from is not None:
            taken, parent = self._taken_over(request, continue_from), continue_from
        skipped = forecast_sweep(request, environment.available_memory()).skipped
        if len(skipped) == len(request.points()):
            raise RequestError(skipped[0][1])
        if refusal := self._missing(request.base):
            raise RequestError(refusal)
        return self._queued(
            lambda run_id: Sweep(
                run_id,
                request,
                self._launcher,
                lambda view: self._take(run_id, view),
                settings=self._settings,
                parent=parent,
                taken=taken,
            ),
            owner,
        )

    def explain(self, run_id: str) -> str:
        """Queue the explanation of a run that has ended; the id of the job, which is not the run's. Raises
        `RequestError` where it cannot be explained here, and what `snapshot` does."""
        snapshot = self.snapshot(run_id)
        if snapshot is None or snapshot.state != "finished":
            raise RequestError("a run can be explained when it has ended")
        going_on = self._explanation(run_id)
        if going_on is not None and going_on[1].state != "finished":
            return going_on[0]
        job_id = place.new_id()
        try:
            refusal = why_job.refusal(snapshot.run, self.host().details, imported=snapshot.imported)
            if refusal:
                raise RequestError(refusal)
            explanation = why_job.Explanation(
                snapshot.run,
                self._launcher,
                lambda view: self._take(job_id, view),
                partial(self._keep, run_id),
                settings=self._settings,
            )
        except (ScriptError, DiscoveryError) as error:
            raise RequestError(str(error)) from error
        self._enqueue(job_id, _Job(explanation, explanation.view(), "", explains=run_id, saved=True))
        return job_id

    def explanation(self, run_id: str) -> tuple[str, Snapshot] | None:
        """The last explanation of a run that this process knows of, as its job's id and how it stands."""
        found = self._explanation(run_id)
        if found is None:
            return None
        with self._lock:
            return found[0], self._snapshot(*found)

    def snapshot(self, run_id: str) -> Snapshot | None:
        """How a run stands: live, or as it is stored; None where the id is not known. ValueError where what is stored
        is damaged, `StoreError` where the store cannot be read."""
        with self._lock:
            job = self._jobs.get(run_id)
            if job is not None and (job.explains is not None or not job.saved or job.state != "finished"):
                return self._snapshot(run_id, job)
        # Another server may have deleted or explained what this one has measured.
        kept = self.store.look(run_id) if place.is_id(run_id) else None
        if kept is None:
            with self._lock:
                self._jobs.pop(run_id, None)
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

    def cancel(self, run_id: str) -> None:
        """End a run, or take it out of the queue; what was measured is kept. Unknown ids are ignored."""
        with self._lock:
            job = self._jobs.get(run_id)
            if job is None or job.state == "finished":
                return
            job.measuring.cancel()
            if job.state == "queued":
                self._finish(job, _without_measuring(job.view.run))
            self._lock.notify_all()

    def delete(self, ids: Iterable[str], owner: str | None = None) -> list[str]:
        """Delete runs that have ended, of all owners or of one; the ids of those that are gone."""
        gone = self.store.delete(ids, owner)
        with self._lock:
            for run_id in gone:
                self._jobs.pop(run_id, None)
        return gone

    def wait(self, run_id: str, timeout_s: float | None = None) -> bool:
        """Whether the run has finished within ``timeout_s``."""
        with self._lock:
            job = self._jobs.get(run_id)
        return job is None or job.finished.wait(timeout_s)

    def queue(self) -> tuple[str, ...]:
        """Ids of the runs that are not finished, the running one first."""
        with self._lock:
            return tuple(self._queue)

    def host(self) -> HostState:
        return self._launcher.state()

    def close(self) -> None:
        """Cancel everything and end the host."""
        for run_id in reversed(self.queue()):
            self.cancel(run_id)
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        self._thread.join(10)
        self._launcher.close()
        if self._store is not None:
            self._store.close()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _queued(self, make: Callable[[str], _Measuring], owner: str) -> str:
        """The id of what is made for it, in the queue."""
        run_id = place.new_id()
        try:
            measuring = make(run_id)
        except (ScriptError, DiscoveryError) as error:
            raise RequestError(str(error)) from error
        job = _Job(measuring, measuring.view(), owner)
        self._save(job, live=True)
        self._enqueue(run_id, job)
        return run_id

    def _taken_over(self, request: SweepRequest, run_id: str) -> list[Point]:
        """What this request goes on with, of a sweep that has ended."""
        snapshot = self.snapshot(run_id)
        if snapshot is None:
            raise RequestError(f"run {run_id} is not known here: it was measured on another machine, or deleted")
        if snapshot.state != "finished":
            raise RequestError(f"run {run_id} is not finished: cancel it before it is continued")
        if refusal := continuing.refusal(snapshot.run, imported=snapshot.imported):
            raise RequestError(refusal)
        here = environment.collect(
            start_method=self._launcher.start_method,
            threads=request.base.threads,
            tensorflow=self._launcher.state().details or {},
        )
        return continuing.taken_over(snapshot.run, request, here)

    def _enqueue(self, job_id: str, job: _Job) -> None:
        with self._lock:
            self._jobs[job_id] = job
            self._queue.append(job_id)
            self._lock.notify_all()

    def _explanation(self, run_id: str) -> tuple[str, _Job] | None:
        with self._lock:
            found = [(job_id, job) for job_id, job in self._jobs.items() if job.explains == run_id]
        return found[-1] if found else None

    def _keep(self, run_id: str, slug: str, why: dict[str, Any], artifacts: dict[str, bytes]) -> bool:
        """Write the reasons of a strategy into a run that has ended; False where that is gone."""
        kept = self.store.explain(run_id, slug, why, artifacts)
        with self._lock:
            job = self._jobs.get(run_id)
            if job is not None and job.saved:
                del self._jobs[run_id]  # from now on the store knows more
        return kept

    def _keep_artifacts(self, run_id: str, slug: str, why: dict[str, Any], artifacts: dict[str, bytes]) -> bool:
        """The same for a run that goes on; without a disk its figures are kept where the run is."""
        with contextlib.suppress(StoreError):
            self.store.explain(run_id, slug, why, artifacts)
        return True

    def _missing(self, request: Request) -> str | None:
        """The sentence that says that the request's device is not there, as far as devices are known by now."""
        devices = self.host().devices
        if not devices or request.device in devices:
            return None
        return f"device {request.device!r} is not on this machine: {', '.join(devices)} can be used"

    def _snapshot(self, run_id: str, job: _Job) -> Snapshot:
        view = job.view
        elapsed_s = None if view.started_s is None else time.monotonic() - view.started_s
        running = job.state == "running" and elapsed_s is not None
        return Snapshot(
            run=view.run,
            state=job.state,
            position=self._queue.index(run_id) if run_id in self._queue else 0,
            message=job.message or view.message,
            stages=view.stages,
            elapsed_s=elapsed_s if running else None,
            remaining_s=max(0.0, view.forecast_s - elapsed_s) if running and elapsed_s is not None else None,
            version=view.version,
            fault=job.fault,
        )

    def _take(self, run_id: str, view: View) -> None:
        """A comparison publishes: keep what it says, and write it when there is a new result."""
        with self._lock:
            job = self._jobs[run_id]
            changed = view.version != job.view.version
            settled = changed and _known(view.run) != _known(job.view.run)
            job.view = view
        now = time.monotonic()
        if settled or (changed and now - job.saved_at >= _SAVE_EVERY_S):
            job.saved_at = now
            self._save(job, live=True)

    def _save(self, job: _Job, *, live: bool) -> None:
        """Write the run as it is; a disk that is full is said, and measuring goes on."""
        if job.explains is not None:  # its run is written as the reasons arrive
            return
        try:
            self.store.save(job.view.run, owner=job.owner, live=live)
            job.saved = True
        except StoreError as error:
            job.saved = False
            warning = advice.not_saved(without_folders(str(error)))
            job.measuring.warn(warning)
            with self._lock:
                run = job.view.run
                warnings = [*(each for each in run.warnings if each.code != warning.code), warning]
                job.view = dataclasses.replace(job.view, run=replace(run, warnings=warnings))

    def _finish(self, job: _Job, run: Run) -> None:
        # A disk that was full for a while no longer matters where the finished run can be written.
        run = replace(run, warnings=[each for each in run.warnings if each.code != _NOT_SAVED])
        job.view = View(run, {}, "", job.view.version + 1, job.view.started_s)
        self._save(job, live=False)
        with self._lock:
            job.state = "finished"
            job.message = ""
            self._queue = [key for key in self._queue if self._jobs.get(key) is not job]
            # Finished runs are in the store; those that could not be written live on here.
            stored = [key for key, each in self._jobs.items() if each.state == "finished" and each.saved]
            for key in stored[:-_FINISHED_KEPT]:
                del self._jobs[key]
        job.finished.set()

    def _work(self) -> None:
        # Here, so that the kernel ends subjects started from this thread only when the whole process ends.
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._queue or self._closed)
                if self._closed:
                    return
                run_id = self._queue[0]
                job = self._jobs[run_id]
                job.state = "starting"
            try:
                self._run(job)
            except Exception as error:  # a fault of ours must not end the only thread that measures
                logging.getLogger("mapbench").exception("the run %s failed", run_id)
                job.fault = True
                reason = without_folders(f"a fault in Mapbench ended the run: {type(error).__name__}: {error}")
                run = replace(job.view.run, status="interrupted", finished=utc_now(), stop_reason=reason)
                if run.kind == "sweep":
                    # The analysis may be what is at fault.
                    with contextlib.suppress(Exception):
                        run = sweep_analysis.close(run, "interrupted", reason, utc_now())
                self._finish(job, run)

    def _run(self, job: _Job) -> None:
        with self._machine(job) as free:
            if free:
                job.message = "TensorFlow is being loaded"
                ready = self._launcher.wait_ready(_HOST_START_S, lambda: job.measuring.cancelled)
                missing = self._missing(job.measuring.request)
                if ready and not missing and not job.measuring.cancelled:
                    job.state, job.message = "running", ""
                    self._finish(job, job.measuring.run())
                    return
                if not job.measuring.cancelled:
                    reason = missing or f"the measuring process is not available: {self._launcher.state().message}"
                    run = replace(_without_measuring(job.view.run), status="interrupted", stop_reason=reason)
                    self._finish(job, run)
                    return
        self._finish(job, _without_measuring(job.view.run))

    @contextlib.contextmanager
    def _machine(self, job: _Job) -> Any:
        """Hold the machine's lock; yields False where the job was cancelled while waiting for it."""
        path = lock_path()
        lock = filelock.FileLock(path, mode=0o666)
        holder = path.with_suffix(".holder")
        while not job.measuring.cancelled:
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                job.state = "locked"
                job.message = f"waiting for {_holder(holder)}, which is measuring on this machine"
                with self._lock:
                    self._lock.wait(0.2)
                continue
            try:
                with contextlib.suppress(OSError):
                    holder.write_bytes(msgspec.json.encode({"pid": os.getpid(), "name": self._name}))
                yield True
            finally:
                with contextlib.suppress(OSError):
                    holder.unlink()
                lock.release()
            return
        yield False


def _known(run: Run) -> list[tuple[str, bool]]:
    """What is known of each strategy beside its samples: when it changes, something was settled."""
    measured = [*run.measurements, *(item for point in run.points for item in point.measurements)]
    return [
        *((item.outcome, item.memory is not None) for item in measured),
        *((each.status, True) for each in run.points),
    ]


def lock_path() -> Path:
    """The file whose lock says that somebody measures on this machine; ``MAPBENCH_LOCK`` names another."""
    return Path(os.environ.get("MAPBENCH_LOCK") or Path(tempfile.gettempdir()) / "mapbench.lock")


def _holder(path: Path) -> str:
    """Who holds the lock, as words."""
    try:
        said = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        return f"{said['name']} (process {said['pid']})"
    except (OSError, KeyError, msgspec.DecodeError):
        return "another Mapbench"


def _without_measuring(run: Run) -> Run:
    if run.kind == "sweep":
        return sweep_analysis.close(run, "cancelled", "cancelled before it began", utc_now())
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
            _shared = Runner(host_delay_s=_SHARED_HOST_DELAY_S)
        return _shared
