"""The dashboard's side of machines elsewhere. For each of Dask's workers that is an agent of Mapbench there is a worker
here that takes the work which is meant for it, and has the agent measure. Pages know the store alone.
"""

import contextlib
import dataclasses
import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from measure import agent, making
from measure.agent import Hello, Progress
from measure.engine.record import View
from measure.hosting import limits
from measure.machine.environment import VERSION
from measure.pool.launcher import NoLauncher
from measure.pool.privacy import without_folders
from measure.run.request import MACHINE, RequestError
from measure.run.run import Run
from measure.store import imports
from measure.store.queue import Order, Work, WorkerState
from measure.store.store import Snapshot, Store, closed
from measure.worker import Worker

# A machine that has not answered for so long is lost: longer than it takes to end by itself what nobody asks for.
LOST_S = 35.0
# Between two looks at a run, and at which machines there are.
_LOOK_S, _NEW_S = 0.5, 1.0
# For an answer: a machine may have another address by then, and ends what nobody asks for. For what ends as this
# process does.
ANSWER_S, _END_S = 5.0, 5.0
_log = logging.getLogger("mapbench")


_KEPT = "what had arrived is kept"


class NotConnected(Exception):
    """A machine is not connected to the scheduler."""


class Remote:
    """The measuring of a run on another machine, for a `Recording`."""

    def __init__(self, run: Run, ask: Callable[..., bytes], publish: making.Publish) -> None:
        """``ask``: returns an answer of the agent's. Raises `RequestError` where the machine is lost."""
        self._ask, self._publish = ask, publish
        self._view = View(run, {}, started_s=time.monotonic())
        self._order: Order = ""

    def view(self) -> View:
        return self._view

    def cancel(self) -> None:
        self._order = "cancel"

    def stop(self) -> None:
        self._order = self._order or "stop"

    def run(self) -> Run:
        """Have it measured; the run as it ended, or as much of it as had arrived."""
        run_id = self._view.run.id
        try:
            if refusal := msgspec.json.decode(self._ask("ask", msgspec.json.encode(self._view.run)), type=str):
                raise RequestError(refusal)
            while self._look(run_id) != "finished":
                time.sleep(_LOOK_S)
        except (RequestError, msgspec.MsgspecError) as error:
            return closed(self._view.run, "interrupted", str(error))
        with contextlib.suppress(RequestError):
            self._ask("forget", run_id)
        run = self._view.run
        if run.status == "cancelled" and self._order != "cancel":
            run = replace(run, status="interrupted", stop_reason="the machine had lost this dashboard")
        return run

    def _look(self, run_id: str) -> str:
        """Take in how it stands; its state."""
        answer = self._ask("look", run_id, self._view.version, self._order)
        if (now := msgspec.json.decode(answer, type=Progress | None)) is None:
            raise RequestError(f"the machine has no such run any more; {_KEPT}")
        run = self._view.run
        if now.run is not None:
            if (now.run.id, now.run.kind) != (run_id, run.kind) or any(imports.faults(now.run, "$")):
                raise RequestError(f"the machine has answered with what is not this run; {_KEPT}")
            run = replace(now.run, request=run.request)  # as it was asked for, whatever came back
        ago_s = now.elapsed_s or 0.0
        self._view = View(
            run, version=now.version, started_s=time.monotonic() - ago_s,
            **msgspec.structs.asdict(now.standing),
        )  # fmt: skip
        self._publish(self._view)
        return now.state


class Machine(Worker):
    """Does the work of one machine elsewhere."""

    def __init__(self, name: str, store: Store, call: Callable[..., bytes]) -> None:
        """``call``: returns an answer of the agent's at once, or raises whatever Dask does."""
        super().__init__(store, NoLauncher(), machine=name)
        self._call, self._told_s = call, -_NEW_S

    def serve(self) -> None:
        """Do what waits until the machine is not connected any more."""
        try:
            self.work()
        finally:
            self.store.close()

    def tell(self, waits_for: str = "") -> None:
        if (now_s := time.monotonic()) - self._told_s < _NEW_S:
            return
        self._told_s = now_s
        try:
            hello = self._call("hello")
            if (version := msgspec.json.decode(hello)["version"]) != VERSION:  # whatever else it says
                differ = f"{self.machine} has Mapbench {version}, and this dashboard {VERSION}: install the same"
                state = WorkerState("failed", differ, machine=self.machine)
            else:
                state = msgspec.json.decode(hello, type=Hello).state
                state = dataclasses.replace(state, files={}, machine=self.machine)
        except NotConnected:
            self.end()
            return
        except Exception as error:  # Dask's are of many kinds
            message = f"{self.machine} does not answer ({type(error).__name__})"
            state = WorkerState("failed", message, machine=self.machine)
        self._write(state)

    @contextlib.contextmanager
    def _ready(self) -> Iterator[str | None]:
        yield ""

    def _made(self, work: Work, snapshot: Snapshot, recording: making.Recording) -> Remote:
        return Remote(snapshot.run, self._ask, recording.take)

    def _ask(self, *what: Any) -> bytes:
        """An answer, which is asked for again for as long as the machine may come back."""
        end_s = time.monotonic() + LOST_S
        while True:
            try:
                return self._call(*what)
            except Exception as error:  # Dask's are of many kinds
                if time.monotonic() > end_s or self._ends.is_set():
                    raise RequestError(f"{self.machine} was lost ({type(error).__name__}); {_KEPT}") from None
            time.sleep(_LOOK_S)


class Scheduler:
    """Dask's scheduler, and the machines that are connected to it, each of which has a thread here."""

    def __init__(self, address: str) -> None:
        import distributed  # an extra

        self._dask: Any = distributed
        self._address, self._client = address, cast(Any, None)
        self._addresses = dict[str, str]()  # of the machines, by their names
        self._machines = dict[str, tuple[Machine, threading.Thread]]()
        self._ends = threading.Event()
        threading.Thread(target=self._follow, name="mapbench-scheduler", daemon=True).start()

    def end(self) -> None:
        """End what other machines measure, with what there is; what waits goes on waiting."""
        self._ends.set()
        for machine, _ in [*self._machines.values()]:
            machine.end()
        for _, thread in [*self._machines.values()]:
            thread.join(_END_S)

    def _follow(self) -> None:
        said = ""
        while True:
            try:
                with self._dask.Client(self._address, set_as_default=False) as self._client:
                    while self._client.status != "closed":  # it connects again by itself, for a while
                        self._look()
                        time.sleep(_NEW_S)
            except Exception as error:  # Dask's are of many kinds
                if said != (said := f"{type(error).__name__}: {error}"):
                    _log.warning("other machines cannot be reached by %s: %s", self._address, without_folders(said))
            time.sleep(_NEW_S)

    def _look(self) -> None:
        """Have a thread for each machine that is connected."""
        there = self._client.scheduler_info(n_workers=-1)["workers"]  # some versions tell of five
        self._addresses = {str(about["name"]): address for address, about in there.items()}
        for name in self._addresses:
            if MACHINE.fullmatch(name) and not self._has(name) and not self._ends.is_set():
                store = Store(most_bytes=limits().store_bytes)
                machine = Machine(name, store, functools.partial(self._call, name))
                thread = threading.Thread(target=machine.serve, name=f"mapbench-{name}", daemon=True)
                self._machines[name] = machine, thread
                thread.start()

    def _has(self, name: str) -> bool:
        return name in self._machines and self._machines[name][1].is_alive()

    def _call(self, name: str, *what: Any) -> bytes:
        address = self._addresses.get(name)
        if address is None:
            raise NotConnected(name)
        return self._client.run(agent.answer, *what, workers=[address], callback_timeout=ANSWER_S)[address]
