"""Measuring while it is recorded: a thread of its own writes into the store and hears orders from there.

So neither a slow disk nor a locked store holds up what is timed.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable

from measure.engine.machine_lock import machine_lock
from measure.engine.record import View
from measure.making import Measuring
from measure.pool.privacy import without_folders
from measure.run.place import StoreError
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


def alone(name: str, ends: Callable[[], bool], say: Callable[[str], None]) -> contextlib.AbstractContextManager[bool]:
    """Hold the machine, as ``name``; False where it ``ends`` before. ``say``: is told for whom it waits."""

    def wait(who: str) -> None:
        say(f"waiting for {who}, which is measuring on this machine")
        time.sleep(_WAIT_S)

    return machine_lock(name, ends, wait)


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
        """End what is measured, or what will be, with what there is."""
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
        """Hear orders, and write how it stands and what is new."""
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
                    standing = Standing(
                        message=view.message, stages=view.stages, round_number=view.round_number, rough_s=view.rough_s
                    )
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
            self._store.begin(run)
            self._is_new = False
