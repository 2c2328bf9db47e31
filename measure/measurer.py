"""The thread that measures: one job after the other, none beside another one's on this machine."""

import contextlib
import logging
import time

from msgspec.structs import replace

from measure.admission import Admission, Recent
from measure.beginning import missing
from measure.claims.ending import CLOSE
from measure.engine.launcher import HOST_START_S, Launcher
from measure.engine.machine_lock import machine_lock
from measure.engine.privacy import without_folders
from measure.job import Job
from measure.jobs import Jobs
from measure.judge.verdict import verdict
from measure.model.place import utc_now
from measure.model.run import Run

# How often is looked whether another process still holds the machine's lock.
_LOCK_POLL_S = 0.2
# After a fault that no job is to blame for: it may come again at once.
_AFTER_FAULT_S = 0.2
_FAULT = "a fault in Mapbench ended the run"
_log = logging.getLogger("mapbench")


class Measurer:
    """Takes jobs from the queue until there are no more."""

    def __init__(self, jobs: Jobs, launcher: Launcher, name: str, admission: Admission, recent: Recent) -> None:
        """``name``: who measures, as others on this machine are told; ``admission`` and ``recent`` are told what was
        measured."""
        self._jobs = jobs
        self._admission, self._recent = admission, recent
        self._launcher = launcher
        self._name = name

    def work(self) -> None:
        """Measure until there are no more jobs, whatever goes wrong with one."""
        # One thread for good, so that the kernel ends subjects started from it only when the whole process ends.
        more = True
        while more:
            try:
                more = self._work_once()
            except BaseException:  # there is no other thread that measures
                _log.exception("a job could not be begun or ended")
                time.sleep(_AFTER_FAULT_S)

    def _work_once(self) -> bool:
        """Do the next job, as soon as there is one; False if there will be no more."""
        following = self._jobs.next()
        if following is None:
            return False
        run_id, job = following
        try:
            run = self._run(job)
        except BaseException as error:
            _log.exception("the run %s failed", run_id)
            job.fault = True
            run = replace(job.view.run, status="interrupted", finished=utc_now(), stop_reason=_FAULT)
            with contextlib.suppress(Exception):  # what is at fault may be at fault here too
                run = _closed(run, error)
        self._jobs.finish(job, run)
        return True

    def _run(self, job: Job) -> Run:
        """Run a job as soon as nobody else measures on this machine, and the host is ready; the finished run."""

        def wait(who: str) -> None:
            job.state = "locked"
            job.message = f"waiting for {who}, which is measuring on this machine"
            self._jobs.pause(_LOCK_POLL_S)

        measuring = job.measuring
        with machine_lock(self._name, lambda: measuring.cancelled, wait) as free:
            if free:
                job.message = "TensorFlow is being loaded"
                ready = self._launcher.wait_ready(HOST_START_S, lambda: measuring.cancelled)
                lacking = missing(measuring.request, self._launcher.state().devices)
                if ready and not lacking and not measuring.cancelled:
                    job.state, job.message = "running", ""
                    self._jobs.writer.save(job, live=True)  # it waits no longer
                    return self._measured(job)
                if not measuring.cancelled:
                    reason = lacking or f"nothing can be measured now: {self._launcher.state().message}"
                    return replace(without_measuring(job.view.run), status="interrupted", stop_reason=reason)
        return without_measuring(job.view.run)

    def _measured(self, job: Job) -> Run:
        begun_s = time.monotonic()
        try:
            run = job.measuring.run()
        finally:
            self._admission.spend(job.visitor, time.monotonic() - begun_s)
        if run.status == "complete":
            self._recent.note(job.asked, run.id)
        return run


def _closed(run: Run, error: BaseException) -> Run:
    """The run that a fault has ended, with all that was measured, and the reason."""
    run = replace(run, stop_reason=without_folders(f"{_FAULT}: {type(error).__name__}: {error}"))
    if run.kind != "compare":
        with contextlib.suppress(Exception):
            return CLOSE[run.kind](run, "interrupted", run.stop_reason, utc_now())
    return run


def without_measuring(run: Run) -> Run:
    """The run as it ends where it was cancelled before it began."""
    if run.kind != "compare":
        return CLOSE[run.kind](run, "cancelled", "cancelled before it began", utc_now())
    measurements = [replace(item, outcome="cancelled") for item in run.measurements]
    run = replace(
        run, status="cancelled", stop_reason="cancelled before it began", finished=utc_now(), measurements=measurements
    )
    return replace(run, verdict=verdict(run))
