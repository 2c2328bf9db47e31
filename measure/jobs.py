"""The jobs of a runner: which there are, in which order they are done, how each stands, and what is kept of it."""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec.structs import replace

from measure.engine.privacy import without_folders
from measure.engine.record import View
from measure.judge import advice
from measure.model.place import StoreError
from measure.model.request import Request
from measure.model.run import Run, Stage, Warning
from measure.model.why import Why

if TYPE_CHECKING:
    from measure.store.store import Store

# Outcomes are written as they arrive, samples as well, but not more often than this.
_SAVE_EVERY_S = 1.0
# Finished runs that are kept in memory too, for pages that are about to look.
_FINISHED_KEPT = 20
_NOT_SAVED = advice.not_saved("").code

State = Literal["queued", "locked", "starting", "running", "finished"]


@dataclass(frozen=True)
class Snapshot:
    """A run as a page sees it. ``stages``: slug → where the strategy stands. ``version`` grows with each new result.

    ``state``: queued (``position`` jobs are before it), locked (another process measures on this machine), starting
    (TensorFlow is being loaded), running, finished. ``round_number``: of the round in which is sampled now.
    ``rough_s``: seconds of a call of each strategy, as its memory subject has it.
    """

    run: Run
    state: State
    position: int = 0
    message: str = ""
    stages: Mapping[str, Stage] = field(default_factory=dict)
    elapsed_s: float | None = None
    remaining_s: float | None = None
    version: int = 0
    fault: bool = False  # a fault of Mapbench itself ended the run
    here: bool = True  # this process measures it, or has
    imported: bool = False
    round_number: int | None = None
    rough_s: Mapping[str, float] = field(default_factory=dict)


class Measuring(Protocol):
    """A `Comparison`, an `Explanation`, a `Sweep` or `Tries`."""

    request: Request

    @property
    def cancelled(self) -> bool: ...

    def view(self) -> View: ...

    def warn(self, warning: Warning) -> None: ...

    def cancel(self) -> None: ...

    def stop(self) -> None: ...

    def run(self) -> Run: ...


@dataclass
class Job:
    """A run that was asked for. ``message`` goes before what its view says; ``saved``: the store has what it knows."""

    measuring: Measuring
    view: View
    owner: str = ""
    state: State = "queued"
    message: str = ""
    saved_at: float = 0.0
    fault: bool = False
    saved: bool = False
    finished: threading.Event = field(default_factory=threading.Event)
    explains: str | None = None  # the run that an explanation belongs to, which is in the store already


class Jobs:
    """Jobs by their ids, and the queue of those that are not finished. Safe to use from any thread."""

    def __init__(self, store: Callable[[], "Store"]) -> None:
        """``store``: where runs are kept; asked for when there is something to write."""
        self._store = store
        self._changed = threading.Condition()
        self._jobs: dict[str, Job] = {}
        self._queue: list[str] = []
        self._closed = False

    # --- the queue ---------------------------------------------------------------------------------------------------

    def add(self, job_id: str, job: Job) -> None:
        with self._changed:
            self._jobs[job_id] = job
            self._queue.append(job_id)
            self._changed.notify_all()

    def next(self) -> tuple[str, Job] | None:
        """Wait for the first job of the queue, with its id; None when there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            if self._closed:
                return None
            job = self._jobs[self._queue[0]]
            job.state = "starting"
            return self._queue[0], job

    def pause(self, timeout_s: float) -> None:
        """Wait until something changes, at most so long."""
        with self._changed:
            self._changed.wait(timeout_s)

    def cancel(self, job_id: str, without_measuring: Callable[[Run], Run]) -> None:
        """End a job, or take it out of the queue, where its run becomes what ``without_measuring`` makes of it."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is None or job.state == "finished":
                return
            job.measuring.cancel()
            if job.state == "queued":
                self.finish(job, without_measuring(job.view.run))
            self._changed.notify_all()

    def stop(self, job_id: str) -> None:
        """Have a job that runs end with what it knows."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is not None and job.state == "running":
                job.measuring.stop()

    def close(self) -> None:
        """Give out no more jobs."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # --- how they stand ----------------------------------------------------------------------------------------------

    def queue(self) -> tuple[str, ...]:
        """Ids of the jobs that are not finished, the running one first."""
        with self._changed:
            return tuple(self._queue)

    def get(self, job_id: str) -> Job | None:
        with self._changed:
            return self._jobs.get(job_id)

    def finished(self) -> list[Run]:
        """The runs that have finished here lately, the newest last."""
        with self._changed:
            return [job.view.run for job in self._jobs.values() if job.state == "finished"]

    def forget(self, job_id: str) -> None:
        """Drop a job whose run is gone from the store, or of which the store knows more."""
        with self._changed:
            self._jobs.pop(job_id, None)

    def explaining(self, run_id: str) -> str | None:
        """The id of the last job that explains a run."""
        with self._changed:
            return next((job_id for job_id, job in reversed(self._jobs.items()) if job.explains == run_id), None)

    def snapshot(self, job_id: str) -> Snapshot | None:
        """Return the state of a job; None if it is unknown, or the store has all there is to know of it."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is None or (job.explains is None and job.saved and job.state == "finished"):
                return None
            view = job.view
            elapsed_s = None if view.started_s is None else time.monotonic() - view.started_s
            running = job.state == "running" and elapsed_s is not None
            return Snapshot(
                run=view.run,
                state=job.state,
                position=self._queue.index(job_id) if job_id in self._queue else 0,
                message=job.message or view.message,
                stages=view.stages,
                elapsed_s=elapsed_s if running else None,
                remaining_s=max(0.0, view.forecast_s - elapsed_s) if running and elapsed_s is not None else None,
                version=view.version,
                fault=job.fault,
                round_number=None if job.message else view.round_number,
                rough_s=view.rough_s,
            )

    # --- what is kept ------------------------------------------------------------------------------------------------

    def take(self, job_id: str, view: View) -> None:
        """Take what a job publishes, and write it when there is a new result."""
        with self._changed:
            job = self._jobs[job_id]
            changed = view.version != job.view.version
            settled = changed and _outcomes(view.run) != _outcomes(job.view.run)
            job.view = view
        now = time.monotonic()
        if settled or (changed and now - job.saved_at >= _SAVE_EVERY_S):
            job.saved_at = now
            self.save(job, live=True)

    def save(self, job: Job, *, live: bool) -> None:
        """Write a job's run as it is; a disk that is full is said, and measuring goes on."""
        if job.explains is not None:  # its run is written as the reasons arrive
            return
        try:
            self._store().save(job.view.run, owner=job.owner, live=live)
            job.saved = True
        except StoreError as error:
            job.saved = False
            warning = advice.not_saved(without_folders(str(error)))
            job.measuring.warn(warning)
            with self._changed:
                run = job.view.run
                warnings = [*(known for known in run.warnings if known.code != warning.code), warning]
                job.view = dataclasses.replace(job.view, run=replace(run, warnings=warnings))

    def finish(self, job: Job, run: Run) -> None:
        """Write the finished run, and take the job out of the queue."""
        # A disk that was full for a while no longer matters where the finished run can be written.
        run = replace(run, warnings=[warning for warning in run.warnings if warning.code != _NOT_SAVED])
        job.view = View(run, {}, "", job.view.version + 1, job.view.started_s)
        self.save(job, live=False)
        with self._changed:
            job.state = "finished"
            job.message = ""
            self._queue = [key for key in self._queue if self._jobs.get(key) is not job]
            # Finished runs are in the store; those that could not be written live on here.
            stored = [key for key, known in self._jobs.items() if known.state == "finished" and known.saved]
            for key in stored[:-_FINISHED_KEPT]:
                del self._jobs[key]
        job.finished.set()

    def keep_reasons(self, run_id: str, slug: str, why: Why, artifacts: dict[str, bytes]) -> bool:
        """Write the reasons of a strategy into a run that has ended; False where that is gone."""
        kept = self._store().explain(run_id, slug, why, artifacts)
        with self._changed:
            job = self._jobs.get(run_id)
            if job is not None and job.saved:
                del self._jobs[run_id]  # from now on the store knows more
        return kept

    def keep_artifacts(self, run_id: str, slug: str, why: Why, artifacts: dict[str, bytes]) -> bool:
        """Write them beside a run that goes on; without a disk its figures are kept where the run is."""
        with contextlib.suppress(StoreError):
            self._store().explain(run_id, slug, why, artifacts)
        return True


def _outcomes(run: Run) -> list[tuple[str, bool]]:
    """Return what is known of each strategy beside its samples, and what claims are judged by: when that changes,
    something was settled."""
    measured = [*run.measurements, *(item for point in run.points for item in point.measurements)]
    return [
        *((item.outcome, item.memory is not None) for item in measured),
        *((point.status, True) for point in run.points),
        *((item.need, True) for item in run.evidence or ()),
    ]
