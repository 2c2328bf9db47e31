"""The pages' side of measuring: a request becomes a row of the store, and all that is shown is read from there.

Nothing here measures; the worker does, which this process may have started.
"""

import contextlib
import dataclasses
import logging
import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from measure import beginning
from measure.admission import NOBODY, Refused, Visitor, admit, check_owner
from measure.claims.tries import chosen
from measure.engine import deriving
from measure.hosting import limits
from measure.making import Making
from measure.model import place
from measure.model.job import Job, Kind, Standing, WorkerState
from measure.model.place import StoreError
from measure.model.request import Request, RequestError
from measure.model.run import Point, Run, Stage
from measure.pool.launcher import HostState
from measure.pool.pool import environment
from measure.pool.process import Python
from measure.pool.start_method import NoLauncher
from measure.recording import Measuring, unmeasured
from measure.sweep.request import SweepRequest
from workloads import functions, places
from workloads.functions import Given, OwnFunction

if TYPE_CHECKING:
    from measure.store.queue import Work
    from measure.store.store import Kept, Store

# A worker that ends by itself is started again so often.
_MOST_STARTS = 5
# Between two looks at an answer, and for how long one is waited for: TensorFlow is loaded, and the code executed.
_LOOK_S, _ANSWER_S = 0.1, 240.0
# For a worker to end, with what it has measured.
_END_S = 30.0
# Of requests, so many are remembered that a finished run may answer.
_MOST_RECENT = 1_000
_log = logging.getLogger("mapbench")
_ABSENT = WorkerState(state="absent", message="this server shows runs and measures none, since MAPBENCH_VIEWER is set")
_NO_WORKER = WorkerState(state="failed", message="no worker runs on this machine: start one with «mapbench worker»")
_GONE = WorkerState(state="failed", message="the worker has ended again and again: see the server's log")
_DRAINED = "This server takes no new runs, since it is about to be restarted: come again in some minutes."


class Busy(RequestError):
    """Somebody measures on this machine, which the check of a function would disturb."""


@dataclass(frozen=True)
class Snapshot:
    """A run as a page sees it. ``stages``: slug → where the strategy stands. ``version`` grows with each new result.

    ``state``: queued (``position`` pieces of work are before it, which take ``wait_s`` by forecast and no more than
    ``wait_most_s``), running, finished. ``round_number``: of the round in which is sampled now. ``rough_s``: seconds
    of a call of each strategy, as its memory subject has it. ``owner``: the visitor that has started it, who alone may
    end, explain or delete it.
    """

    run: Run
    state: Literal["queued", "running", "finished"]
    position: int = 0
    wait_s: float = 0.0
    wait_most_s: float = math.inf
    message: str = ""
    stages: Mapping[str, Stage] = field(default_factory=dict)
    elapsed_s: float | None = None
    remaining_s: float | None = None
    version: int = 0
    imported: bool = False
    round_number: int | None = None
    rough_s: Mapping[str, float] = field(default_factory=dict)
    owner: str = ""


class Client:
    """The pages' side of a store and of the worker of this machine. Safe to use from any thread."""

    def __init__(self, store: "Store | None" = None, *, starts_worker: bool = False) -> None:
        """``starts_worker``: have a worker as a child."""
        self._store, self._store_lock = store, threading.Lock()
        self.limits = limits()
        self._making = Making(NoLauncher(), executes=False)
        self._adding = threading.Lock()
        self._recent: deque[tuple[object, str]] = deque(maxlen=_MOST_RECENT)
        self.refusals: Counter[str] = Counter()
        self._starts_worker, self._starts = starts_worker, 0
        self._child: Python | None = None
        self._wakes = -1  # the end of a pipe, the other of which is the standard input of the child

    @property
    def store(self) -> "Store":
        """The store of runs, opened on first use. Raises `StoreError` if the setting that places it makes no sense."""
        with self._store_lock:
            if self._store is None:
                # Only now, since loading SQLAlchemy takes a moment: a first visitor's page does without.
                from measure.store.store import Store

                self._store = Store(most_bytes=self.limits.store_bytes)
            return self._store

    # --- the worker --------------------------------------------------------------------------------------------------

    def ensure_worker(self) -> None:
        """Start the worker, where that is this process's matter and none runs; a few times at most."""
        with self._store_lock:
            ended = self._child is None or self._child.status is not None
            if self._starts_worker and ended and self._starts < _MOST_STARTS:
                self._starts += 1
                if self._wakes >= 0:
                    os.close(self._wakes)
                theirs, self._wakes = os.pipe()
                try:
                    code = "from measure.worker import main; main()"
                    self._child = Python(code, stdin=theirs, output=None, environment=environment())
                except OSError as error:
                    _log.warning("the worker could not be started: %s", error)
                finally:
                    os.close(theirs)

    def host(self) -> WorkerState:
        """How the worker of this machine stands."""
        if places.viewer():
            return _ABSENT
        self.ensure_worker()
        from measure.worker import machine

        try:
            state = self.store.queue.worker(machine())
        except StoreError as error:
            return WorkerState(message=f"the store cannot be used: {error}")
        if state is not None:
            return state
        if not self._starts_worker:
            return _NO_WORKER
        is_gone = self._child is not None and self._child.status is not None and self._starts >= _MOST_STARTS
        return _GONE if is_gone else WorkerState(message="TensorFlow is being loaded")

    # --- what can be asked for ---------------------------------------------------------------------------------------

    def submit(
        self, request: Request, parent: str | None = None, visitor: Visitor = NOBODY, *, why: bool = False
    ) -> str:
        """Queue a comparison; its id, or that of a recent run that answers it. ``parent``: the run that it repeats,
        which answers nothing then; ``visitor``: who asks; ``why``: its strategies are explained in the end. Raises
        `RequestError` where it is beyond what is allowed, can neither fit nor end in time, names a device that is not
        there, or where the sources of its workload and a mapper do not make a script, or cannot be asked."""
        self._check(request)
        if not (parent or why) and (recent := self._answer_to(request)):
            return recent
        run_id = place.new_id()
        measuring = self._making.comparison(run_id, request, _nowhere, parent)
        return self._queue(run_id, measuring, Job(why=why), visitor, request, beginning.bound_s(request, why=why))

    def submit_sweep(
        self,
        request: SweepRequest,
        parent: str | None = None,
        visitor: Visitor = NOBODY,
        continue_from: str | None = None,
    ) -> str:
        """Queue a sweep, as `submit` does a comparison. ``continue_from``: the sweep whose measurements are taken over,
        and which becomes the parent. Raises `RequestError` also where no point can be measured or that sweep cannot be
        continued."""
        self._check(request)
        if not (parent or continue_from) and (recent := self._answer_to(request)):
            return recent
        points: list[Point] = []
        if continue_from is not None:
            points = beginning.taken_over(request, continue_from, self._look(continue_from), _Told(self.host()))
            parent = continue_from
        run_id = place.new_id()
        measuring = self._making.sweep(run_id, request, _nowhere, parent, points)
        return self._queue(
            run_id, measuring, Job(continue_from=continue_from), visitor, request, beginning.bound_s(request)
        )

    def submit_claims(self, ids: Sequence[str] = (), parent: str | None = None, visitor: Visitor = NOBODY) -> str:
        """Queue what claims need, of all claims where none is named, as `submit` does a comparison. Raises
        `RequestError` also where a claim is not known, or they cannot be tried in time."""
        claims, asked = chosen(ids), tuple(ids)
        self._check(claims)
        if not parent and (recent := self._answer_to(asked)):
            return recent
        run_id = place.new_id()
        measuring = self._making.claims(run_id, ids, _nowhere, parent)
        return self._queue(run_id, measuring, Job(), visitor, asked, beginning.bound_s(claims))

    def explain(self, run_id: str, visitor: Visitor = NOBODY) -> str:
        """Queue the explanation of a run that has ended; the id of that work, which is not the run's. Raises
        `RequestError` where it cannot be explained here, and what `snapshot` does."""
        self._check_measures()
        kept = self.store.look(run_id)
        if kept is None or kept.work is not None:
            raise RequestError("a run can be explained when it has ended")
        check_owner(kept.owner, visitor, "have it explained")
        if going_on := self.explanation(run_id):
            return going_on[0]
        making = Making(_Told(self.host()), executes=False)
        measuring = making.explanation(kept.run, _nowhere, lambda *_: True, imported=kept.imported)
        ends_s = beginning.explanation_bound_s(measuring.request)
        return self._add("explain", place.new_id(), run_id, measuring, Job(), visitor, ends_s)

    def give(self, given: Given, size: Mapping[str, int] | None = None, seed: int = 0) -> str:
        """Have a function of a person's own executed in a process that is thrown away, and make it a workload of this
        process; its slug. Sizes that are left out have their defaults. Raises `RequestError` with a sentence where it
        cannot be measured, `Busy` while somebody measures."""
        self._check_measures()
        deriving.check(given)
        try:
            return functions.add(self._checked(Job(given=given, size=dict(size or {}), seed=seed)))
        except StoreError as error:
            raise RequestError(f"the code could not be looked at, since the store cannot be used: {error}") from error

    def _checked(self, job: Job) -> OwnFunction:
        """Have a function looked at by the worker. Raises `RequestError`, `StoreError`."""
        self.store.recover()  # of a worker that is gone nothing goes on
        if any(work.holder is not None for work in self.store.queue.all()):
            raise Busy("somebody measures on this machine, which the code would disturb: try again when it has ended")
        work_id = self._add("check", place.new_id(), None, None, job)
        end_s = time.monotonic() + _ANSWER_S
        try:
            while (answer := self.store.queue.answer(work_id)) is None:
                if (host := self.host()).state == "failed" or time.monotonic() > end_s:
                    self.store.queue.withdraw(work_id)
                    reason = host.message or "nobody had time for it"
                    raise RequestError(f"the code could not be looked at: {reason}")
                time.sleep(_LOOK_S)
        except KeyError:
            raise RequestError("the code could not be looked at: the measuring process ended") from None
        if answer.own is None:
            raise RequestError(answer.refusal)
        return answer.own

    def _look(self, run_id: str) -> "Kept | None":
        """The stored run. Raises `RequestError` where it cannot be read."""
        try:
            return self.store.look(run_id)
        except (StoreError, ValueError) as error:
            raise RequestError(f"run {run_id} cannot be read: {error}") from error

    def _check_measures(self) -> None:
        """Raise `RequestError` on a server that measures nothing."""
        if (host := self.host()).state == "absent":
            raise RequestError(host.message)

    def _check(self, request: beginning.Asked) -> None:
        self._check_measures()
        with self._counted():
            beginning.check(request, self.host().devices, self.limits)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Count what is refused, by its reason."""
        try:
            yield
        except Refused as refused:
            self.refusals[refused.reason] += 1
            raise

    def _queue(
        self, run_id: str, measuring: Measuring, job: Job, visitor: Visitor, asked: object, ends_s: float
    ) -> str:
        self._add("measure", run_id, run_id, measuring, job, visitor, ends_s)
        self._recent.append((asked, run_id))
        return run_id

    def _add(
        self, kind: Kind, work_id: str, run_id: str | None, measuring: Measuring | None, job: Job,
        visitor: Visitor = NOBODY, ends_s: float | None = None,
    ) -> str:  # fmt: skip
        """Admit work, and put it into the queue. Raises `RequestError`."""
        from measure.store.queue import Work

        view = None if measuring is None else measuring.view()
        forecast_s = 0.0 if view is None else view.forecast_s
        # One after the other, so that two who ask at once do not both get the last place.
        with self._adding, self._counted():
            try:
                if self.store.queue.is_drained():
                    raise Refused("drained", _DRAINED)
                if visitor != NOBODY:
                    now = datetime.now(UTC)
                    spent_s = self.store.queue.spent_s(visitor.address, now.date().isoformat())
                    admit(visitor, self.limits, self.store.queue.all(), forecast_s, spent_s, now)
                work = Work(
                    work_id, kind, run_id, job, visitor.owner, visitor.session, visitor.address, forecast_s, ends_s,
                    None, None, Standing(),
                )  # fmt: skip
                if kind == "measure" and view is not None:
                    self.store.ask(view.run, work)
                else:
                    self.store.queue.add(work)
            except StoreError as error:
                raise RequestError(f"it cannot be queued, since the store cannot be written: {error}") from error
        self._wake()
        return work_id

    def _wake(self) -> None:
        """Have the worker look into the queue now."""
        if self._child is not None:
            with contextlib.suppress(OSError):  # it has ended: the next one looks
                os.write(self._wakes, b"\n")

    def _answer_to(self, asked: object) -> str | None:
        """The newest run of an equal request that this process has queued and that has been measured completely of
        late: same machine, same code."""
        within_s = self.limits.recent_s
        if not within_s:
            return None
        for before, run_id in reversed(tuple(self._recent)):
            if before != asked:
                continue
            try:
                kept = self.store.look(run_id)
            except (StoreError, ValueError):  # without a store that can be read it is measured anew
                return None
            if kept is not None and kept.work is None and kept.run.status == "complete" and kept.run.finished:
                age = datetime.now(UTC) - datetime.fromisoformat(kept.run.finished)
                if age.total_seconds() < within_s:
                    return run_id
        return None

    # --- how it stands -----------------------------------------------------------------------------------------------

    def queue(self) -> tuple[str, ...]:
        """Ids of the runs that are not finished, the running one first."""
        return tuple(work.id for work in self.store.queue.all() if work.kind != "check")

    def snapshot(self, run_id: str) -> Snapshot | None:
        """Return the state of a run; None if its id is not known. Raises ValueError if the stored run is damaged,
        `StoreError` if the store cannot be read."""
        kept = self.store.look(run_id) if place.is_id(run_id) else None
        if kept is None:
            return None
        ended = Snapshot(kept.run, "finished", version=kept.version, imported=kept.imported, owner=kept.owner)
        return ended if kept.work is None else self._standing(ended, kept.work)

    def going_on(self) -> Snapshot | None:
        """The run that is measured or explained now; None where there is none."""
        works = [work for work in self.store.queue.all() if work.holder is not None and work.run_id is not None]
        kept = self.store.look(str(works[0].run_id)) if works else None
        return None if kept is None else self._standing(Snapshot(kept.run, "running"), works[0])

    def _standing(self, ended: Snapshot, work: "Work") -> Snapshot:
        """A run that has ended as one that waits or is measured."""
        if work.holder is None:
            queue = self.store.queue.all()
            before = queue[: next((place for place, other in enumerate(queue) if other.id == work.id), 0)]
            host = self.host()
            return dataclasses.replace(
                ended,
                state="queued",
                position=len(before),
                wait_s=sum(other.left_s for other in before),
                wait_most_s=sum(other.most_s for other in before),
                message="" if before else host.message,
            )
        return dataclasses.replace(
            ended,
            state="running",
            message=work.standing.message,
            stages=work.standing.stages,
            elapsed_s=work.passed_s,
            remaining_s=None if work.passed_s is None else max(0.0, work.forecast_s - work.passed_s),
            round_number=work.standing.round_number,
            rough_s=work.standing.rough_s,
        )

    def explanation(self, run_id: str) -> tuple[str, Snapshot] | None:
        """The explanation of a run that waits or goes on, as the work's id and how it stands."""
        works = [work for work in self.store.queue.all() if work.kind == "explain" and work.run_id == run_id]
        kept = self.store.look(run_id) if works else None
        if kept is None:
            return None
        return works[0].id, self._standing(
            Snapshot(kept.run, "finished", version=kept.version, owner=works[0].owner), works[0]
        )

    def wait(self, run_id: str, timeout_s: float | None = None) -> bool:
        """Wait until the run has finished; False if that takes longer than ``timeout_s``."""
        end_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while any(work.id == run_id for work in self.store.queue.all()):
            if time.monotonic() >= end_s:
                return False
            time.sleep(_LOOK_S)
        return True

    def cancel(self, run_id: str, visitor: Visitor = NOBODY) -> None:
        """End a run or an explanation, or take it out of the queue; what was measured is kept. Unknown ids are ignored.
        Raises `RequestError` where it is another visitor's."""
        for work in self.store.queue.all():
            if work.id == run_id:
                check_owner(work.owner, visitor, "cancel it")
                waits = work.holder is None
                kept = self.store.look(run_id) if waits and work.kind == "measure" else None
                if waits and (self.store.withdraw(unmeasured(kept.run)) if kept else self.store.queue.withdraw(run_id)):
                    return
                self.store.queue.order(run_id, "cancel")

    def stop(self, run_id: str, visitor: Visitor = NOBODY) -> None:
        """Have a run that is measured end with what is known by now, verdict, limit and peaks included. Others, and
        unknown ids, are ignored. Raises `RequestError` where it is another visitor's."""
        for work in self.store.queue.all():
            if work.id == run_id:
                check_owner(work.owner, visitor, "stop it")
                self.store.queue.order(run_id, "stop")

    def delete(self, ids: Iterable[str], visitor: Visitor = NOBODY) -> list[str]:
        """Delete runs that have ended, as far as they are the visitor's; the ids of those that are gone."""
        return self.store.delete(ids, None if visitor == NOBODY else visitor.owner)

    def close(self) -> None:
        """End the worker that this process has started, and let go of the store."""
        if self._child is not None:
            os.close(self._wakes)
            self._child.end(_END_S)
            self._child, self._wakes = None, -1
        if self._store is not None:
            self._store.close()


class _Told(NoLauncher):
    """The worker's devices, as a launcher tells them."""

    def __init__(self, told: WorkerState) -> None:
        self._told = told
        self.start_method = "fork" if told.start_method == "fork" else "fresh"

    def state(self) -> HostState:
        return HostState(self._told.state, self._told.message, self._told.devices, self._told.details)


def _nowhere(view: object) -> None:
    """Nobody is told how a run stands that is not measured here."""


_shared: Client | None = None
_shared_lock = threading.Lock()


def shared() -> Client:
    """The client of this process; it starts the worker, unless ``MAPBENCH_WORKER`` is ``off``."""
    global _shared
    with _shared_lock:
        if _shared is None:
            off = os.environ.get("MAPBENCH_WORKER", "").lower() == "off"
            _shared = Client(starts_worker=not (off or places.viewer()))
        return _shared
