"""The launcher: it has a host start subjects, and takes in all that comes from the host and from them, as events.

Nothing here is a thread: sockets are read whenever somebody waits for an event, or asks how the host stands. A subject
speaks with this process directly, over a socket of its own.
"""

import contextlib
import io
import itertools
import math
import os
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import msgspec

from measure.machine.control_groups import ends_for_memory
from measure.pool.privacy import cleaned
from measure.pool.process import HERE, Interpreter, Python, environment, how_ended, kill_group
from measure.subject.messages import Spec, disturbed, encode, refused
from workloads import places

# For how long whoever needs a host waits until TensorFlow is loaded.
HOST_START_S = 120.0
# A host that owes an answer for so long stands still, and so does a subject that takes in nothing; most pauses are
# shorter. A host that loads TensorFlow, or looks for devices, has longer.
SILENT_S, _START_S = 20.0, 300.0
# A host that could not start is not tried again for so long: each try costs whoever uses this machine a few seconds.
_AGAIN_S = 120.0
# For a host to end; and the longest wait without a look around.
_END_S, _STEP_S = 5.0, 0.5
# The end of what a process prints that stays: enough for the last words of an abort in native code.
_TAIL_BYTES = 8_192
_LONGEST_LINE = 4 * 2**20
# Reads from a process that has ended; bounded, since one that it left behind may go on writing.
_MOST_READS = 1_024

# Absent: this server never measures.
State = Literal["starting", "ready", "restarting", "failed", "absent"]
StartMethod = Literal["fork", "fresh"]


@dataclass(frozen=True)
class HostState:
    """``devices`` are names like ``CPU:0``, there once the host is ready. ``message`` is a sentence for people."""

    state: State
    message: str
    devices: tuple[str, ...] = ()
    details: dict[str, Any] | None = None
    restarts: int = 0  # so often has it ended by itself


@dataclass(frozen=True)
class Event:
    """A message of a subject, or its end. ``fields`` of a message: its line as it came, or the object in it. Of an end:
    ``status`` (negative: the signal that ended it; None: it was lost with its host), ``for_memory`` (the kernel
    ended it, for want of memory), ``tail`` (the last of what it has printed) and ``onednn`` (it was on)."""

    subject: int
    kind: Literal["message", "exit"]
    fields: Any


# What becomes of the subjects of one job, in its order.
Events = deque[Event]


@dataclass(eq=False)
class _Child:
    """A subject, or the host, which has the number 0; who takes what becomes of it, and what it has printed last."""

    number: int
    channel: socket.socket
    output: io.FileIO
    take: Callable[[Event], None]
    order: bytes = b""  # what a subject is to be
    pid: int = 0
    rest: bytes = b""  # of its words, the line that is not complete
    tail: bytes = b""
    ends_for_memory: int = field(default_factory=lambda: ends_for_memory())  # before its start

    def say(self, kind: Literal["message", "exit"], fields: Any) -> None:
        self.take(Event(self.number, kind, fields))


class Launcher:
    """Has a host for its life, which starts its subjects, and another one where that ends. Belongs to one thread."""

    def __init__(
        self,
        start_method: StartMethod = "fork",
        interpreter: Interpreter = HERE,
        beside: "Launcher | None" = None,
    ) -> None:
        """``start_method``: a subject is a fork of the host, which has imported TensorFlow, or a fresh interpreter,
        which imports it itself. ``beside``: a launcher whose subjects take part in the same job."""
        self.start_method, self._interpreter = start_method, interpreter
        # Shared: whoever waits for one takes in what comes from both, and no number is there twice.
        self._selector: selectors.BaseSelector = beside._selector if beside else selectors.DefaultSelector()
        self._numbers: itertools.count[int] = beside._numbers if beside else itertools.count(1)
        self._subjects: dict[int, _Child] = {}
        self._asked: _Child | None = None  # the subject for which the host owes an answer
        self._host: _Child | None = None
        self._process: Python | None = None  # of the host
        self._start_at_s, self._ready_by_s = 0.0, math.inf
        self._state = HostState("starting", "TensorFlow is being loaded")

    @property
    def facts(self) -> Mapping[str, str]:
        """Of the host's environment, where that is another one than this process'."""
        return self._interpreter.facts

    # --- for whoever measures ----------------------------------------------------------------------------------------

    def state(self) -> HostState:
        """How the host stands; starts it, where that is due."""
        self._look(0.0)
        return self._state

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """Wait until subjects can be started; False if that was cancelled, took longer than ``timeout_s``, or cannot
        be."""
        self._look_until(lambda: self._state.state not in ("starting", "restarting") or cancelled(), timeout_s)
        return self._state.state == "ready"

    def start(self, spec: Spec, events: Events) -> int:
        """Start a subject; its number. One that cannot be started fails, as its events tell."""
        return self._start(spec, events.append)

    def next(self, events: Events, timeout_s: float) -> Event | None:
        """Wait for the next of these events; None where there is none within ``timeout_s``."""
        self._look_until(lambda: bool(events), timeout_s)
        return events.popleft() if events else None

    def send(self, subject: int, message: Mapping[str, Any]) -> None:
        """Send a message to a subject; one that has ended gets none."""
        if subject in self._subjects:
            _send(self._subjects[subject].channel, encode(message))

    def kill(self, subject: int) -> None:
        """Kill a subject with the processes of its group; what else it has made ends with it."""
        if subject in self._subjects:
            kill_group(self._subjects[subject].pid)

    def close(self) -> None:
        if self._host is not None:
            self._lose()
        self._start_at_s = math.inf
        self._become("failed", "the measuring process was ended")

    # --- what comes in -----------------------------------------------------------------------------------------------

    def _look_until(self, is_done: Callable[[], bool], timeout_s: float) -> None:
        end_s = time.monotonic() + timeout_s
        self._look(0.0)
        while not is_done() and (left_s := end_s - time.monotonic()) > 0:
            self._look(min(left_s, _STEP_S))

    def _look(self, timeout_s: float) -> None:
        """Take in what has come, or comes within ``timeout_s``, and start the host where one is due."""
        now_s = time.monotonic()
        if self._host is None and now_s >= self._start_at_s:
            self._begin()
        elif self._host is not None and self._state.state != "ready" and now_s > self._ready_by_s:
            self._lose(f"did not start within {_START_S:.0f} s")
        for key, _ in self._selector.select(timeout_s):
            if self._selector.get_map().get(key.fd) is key:  # an earlier one may have ended the subject of this one
                key.data()

    def _watch(self, child: _Child) -> None:
        for file in (child.channel, child.output):
            os.set_blocking(file.fileno(), False)
            self._selector.register(file, selectors.EVENT_READ, partial(self._read, child, file))

    def _unwatch(self, file: socket.socket | io.FileIO) -> None:
        """Take in what there is still from a process that has ended."""
        for _ in range(_MOST_READS):
            if file not in self._selector.get_map() or not self._selector.get_key(file).data():
                break
        if file in self._selector.get_map():
            self._selector.unregister(file)
        file.close()

    def _read(self, child: _Child, file: socket.socket | io.FileIO) -> bool:
        """Take in what a process says or prints; False when there is no more."""
        try:
            data = os.read(file.fileno(), 2**18)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if file is child.output:
            child.tail = (child.tail + data)[-_TAIL_BYTES:]
        else:
            *lines, child.rest = (child.rest + data).split(b"\n")
            for line in lines:
                child.say("message", line)
            if len(child.rest) > _LONGEST_LINE:
                # A strategy has written into its subject's channel: nothing it says can be trusted any more.
                child.say("message", encode(disturbed(f"a line is longer than {_LONGEST_LINE} bytes")))
                kill_group(child.pid)
                data = b""
            if not data and child is self._host:
                self._lose()
                return False
        if not data:
            self._selector.unregister(file)
        return bool(data)

    # --- subjects ----------------------------------------------------------------------------------------------------

    def _start(self, spec: Spec, take: Callable[[Event], None]) -> int:
        """Have the host start a subject; its number. A host that does not answer is ended."""
        number = next(self._numbers)
        if self._host is None:
            take(Event(number, "exit", {"status": None}))
            return number
        try:
            channel, output, theirs, printed = _files()
        except OSError as error:
            take(Event(number, "message", encode(refused(str(error.strerror)))))
            take(Event(number, "exit", {"status": 0}))
            return number
        subject = self._asked = _Child(number, channel, output, take, encode(spec))
        with theirs, printed, contextlib.suppress(OSError):  # a host that is gone is heard of at once
            socket.send_fds(self._host.channel, [b"+"], [theirs.fileno(), printed.fileno()])
        silence_s = 0.0
        while self._asked is subject:
            begun_s = time.monotonic()
            self._look(_STEP_S)
            silence_s += min(time.monotonic() - begun_s, _STEP_S)  # this process may have stood still itself
            if silence_s > SILENT_S and self._asked is subject:
                self._lose(f"was killed, since it did not answer for {SILENT_S:.0f} s")
        return number

    def _take_answer(self, event: Event) -> None:
        message, subject = msgspec.json.decode(event.fields), self._asked
        if message["event"] == "ready":
            self._state = replace(self._state, message="finding devices")
            self._start(Spec(role="devices"), self._take_devices)
        elif message["event"] == "exit":
            for ended in [one for one in self._subjects.values() if one.pid == message["pid"]]:
                self._finish(ended, message["status"])
        elif subject is not None:
            self._asked = None
            if message["event"] == "refused":
                subject.say("message", encode(refused(message["reason"])))
                self._finish(subject, 0)
            else:
                subject.pid = message["pid"]
                self._subjects[subject.number] = subject
                self._watch(subject)
                _send(subject.channel, subject.order)

    def _take_devices(self, event: Event) -> None:
        """Be ready when a throw-away subject has told of the devices, or could not."""
        if event.kind == "message":
            if (message := msgspec.json.decode(event.fields))["event"] == "devices":
                self._state = replace(self._state, devices=tuple(message["names"]), details=message)
        elif event.fields["status"] is not None:
            self._become("ready", "ready to measure", devices=self._state.devices or ("CPU:0",))

    def _finish(self, subject: _Child, status: int | None) -> None:
        """Tell that a subject has ended, after all that it has said and printed."""
        self._subjects.pop(subject.number, None)
        self._unwatch(subject.channel)
        self._unwatch(subject.output)
        for_memory = ends_for_memory() > subject.ends_for_memory
        # A line that is cut at its beginning may be a path that nobody knows as one any more.
        whole = subject.tail.partition(b"\n")[2] if len(subject.tail) == _TAIL_BYTES else b""
        tail = (whole or subject.tail).decode(errors="replace")
        onednn = (self._state.details or {}).get("onednn")
        subject.say("exit", {"status": status, "for_memory": for_memory, "tail": tail, "onednn": onednn})

    # --- the host ----------------------------------------------------------------------------------------------------

    def _become(self, state: State, message: str, **more: Any) -> None:
        self._state = replace(self._state, state=state, message=message, **more)

    def _begin(self) -> None:
        code = "from measure.pool.host import main; main()"
        arguments = str(os.getpid()), self.start_method, *self._interpreter.folders
        try:
            channel, output, stdin, printed = _files()
            with stdin, printed:
                self._process = Python(
                    code, *arguments, stdin=stdin, output=printed, environment=environment(),
                    interpreter=self._interpreter,
                )  # fmt: skip
        except OSError as error:
            self._fail(f"could not be started: {error}")
            return
        self._host = _Child(0, channel, output, self._take_answer, pid=self._process.pid)
        self._watch(self._host)
        self._ready_by_s = time.monotonic() + _START_S
        if self._state.state == "failed":
            self._become("restarting", "TensorFlow is being loaded")

    def _lose(self, how: str = "") -> None:
        """The host ends, or has ended, and every subject with it. ``how``: why it is killed, as a predicate."""
        assert self._host is not None and self._process is not None
        host, asked = self._host, [self._asked] if self._asked else []
        self._host = self._asked = None
        self._selector.unregister(host.channel)
        host.channel.close()
        if how:
            self._process.kill()
        status = self._process.end(_END_S)
        self._unwatch(host.output)
        for subject in [*self._subjects.values(), *asked]:
            self._finish(subject, None)
        how = how or str(cleaned(how_ended(status, host.tail.decode(errors="replace"))))
        if self._state.state != "ready":
            self._fail(how)
        else:
            message = f"the measuring process {how}; it is started again"
            self._become("restarting", message, restarts=self._state.restarts + 1)

    def _fail(self, how: str) -> None:
        self._start_at_s = time.monotonic() + _AGAIN_S
        self._become("failed", f"the measuring process {how}", restarts=self._state.restarts + 1)


class NoLauncher(Launcher):
    """The launcher of a server that shows runs and measures none: it is never ready, and needs no TensorFlow."""

    def __init__(self) -> None:
        super().__init__("fresh")
        self._start_at_s = math.inf
        self._become("absent", "this server shows runs and measures none, since MAPBENCH_VIEWER is set")


def launcher(interpreter: Interpreter = HERE, beside: Launcher | None = None) -> Launcher:
    """The kind of launcher that this platform allows; ``MAPBENCH_START=fresh`` or ``fork`` chooses by hand. macOS has
    `fork`, but its system libraries may abort in a forked child."""
    if places.viewer():
        return NoLauncher()
    chosen = os.environ.get("MAPBENCH_START") or ("fork" if sys.platform.startswith("linux") else "fresh")
    return Launcher("fork" if chosen == "fork" else "fresh", interpreter, beside)


def _files() -> tuple[socket.socket, io.FileIO, socket.socket, io.FileIO]:
    """The ends of a socket and of a pipe for a new process: first ours, then its own, of which it gets copies."""
    (ours, theirs), (output, printed) = socket.socketpair(), map(io.FileIO, os.pipe(), "rw")
    return ours, output, theirs, printed


def _send(to: socket.socket, data: bytes) -> None:
    """Send all of it. It is lost where the other side has ended, or stands still for long with its buffer full."""
    with contextlib.suppress(OSError):
        to.settimeout(SILENT_S)
        to.sendall(data)
    to.settimeout(0.0)
