"""The side of a machine that measures for a dashboard elsewhere: ``mapbench worker tcp://dashboard:8786``.

It is a worker of Dask, by which the dashboard calls `answer` in this process, and a Mapbench of its own: a store, and
the usual worker as a child, which measures what is in there. Dask carries what is said, and knows of no runs: so a
scheduler that is started again, or a network that is silent for a while, costs none.
"""

import asyncio
import contextlib
import logging
import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from measure import making
from measure.admission import check
from measure.client import Client
from measure.hosting import limits
from measure.machine.environment import VERSION
from measure.run import place
from measure.run.encoding import decode
from measure.run.place import StoreError
from measure.run.request import RequestError
from measure.run.run import Run
from measure.store.queue import Order, Standing, Work, WorkerState
from measure.store.store import Store

# Nobody has asked for so long: the dashboard is lost, and what is measured for it ends. What is sent into a network
# that is silent for 20 s arrives after 26 s, when TCP sends it again.
SILENT_S = 27.0
# Between two tries to reach the scheduler, and two looks at who still asks.
_LOOK_S = 1.0
_NAME = re.compile(r"\w[\w.-]{0,59}", re.ASCII)
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
        self._asked_s = time.monotonic()

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
        self._asked_s = time.monotonic()
        return msgspec.json.encode(getattr(self, what)(*arguments))

    def watch(self) -> None:
        """End what is measured for a dashboard that is lost; for a thread of its own, since Dask may wait meanwhile."""
        while True:
            time.sleep(_LOOK_S)
            if time.monotonic() - self._asked_s > SILENT_S:
                with contextlib.suppress(StoreError):
                    for work in self._store.queue.all():
                        self._store.end(work.id)


_agent: Agent | None = None


def answer(what: str, *arguments: Any) -> bytes:
    """What this process' agent answers; called by Dask."""
    assert _agent is not None, "only a process of `serve` is asked"
    return _agent.answer(what, *arguments)


def dask() -> Any:
    """Dask's module. Raises `RequestError` where it is not installed, being an extra."""
    try:
        import distributed
    except ImportError:
        raise RequestError("Dask is not installed here: pip install 'mapbench[machines]'") from None
    return distributed


def serve(address: str, name: str, *, python: str | None, own_code: bool) -> None:
    """Measure for the dashboard at the scheduler ``address`` until a signal comes. ``name``: this machine's, and its
    host's without one. Raises `RequestError`."""
    global _agent
    distributed = dask()
    folder = place.home() / "machines" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Of the child, too; and a dashboard with machines of its own, if this machine has one, is another matter.
    os.environ["MAPBENCH_STORE"] = f"sqlite:///{folder / 'runs.db'}"
    os.environ.pop("MAPBENCH_SCHEDULER", None)
    ends = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ends.set())
    client = Client(starts_worker=True, python=python)
    _agent = Agent(client.store, client, own_code=own_code)
    threading.Thread(target=_agent.watch, daemon=True).start()
    try:
        asyncio.run(_stay(distributed, address, name, folder, ends))
    finally:
        client.store.close()


async def _stay(dask: Any, address: str, name: str, folder: Path, ends: threading.Event) -> None:
    """Be a worker of Dask, and another one where the scheduler was lost: a worker does not connect again."""
    logging.getLogger("distributed").setLevel(logging.ERROR)
    said = ""
    while not ends.is_set():
        try:
            # One run at a time; Dask's own limit of memory would count what is measured.
            worker = dask.Worker(
                address, nthreads=1, name=name, memory_limit=0, local_directory=str(folder), dashboard=False,
            )  # fmt: skip
            async with worker:
                _log.warning("measures for %s as %s", address, name)
                said = ""
                while worker.status.name == "running" and not ends.is_set():
                    await asyncio.sleep(_LOOK_S)
        except Exception as error:  # Dask's are of many kinds
            if said != (said := f"{type(error).__name__}: {error}"):
                _log.warning("the scheduler %s is not reached yet: %s", address, said)
        await asyncio.sleep(_LOOK_S)
