"""The worker: the one process of a machine that measures what waits in the store.

`streamlit run app.py` starts it as its child, which ends with it; `mapbench worker` runs it apart.
"""

import contextlib
import logging
import os
import signal
import threading
import time
from collections import Counter
from typing import Any

import msgspec

from measure.engine import deriving
from measure.engine.bench import Settings, clear_leftovers
from measure.hosting import limits
from measure.making import Making, asked_of
from measure.pool.launcher import Launcher, launcher
from measure.pool.privacy import without_folders
from measure.recording import Measuring, Recording, machine
from measure.run.request import RequestError
from measure.run.run import Run
from measure.store.queue import Answer, Work, WorkerState
from measure.store.store import Snapshot, Store, closed
from workloads import discovery, places

# Between two looks into the queue.
_LOOK_S = 0.25
# It is told anew how the worker stands at least so often: another one may have told of itself meanwhile.
_BEAT_S = 5.0
# The first page is drawn before TensorFlow is loaded: on two cores both at once would keep its visitor waiting.
_HOST_DELAY_S = 1.5
_ENDS = "the server ended while it was measured; what was measured is kept"
log = logging.getLogger("mapbench")


class Worker:
    """Does one piece of work after another. `end` may be called from any thread or signal handler."""

    def __init__(
        self, store: Store, launcher_: Launcher, *, settings: Settings | None = None, name: str = "the app"
    ) -> None:
        """``name``: who measures, as others on this machine are told."""
        self.store, self.launcher, self._name = store, launcher_, name
        self._making = Making(launcher_, store, settings)
        self._ends = threading.Event()
        self._recording: Recording | None = None
        self._published: WorkerState | None = None
        self._published_s = 0.0
        self._files: Any = {}
        self._runs: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._measured_s = 0.0

    def end(self) -> None:
        """End what is being measured, with what there is; what waits goes on waiting."""
        self._ends.set()
        if self._recording is not None:
            self._recording.cancel()

    def work(self, after_s: float = 0.0) -> None:
        """Do what waits until the end. ``after_s``: so long nothing is begun."""
        self._ends.wait(after_s)
        has_failed = False
        while not self._ends.is_set():
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
            self._ends.wait(_LOOK_S)

    def work_one(self) -> bool:
        """Do the first piece of work that waits, as soon as nobody else measures on this machine; False if there is
        none."""
        if not self.store.queue.waits():
            return False
        with machine(self._name, self.launcher, self._ends.is_set, self.tell) as refusal:
            self.tell()
            work = self.store.queue.next() if refusal is not None else None
            if work is None:
                return False
            if work.kind == "check":
                self.store.queue.end(work.id, self._checked(work, refusal or ""))
            else:
                self._measure(work, refusal or "")
        return True

    def tell(self, waits_for: str = "") -> None:
        """Tell pages how this worker stands and what files of a person's own offer, where either has changed.

        ``waits_for``: the sentence on whom it waits for, if anybody."""
        if discovery.have_changed():  # pages are told before, since a file may hang
            self._tell("files of your own are being loaded")
        self._files = discovery.describe()
        self._tell(waits_for)

    def _tell(self, waits_for: str) -> None:
        host = self.launcher.state()
        state = WorkerState(
            **vars(host) | {"message": waits_for or host.message},
            start_method=self.launcher.start_method,
            runs=dict(self._runs),
            outcomes=dict(self._outcomes),
            measured_s=self._measured_s,
            files=self._files,
        )
        if state != self._published or time.monotonic() - self._published_s >= _BEAT_S:
            self.store.queue.tell(state)
            self._published, self._published_s = state, time.monotonic()

    # --- one piece of work -------------------------------------------------------------------------------------------

    def _measure(self, work: Work, refusal: str) -> None:
        """Measure or explain a run. ``refusal``: why that cannot be."""
        snapshot = self.store.look(str(work.run_id))
        if snapshot is None:  # it was deleted meanwhile
            return
        explains = work.kind == "explain"
        recording = Recording(self.store, snapshot.run.id, work.id if explains else None)
        try:
            if refusal:
                raise RequestError(refusal)
            measuring = self._made(work, snapshot, recording)
        except Exception as error:
            if not isinstance(error, RequestError):
                log.exception("the run %s could not be begun", work.run_id)
            if explains:
                log.info("run %s is not explained: %s", work.run_id, error)
                self.store.queue.end(work.id)
            else:
                recording.end(closed(snapshot.run, "interrupted", without_folders(str(error))), self._ends.is_set)
            return
        begun_s, self._recording = time.monotonic(), recording
        if self._ends.is_set():  # just now, when there was nothing to cancel
            recording.cancel()
        run, _ = recording.measure(measuring)
        seconds = time.monotonic() - begun_s
        self._measured_s += seconds
        if explains:
            self.store.queue.end(work.id)
        else:
            if self._ends.is_set() and run.status == "cancelled":
                run = msgspec.structs.replace(run, status="interrupted", stop_reason=_ENDS)
            recording.end(run, self._ends.is_set)
            self._count(run)
        if work.address:
            self.store.queue.spend(work.address, seconds)

    def _made(self, work: Work, snapshot: Snapshot, recording: Recording) -> Measuring:
        """The measuring of work. Raises `RequestError` where that cannot be."""
        run, publish, keep = snapshot.run, recording.take, recording.keep
        if work.kind == "explain":
            return self._making.explanation(run, publish, keep, imported=snapshot.imported)
        self._making.look(asked := asked_of(run))
        return self._making.measuring(
            run.id, asked, publish, run.parent,
            keep=keep if work.job.why else None, continue_from=work.job.continue_from,
        )  # fmt: skip

    def _count(self, run: Run) -> None:
        measured_ = [*run.measurements, *(item for point in run.points for item in point.measurements)]
        self._runs[f"{run.kind} {run.status}"] += 1
        self._outcomes.update(str(item.outcome) for item in measured_ if item.twin_of is None)

    def _checked(self, work: Work, refusal: str) -> Answer:
        """Look at a function of a person's own, in a process that is thrown away."""
        given = work.job.given
        if refusal or given is None or places.hosted():
            return Answer(refusal=refusal or "no code of a person's own is executed on a hosted server")
        try:
            return Answer(own=deriving.derive(given, work.job.size, work.job.seed, self.launcher))
        except RequestError as error:
            return Answer(refusal=str(error))


def serve(*, is_child: bool = False) -> None:
    """Be the worker of this machine until it is told to end: by a signal, or, ``is_child``, by the end of the process
    that has started it, which closes this one's standard input."""
    clear_leftovers()
    store = Store(most_bytes=limits().store_bytes)
    worker = Worker(store, launcher(), name="the app" if is_child else "a worker")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.end())

    def listen() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 64):
                pass
        worker.end()

    if is_child:
        threading.Thread(target=listen, name="mapbench-parent", daemon=True).start()
    try:
        worker.work(_HOST_DELAY_S if is_child else 0.0)
    finally:
        worker.launcher.close()
        store.close()


def main() -> None:
    """Be the worker of the app that has started this process."""
    serve(is_child=True)
