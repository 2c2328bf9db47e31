"""The worker: the one process of a machine that measures what waits in the store.

`streamlit run app.py` starts it as its child, which ends with it; `mapbench worker` runs it apart.
"""

import logging
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from measure import beginning
from measure.engine import deriving
from measure.engine.bench import Settings, clear_leftovers
from measure.engine.machine_lock import machine_lock
from measure.hosting import limits
from measure.making import Making
from measure.model import place
from measure.model.job import Answer, WorkerState
from measure.model.request import RequestError
from measure.model.run import Run
from measure.pool.launcher import HOST_START_S, Launcher
from measure.pool.privacy import without_folders
from measure.pool.start_method import launcher
from measure.recording import Recording, measured, unmeasured
from measure.store.queue import Work
from measure.store.store import Store
from workloads import places

# Between two looks into the queue, unless the parent says that there is something; between two at a lock, or after a
# fault that no work is to blame for, which may come again at once.
_LOOK_S, _WAIT_S = 0.25, 0.2
# It is told anew how the worker stands at least so often: another one may have told of itself meanwhile.
_BEAT_S = 5.0
# The first page is drawn before TensorFlow is loaded: on two cores both at once would keep its visitor waiting.
_HOST_DELAY_S = 1.5
# A worker that ends tries so often to write what it has measured.
_LAST_TRIES = 3
_ENDS = "the server ended while it was measured; what was measured is kept"
log = logging.getLogger("mapbench")


def machine() -> str:
    """The name by which pages find the worker of this machine."""
    return socket.gethostname()


class Worker:
    """Does one piece of work after another. `end` may be called from any thread or signal handler."""

    def __init__(
        self, store: Store, launcher_: Launcher, *, settings: Settings | None = None, name: str = "the app"
    ) -> None:
        """``name``: who measures, as others on this machine are told."""
        self.store, self.launcher, self._name = store, launcher_, name
        self._making = Making(launcher_, settings)
        self._ends = False
        self._cancel: Callable[[], None] | None = None  # what is being measured
        self._told: WorkerState | None = None
        self._told_s = 0.0
        self._runs: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._measured_s, self._tries = 0.0, 0

    def end(self) -> None:
        """End what is being measured, with what there is; what waits goes on waiting."""
        self._ends = True
        if self._cancel is not None:  # beside a signal handler, which may have interrupted what this waits for
            threading.Thread(target=self._cancel, daemon=True).start()

    def work(self, woken: threading.Event) -> None:
        """Do what waits until the end. ``woken``: set when there is something."""
        has_failed = False
        while not self._ends:
            try:
                self.tell()
                if has_failed:
                    self.store.close_own()  # else it would stay begun for ever
                    has_failed = False
                if self.work_one():
                    continue
            except Exception as error:  # no fault and no store ends the only process that measures
                has_failed = True
                log.warning("the worker goes on after: %s: %s", type(error).__name__, error)
                time.sleep(_WAIT_S)
            woken.wait(_LOOK_S)
            woken.clear()

    def work_one(self) -> bool:
        """Do the first piece of work that waits, as soon as nobody else measures on this machine; False if there is
        none."""
        if not self.store.queue.waits():
            return False
        if not (ready := self.launcher.wait_ready(HOST_START_S, self._is_ending)) and self._ends:
            return False
        with machine_lock(self._name, self._is_ending, self._wait) as free:
            self.tell()
            work = self.store.queue.next() if free else None
            if work is None:
                return False
            reason = "" if ready else f"nothing can be measured now: {self.launcher.state().message}"
            if work.kind == "check":
                self.store.queue.end(work.id, self._checked(work, reason))
            else:
                self._measure(work, reason)
        return True

    def tell(self, waits_for: str = "") -> None:
        """Tell pages how this worker stands, where that has changed."""
        host = self.launcher.state()
        state = WorkerState(
            state=host.state,
            message=waits_for or host.message,
            devices=host.devices,
            details=host.details,
            restarts=host.restarts,
            start_method=self.launcher.start_method,
            runs=dict(self._runs),
            outcomes=dict(self._outcomes),
            measured_s=self._measured_s,
        )
        if state != self._told or time.monotonic() - self._told_s >= _BEAT_S:
            self.store.queue.tell(machine(), state)
            self._told, self._told_s = state, time.monotonic()

    def _is_ending(self) -> bool:
        return self._ends

    def _wait(self, who: str) -> None:
        self.tell(f"waiting for {who}, which is measuring on this machine")
        time.sleep(_WAIT_S)

    # --- one piece of work -------------------------------------------------------------------------------------------

    def _measure(self, work: Work, reason: str) -> None:
        """Measure or explain a run. ``reason``: why that cannot be."""
        run_id, explains = str(work.run_id), work.kind == "explain"
        kept = self.store.look(run_id)
        if kept is None:  # it was deleted meanwhile
            return
        recording = Recording(self.store, run_id, work.id if explains else None)
        publish, keep = recording.take, recording.keep
        try:
            if reason:
                raise RequestError(reason)
            if explains:
                measuring = self._making.explanation(kept.run, publish, keep, imported=kept.imported)
            else:
                measuring = self._making.waiting(kept.run, work.job, publish, keep, self.store.look)
            if lacking := beginning.missing(measuring.request, self.launcher.state().devices):
                raise RequestError(lacking)
        except Exception as error:
            if not isinstance(error, RequestError):
                log.exception("the run %s could not be begun", work.run_id)
            if explains:
                log.info("run %s is not explained: %s", work.run_id, error)
                self.store.queue.end(work.id)
            else:
                recording.end(unmeasured(kept.run, "interrupted", without_folders(str(error))), self._gives_up)
            return
        begun_s, self._cancel = time.monotonic(), measuring.cancel
        if self._ends:
            measuring.cancel()
        with recording.recording(measuring):
            run, _ = measured(measuring)
        self._cancel = None
        seconds = time.monotonic() - begun_s
        if explains:
            self.store.queue.end(work.id)
        else:
            if self._ends and run.status == "cancelled":
                run = msgspec.structs.replace(run, status="interrupted", stop_reason=_ENDS)
            recording.end(run, self._gives_up)
            self._count(run)
        self._measured_s += seconds
        self.store.queue.spend(work.address, seconds)

    def _gives_up(self) -> bool:
        """True if a run that cannot be written is given up: this worker ends, and has tried several times."""
        self._tries = self._tries + 1 if self._ends else 0
        return self._tries >= _LAST_TRIES

    def _count(self, run: Run) -> None:
        measured_ = [*run.measurements, *(item for point in run.points for item in point.measurements)]
        self._runs[f"{run.kind} {run.status}"] += 1
        self._outcomes.update(str(item.outcome) for item in measured_ if item.twin_of is None)

    def _checked(self, work: Work, reason: str) -> Answer:
        """Look at a function of a person's own, in a process that is thrown away."""
        given = work.job.given
        if reason or given is None or places.hosted():
            return Answer(refusal=reason or "no code of a person's own is executed on a hosted server")
        try:
            return Answer(own=deriving.derive(given, work.job.size, work.job.seed, self.launcher))
        except RequestError as error:
            return Answer(refusal=str(error))


def serve(*, is_child: bool = False) -> None:
    """Be the worker of this machine until it is told to end: by a signal, or, ``is_child``, by the end of the process
    that has started it, which closes this one's standard input. Whatever comes from there wakes it."""
    woken = threading.Event()
    clear_leftovers()
    store = Store(most_bytes=limits().store_bytes)
    worker = Worker(
        store, launcher(place.home() / "host.log", _HOST_DELAY_S if is_child else 0.0),
        name="the app" if is_child else "a worker",
    )  # fmt: skip

    def end(*_: Any) -> None:
        worker.end()
        woken.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)

    def listen() -> None:
        try:
            while os.read(0, 64):
                woken.set()
        finally:
            end()

    if is_child:
        threading.Thread(target=listen, name="mapbench-parent", daemon=True).start()
    try:
        worker.work(woken)
    finally:
        worker.launcher.close()
        store.close()


def main() -> None:
    """Be the worker of the app that has started this process."""
    serve(is_child=True)
