"""Shared by the tests of the engine: strategies that misbehave, a host that runs them, and ways to wait for it."""

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from measure import local, making
from measure.client import Client
from measure.engine.bench import Settings
from measure.making import FAULT
from measure.pool.launcher import Events, Launcher
from measure.run import request
from measure.run.run import Run
from measure.store import store
from measure.subject.messages import Spec
from measure.worker import Worker
from tests.deadlines import RUN_S
from tests.subjects import Subjects, leave_the_machine

ROOT = Path(__file__).parent.parent
# As few processes as a comparison can do with: what it decides is not looked at here.
QUICK = 2  # most_processes
_QUICKLY = Settings(most_processes=QUICK, probes=False, process_peaks=False, timeout_floor_s=RUN_S)

_MAPPER = '''
from strategies.spec import Mapper


def map_rightly(fn, elems):
    batch = tf.nest.flatten(elems)[0].shape[0]
    outputs = [fn(tf.nest.map_structure(lambda leaf: leaf[index], elems)) for index in range(batch)]
    return tf.nest.map_structure(lambda *leaves: tf.stack(leaves), *outputs)


def count_calls():
    """The number of calls of the strategy in this process, this one included."""
    tf.calls_so_far = getattr(tf, "calls_so_far", 0) + 1
    return tf.calls_so_far


def map_with_{slug}(fn, elems):
{body}


MAPPER = Mapper(
    slug="{slug}",
    title="{slug}",
    summary="made by a test",
    apply=map_with_{slug},
    steps="whole",
    modes={modes!r},
    default_modes=(),
)
'''


def write_mapper(folder: Path, slug: str, body: str, modes: tuple[str, ...] = ("eager",)) -> None:
    """A mapper whose ``apply(fn, elems)`` has this body, which may use the helpers above."""
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    (folder / f"{slug}.py").write_text(_MAPPER.format(slug=slug, body=body, modes=modes), encoding="utf-8")


# A process that a strategy makes and leaves behind: in a session of its own, it notes its pid and sleeps for ever.
LEAVE_A_PROCESS = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
    with open({path!r}, "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    while True:
        time.sleep(1000)
"""


# Without it, what a subject leaves behind may be ended with it before it has noted its pid.
WAIT_UNTIL_LEFT = """
while not os.path.exists({path!r}) or len(open({path!r}).read().split()) < 2:
    pass
"""


def left_behind(path: Path) -> list[int]:
    """Those processes of `LEAVE_A_PROCESS` that still live."""
    return [pid for pid in map(int, path.read_text().split()) if is_alive(pid)] if path.exists() else []


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def descendants(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def eventually(condition: Callable[[], Any], what: str, within_s: float = RUN_S) -> Any:
    """The first true value of ``condition()``; fails where there is none in time."""
    end = time.monotonic() + within_s
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {within_s:.0f} s: {what}"
        time.sleep(0.01)
    return value


def small_request(*strategies: str, **changes: Any) -> request.Request:
    """A comparison that takes next to no time by itself: two leaves of output, a few kilobytes."""
    usual = {"workload": "per_example_gradients", "size": {"batch": 4, "features": 8}, "budget_s": 300.0}
    return request.parse({**usual, "strategies": list(strategies), **changes})


def run_python(code: str, *arguments: str | Path, folder: Path, options: Sequence[str] = (), **more: Any) -> Any:
    """``python -c code arguments…`` in ``folder``, which has to end well; ``more`` is for `subprocess.run`."""
    command = [sys.executable, *options, "-c", code, *map(str, arguments)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=4 * RUN_S, check=False, **more)
    assert ended.returncode == 0, ended.stderr
    return ended


@contextlib.contextmanager
def running_host() -> Iterator[Launcher]:
    """A host of its own that is ready."""
    launcher = Launcher()
    try:
        assert launcher.wait_ready(RUN_S, lambda: False), launcher.state()
        yield launcher
    finally:
        launcher.close()


class Own:
    """A client with the worker that does what it asks for: when a test says so, or in a thread of its own."""

    def __init__(self, client: Client, worker: Worker) -> None:
        self.client, self.worker = client, worker
        self._thread: threading.Thread | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def work(self) -> None:
        """Do all that waits."""
        while self.worker.work_one():
            pass

    def begin(self) -> None:
        """Do what waits, and what will, beside the test."""
        self._thread = threading.Thread(target=self.worker.work, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the worker, as when its process is told to end."""
        self.worker.end()
        if self._thread is not None:
            self._thread.join()
        self.worker.store.close()


@contextlib.contextmanager
def running(launcher: Launcher, folder: Path | None, **settings: Any) -> Iterator[Own]:
    """A client and a quick worker on a store in a folder, or where settings place it, on a launcher that others may use
    after it."""
    own = Own(Client(store.Store(folder)), worker := Worker(store.Store(folder), launcher, "a test"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "SETTINGS", replace(_QUICKLY, **settings))
        if isinstance(launcher, Subjects):
            leave_the_machine(patch)
        worker.tell()
        try:
            yield own
        finally:
            own.end()
            own.client.store.close()


def measure_here(launcher: Launcher, patch: pytest.MonkeyPatch) -> None:
    """Have commands of this process measure with that, quickly; none of them ends it."""
    patch.setattr(local, "launcher", lambda *_: launcher)
    patch.setattr(launcher, "close", lambda: None)
    patch.setattr(making, "SETTINGS", _QUICKLY)
    leave_the_machine(patch)


def measure(own: Own, asked: request.Request) -> Run:
    """The finished run of a request."""
    run_id = own.submit(asked)
    own.work()
    snapshot = own.snapshot(run_id)
    assert snapshot is not None and snapshot.state == "finished", snapshot
    assert FAULT not in snapshot.run.stop_reason, snapshot.run.stop_reason
    return snapshot.run


def environment(**more: str) -> dict[str, str]:
    """The environment of a command of the project's."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def talk(launcher: Launcher, spec: Spec) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What a subject says that is taken through its role, and its end."""
    events: Events = deque()
    subject, said = launcher.start(spec, events), list[dict[str, Any]]()
    following = {"ready": {"op": "first_call"}, "first_call": {"op": "turn"}, "sampled": {"op": "stop"}}
    while (event := launcher.next(events, RUN_S)) is not None and event.kind == "message":
        said.append(json.loads(event.fields))
        if order := following.get(said[-1]["event"]):
            launcher.send(subject, order)
    assert event is not None, f"silent for {RUN_S:.0f} s: {said}"
    return said, event.fields
