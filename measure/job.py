"""A job: a run that was asked for, and the writing of it into the store as it goes on."""

import contextlib
import dataclasses
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec.structs import replace

from measure.admission import NOBODY, Visitor
from measure.engine.privacy import without_folders
from measure.engine.record import View
from measure.judge import advice
from measure.model.asked import Asked
from measure.model.place import StoreError
from measure.model.request import Request
from measure.model.run import Run, Warning
from measure.model.why import Why
from measure.unwritten import Unwritten

if TYPE_CHECKING:
    from measure.store.store import Store

_log = logging.getLogger("mapbench")
_NOT_SAVED = advice.not_saved("").code

State = Literal["queued", "locked", "starting", "running", "finished"]


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


@dataclass(eq=False)
class Job:
    """A run that was asked for. ``asked``: the request that it may answer later; ``message`` goes before what its view
    says; ``saved``: the store has what it knows."""

    measuring: Measuring
    view: View
    visitor: Visitor = NOBODY
    asked: object = None
    bound_s: float | None = None  # within which it ends from its start
    state: State = "queued"
    message: str = ""
    saved_at: float = 0.0
    fault: bool = False
    saved: bool = False
    finished: threading.Event = field(default_factory=threading.Event)
    explains: str | None = None  # the run that an explanation belongs to, which is in the store already
    waits_as: Asked | None = None  # kept until it begins, so that it outlives this server
    forgotten: bool = False  # its run was deleted, or another process knows more of it


class Writer:
    """Writes the runs of jobs. Safe to use from any thread."""

    def __init__(self, store: Callable[[], "Store"], changed: threading.Condition) -> None:
        """``store``: where runs are kept; ``changed``: held while a job is changed, and never while one is written."""
        self._store = store
        self._changed = changed
        self._unwritten = Unwritten(self._write_again)

    def save(self, job: Job, *, live: bool) -> None:
        """Write a job's run as it is; a disk that is full is said, and measuring goes on."""
        if job.explains is not None:  # its run is written as the reasons arrive
            if job.waits_as is not None:
                self._note_that_it_waits(job.explains, live and job.state == "queued")
            return
        job.saved, reason = False, ""
        try:
            asked = job.waits_as if live and job.state == "queued" else None
            self._store().save(job.view.run, owner=job.visitor.owner, live=live, asked=asked)
            job.saved = True
        except StoreError as error:
            reason = without_folders(str(error))
        except Exception as error:  # a fault of ours costs no measurement
            _log.exception("the run %s could not be written", job.view.run.id)
            reason = f"a fault in Mapbench: {type(error).__name__}"
        if reason:
            warning = advice.not_saved(reason)
            job.measuring.warn(warning)
            with self._changed:
                warnings = [*_as_saved(job.view.run).warnings, warning]
                job.view = dataclasses.replace(job.view, run=replace(job.view.run, warnings=warnings))

    def _note_that_it_waits(self, run_id: str, waits: bool) -> None:
        """Note that an explanation waits, or that it does no longer."""
        with contextlib.suppress(StoreError):  # then it does not outlive this server, which is all
            orders = self._store().orders
            orders.explain(run_id) if waits else orders.explained(run_id)

    def finish(self, job: Job, run: Run) -> None:
        """Write the finished run: until it is written, in the background."""
        # A disk that was full for a while no longer matters where the finished run can be written.
        job.view = View(_as_saved(run), {}, "", job.view.version + 1, job.view.started_s)
        self.save(job, live=False)
        if not job.saved:
            self._unwritten.add(job)

    def keep_artifacts(self, run_id: str, slug: str, why: Why, artifacts: dict[str, bytes]) -> bool:
        """Write them beside a run that goes on; without a disk its figures are kept where the run is."""
        with contextlib.suppress(StoreError):
            self._store().explain(run_id, slug, why, artifacts)
        return True

    def close(self) -> None:
        """Write once more what could not be written."""
        self._unwritten.close()

    def _write_again(self, job: Job) -> bool:
        run = _as_saved(job.view.run)
        try:
            self._store().save(run, owner=job.visitor.owner, live=False)
        except Exception as error:
            _log.warning("the run %s is not written yet: %s", run.id, without_folders(str(error)))
            return False
        with self._changed:
            job.view = dataclasses.replace(job.view, run=run, version=job.view.version + 1)
            job.saved = True
        return True


def _as_saved(run: Run) -> Run:
    """The run without the warning that it is not written."""
    return replace(run, warnings=[warning for warning in run.warnings if warning.code != _NOT_SAVED])
