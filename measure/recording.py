"""Measuring while it is recorded: a thread of its own writes into the store and hears orders from there.

So neither a slow disk nor a locked store holds up what is timed.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from measure.engine.machine_lock import machine_lock
from measure.engine.record import View
from measure.pool.launcher import HOST_START_S, Launcher
from measure.pool.privacy import without_folders
from measure.run.place import StoreError
from measure.run.request import Request
from measure.run.run import Run
from measure.run.why import Why
from measure.store.queue import Standing
from measure.store.store import Store, closed

# How often orders are looked for, and how often it is told how it stands and what is new is written.
LOOK_S, _STAND_S = 0.5, 1.0
# Pauses between tries to write a run that has ended: a disk may be full for a moment or for a day. A process that ends
# tries so often.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_LAST_TRIES = 3
# Between two looks at the machine's lock.
_WAIT_S = 0.2
FAULT = "a fault in Mapbench ended the run"
_log = logging.getLogger("mapbench")


class Measuring(Protocol):
    """A `Comparison`, an `Explanation`, a `Sweep` or `Tries`."""

    request: Request

    def view(self) -> View: ...

    def cancel(self) -> None: ...

    def stop(self) -> None: ...

    def run(self) -> Run: ...


@contextlib.contextmanager
def machine(
    name: str, launcher: Launcher, ends: Callable[[], bool], say: Callable[[str], None]
) -> Iterator[str | None]:
    """Hold the machine, as ``name``, with TensorFlow loaded: yields "", or the sentence why nothing can be measured;
    None where it ``ends`` before. ``say``: is told for whom it waits."""

    def wait(who: str) -> None:
        say(f"waiting for {who}, which is measuring on this machine")
        time.sleep(_WAIT_S)

    is_ready = launcher.wait_ready(HOST_START_S, ends)
    with machine_lock(name, ends, wait) as is_held:
        ready = "" if is_ready else f"nothing can be measured now: {launcher.state().message}"
        yield ready if is_held and not ends() else None


class Recording:
    """Measures one piece of work, and writes what that publishes by `take`. ``problem``: the sentence why it is not
    written now."""

    def __init__(self, store: Store, run_id: str, explanation_id: str | None = None, *, is_new: bool = False) -> None:
        """``explanation_id``: of the work that explains a run which has ended, and is written as its reasons arrive;
        ``is_new``: the run is not in the store yet."""
        self._store, self._run_id, self._id = store, run_id, explanation_id or run_id
        self._explains, self._is_new = explanation_id is not None, is_new
        self._view: View | None = None
        self._written = -1  # the version of the view that is written
        self._measuring: Measuring | None = None
        self._cancelled = False
        self._ended = threading.Event()
        self._stood_s = 0.0
        self.problem = ""

    def take(self, view: View) -> None:
        """Take how it stands now. Waits for nothing."""
        self._view = view

    def cancel(self) -> None:
        """End what is measured, or what will be, with what there is."""
        self._cancelled = True
        if self._measuring is not None:  # beside a signal handler, which may have interrupted what this waits for
            threading.Thread(target=self._measuring.cancel, daemon=True).start()

    def measure(self, measuring: Measuring) -> tuple[Run, bool]:
        """Measure, write meanwhile and hear orders; a run that was deleted is not measured any further. The run as it
        ended, and True where that was by a fault of Mapbench itself."""
        self._measuring = measuring
        if self._cancelled:
            measuring.cancel()
        thread = threading.Thread(target=self._work, args=(measuring,), name="mapbench-recording", daemon=True)
        thread.start()
        try:
            return measuring.run(), False
        except Exception as error:
            run = measuring.view().run
            _log.exception("the run %s failed", run.id)
            return closed(run, "interrupted", without_folders(f"{FAULT}: {type(error).__name__}: {error}")), True
        finally:
            self._measuring = None
            self._ended.set()
            thread.join()

    def keep(self, slug: str, why: Why, artifacts: dict[str, bytes]) -> bool:
        """Keep the reasons of a strategy with their artifacts; False where the run was deleted. Without a disk the
        reasons alone are kept, in the run."""
        with contextlib.suppress(StoreError):
            return self._store.explain(self._run_id, slug, why, artifacts)
        return True

    def end(self, run: Run, ends: Callable[[], bool]) -> bool:
        """Write a run that has ended, again and again until it is written; False where that failed several times while
        this process ``ends``, or the run was deleted meanwhile."""
        pause_s, tries = _FIRST_PAUSE_S, 0
        while True:
            try:
                self._begin(run)
                return self._store.save(run, ended=True)
            except Exception as error:
                self.problem = without_folders(str(error))
                _log.warning("the run %s is not written yet: %s", run.id, self.problem)
            tries = tries + 1 if ends() else 0
            if tries >= _LAST_TRIES:
                return False
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    # --- the thread that writes --------------------------------------------------------------------------------------

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
            if self._ended.wait(LOOK_S):
                return

    def _look(self, measuring: Measuring) -> None:
        """Hear orders, and write what is new. Raises `StoreError`."""
        view, now = self._view or measuring.view(), time.monotonic()
        self._begin(view.run)
        order = self._store.queue.ordered(self._id)
        if order in (None, "cancel"):
            measuring.cancel()
        elif order == "stop":
            measuring.stop()
        if now - self._stood_s < _STAND_S:
            return
        self._stood_s = now
        standing = Standing(
            message=view.message, stages=view.stages, round_number=view.round_number, rough_s=view.rough_s
        )
        self._store.queue.stand(self._id, standing, now - (view.started_s or now))
        if not self._explains and view.version != self._written:
            self._store.save(view.run)
            self._written = view.version

    def _begin(self, run: Run) -> None:
        """Have the run in the store. Raises `StoreError`."""
        if self._is_new:
            self._store.begin(run)
            self._is_new = False
