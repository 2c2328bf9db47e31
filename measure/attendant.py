"""The attendant of a runner: it looks into the store for what other processes have left there, now and then.

It is the requests that waited for a server that is gone, runs that an operator wants to end, and whether new ones are
taken.
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from measure.admission import Visitor
from measure.job import Job
from measure.jobs import Jobs, Snapshot
from measure.making import Making
from measure.measurer import without_measuring
from measure.model import place
from measure.model.asked import Asked
from measure.model.place import StoreError
from measure.model.request import RequestError

if TYPE_CHECKING:
    from measure.store.store import Store
    from measure.store.waiting import Waiting

_LOOK_EVERY_S = 1.0
# The first page is drawn before the store is looked into, which takes a moment.
_FIRST_LOOK_S = 2.0
_log = logging.getLogger("mapbench")


class Attendant:
    """A thread that looks into the store at its beginning, and while there are jobs."""

    def __init__(
        self,
        jobs: Jobs,
        making: Making,
        store: Callable[[], "Store"],
        find: Callable[[str], Snapshot | None],
        *,
        serves: bool,
    ) -> None:
        """``find``: a run by its id; ``serves``: this process takes over what waits for a server, and is drained."""
        self._jobs, self._making, self._store, self._find = jobs, making, store, find
        self._serves = self._has_to_resume = serves
        self._closed = threading.Event()
        jobs.hold(serves)  # until it is known what comes first
        threading.Thread(target=self._work, name="mapbench-attendant", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def is_drained(self) -> bool:
        """True if an operator wants no new runs; a store that cannot be read wants nothing."""
        try:
            return self._serves and self._store().orders.is_drained()
        except StoreError:
            return False

    def _work(self) -> None:
        if self._serves:
            if not self._jobs.queue():
                self._jobs.pause(_FIRST_LOOK_S)
            self._look()
        while not self._closed.wait(_LOOK_EVERY_S):
            if self._jobs.queue():
                self._look()

    def _look(self) -> None:
        try:
            if self._has_to_resume:
                waiting, to_explain = self._store().take_waiting(), self._store().orders.to_explain()
                self._jobs.put_first(self._made_again(waiting) | self._explained_again(to_explain))
                self._has_to_resume = False
            for run_id in self._store().orders.to_cancel(self._jobs.queue()):
                self._jobs.cancel(run_id, without_measuring)
            self._jobs.hold(self.is_drained())
        except Exception as error:  # measuring goes on without orders
            _log.warning("the store could not be looked into: %s", error)
            self._jobs.hold(False)

    def _made_again(self, waiting: "list[Waiting]") -> dict[str, Job]:
        """The jobs of what waited for the server before this one, which come before all that was asked of this one."""
        again = {}
        for each in waiting:
            try:
                job = self._making.again(each.run, each.asked, self._find)
            except Exception as error:  # one that cannot be made again hinders no other
                why = str(error) if isinstance(error, RequestError) else type(error).__name__
                reason = f"it waited when the server ended, and cannot be queued again: {why}"
                ended = replace(without_measuring(each.run), status="interrupted", stop_reason=reason)
                with contextlib.suppress(StoreError):
                    self._store().save(ended, live=False)
                continue
            job.visitor, job.waits_as, job.saved = Visitor(each.owner, each.owner), each.asked, True
            again[each.run.id] = job
        return again

    def _explained_again(self, run_ids: list[str]) -> dict[str, Job]:
        """The same of explanations. A run that can no longer be explained says why where it is asked for."""
        again = {}
        for run_id in run_ids:
            try:
                snapshot, job_id = self._find(run_id), place.new_id()
                owner = "" if snapshot is None else snapshot.owner
                again[job_id] = self._making.explanation(job_id, snapshot, Visitor(owner, owner), Asked())
            except StoreError:  # it is looked into again
                raise
            except Exception as error:
                _log.info("run %s is not explained: %s", run_id, error)
                self._store().orders.explained(run_id)
        return again
