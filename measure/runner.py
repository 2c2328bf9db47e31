"""The runner: one per server process. A queue, first come first served, one job at a time, whoever asks.

Measurements never overlap: in this process because one thread runs them, on this machine because that thread holds a
file lock while it does. The runner lives as long as the process: it is a module's, not a page's or a cache's.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from measure import beginning
from measure.admission import NOBODY, Admission, Recent, Visitor, beyond, check_owner
from measure.attendant import Attendant
from measure.claims.tries import chosen
from measure.engine.bench import Settings, clear_leftovers
from measure.engine.deriving import Deriving
from measure.engine.launcher import HostState, Launcher
from measure.engine.start_method import launcher
from measure.hosting import Limits, limits
from measure.job import Job
from measure.jobs import Jobs, Snapshot
from measure.making import Making
from measure.measurer import Measurer, without_measuring
from measure.model import place
from measure.model.asked import Asked
from measure.model.request import Request, RequestError
from measure.model.run import Point, Run
from measure.sweep.request import SweepRequest
from workloads import places
from workloads.functions import Given

if TYPE_CHECKING:
    from measure.store.store import Store


class Runner:
    """Takes requests, runs them one after the other, and tells how they stand. Safe to use from any thread."""

    def __init__(
        self,
        *,
        store_: "Store | None" = None,
        launcher_: Launcher | None = None,
        settings: Settings | None = None,
        name: str = "the app",
        host_delay_s: float = 0.0,
        patient: bool = True,
        limits_: Limits | None = None,
        serves: bool = False,
    ) -> None:
        """``name``: who measures, as others on this machine are told; ``host_delay_s``: how long the start of the host
        may wait for somebody to need it; ``patient``: a function of a person's own is looked at when nobody measures
        any more, where it is refused otherwise; ``limits_``: in place of those that are set;
        ``serves``: what waits outlives this process, and what waited for the one before it is measured here."""
        self.admission = Admission(limits_ or limits())
        self._recent = Recent(self.admission.limits.recent_s, lambda run_id: self.snapshot(run_id) is not None)
        self._store = store_
        self._store_lock = threading.Lock()
        clear_leftovers()
        self._launcher = launcher_ or launcher(place.home() / "host.log", host_delay_s)
        self._settings = replace(settings or Settings(), most_bytes=beginning.most_bytes())
        self._deriving = Deriving(self._launcher, name, patient=patient)
        self._jobs = Jobs(lambda: self.store, self.admission)
        self._making, self._serves = Making(self._jobs, self._launcher, self._settings), serves
        self._attendant = Attendant(self._jobs, self._making, lambda: self.store, self.snapshot, serves=serves)
        self.admission.is_drained = self._attendant.is_drained
        measurer = Measurer(self._jobs, self._launcher, name, self.admission, self._recent)
        self._thread = threading.Thread(target=measurer.work, name="mapbench-runner", daemon=True)
        self._thread.start()

    @property
    def store(self) -> "Store":
        """The store of runs, opened on first use. Raises `StoreError` if the setting that places it makes no sense."""
        with self._store_lock:
            if self._store is None:
                # Only now, since loading SQLAlchemy takes a moment: a first visitor's page does without.
                from measure.store.store import Store

                self._store = Store(most_bytes=self.admission.limits.store_bytes)
            return self._store

    def host(self) -> HostState:
        return self._launcher.state()

    def close(self) -> None:
        """Cancel everything, but for what waits for a server, and end the host."""
        self._attendant.close()
        self._jobs.end()
        for run_id in reversed(self.queue()):
            job = self._jobs.get(run_id)
            if job is not None and (job.state != "queued" or job.waits_as is None):
                self._jobs.cancel(run_id, without_measuring)
        self._thread.join(10)
        self._launcher.close()
        self._jobs.writer.close()
        if self._store is not None:
            self._store.close()

    # --- what can be asked for ---------------------------------------------------------------------------------------

    def submit(
        self, request: Request, parent: str | None = None, visitor: Visitor = NOBODY, *, why: bool = False
    ) -> str:
        """Queue a comparison; its id, or that of a recent run that answers it. ``parent``: the run that it repeats,
        which answers nothing then; ``visitor``: who asks; ``why``: its strategies are explained in the end. Raises
        `RequestError` where it is beyond what is allowed, can neither fit nor end in time, names a device that is not
        there, or where the sources of its workload and a mapper do not make a script, or cannot be asked."""
        if refusal := beyond(request, self.admission.limits):
            raise RequestError(self.admission.tally.refused("limit", refusal))
        self._deriving.complete(request)
        if not (parent or why) and (known := self._recent.find(request)):
            return known
        if refusal := beginning.missing(request, self.host().devices) or beginning.refusal(request):
            raise RequestError(self.admission.tally.refused("machine", refusal))
        waits_as = Asked(why=why)
        return self._queued(lambda run_id: self._making.comparison(run_id, request, parent, waits_as), visitor, request)

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
        if refusal := beyond(request, self.admission.limits):
            raise RequestError(self.admission.tally.refused("limit", refusal))
        self._deriving.complete(*map(request.comparison, request.points()))
        if not (parent or continue_from) and (known := self._recent.find(request)):
            return known
        taken: list[Point] = []
        if continue_from is not None:
            taken = beginning.taken_over(request, continue_from, self.snapshot(continue_from), self._launcher)
            parent = continue_from
        if refusal := beginning.sweep_refusal(request) or beginning.missing(request.base, self.host().devices):
            raise RequestError(self.admission.tally.refused("machine", refusal))
        waits_as = Asked(continue_from=continue_from)
        return self._queued(
            lambda run_id: self._making.sweep(run_id, request, parent, waits_as, taken), visitor, request
        )

    def submit_claims(self, ids: Sequence[str] = (), parent: str | None = None, visitor: Visitor = NOBODY) -> str:
        """Queue what claims need, of all claims where none is named, as `submit` does a comparison. Raises
        `RequestError` also where a claim is not known, or they cannot be tried in time."""
        tried, asked = chosen(ids), tuple(ids)
        if not parent and (known := self._recent.find(asked)):
            return known
        if refusal := beginning.claims_refusal(tried):
            raise RequestError(self.admission.tally.refused("machine", refusal))
        return self._queued(lambda run_id: self._making.claims(run_id, ids, parent, Asked()), visitor, asked)

    def explain(self, run_id: str, visitor: Visitor = NOBODY) -> str:
        """Queue the explanation of a run that has ended; the id of the job, which is not the run's. Raises
        `RequestError` where it cannot be explained here, and what `snapshot` does."""
        self._check_host()
        snapshot = self.snapshot(run_id)
        if snapshot is not None:
            check_owner(snapshot.owner, visitor, "have it explained")
        going_on = self.explanation(run_id)
        if going_on is not None and going_on[1].state != "finished":
            return going_on[0]
        job_id = place.new_id()
        self._jobs.add(job_id, self._making.explanation(job_id, snapshot, visitor, Asked() if self._serves else None))
        return job_id

    def give(self, given: Given, size: Mapping[str, int] | None = None, seed: int = 0) -> str:
        """Execute a function of a person's own in a process that is thrown away, and make it a workload; its slug.
        Sizes that are left out have their defaults. Raises `RequestError` with a sentence where it cannot be
        measured."""
        return self._deriving.give(given, size or {}, seed)

    def _queued(self, make: Callable[[str], Job], visitor: Visitor, asked: object) -> str:
        """Queue what is made for an id, which is returned. ``asked``: the request that its run may answer later."""
        self._check_host()
        run_id = place.new_id()
        job = make(run_id)
        job.visitor, job.asked = visitor, asked
        if not self._serves:
            job.waits_as = None  # who has asked waits here
        self._jobs.add(run_id, job)
        return run_id

    def _check_host(self) -> None:
        """Raise `RequestError` on a server that measures nothing."""
        if (host := self.host()).state == "absent":
            raise RequestError(host.message)

    # --- how it stands -----------------------------------------------------------------------------------------------

    def queue(self) -> tuple[str, ...]:
        """Ids of the runs that are not finished, the running one first."""
        return self._jobs.queue()

    def snapshot(self, run_id: str) -> Snapshot | None:
        """Return the state of a run, live or as it is stored; None if its id is not known. Raises ValueError if the
        stored run is damaged, `StoreError` if the store cannot be read."""
        job = self._jobs.get(run_id)
        if (snapshot := self._jobs.snapshot(run_id)) is not None:
            return snapshot
        # Another server may have deleted or explained what this one has measured.
        kept = self.store.look(run_id) if place.is_id(run_id) else None
        if kept is None:
            self._jobs.forget(run_id)
            return None
        return Snapshot(
            run=kept.run,
            state="running" if kept.live else "finished",
            message="another Mapbench on this machine is measuring" if kept.live else "",
            version=kept.version,
            fault=job is not None and job.fault,
            here=job is not None,
            imported=kept.imported,
            owner=kept.owner,
        )

    def explanation(self, run_id: str) -> tuple[str, Snapshot] | None:
        """The last explanation of a run that this process knows of, as its job's id and how it stands."""
        job_id = self._jobs.explaining(run_id)
        snapshot = None if job_id is None else self._jobs.snapshot(job_id)
        return None if job_id is None or snapshot is None else (job_id, snapshot)

    def finished(self) -> list[Run]:
        """The runs that this process has measured lately, the newest last."""
        return self._jobs.finished()

    def wait(self, run_id: str, timeout_s: float | None = None) -> bool:
        """Wait until the run has finished; False if that takes longer than ``timeout_s``."""
        job = self._jobs.get(run_id)
        return job is None or job.finished.wait(timeout_s)

    def cancel(self, run_id: str, visitor: Visitor = NOBODY) -> None:
        """End a run, or take it out of the queue; what was measured is kept. Unknown ids are ignored. Raises
        `RequestError` where it is another visitor's."""
        if job := self._jobs.get(run_id):
            check_owner(job.visitor.owner, visitor, "cancel it")
        self._jobs.cancel(run_id, without_measuring)

    def stop(self, run_id: str, visitor: Visitor = NOBODY) -> None:
        """Have a run that is measured end with what is known by now, verdict, limit and peaks included. Others, and
        unknown ids, are ignored. Raises `RequestError` where it is another visitor's."""
        if job := self._jobs.get(run_id):
            check_owner(job.visitor.owner, visitor, "stop it")
        self._jobs.stop(run_id)

    def delete(self, ids: Iterable[str], visitor: Visitor = NOBODY) -> list[str]:
        """Delete runs that have ended, as far as they are the visitor's; the ids of those that are gone."""
        gone = self.store.delete(ids, None if visitor == NOBODY else visitor.owner)
        for run_id in gone:
            self._jobs.forget(run_id)
        return gone


# The first page is drawn before TensorFlow is loaded: on two cores both at once would keep its visitor waiting.
_SHARED_HOST_DELAY_S = 1.5

_shared: Runner | None = None
_shared_lock = threading.Lock()


def shared() -> Runner:
    """The runner of this process; made, with its host, at the first call."""
    global _shared
    with _shared_lock:
        if _shared is None:
            # A visitor's page does not wait for minutes: it says who measures.
            _shared = Runner(host_delay_s=_SHARED_HOST_DELAY_S, patient=False, serves=not places.viewer())
        return _shared
