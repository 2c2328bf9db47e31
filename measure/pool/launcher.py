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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from measure.machine.control_groups import ends_for_memory
from measure.pool.privacy import cleaned
from measure.pool.process import Python, environment, how_ended, kill_group
from measure.subject.messages import Spec, disturbed, encode, refused
from workloads import places

# For how long whoever needs a host waits until TensorFlow is loaded.
HOST_START_S = 120.0
# A host that owes an answer for so long stands still, and so does a subject that takes in nothing; most pauses are
# shorter. A host that loads TensorFlow, or looks for devices, has longer.
SILENT_S, _START_S = 20.0, 300.0
# A host that could not start is not tried again for so long: each try costs whoever uses this machine a few seconds.
_AGAIN_S = 120.0
# For a host to end.
_END_S = 5.0
# The longest wait without a look around.
_STEP_S = 0.5
# The end of what a process prints that stays: enough for the last words of an abort in native code.
TAIL_BYTES = 8_192
LONGEST_LINE = 4 * 2**20
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
    ended it, for want of memory) and ``tail`` (the last of what it has printed)."""

    subject: int
    kind: Literal["message", "exit"]
    fields: Any


# What becomes of the subjects of one job, in its order.
Events = deque[Event]


@dataclass(eq=False)
class _Child:
    """A process, the socket to it, who takes its lines, and what it has printed last."""

    pid: int
    channel: socket.socket
    output: io.FileIO
    take: Callable[[bytes], None]
    rest: bytes = b""  # of its words, the line that is not complete
    tail: bytearray = field(default_factory=bytearray)


@dataclass(eq=False, kw_only=True)
class _Subject(_Child):
    number: int
    events: Events
    ends_for_memory: int  # of processes like it, before its start


class Launcher:
    """Starts subjects and talks to them. Belongs to one thread.

    It has a host for its life, which starts its subjects, and another one where that ends.
    """

    def __init__(self, start_method: StartMethod = "fork", variables: Mapping[str, str] | None = None) -> None:
        """``start_method``: a subject is a fork of the host, which has imported TensorFlow, or a fresh interpreter,
        which imports it itself; ``variables``: what their environment has beside this process's."""
        self.start_method = start_method
        self._variables = environment() | dict(variables or {})
        self._selector = selectors.DefaultSelector()
        self._numbers = itertools.count(1)
        self._subjects: dict[int, _Subject] = {}
        self._host: _Child | None = None
        self._process: Python | None = None  # of the host
        self._start_at_s, self._ready_by_s = 0.0, math.inf
        self._answer: dict[str, Any] | None = None  # of the host, to a request
        self._ended: dict[int, int] = {}  # processes of subjects, as it tells, with their statuses
        self._devices: Events = deque()  # of the subject that looks for them
        self._state = HostState("starting", "TensorFlow is being loaded")

    # --- for whoever measures ----------------------------------------------------------------------------------------

    def state(self) -> HostState:
        """How the host stands; starts it, where that is due."""
        self._look(0.0)
        return self._state

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """Wait until subjects can be started; False if that was cancelled, took longer than ``timeout_s``, or cannot
        be."""
        end_s = time.monotonic() + timeout_s
        self._look(0.0)
        while self._state.state not in ("ready", "failed") and not cancelled() and time.monotonic() < end_s:
            self._look(min(timeout_s, _STEP_S))
        return self._state.state == "ready"

    def start(self, spec: Spec, events: Events) -> int:
        """Start a subject; its number. One that cannot be started fails, as its events tell."""
        number, before = next(self._numbers), ends_for_memory()

        def take(line: bytes) -> None:
            events.append(Event(number, "message", line))

        try:
            with _files() as (channel, output, their_channel, printed):
                pid = self._ask(their_channel, printed)
        except OSError as error:
            is_refused = not isinstance(error, ConnectionError)
            if is_refused:
                take(encode(refused(str(error.strerror))))
            events.append(Event(number, "exit", {"status": 0 if is_refused else None}))
            return number
        subject = _Subject(pid, channel, output, take, number=number, events=events, ends_for_memory=before)
        self._subjects[number] = subject
        self._watch(subject)
        _send(channel, encode(spec))
        return number

    def next(self, events: Events, timeout_s: float) -> Event | None:
        """Wait for the next of these events; None where there is none within ``timeout_s``."""
        end_s = time.monotonic() + timeout_s
        while not events:
            self._look(max(0.0, min(end_s - time.monotonic(), _STEP_S)))
            if time.monotonic() >= end_s:
                break
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
        """End the host and all subjects."""
        if self._host is not None:
            self._lose()
        self._start_at_s = math.inf
        self._state = replace(self._state, state="failed", message="the measuring process was ended")

    # --- what comes in -----------------------------------------------------------------------------------------------

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
        for subject in [subject for subject in self._subjects.values() if subject.pid in self._ended]:
            self._finish(subject, self._ended.pop(subject.pid))
        while self._devices:
            self._take_devices(self._devices.popleft())

    def _watch(self, child: _Child) -> None:
        """From now on take in what a process says and prints."""
        child.channel.setblocking(False)
        os.set_blocking(child.output.fileno(), False)
        self._selector.register(child.channel, selectors.EVENT_READ, lambda: self._hear(child))
        self._selector.register(child.output, selectors.EVENT_READ, lambda: self._read_output(child))

    def _unwatch(self, file: socket.socket | io.FileIO) -> None:
        """Take in what there is still from a process that has ended."""
        for _ in range(_MOST_READS):
            if file not in self._selector.get_map() or not self._selector.get_key(file).data():
                break
        if file in self._selector.get_map():
            self._selector.unregister(file)
        file.close()

    def _hear(self, child: _Child) -> bool:
        """Take in what a process says; False when there is no more."""
        try:
            data = child.channel.recv(2**18)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        *lines, child.rest = (child.rest + data).split(b"\n")
        for line in lines:
            child.take(line)
        if len(child.rest) > LONGEST_LINE:
            # A strategy has written into its subject's channel: nothing it says can be trusted any more.
            child.take(encode(disturbed(f"a line is longer than {LONGEST_LINE} bytes")))
            kill_group(child.pid)
            data = b""
        if not data and child is self._host:
            self._lose()
        elif not data:
            self._selector.unregister(child.channel)
        return bool(data)

    def _read_output(self, child: _Child) -> bool:
        data = child.output.read(2**16)
        child.tail += data or b""
        del child.tail[:-TAIL_BYTES]
        if data == b"":
            self._selector.unregister(child.output)
        return bool(data)

    def _finish(self, subject: _Subject, status: int | None) -> None:
        """Tell that a subject has ended, after all that it has said and printed."""
        del self._subjects[subject.number]
        self._unwatch(subject.channel)
        self._unwatch(subject.output)
        for_memory = ends_for_memory() > subject.ends_for_memory
        fields = {"status": status, "for_memory": for_memory, "tail": subject.tail.decode(errors="replace")}
        subject.events.append(Event(subject.number, "exit", fields))

    # --- the host ----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Start a host."""
        code, arguments = "from measure.pool.host import main; main()", (str(os.getpid()), self.start_method)
        try:
            with _files() as (channel, output, stdin, printed):
                process = Python(code, *arguments, stdin=stdin, output=printed, environment=self._variables)
        except OSError as error:
            self._fail(f"could not be started: {error}")
            return
        self._process, self._host = process, _Child(process.pid, channel, output, self._take_answer)
        self._watch(self._host)
        self._ready_by_s = time.monotonic() + _START_S
        if self._state.state == "failed":
            self._state = replace(self._state, state="restarting", message="TensorFlow is being loaded")

    def _ask(self, channel: socket.socket, output: io.FileIO) -> int:
        """Have the host start a subject; its number as a process. A host that does not answer is ended. Raises
        ConnectionError where there is none (any more), and OSError where the system refuses a process."""
        self._answer, silence_s = None, 0.0
        if self._host is not None:
            with contextlib.suppress(OSError):  # it is gone, which is heard of at once
                socket.send_fds(self._host.channel, [b"+"], [channel.fileno(), output.fileno()])
        while self._answer is None:
            if self._host is None:
                raise ConnectionError
            began_s = time.monotonic()
            self._look(_STEP_S)
            silence_s += min(time.monotonic() - began_s, _STEP_S)  # this process may have stood still itself
            if silence_s > SILENT_S and self._host is not None:
                self._lose(f"was killed, since it did not answer for {SILENT_S:.0f} s")
        if self._answer["event"] == "refused":
            raise OSError(0, self._answer["reason"])
        return int(self._answer["pid"])

    def _take_answer(self, line: bytes) -> None:
        message = msgspec.json.decode(line)
        if message["event"] == "ready":
            self._state = replace(self._state, message="finding devices")
            self.start(Spec(role="devices"), self._devices)
        elif message["event"] == "exit":
            self._ended[message["pid"]] = message["status"]
        else:
            self._answer = message

    def _take_devices(self, event: Event) -> None:
        """Be ready when a throw-away subject has told of the devices, or could not."""
        if event.kind == "message":
            if (message := msgspec.json.decode(event.fields))["event"] == "devices":
                self._state = replace(self._state, devices=tuple(message["names"]), details=message)
        elif event.fields["status"] is not None:
            devices = self._state.devices or ("CPU:0",)
            self._state = replace(self._state, state="ready", message="ready to measure", devices=devices)

    def _lose(self, how: str = "") -> None:
        """The host ends, or has ended, and every subject with it. ``how``: why it is killed, as a predicate."""
        assert self._host is not None and self._process is not None
        host, self._host = self._host, None
        self._selector.unregister(host.channel)
        host.channel.close()
        if how:
            self._process.kill()
        status = self._process.end(_END_S)
        self._unwatch(host.output)
        self._ended.clear()
        for subject in [*self._subjects.values()]:
            self._finish(subject, None)
        how = how or str(cleaned(how_ended(status, host.tail.decode(errors="replace"))))
        if self._state.state == "ready":
            message = f"the measuring process {how}; it is started again"
            self._state = replace(self._state, state="restarting", message=message, restarts=self._state.restarts + 1)
        else:
            self._fail(how)

    def _fail(self, how: str) -> None:
        self._start_at_s = time.monotonic() + _AGAIN_S
        message = f"the measuring process {how}"
        self._state = replace(self._state, state="failed", message=message, restarts=self._state.restarts + 1)


class NoLauncher(Launcher):
    """The launcher of a server that shows runs and measures none: it is never ready, and needs no TensorFlow."""

    def __init__(self) -> None:
        self.start_method = "fresh"

    def state(self) -> HostState:
        return HostState("absent", "this server shows runs and measures none, since MAPBENCH_VIEWER is set")

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        return False

    def close(self) -> None:
        pass


def launcher() -> Launcher:
    """The kind of launcher that this platform allows; ``MAPBENCH_START=fresh`` or ``fork`` chooses by hand.

    macOS has `fork`, but its system libraries may abort in a forked child. A viewer has a launcher that starts nothing.
    """
    if places.viewer():
        return NoLauncher()
    chosen = os.environ.get("MAPBENCH_START") or ("fork" if sys.platform.startswith("linux") else "fresh")
    return Launcher("fork" if chosen == "fork" else "fresh")


@contextlib.contextmanager
def _files() -> Iterator[tuple[socket.socket, io.FileIO, socket.socket, io.FileIO]]:
    """The ends of a socket and of a pipe for a new process: first ours, then its own. Its own are closed in the end,
    since it has copies by then; ours only after an exception: it could not be started. Raises OSError."""
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
        (channel, their_channel), (output, printed) = socket.socketpair(), map(io.FileIO, os.pipe(), "rw")
        for file in (channel, output):
            ours.enter_context(file)
        for file in (their_channel, printed):
            theirs.enter_context(file)
        yield channel, output, their_channel, printed
        ours.pop_all()


def _send(to: socket.socket, data: bytes) -> None:
    """Send all of it. It is lost where the other side has ended, or stands still for long with its buffer full."""
    with contextlib.suppress(OSError):
        to.settimeout(SILENT_S)
        to.sendall(data)
    to.settimeout(0.0)
