"""Subjects that live: their channels, what they print, and what becomes of them, however they were started.

Nothing here is a thread: whoever waits for an event, or asks how things stand, takes in what has come. A subject speaks
with this process directly, over a socket of its own.
"""

import contextlib
import io
import itertools
import os
import queue
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from measure.machine.control_groups import ends_for_memory
from measure.pool.launcher import Event, HostState
from measure.subject.messages import Lines, ProtocolError, Spec, disturbed, encode, refused

# The end of what a subject prints that stays: enough for the last words of an abort in native code.
TAIL_BYTES = 8_192
# A process that does not take in what it is sent for so long stands still. Who was paused is back earlier.
SILENT_S = 20.0
# The longest wait without a look around.
STEP_S = 0.5
# A subject that finds out which devices there are is waited for as long as this.
_DEVICES_S = 60.0
# Reads from a subject that has ended; bounded, since a process that it left behind may go on writing.
_MOST_READS = 1_024


@dataclass
class Subject:
    """A subject as its pool sees it."""

    number: int
    events: "queue.Queue[Event]"
    channel: socket.socket
    output: io.FileIO
    ends_for_memory: int  # of processes like it, before its start
    lines: Lines = field(default_factory=Lines)
    tail: bytearray = field(default_factory=bytearray)


class Pool:
    """The base of launchers, which say how a subject is started (`_spawn`) and killed, and tell `finish` of its end."""

    def __init__(self, state: HostState) -> None:
        self._state = state
        self.lock = threading.RLock()
        self.selector = selectors.DefaultSelector()
        self.numbers = itertools.count(1)
        self.subjects: dict[int, Subject] = {}
        self._of_devices: queue.Queue[Event] = queue.Queue()
        self.asks_for_devices: tuple[int, float] | None = None  # the subject that does, and until when
        self._details: dict[str, Any] = {}

    # --- a launcher's side -------------------------------------------------------------------------------------------

    def state(self) -> HostState:
        if self.lock.acquire(blocking=False):  # else somebody takes in what has come
            try:
                self._look(0.0)
            finally:
                self.lock.release()
        return self._state

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """Wait for the devices; False if that was cancelled, took longer than ``timeout_s``, or cannot be."""
        end_s = time.monotonic() + timeout_s
        with self.lock:
            self._need()
            self._look(0.0)
            while self._state.state not in ("ready", "failed") and not cancelled() and time.monotonic() < end_s:
                self._look(min(timeout_s, STEP_S))
            return self._state.state == "ready"

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        with self.lock, contextlib.ExitStack() as opened:
            number = next(self.numbers)
            try:
                channel, theirs = map(opened.enter_context, socket.socketpair())
                files = map(io.FileIO, os.pipe(), "rw")
                output, printed = map(opened.enter_context, files)
                subject = Subject(number, events, channel, output, ends_for_memory())
                self._spawn(subject, theirs, printed)
            except OSError as error:
                events.put(Event(number, "message", encode(refused(str(error.strerror)))))
                events.put(Event(number, "exit", {"status": None, "signal": None, "tail": ""}))
                return number
            opened.pop_all()
            theirs.close()
            printed.close()
            self.subjects[number] = subject
            os.set_blocking(output.fileno(), False)
            self.selector.register(channel, selectors.EVENT_READ, lambda: self._hear(subject))
            self.selector.register(output, selectors.EVENT_READ, lambda: self._read_output(subject))
            send(channel, encode(spec))
            return number

    def next(self, events: "queue.Queue[Event]", timeout_s: float) -> Event | None:
        end_s = time.monotonic() + timeout_s
        with self.lock:
            while True:
                with contextlib.suppress(queue.Empty):
                    return events.get_nowait()
                self._look(max(0.0, min(end_s - time.monotonic(), STEP_S)))
                if time.monotonic() >= end_s and events.empty():
                    return None

    def send(self, number: int, message: dict[str, Any]) -> None:
        with self.lock:
            if number in self.subjects:
                send(self.subjects[number].channel, encode(message))

    def kill(self, number: int) -> None:
        raise NotImplementedError

    # --- of each kind of launcher ------------------------------------------------------------------------------------

    def _spawn(self, subject: Subject, channel: socket.socket, output: io.FileIO) -> None:
        """Start a process with these two. Raises OSError."""
        raise NotImplementedError

    def _need(self) -> None:
        """Somebody waits."""

    # --- what comes in -----------------------------------------------------------------------------------------------

    def _look(self, timeout_s: float) -> None:
        """Take in what has come, or comes within ``timeout_s``."""
        for key, _ in self.selector.select(timeout_s):
            if self.selector.get_map().get(key.fd) is key:  # an earlier one may have ended the subject of this one
                key.data()
        if self.asks_for_devices is not None:
            self._take_devices(*self.asks_for_devices)

    def _hear(self, subject: Subject) -> bool:
        """Take in what a subject says; False when there is no more."""
        try:
            data = subject.channel.recv(2**18)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        try:
            for line in subject.lines.feed(data):
                self.put(subject, "message", line)
        except ProtocolError as error:
            # A strategy has written into its subject's channel: nothing it says can be trusted any more.
            self.selector.unregister(subject.channel)
            self.put(subject, "message", encode(disturbed(str(error))))
            self.kill(subject.number)
            return False
        if not data:
            self.selector.unregister(subject.channel)
        return bool(data)

    def _read_output(self, subject: Subject) -> bool:
        data = subject.output.read(2**16)
        subject.tail += data or b""
        del subject.tail[:-TAIL_BYTES]
        if data == b"":
            self.selector.unregister(subject.output)
        return bool(data)

    def finish(self, subject: Subject, status: int | None) -> None:
        """Say that a subject has ended, after all that it has said and printed. ``status``: as `Python.status`; None
        where its host is lost, and it with that."""
        for file, read in ((subject.channel, self._hear), (subject.output, self._read_output)):
            for _ in range(_MOST_READS):
                if file not in self.selector.get_map() or not read(subject):
                    break
            if file in self.selector.get_map():
                self.selector.unregister(file)
        del self.subjects[subject.number]
        subject.channel.close()
        subject.output.close()
        if status is None:
            self.put(subject, "lost", {})
            return
        fields = {
            "status": status if status >= 0 else None,
            "signal": -status if status < 0 else None,
            "for_memory": ends_for_memory() > subject.ends_for_memory,
            "tail": subject.tail.decode(errors="replace"),
        }
        self.put(subject, "exit", fields)

    def put(self, subject: Subject, kind: Any, fields: Any) -> None:
        subject.events.put(Event(subject.number, kind, fields))

    # --- devices -----------------------------------------------------------------------------------------------------

    def ask_for_devices(self) -> None:
        """Have a throw-away subject find out which devices there are, after which this is ready."""
        self._of_devices, self._details = queue.Queue(), {}
        number = self.start(Spec(role="devices"), self._of_devices)
        self.asks_for_devices = number, time.monotonic() + _DEVICES_S

    def _take_devices(self, number: int, until_s: float) -> None:
        if time.monotonic() > until_s:
            self.kill(number)
        while not self._of_devices.empty():
            event = self._of_devices.get()
            if event.kind == "message" and (said := msgspec.json.decode(event.fields))["event"] == "devices":
                self._details = said
            elif event.kind in ("exit", "lost"):
                self.asks_for_devices = None
            if event.kind == "exit":
                names = tuple(self._details.get("names") or ("CPU:0",))
                self._state = HostState("ready", "ready to measure", names, self._details, self._state.restarts)


def environment() -> dict[str, str]:
    """The variables of hosts and subjects: quiet native logs, and no threads of OpenBLAS, which would be started before
    a fork; both where nobody has set them."""
    quiet = {"OPENBLAS_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "1"}
    return {name: os.environ.get(name, value) for name, value in quiet.items()} | {"PYTHONUNBUFFERED": "1"}


def send(to: socket.socket, data: bytes) -> None:
    """Send all of it. It is lost where the other side has ended, or stands still for long with its buffer full."""
    with contextlib.suppress(OSError):
        to.settimeout(SILENT_S)
        to.sendall(data)
    to.settimeout(0.0)
