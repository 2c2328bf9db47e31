"""The recording of a run while it is measured: a thread of its own writes into the store and hears orders from there.

So neither a slow disk nor a locked store holds up what is timed.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec.structs import replace

from measure.claims.ending import CLOSE
from measure.engine.record import View
from measure.judge.verdict import verdict
from measure.model.job import Standing
from measure.model.place import StoreError, utc_now
from measure.model.request import Request
from measure.model.run import Run, Status, Warning
from measure.model.why import Why
from measure.pool.privacy import without_folders
from measure.store.store import Store

# How often orders are looked for; how it stands is told, and samples are written, less often.
LOOK_S = 0.5
_TELL_S, _SAVE_S = 1.0, 3.0
# Pauses between tries to write a run that has ended: a disk may be full for a moment or for a day.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
FAULT = "a fault in Mapbench ended the run"
_log = logging.getLogger("mapbench")


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


class Recording:
    """Writes what one piece of work publishes by `take`. ``problem``: the sentence why it is not written now."""

    def __init__(self, store: Store, run_id: str, explanation_id: str | None = None, *, is_new: bool = False) -> None:
        """``explanation_id``: of the work that explains a run which has ended, and is written as its reasons arrive;
        ``is_new``: the run is not in the store yet."""
        self._store, self._run_id, self._id = store, run_id, explanation_id or run_id
        self._saves, self._is_new_run = explanation_id is None, is_new
        self._view: View | None = None
        self._written: View | None = None
        self._closed = threading.Event()
        self._told_s = self._saved_s = 0.0
        self.problem = ""

    def take(self, view: View) -> None:
        """Take how it stands now. Waits for nothing."""
        self._view = view

    @contextlib.contextmanager
    def recording(self, measuring: Measuring) -> Iterator[None]:
        """Write and hear orders until it has ended; a run that was deleted is not measured any further."""
        thread = threading.Thread(target=self._work, args=(measuring,), name="mapbench-recording", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._closed.set()
            thread.join()

    def _work(self, measuring: Measuring) -> None:
        while True:
            try:
                self._look(measuring)
                self.problem = ""
            except StoreError as error:  # it is tried again
                self.problem = without_folders(str(error))
            except Exception as error:  # a fault of ours costs no measurement
                _log.exception("the run %s could not be written", self._id)
                self.problem = f"{FAULT}: {type(error).__name__}"
            if self._closed.wait(LOOK_S):
                return

    def _look(self, measuring: Measuring) -> None:
        """Hear orders, and write what is new. Raises `StoreError`."""
        view, now = self._view, time.monotonic()
        if not self._has_begun(view.run if view else None):
            return
        order = self._store.queue.ordered(self._id)
        if order in (None, "cancel"):
            measuring.cancel()
        elif order == "stop":
            measuring.stop()
        if view is None:
            return
        if now - self._told_s >= _TELL_S:
            self._told_s = now
            standing = Standing(
                message=view.message, stages=view.stages, round_number=view.round_number, rough_s=view.rough_s
            )
            self._store.queue.stand(self._id, standing, now - (view.started_s or now))
        if self._saves and (self._is_settled(view) or (self._is_new(view) and now - self._saved_s >= _SAVE_S)):
            self._saved_s = now
            self._store.save(view.run)
            self._written = view

    def _has_begun(self, run: Run | None) -> bool:
        """True if the run is in the store; one that is not is written, as soon as there is one."""
        if self._is_new_run and run is not None:
            self._store.begin(run)
            self._is_new_run = False
        return not self._is_new_run

    def _is_new(self, view: View) -> bool:
        return self._written is None or view.version != self._written.version

    def _is_settled(self, view: View) -> bool:
        """True if something is new beside samples: an outcome, a point, a piece of evidence."""
        return self._is_new(view) and (self._written is None or _settled(view.run) != _settled(self._written.run))

    def keep(self, slug: str, why: Why, artifacts: dict[str, bytes]) -> bool:
        """Keep the reasons of a strategy with their artifacts; False where the run was deleted. Without a disk the
        reasons alone are kept, in the run."""
        with contextlib.suppress(StoreError):
            return self._store.explain(self._run_id, slug, why, artifacts)
        return True

    def end(self, run: Run, give_up: Callable[[], bool]) -> bool:
        """Write a run that has ended, again and again until it is written; False where ``give_up`` said that it is
        enough, or the run was deleted meanwhile."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                self._has_begun(run)
                return self._store.save(run, ended=True)
            except Exception as error:
                self.problem = without_folders(str(error))
                _log.warning("the run %s is not written yet: %s", run.id, self.problem)
            if give_up():
                return False
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _settled(run: Run) -> list[tuple[str, bool]]:
    measured = [*run.measurements, *(item for point in run.points for item in point.measurements)]
    return [
        *((item.outcome, item.memory is not None) for item in measured),
        *((point.status, True) for point in run.points),
        *((item.need, True) for item in run.evidence or ()),
    ]


def measured(measuring: Measuring) -> tuple[Run, bool]:
    """Measure; the run as it ended, and True where that was by a fault of Mapbench itself."""
    try:
        return measuring.run(), False
    except Exception as error:
        run = measuring.view().run
        _log.exception("the run %s failed", run.id)
        return ended(run, "interrupted", without_folders(f"{FAULT}: {type(error).__name__}: {error}")), True


def ended(run: Run, status: Status, reason: str) -> Run:
    """A run as it ends where something outside of the measuring has ended it, with all that was measured."""
    with contextlib.suppress(Exception):  # what is at fault may be at fault here too
        return CLOSE[run.kind](run, status, reason, utc_now())
    return replace(run, status=status, finished=utc_now(), stop_reason=reason)


def unmeasured(run: Run, status: Status = "cancelled", reason: str = "cancelled before it began") -> Run:
    """A run as it ends that was not begun."""
    if run.kind != "compare":
        return ended(run, status, reason)
    measurements = [replace(item, outcome="cancelled") for item in run.measurements]
    run = replace(run, status=status, stop_reason=reason, finished=utc_now(), measurements=measurements)
    return replace(run, verdict=verdict(run))
