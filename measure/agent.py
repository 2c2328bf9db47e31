"""The side of a machine that measures for a dashboard elsewhere: ``mapbench worker tcp://dashboard:8786``.

It is a worker of Dask, by which the dashboard calls `answer` in this process, and a Mapbench of its own: a store, and
the usual worker as a child, which measures what is in there. Dask carries what is said, and knows of no runs: so a
scheduler that is started again, or a network that is silent for a while, costs none.
"""

import asyncio
import contextlib
import logging
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import filelock
import msgspec

from measure import making
from measure.admission import check
from measure.checkouts import environment
from measure.client import Client
from measure.hosting import NO_DASK, limits
from measure.machine.environment import VERSION
from measure.run import place
from measure.run.encoding import decode
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.run.run import Run
from measure.store.queue import Order, Standing, Work, WorkerState
from measure.store.store import Store

# Nobody has asked about a run for so long: its dashboard is lost, and it ends. What is sent into a network that is
# silent for 20 s arrives after 26 s, when TCP sends it again.
SILENT_S = 27.0
# For so long a scheduler is asked before that is told and begun anew.
_ASKING_S = 30.0
# Between two tries to reach the scheduler, and two looks at who still asks.
_LOOK_S = 1.0
_log = logging.getLogger("mapbench")


class Hello(msgspec.Struct, frozen=True):
    """A machine as it introduces itself."""

    version: str
    state: WorkerState


class Progress(msgspec.Struct, frozen=True):
    """A run on another machine. ``run``: what there is of it, where that is not known yet."""

    state: str
    standing: Standing
    version: int
    elapsed_s: float | None = None
    run: Run | None = None


class Agent:
    """What a dashboard can ask of this machine. Answers are JSON."""

    def __init__(self, store: Store, client: Client, *, own_code: bool) -> None:
        """``own_code``: code of a person's own is executed here."""
        self._store, self._client, self._own_code = store, client, own_code
        self._asked_s = dict[str, float]()  # when the dashboard has asked last, by run

    def hello(self) -> Hello:
        return Hello(VERSION, self._client.host())

    def ask(self, data: bytes) -> str:
        """Queue a run as it is before anything is measured, once however often it is asked for; the sentence why it
        cannot be."""
        run = decode(data)
        if self._store.entry(run.id) is not None:
            return ""
        try:
            if run.request.own is not msgspec.UNSET and not self._own_code:
                raise RequestError("it executes no code of a person's own: its worker was started without --own-code")
            asked = making.asked_of(run)
            check(asked, self._client.host().devices, limits())
        except RequestError as error:
            return str(error)
        self._store.ask(Work(run.id, "measure", run.id, bound_s=making.bound_s(asked)), run)
        return ""

    def look(self, run_id: str, version: int, order: Order) -> Progress | None:
        """A run as it stands, beyond a version of it, after an order was given; None where it is not here."""
        self._asked_s[run_id] = time.monotonic()
        if order:
            self._store.end(run_id, order)
        if (snapshot := self._client.snapshot(run_id)) is None:
            return None
        standing = Standing(**{name: getattr(snapshot, name) for name in Standing.__struct_fields__})
        run = snapshot.run if snapshot.version != version else None
        return Progress(snapshot.state, standing, snapshot.version, snapshot.elapsed_s, run)

    def forget(self, run_id: str) -> None:
        """Delete a run that has arrived."""
        self._store.delete([run_id])

    def answer(self, what: str, *arguments: Any) -> bytes:
        return msgspec.json.encode(getattr(self, what)(*arguments))

    def watch(self) -> None:
        """End what is measured for a dashboard that is lost, or that was started again and has begun anew; for a thread
        of its own, since Dask may wait meanwhile."""
        while True:
            time.sleep(_LOOK_S)
            with contextlib.suppress(StoreError):
                for work in self._store.queue.all():
                    if time.monotonic() - self._asked_s.setdefault(work.id, time.monotonic()) > SILENT_S:
                        self._store.end(work.id)


_agent: Agent | None = None


def answer(what: str, *arguments: Any) -> bytes:
    """What this process' agent answers; called by Dask."""
    assert _agent is not None, "only a process of `serve` is asked"
    return _agent.answer(what, *arguments)


def serve(address: str, name: str, *, python: str | None, own_code: bool) -> None:
    """Measure for the dashboard at the scheduler ``address`` until a signal comes. ``name``: this machine's, and its
    host's without one. Raises `RequestError`."""
    global _agent
    try:
        import distributed  # an extra
    except ImportError:
        raise RequestError(NO_DASK) from None
    folder = place.home() / "machines" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if python is not None:
        with environment(python):  # else its child would say in vain what is wrong with it
            pass
    try:
        lock = filelock.FileLock(folder / "agent.lock").acquire(timeout=0)
    except filelock.Timeout:
        raise RequestError(f"another worker measures as {name} here: give this one another --name") from None
    # Of the child, too; and a dashboard with machines of its own, if this machine has one, is another matter.
    os.environ["MAPBENCH_STORE"] = f"sqlite:///{folder / 'runs.db'}"
    os.environ.pop("MAPBENCH_SCHEDULER", None)
    client = Client(starts_worker=True, python=python)
    _agent = Agent(client.store, client, own_code=own_code)
    threading.Thread(target=_agent.watch, daemon=True).start()
    with lock, contextlib.closing(client.store), contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_stay(distributed, address, name, folder))


async def _stay(dask: Any, address: str, name: str, folder: Path) -> None:
    """Be a worker of Dask until a signal comes, and another one where the scheduler was lost: a worker does not connect
    again."""
    task: Any = asyncio.current_task()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what fails is told below, without tracebacks
    said = ""
    _log.warning("asks the scheduler %s", address)
    while True:
        try:
            # One run at a time. Dask's own limit of memory would count what is measured, and its pages of a worker
            # would be for everybody who reaches this machine.
            worker = dask.Worker(
                address, nthreads=1, name=name, memory_limit=0, local_directory=str(folder), death_timeout=_ASKING_S,
                dashboard_address="127.0.0.1:0",
            )  # fmt: skip
            async with worker:
                _log.warning("measures for %s as %s", address, name)
                said = ""
                while worker.status.name == "running":
                    await asyncio.sleep(_LOOK_S)
        except Exception as error:  # Dask's are of many kinds
            cause = error.__cause__ or error
            if said != (said := type(cause).__name__):  # once: in words, some name the time
                _log.warning("the scheduler %s does not take this machine yet: %s: %s", address, said, cause)
        await asyncio.sleep(_LOOK_S)
