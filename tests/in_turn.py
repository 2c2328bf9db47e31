"""A launcher whose memory subjects are one process, which is each of them in turn: what it starts once, it starts once.

Of the processor time of a subject at a small size, more than half goes into its fork, TensorFlow's start and XLA's.
"""

import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Literal

import msgspec

from measure.engine.host_launcher import HostLauncher
from measure.engine.launcher import Event, HostState
from measure.subject.messages import Spec

# A subject's script: for every spec that comes in, it does what a subject of that spec would do. A third of the time
# went into AutoGraph, which keeps what it has converted by its code object, and each script has its own: here it is
# kept by its text. A rough latency, for which a strategy is called again and again, nobody asks for.
_IN_TURN = """
import inspect

from tensorflow.python.autograph.impl import api

from measure.subject import roles
from measure.subject.messages import Channel, Spec
from measure.subject.subject import serve

class ByText(type(api._TRANSPILER._cache)):
    def __init__(self):
        self._cache = {}

    def _get_key(self, function):
        code = function.__code__
        return inspect.getsource(function), code.co_code, code.co_names, code.co_freevars

api._TRANSPILER._cache = ByText()
roles._rough_s = lambda call: None
channel = Channel(3, 3)
while spec := channel.receive(Spec):
    serve(spec, channel)
    channel.send({"event": "served"})
"""
_ENDED = {"status": 0, "signal": None, "tail": ""}


class InTurn:
    """Memory subjects with one of ``names`` share a process of the host; each of the others has its own."""

    start_method: Literal["fork", "fresh"] = "fork"

    def __init__(self, host: HostLauncher) -> None:
        self.names: Collection[str] = ()
        self._host = host
        self._numbers = itertools.count(-1, -1)  # none of the host's
        self._lock = threading.RLock()
        self._waiting: deque[tuple[int, Spec, queue.Queue[Event]]] = deque()
        self._now: tuple[int, queue.Queue[Event]] | None = None
        self._process: int | None = None

    @property
    def pid(self) -> int | None:
        return self._host.pid

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        if spec.role != "memory" or spec.name not in self.names:
            return self._host.start(spec, events)
        number = next(self._numbers)
        with self._lock:
            self._waiting.append((number, spec, events))
            self._go_on()
        return number

    def put(self, event: Event) -> None:
        """Take an event of the shared process: to its host this launcher is a queue of events."""
        with self._lock:
            if event.subject != self._process:
                return
            if event.kind in ("exit", "lost"):
                self._process = None
            if self._now is not None:
                number, events = self._now
                if event.fields.get("event") == "served":
                    event = Event(event.subject, "exit", _ENDED)
                if event.kind in ("exit", "lost"):
                    self._now = None
                events.put(Event(number, event.kind, event.fields))
            self._go_on()

    def _go_on(self) -> None:
        if self._now is not None or not self._waiting:
            return
        number, spec, events = self._waiting.popleft()
        self._now = number, events
        if self._process is None:
            everything: Any = self
            self._process = self._host.start(Spec(role="memory", name="in turn", script=_IN_TURN), everything)
        self._host.send(self._process, msgspec.to_builtins(spec))

    def kill(self, subject: int) -> None:
        if subject > 0:
            self._host.kill(subject)
            return
        with self._lock:
            if self._now is not None and self._now[0] == subject and self._process is not None:
                self._host.kill(self._process)
            for waiting in [each for each in self._waiting if each[0] == subject]:
                self._waiting.remove(waiting)
                waiting[2].put(Event(subject, "exit", _ENDED))

    def send(self, subject: int, message: dict[str, Any]) -> None:
        self._host.send(subject, message)  # one that measures memory is told nothing

    def state(self) -> HostState:
        return self._host.state()

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        return self._host.wait_ready(timeout_s, cancelled)

    def close(self) -> None:
        """End the shared process; the host stays."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            self._host.kill(process)
