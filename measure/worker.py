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
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from measure import hosting, making
from measure.admission import counted
from measure.checkouts import environment
from measure.engine import deriving
from measure.engine.bench import clear_leftovers
from measure.engine.machine_lock import machine_lock
from measure.hosting import limits
from measure.pool.launcher import HOST_START_S, Launcher, launcher
from measure.pool.privacy import without_folders
from measure.pool.process import HERE
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.store.queue import Answer, Work, WorkerState
from measure.store.store import Snapshot, Store, closed
from measure.subject.lifeline import WORKER_OOM_SCORE, offer_memory
from workloads import descriptions, places

# Between two looks into the queue.
_LOOK_S = 0.25
# It is told anew how the worker stands at least so often: another one may have told of itself meanwhile.
_BEAT_S = 5.0
# The first page is drawn before TensorFlow is loaded: on two cores both at once would keep its visitor waiting.
_HOST_DELAY_S = 1.5
log = logging.getLogger("mapbench")


class Worker:
    """Does one piece of work after another. `end` may be called from any thread or signal handler."""

    def __init__(self, store: Store, launcher_: Launcher, name: str = "the app", machine: str = "") -> None:
        """``name``: who measures, as others on this machine are told; ``machine``: does only the work that is meant
        for the machine of this name."""
        self.store, self.launcher, self._name, self.machine = store, launcher_, name, machine
        self._ends = threading.Event()
        self._recording: making.Recording | None = None
        self._state: tuple[float, WorkerState] | None = None  # as pages were told last, and when
        self._files: Any = {}
        self._runs: Counter[str] = Counter()
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
                if isinstance(error, RequestError):  # the lock of the machine cannot be used: who waits is to see why
                    with contextlib.suppress(StoreError):
                        self._tell(without_folders(str(error)))
            self._ends.wait(_LOOK_S)

    def work_one(self) -> bool:
        """Do the first piece of work that waits, as soon as nobody else measures on this machine; False if there is
        none."""
        if not self.store.queue.waits(self.machine):
            return False
        with self._ready() as refusal:
            if refusal is None or self._ends.is_set() or (work := self.store.queue.next(self.machine)) is None:
                return False
            if work.kind == "check":
                self.store.queue.end(work.id, self._checked(work, refusal))
            elif snapshot := self.store.look(str(work.run_id)):  # else it was deleted meanwhile
                self._measure(work, snapshot, refusal)
        return True

    @contextlib.contextmanager
    def _ready(self) -> Iterator[str | None]:
        """Hold the machine, with a host. Yields the sentence why nothing can be measured, if there is one; None where
        this ends before it is held."""
        is_ready = self.launcher.wait_ready(HOST_START_S, self._ends.is_set)
        with machine_lock(self._name, self._ends.is_set, self.tell) as is_held:
            self.tell()
            refusal = "" if is_ready else f"nothing can be measured now: {self.launcher.state().message}"
            yield refusal if is_held else None

    def tell(self, waits_for: str = "") -> None:
        """Tell pages how this worker stands and what files of a person's own offer, where either has changed, and in a
        sentence whom it ``waits_for``, if anybody."""
        if descriptions.have_changed():  # pages are told before, since a file may hang
            self._tell("files of your own are being loaded")
        self._files = descriptions.describe()
        self._tell(waits_for)

    def _tell(self, waits_for: str) -> None:
        host = self.launcher.state()
        state = WorkerState(
            **vars(host) | {"message": waits_for or host.message},
            start_method=self.launcher.start_method,
            runs=dict(self._runs),
            measured_s=self._measured_s,
            files=self._files,
            machine=self.machine,
        )
        self._write(state)

    def _write(self, state: WorkerState) -> None:
        now_s = time.monotonic()
        if self._state is None or now_s - self._state[0] >= _BEAT_S or state != self._state[1]:
            self.store.queue.tell(state)
            self._state = now_s, state

    # --- one piece of work -------------------------------------------------------------------------------------------

    def _measure(self, work: Work, snapshot: Snapshot, refusal: str) -> None:
        """Measure or explain a run. ``refusal``: why that cannot be."""
        explains, begun_s = work.kind == "explain", time.monotonic()
        self._recording = recording = making.Recording(self.store, snapshot.run.id, work.id if explains else None)
        if self._ends.is_set():  # just now, when there was nothing to cancel
            recording.cancel()
        try:
            if refusal:
                raise RequestError(refusal)
            run = recording.measure(self._made(work, snapshot, recording))
        except Exception as error:
            if not isinstance(error, RequestError):
                log.exception("the run %s could not be begun", work.run_id)
            run = closed(snapshot.run, "interrupted", without_folders(str(error)))
        if self._ends.is_set() and run.status == "cancelled":
            reason = "the server ended while it was measured; what was measured is kept"
            run = replace(run, status="interrupted", stop_reason=reason)
        seconds = time.monotonic() - begun_s
        self._measured_s += seconds
        if explains:
            self.store.queue.end(work.id)
        else:
            recording.end(run, self._ends.is_set)
            self._runs[f"{run.kind} {run.status}"] += 1
        if by := counted(work):
            self.store.queue.spend(by, seconds)

    def _made(self, work: Work, snapshot: Snapshot, recording: making.Recording) -> making.Measuring:
        """The measuring of work. Raises `RequestError` where that cannot be."""
        run, launcher = snapshot.run, self.launcher
        if work.kind == "explain":
            return making.explaining(snapshot, launcher, recording.take, recording.keep, launcher.state().details)
        asked = making.asked_of(run)
        # Points that are there were taken over. It is looked at once more: the machine may be another one by now.
        before = run.parent if any(point.status == "complete" for point in run.points) else None
        return making.made(self.store, run.id, asked, launcher, recording.take, parent=run.parent, continue_from=before)

    def _checked(self, work: Work, refusal: str) -> Answer:
        given = work.job.given
        if refusal or given is None or places.hosted():
            return Answer(refusal=refusal or "no code of a person's own is executed on a hosted server")
        try:
            return Answer(own=deriving.derive(given, work.job.size, work.job.seed, self.launcher))
        except RequestError as error:
            return Answer(refusal=str(error))


def serve(machine: str = "", python: str | None = None, *, is_child: bool = False) -> None:
    """Be the worker of this machine until it is told to end: by a signal, or, ``is_child``, by the end of the process
    that has started it, which closes this one's standard input. ``machine``: its name, where it is one of several;
    ``python``: the Python of another environment, whose TensorFlow is measured. Raises `RequestError`."""
    offer_memory(WORKER_OOM_SCORE)
    clear_leftovers()
    with contextlib.nullcontext(HERE) if python is None else environment(python) as interpreter:
        store = Store(most_bytes=limits().store_bytes)
        _serve(Worker(store, launcher(interpreter), "the app" if is_child else "a worker", machine), is_child)


def _serve(worker: Worker, is_child: bool) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.end())

    def listen() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 64):
                pass
        worker.end()

    if is_child:
        threading.Thread(target=listen, name="mapbench-parent", daemon=True).start()
    others = None
    if (scheduler := hosting.scheduler()) and not worker.machine:
        from measure.machines import Scheduler  # with Dask, which is an extra

        others = Scheduler(scheduler)
    try:
        worker.work(_HOST_DELAY_S if is_child else 0.0)
    finally:
        if others is not None:
            others.end()
        worker.launcher.close()
        worker.store.close()
