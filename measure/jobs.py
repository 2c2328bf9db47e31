"""The jobs of a runner: which there are, in which order they are done, how each stands, and what is kept of it."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from measure.admission import Admission, Going
from measure.engine.record import View
from measure.hosting import Limits
from measure.job import Job, State, Writer
from measure.model.kept import weight
from measure.model.request import RequestError
from measure.model.run import Run, Stage
from measure.model.why import Why

if TYPE_CHECKING:
    from measure.store.store import Store

# From the end of a run to the start of the next one.
_BETWEEN_S = 2.0
# Outcomes are written as they arrive, samples as well, but not more often than this.
_SAVE_EVERY_S = 1.0
# Finished runs that are kept in memory too, for pages that are about to look: so many at most, of so many bytes.
_FINISHED_KEPT = 20
_FINISHED_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Snapshot:
    """A run as a page sees it. ``stages``: slug → where the strategy stands. ``version`` grows with each new result.

    ``state``: queued (``position`` jobs are before it, which take ``wait_s`` by forecast and no more than
    ``wait_most_s``), locked (another process measures on this machine), starting
    (TensorFlow is being loaded), running, finished. ``round_number``: of the round in which is sampled now.
    ``rough_s``: seconds of a call of each strategy, as its memory subject has it.
    """

    run: Run
    state: State
    position: int = 0
    wait_s: float = 0.0
    wait_most_s: float = math.inf
    message: str = ""
    stages: Mapping[str, Stage] = field(default_factory=dict)
    elapsed_s: float | None = None
    remaining_s: float | None = None
    version: int = 0
    fault: bool = False  # a fault of Mapbench itself ended the run
    saved: bool = True  # the store has it as it is here
    here: bool = True  # this process measures it, or has
    imported: bool = False
    round_number: int | None = None
    rough_s: Mapping[str, float] = field(default_factory=dict)
    owner: str = ""  # the visitor that started it; only that one may end, explain or delete it


class Jobs:
    """Jobs by their ids, and the queue of those that are not finished. Safe to use from any thread."""

    def __init__(self, store: Callable[[], "Store"], admission: Admission | None = None) -> None:
        """``store``: where runs are kept; asked for when there is something to write; ``admission``: its rules."""
        self._store, self._admission = store, admission or Admission(Limits())
        self._adding = threading.Lock()
        self._changed = threading.Condition()
        self._jobs: dict[str, Job] = {}
        self._queue: dict[str, Job] = {}
        self._closed = self._held = False
        self.writer = Writer(store, self._changed)

    # --- the queue ---------------------------------------------------------------------------------------------------

    def add(self, job_id: str, job: Job) -> None:
        """Write a job's run, and queue it. Raises `RequestError` where the visitor may have none now."""
        # One after the other, so that two who ask at once do not both get the last place.
        with self._adding:
            if refusal := self._admission.refusal(job.visitor, self._going(), job.view.forecast_s):
                raise RequestError(refusal)
            self.writer.save(job, live=True)
            with self._changed:
                self._jobs[job_id] = job
                self._queue[job_id] = job
                self._changed.notify_all()

    def _going(self) -> list[Going]:
        """The jobs that are not finished, in their order, and how long each still takes."""
        with self._changed:
            return [_going(job) for job in self._queue.values()]

    def next(self) -> tuple[str, Job] | None:
        """Wait for the first job of the queue, with its id; None when there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: (self._queue and not self._held) or self._closed)
            if self._closed:
                return None
            job_id, job = next(iter(self._queue.items()))
            job.state = "starting"
            return job_id, job

    def hold(self, held: bool) -> None:
        """Give out no job for a while, or give them out again."""
        with self._changed:
            self._held = held
            self._changed.notify_all()

    def put_first(self, jobs: Mapping[str, Job]) -> None:
        """Queue jobs that were admitted and written before, ahead of all others."""
        with self._changed:
            self._jobs |= jobs
            self._queue = {**jobs, **self._queue}
            self._changed.notify_all()

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
            waited = job.state == "queued" and self._queue.pop(job_id, None) is not None
            self._changed.notify_all()
        if waited:  # written without the lock, since others look at how jobs stand meanwhile
            self.finish(job, without_measuring(job.view.run))

    def stop(self, job_id: str) -> None:
        """Have a job that runs end with what it knows."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is not None and job.state == "running":
                job.measuring.stop()

    def end(self) -> None:
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
        """Drop a job whose run is gone from the store; one that is about to end, when it has ended."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is not None:
                job.forgotten = True
                self._jobs = {key: known for key, known in self._jobs.items() if not _is_over(known)}

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
            queue = list(self._queue)
            position = queue.index(job_id) if job_id in self._queue else 0
            before = [_going(self._queue[key]) for key in queue[:position]]
            return Snapshot(
                run=view.run,
                state=job.state,
                position=position,
                wait_s=sum(run.left_s for run in before),
                wait_most_s=sum(math.inf if run.most_s is None else run.most_s for run in before),
                message=job.message or view.message,
                stages=view.stages,
                elapsed_s=elapsed_s if running else None,
                remaining_s=max(0.0, view.forecast_s - elapsed_s) if running and elapsed_s is not None else None,
                version=view.version,
                fault=job.fault,
                saved=job.saved,
                round_number=None if job.message else view.round_number,
                rough_s=view.rough_s,
                owner=job.visitor.owner,
            )

    # --- what is kept ------------------------------------------------------------------------------------------------

    def take(self, job_id: str, view: View) -> None:
        """Take what a job publishes, and write it when there is a new result."""
        with self._changed:
            job = self._queue.get(job_id)
            if job is None:  # it has ended: what comes late changes nothing
                return
            changed = view.version != job.view.version
            settled = changed and _outcomes(view.run) != _outcomes(job.view.run)
            job.view = view
        now = time.monotonic()
        if settled or (changed and now - job.saved_at >= _SAVE_EVERY_S):
            job.saved_at = now
            self.writer.save(job, live=True)

    def finish(self, job: Job, run: Run) -> None:
        """Write the finished run, and take the job out of the queue."""
        if job.explains is None:
            self._admission.tally.finished(run)
        try:
            self.writer.finish(job, run)
        finally:  # whatever became of that, nobody waits for the job any more, and it is not done again
            try:
                self._take_out(job)
            finally:
                job.finished.set()

    def _take_out(self, job: Job) -> None:
        with self._changed:
            job.state = "finished"
            job.message = ""
            self._queue = {key: known for key, known in self._queue.items() if known is not job}
            # Finished runs are in the store; those that could not be written live on here.
            stored = [key for key, known in self._jobs.items() if known.state == "finished" and known.saved]
            room = _FINISHED_BYTES
            for number, key in enumerate(reversed(stored)):
                room -= weight(self._jobs[key].view.run, room)
                if number >= _FINISHED_KEPT or room < 0:
                    del self._jobs[key]
            self._jobs = {key: known for key, known in self._jobs.items() if not _is_over(known)}

    def keep_reasons(self, run_id: str, slug: str, why: Why, artifacts: dict[str, bytes]) -> bool:
        """Write the reasons of a strategy into a run that has ended; False where that is gone."""
        kept = self._store().explain(run_id, slug, why, artifacts)
        with self._changed:
            job = self._jobs.get(run_id)
            if job is not None and job.saved and job.state == "finished":
                del self._jobs[run_id]  # from now on the store knows more
        return kept


def _going(job: Job) -> Going:
    """A job as those who wait for it see it. Where it takes longer than forecast, it is known to end at its bound."""
    passed_s = 0.0 if job.view.started_s is None else time.monotonic() - job.view.started_s
    most_s = None if job.bound_s is None else max(0.0, job.bound_s - passed_s) + _BETWEEN_S
    left_s = job.view.forecast_s - passed_s
    return Going(job.visitor, left_s if left_s > 0 else most_s or _BETWEEN_S, most_s)


def _is_over(job: Job) -> bool:
    """True for a job that nobody asks for any more."""
    return job.forgotten and job.state == "finished"


def _outcomes(run: Run) -> list[tuple[str, bool]]:
    """Return what is known of each strategy beside its samples, and what claims are judged by: when that changes,
    something was settled."""
    measured = [*run.measurements, *(item for point in run.points for item in point.measurements)]
    return [
        *((item.outcome, item.memory is not None) for item in measured),
        *((point.status, True) for point in run.points),
        *((item.need, True) for item in run.evidence or ()),
    ]
