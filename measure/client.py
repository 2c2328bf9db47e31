"""The pages' side of measuring: a request becomes a row of the store, and all that is shown is read from there. The
worker measures, which this process may have started."""

import contextlib
import dataclasses
import functools
import logging
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec.structs import replace

from measure import making
from measure.admission import NOBODY, Refused, Visitor, admit, check, check_owner, counted, within
from measure.engine import deriving, record
from measure.hosting import limits
from measure.machine import environment
from measure.machine.load import Moment
from measure.pool.launcher import NoLauncher
from measure.pool.process import Python
from measure.run import place, text
from measure.run.forecast import RunForecast
from measure.run.place import StoreError
from measure.run.request import ALL_MACHINES, Request, RequestError, forecast_of
from measure.run.run import Run
from measure.run.sweep_request import SweepRequest
from measure.store.queue import Answer, Job, Order, Work, WorkerState
from measure.store.store import Snapshot, Store
from workloads import elems_file, functions, places

# Each request costs so much of its visitor's day: else whoever asks and cancels all day would fill the store.
_ASKING_S = 1.0
# A worker that ends by itself is started again so often.
_MOST_STARTS = 5
# Between two looks at an answer, and for how long one is waited for: TensorFlow is loaded, and the code executed.
_LOOK_S, _ANSWER_S = 0.1, 240.0
# Between two looks at the run that an answer waits for: what it times is not to be disturbed.
_WAIT_S = 1.0
_log = logging.getLogger("mapbench")
_DRAINED = "This server takes no new runs, since it is about to be restarted: come again in some minutes."
_NOT_LOOKED_AT = "the code could not be looked at"


class Busy(RequestError):
    """Somebody measures on this machine, which the check of a function would disturb."""


class Client:
    """The pages' side of a store and of the worker of this machine. Safe to use from any thread."""

    def __init__(self, store: Store | None = None, *, starts_worker: bool = False, python: str | None = None) -> None:
        """``starts_worker``: have a worker as a child, ``python``: which measures another environment's TensorFlow.
        Raises `StoreError` if the setting that places the store makes no sense."""
        self.limits = limits()
        self.store = store or Store(most_bytes=self.limits.store_bytes)
        self._adding = threading.Lock()
        self.refusals: Counter[str] = Counter()
        self._starts_worker, self._python, self._starts, self._starting = starts_worker, python, 0, threading.Lock()
        self._child: Python | None = None
        self.load = Moment()

    # --- the worker --------------------------------------------------------------------------------------------------

    def ensure_worker(self) -> None:
        """Start the worker, where that is this process's matter and none runs; a few times at most. However low the
        priority of the thread that asks, the worker has that of the thread that asked first."""
        with self._starting:
            if not self._starts_worker or (self._child is not None and self._child.status is None):
                return
            self._starts += 1
            if self._starts <= _MOST_STARTS:
                code = f"from measure.worker import serve; serve(python={self._python!r}, is_child=True)"
                try:
                    # A pipe that ends with this process, and with it the worker.
                    self._child = Python(code, stdin=subprocess.PIPE, output=None, environment={})
                except OSError as error:
                    _log.warning("the worker could not be started: %s", error)

    def host(self) -> WorkerState:
        if places.viewer():
            return WorkerState(**vars(NoLauncher().state()))
        self.ensure_worker()
        try:
            state = self.store.queue.worker()
        except StoreError as error:
            return WorkerState("starting", f"the store cannot be used: {error}")
        if state is not None:
            return state
        if not self._starts_worker:
            return WorkerState("failed", "no worker runs on this machine: start one with «mapbench worker»")
        if self._starts > _MOST_STARTS:
            return WorkerState("failed", "the worker has ended again and again: see the server's log")
        return WorkerState("starting", "TensorFlow is being loaded")

    def machines(self) -> dict[str, WorkerState]:
        """How the workers stand that were given names, by these: those of other machines, or of other environments."""
        with contextlib.suppress(StoreError):
            return self.store.queue.machines()
        return {}

    def places(self) -> tuple[str, ...]:
        """The devices that can be chosen, each after its machine where that has a name; and on all machines."""
        own, names = self.host().devices, list[str]()
        on = {name: state.devices for name, state in self.machines().items() if state.state == "ready"}
        names += [f"{name} / {device}" for name, devices in on.items() for device in devices]
        for device in dict.fromkeys(device for devices in (own, *on.values()) for device in devices):
            if sum(device in devices for devices in (own, *on.values())) > 1:
                names.append(f"{ALL_MACHINES} / {device}")
        return (*own, *names)

    # --- what can be asked for ---------------------------------------------------------------------------------------

    def submit_to_all(self, asked: Request | SweepRequest, visitor: Visitor = NOBODY) -> list[str]:
        """Queue a request as `submit` does, on each machine that has the device where it names all of them."""
        base = asked.base if isinstance(asked, SweepRequest) else asked
        if base.machine != ALL_MACHINES:
            return [self.submit(asked, visitor=visitor)]
        on: dict[str, WorkerState] = {"": self._worker(), **self.machines()}
        names = [name for name, state in on.items() if base.device in state.devices and state.state != "failed"]
        if not names:
            raise RequestError(f"no machine has the device {base.device}")
        bases = [replace(base, machine=name or msgspec.UNSET) for name in names]
        each = [dataclasses.replace(asked, base=one) if isinstance(asked, SweepRequest) else one for one in bases]
        ids = list[str]()
        try:
            for one in each:
                ids.append(self.submit(one, visitor=visitor))
        except RequestError:  # all of them, or none
            for run_id in ids:
                self.cancel(run_id, visitor)
            raise
        return ids

    def submit(
        self, asked: making.Asked, parent: str | None = None, visitor: Visitor = NOBODY, *,
        continue_from: str | None = None,
    ) -> str:  # fmt: skip
        """Queue a comparison, a sweep or claims; the id of its run, or that of a recent run that answers it.

        ``parent``: the run that it repeats, which answers nothing then; ``visitor``: who asks; ``continue_from``: the
        sweep whose measurements are taken over, and which becomes the parent. Raises `RequestError` where it is beyond
        what is allowed, can neither fit nor end in time, names what is not there, or the store cannot be written."""
        base = asked.base if isinstance(asked, SweepRequest) else asked
        machine = base.machine or "" if isinstance(base, Request) else ""
        worker = self._worker(machine)
        if machine and continue_from:
            raise RequestError(f"a sweep of {machine} cannot be continued from here: measure it again")
        with self._counting():
            check(asked, worker.devices, self.limits, is_here=not machine)
            asked = within(asked, self.limits) if isinstance(asked, Request) else asked
        run_id, parent = place.new_id(), continue_from or parent
        earlier = making.taken_over(self.store, continue_from, asked, worker.start_method, worker.details)
        first = making.measuring(run_id, asked, NoLauncher(), lambda _: None, parent=parent, earlier=earlier).view()
        if machine and (own := first.run.request.own) and elems_file.named(msgspec.json.encode(own.given.code)):
            raise RequestError(f"an array from a file is measured on this machine alone, and not on {machine}")
        if not parent and not machine and (recent := self._answer_to(first.run, worker)):
            return recent
        forecast_s = self.forecast(asked).seconds if isinstance(asked, Request) else first.forecast_s
        work = Work(run_id, "measure", run_id, forecast_s=forecast_s, bound_s=making.bound_s(asked), machine=machine)
        self._add(work, visitor, first.run)
        return run_id

    def forecast(self, asked: Request) -> RunForecast:
        """The forecast of a comparison on this machine, as busy as it is now."""
        return forecast_of(within(asked, self.limits), self.load.slowdown())

    def explain(self, run_id: str, visitor: Visitor = NOBODY) -> str:
        """Queue the explanation of a run that has ended; the id of that work, which is not the run's. Raises
        `RequestError` where it cannot be explained here."""
        worker = self._worker()
        before = making.ended(self.store, run_id, "explained")
        check_owner(before.owner, visitor, "have it explained")
        if machine := before.run.request.machine:
            raise RequestError(
                f"run {run_id} was measured on {machine}: only this machine's own runs are explained here"
            )
        if going_on := self.explanation(run_id):
            return going_on[0]
        made = making.explaining(before, NoLauncher(), lambda _: None, lambda *_: True, worker.details)
        bound_s = made.settings.bound_s
        work = Work(place.new_id(), "explain", run_id, forecast_s=made.forecast.seconds, bound_s=bound_s)
        self._add(work, visitor)
        return work.id

    def give(
        self, given: functions.Given, size: Mapping[str, int] | None = None, seed: int = 0,
        waiting: Callable[[Snapshot], None] | None = None,
    ) -> str:  # fmt: skip
        """Have a function of a person's own executed in a process that is thrown away, and make it a workload of this
        process; its slug. Sizes that are left out have their defaults. Raises `RequestError` with a sentence where it
        cannot be measured.

        ``waiting``: called once a second with the run that is measured before it, which this waits for; whatever it
        raises ends the wait. Without it, `Busy` is raised while somebody measures."""
        self._worker()
        deriving.check(given)
        work = Work(place.new_id(), "check", None, Job(given=given, size=dict(size or {}), seed=seed))
        try:
            self.store.recover()  # of a worker that is gone nothing goes on
            if waiting is None and any(
                other.holder is not None and not other.machine for other in self.store.queue.all()
            ):
                raise Busy("somebody measures here, which the code would disturb: try again when it has ended")
            self._add(work, NOBODY)
            try:
                answer = self._answer(work.id, waiting)
            except BaseException:  # there is none, or whoever asked has gone
                self.store.end(work.id)
                raise
        except StoreError as error:
            raise RequestError(f"{_NOT_LOOKED_AT}, since the store cannot be used: {error}") from error
        if answer.own is None:
            raise RequestError(answer.refusal)
        return functions.add(answer.own)

    def _answer(self, work_id: str, waiting: Callable[[Snapshot], None] | None) -> Answer:
        end_s = time.monotonic() + _ANSWER_S
        with contextlib.suppress(KeyError):
            while (answer := self.store.queue.answer(work_id)) is None:
                if waiting is not None and (before := self.going_on()) is not None:
                    end_s = time.monotonic() + _ANSWER_S
                    waiting(before)
                    time.sleep(_WAIT_S - _LOOK_S)
                if (host := self.host()).state == "failed" or time.monotonic() > end_s:
                    raise RequestError(f"{_NOT_LOOKED_AT}: {host.message or 'nobody had time for it'}")
                time.sleep(_LOOK_S)
            return answer
        raise RequestError(f"{_NOT_LOOKED_AT}: the measuring process ended")

    def _worker(self, machine: str = "") -> WorkerState:
        """How the worker stands, or that of a machine. Raises `RequestError` on a server that measures nothing, and
        where the machine is not there."""
        if (worker := self.host()).state == "absent":
            raise RequestError(worker.message)
        if not machine:
            return worker
        if (there := self.machines()).get(machine) is None:
            ready = [name for name, state in there.items() if state.state == "ready"]
            are = f"{text.listed(ready)} can be used" if ready else "there are no others than this one"
            raise RequestError(f"machine {machine!r} is not there: {are}")
        if there[machine].state == "failed":
            raise RequestError(there[machine].message)
        return there[machine]

    def _add(self, work: Work, visitor: Visitor, run: Run | None = None) -> None:
        """Admit a visitor's work, and put it into the queue. ``run``: the one that is to be measured by it. Raises
        `RequestError`."""
        work = replace(work, **dataclasses.asdict(visitor))
        # One after the other, so that two who ask at once do not both get the last place.
        with self._adding, self._counting():
            try:
                if self.store.queue.is_drained():
                    raise Refused("drained", _DRAINED)
                spent_s = self.store.queue.spent_s(counted(visitor), datetime.now(UTC).date().isoformat())
                admit(visitor, self.limits, self.store.queue.all(), work.forecast_s, spent_s)
                self.store.ask(work, run)
                if by := counted(visitor):
                    self.store.queue.spend(by, _ASKING_S)
            except StoreError as error:
                raise RequestError(f"it cannot be queued, since the store cannot be written: {error}") from error

    @contextlib.contextmanager
    def _counting(self) -> Iterator[None]:
        try:
            yield
        except Refused as refused:
            self.refusals[refused.reason] += 1
            raise

    def _answer_to(self, run: Run, worker: WorkerState) -> str | None:
        """The newest run of an equal request that ended of late, on this machine as it is now."""
        if not self.limits.recent_s:
            return None
        since = datetime.now(UTC) - timedelta(seconds=self.limits.recent_s)
        here = environment.collect(
            start_method=worker.start_method, threads=run.request.threads, tensorflow=worker.details
        )
        with contextlib.suppress(StoreError, ValueError):  # without a store that can be read it is measured anew
            for other in self.store.alike(run, since):
                has_ended = other.status == "complete" or (other.status == "budget" and other.ranking)
                is_recent = other.finished is not None and datetime.fromisoformat(other.finished) > since
                if has_ended and is_recent and not record.changes(other, here):
                    return other.id
        return None

    # --- how it stands -----------------------------------------------------------------------------------------------

    def queue(self) -> tuple[str, ...]:
        """Ids of the runs that are not finished, the running one first."""
        return tuple(work.id for work in self.store.queue.all() if work.kind != "check")

    def snapshot(self, run_id: str) -> Snapshot | None:
        """Return the state of a run; None if its id is not known. Raises ValueError if the stored run is damaged,
        `StoreError` if the store cannot be read."""
        snapshot = self.store.look(run_id)
        if snapshot is not None and snapshot.state == "queued" and not snapshot.position:
            machine = snapshot.run.request.machine
            host = self.machines().get(machine) if machine else self.host()
            waits = f"{machine} is not connected: the run waits for it"
            return replace(snapshot, message=waits if host is None else host.message)
        return snapshot

    def going_on(self) -> Snapshot | None:
        """The run that is measured or explained on this machine now; None where there is none."""
        works = [work for work in self.store.queue.all() if work.holder and work.run_id and not work.machine]
        return self.store.look(str(works[0].run_id), works[0].id) if works else None

    def explanation(self, run_id: str) -> tuple[str, Snapshot] | None:
        """The explanation of a run that waits or goes on, as the work's id and how it stands."""
        for work in self.store.queue.all():
            if work.kind == "explain" and work.run_id == run_id and (snapshot := self.store.look(run_id, work.id)):
                return work.id, snapshot
        return None

    def wait(self, run_id: str, timeout_s: float) -> bool:
        """Wait until the run has finished; False if that takes longer than ``timeout_s``."""
        end_s = time.monotonic() + timeout_s
        while any(work.id == run_id for work in self.store.queue.all()):
            if time.monotonic() >= end_s:
                return False
            time.sleep(_LOOK_S)
        return True

    def _order(self, order: Order, work_id: str, visitor: Visitor = NOBODY) -> None:
        """Have a run or an explanation end: by `cancel` at once, with what was measured, or before it has begun; by
        `stop` a run that is measured, with its verdict, limit and peaks. Unknown ids are ignored. Raises `RequestError`
        where it is another visitor's."""
        for work in self.store.queue.all():
            if work.id == work_id:
                check_owner(work.owner, visitor, f"{order} it")
                self.store.end(work_id, order)

    cancel = functools.partialmethod(_order, "cancel")
    stop = functools.partialmethod(_order, "stop")

    def delete(self, ids: Iterable[str], visitor: Visitor = NOBODY) -> list[str]:
        """Delete runs that have ended, as far as they are the visitor's; the ids of those that are gone."""
        return self.store.delete(ids, None if visitor == NOBODY else visitor.owner)


@functools.cache
def shared() -> Client:
    """The client of this process; it starts the worker, unless ``MAPBENCH_WORKER`` is ``off``. Made as the app is
    loaded, before there is a second thread."""
    off = os.environ.get("MAPBENCH_WORKER", "").lower() == "off"
    return Client(starts_worker=not (off or places.viewer()))
