"""The launcher of forks: it has a host for the life of this process, and another one where that ends."""

import contextlib
import io
import math
import os
import queue
import re
import selectors
import signal
import socket
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from measure.pool.launcher import Event, HostState
from measure.pool.pool import SILENT_S, STEP_S, TAIL_BYTES, Pool, Subject, environment
from measure.pool.privacy import cleaned
from measure.pool.process import Python
from measure.subject.messages import Spec, encode, refused

# A host that loads TensorFlow cannot answer: for so long.
_START_S = 300.0
# One that could not start is not tried again for so long: each try costs whoever uses this machine a few seconds.
_AGAIN_S = 120.0
# For a host to end.
_END_S = 5.0
# The log that a host adds to is this long at most; a longer one is begun anew.
_MOST_LOG = 2**20
_LONGEST_REASON = 300

# What names the reason at the end of a traceback. TensorFlow writes advice below it.
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)(?::.*)?")


class HostLauncher(Pool):
    """Subjects forked by one host process, which is killed where it owes an answer and says nothing for long."""

    start_method: Literal["fork", "fresh"] = "fork"

    def __init__(self, log_path: Path, delay_s: float = 0.0) -> None:
        """``delay_s``: how long the host's start may wait for somebody to need it."""
        super().__init__(HostState("starting", "TensorFlow is being loaded"))
        self._log_path = log_path
        self._log: IO[bytes] | None = None
        self._log_begins = 0
        self._host: Python | None = None
        self._requests: socket.socket | None = None
        self._start_at_s = time.monotonic() + delay_s
        self._owed, self._silence_s, self._is_loading = 0, 0.0, False  # answers of the host
        self.state()

    @property
    def pid(self) -> int | None:
        """The number of the host's process; None while there is none."""
        return None if self._host is None else self._host.pid

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        with self.lock:
            if self._host is not None:
                number = super().start(spec, events)
                while self._owed:  # its deadlines begin when it is there
                    self._look(STEP_S)
                return number
            events.put(Event(number := next(self.numbers), "lost", {}))
            return number

    def _spawn(self, subject: Subject, channel: socket.socket, output: io.FileIO) -> None:
        self._ask({"op": "fork", "id": subject.number}, channel.fileno(), output.fileno())

    def kill(self, number: int) -> None:
        with self.lock:
            self._ask({"op": "kill", "id": number})

    def close(self) -> None:
        """End the host and wait for it."""
        with self.lock:
            if self._host is not None:
                self._lose()
            self._start_at_s = math.inf
            self._state = replace(self._state, state="failed", message="the measuring process was ended")

    # --- the host ----------------------------------------------------------------------------------------------------

    def _need(self) -> None:
        if self._state.state == "starting":
            self._start_at_s = 0.0

    def _begin(self) -> None:
        self._log = _opened(self._log_path)
        self._log_begins = self._log.seek(0, os.SEEK_END)
        code, parent = "from measure.pool.host import main; main()", str(os.getpid())
        try:
            self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._host = Python(code, parent, stdin=theirs, output=self._log, environment=environment())
        except OSError as error:
            self._fail(f"could not be started: {error}")
            return
        self.selector.register(self._requests, selectors.EVENT_READ, self._hear_host)
        self._owed, self._silence_s, self._is_loading = 1, 0.0, True
        if self._state.state == "failed":
            self._state = replace(self._state, state="restarting", message="TensorFlow is being loaded")

    def _look(self, timeout_s: float) -> None:
        if self._host is None and time.monotonic() >= self._start_at_s:
            self._begin()
        before_s = time.monotonic()
        super()._look(timeout_s)
        if self._host is None or not self._owed:
            return
        # This process may have stood still itself.
        self._silence_s += min(time.monotonic() - before_s, STEP_S)
        most_s = _START_S if self._is_loading else SILENT_S
        if self._silence_s > most_s:
            self._host.kill()
            self._lose(f"was killed, since it did not answer for {most_s:.0f} s")

    def _ask(self, request: dict[str, Any], *files: int) -> None:
        """Ask the host for something. It is soon found out where that is gone, or stands still."""
        if self._requests is not None:
            self._owed += 1
            with contextlib.suppress(OSError):
                self._requests.settimeout(SILENT_S)
                socket.send_fds(self._requests, [msgspec.json.encode(request)], files)

    def _hear_host(self) -> None:
        assert self._requests is not None
        try:
            data = self._requests.recv(2**16)
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        message = msgspec.json.decode(data)
        self._silence_s = 0.0
        self._owed -= message["event"] != "exit"  # which answers nothing
        subject = self.subjects.get(message.get("id"))
        match message["event"]:
            case "ready":
                self._is_loading = False
                self._state = replace(self._state, message="finding devices")
                self.ask_for_devices()
            case "refused" if subject:
                self.put(subject, "message", encode(refused(message["reason"])))
                self.finish(subject, 0)
            case "exit" if subject:
                self.finish(subject, message["status"])

    def _lose(self, how: str = "") -> None:
        """The host ends, or has ended, and every subject with it."""
        assert self._host is not None and self._requests is not None and self._log is not None
        self.selector.unregister(self._requests)
        self._requests.close()
        status = self._host.end(_END_S)
        self._host, self._requests, self._owed = None, None, 0
        for subject in [*self.subjects.values()]:
            self.finish(subject, None)
        self.asks_for_devices = None
        with self._log:
            how = how or _ending(status, self._log, self._log_begins)
        if self._state.state != "ready":
            self._fail(how)
        else:
            message = f"the measuring process {how}; it is started again"
            self._state = replace(self._state, state="restarting", message=message, restarts=self._state.restarts + 1)

    def _fail(self, how: str) -> None:
        self._start_at_s = time.monotonic() + _AGAIN_S
        message = str(cleaned(f"the measuring process {how}"))
        self._state = replace(self._state, state="failed", message=message, restarts=self._state.restarts + 1)


def _opened(path: Path) -> IO[bytes]:
    """The log, or, where that cannot be written, another file for the last words of a host, or nothing."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > _MOST_LOG:
            os.truncate(path, 0)
        return path.open("ab+")
    with contextlib.suppress(OSError):
        return tempfile.TemporaryFile()
    return open(os.devnull, "wb+")


def _ending(status: int | None, log: IO[bytes], begins: int) -> str:
    """Return how a host has ended, as a predicate, with its last words where it failed."""
    if status is None:
        return "does not end, though it was killed"
    if status == -signal.SIGKILL:
        return f"was killed from outside (signal {-status}), as a system does when its memory runs out"
    ended = f"ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
    log.seek(max(begins, log.seek(0, os.SEEK_END) - TAIL_BYTES))
    words = last_words(log.read().decode(errors="replace")) if status else ""
    return f"{ended}: {words}" if words else ended


def last_words(printed: str) -> str:
    """Return the line that says why a process ended, without folders: its last exception, or else its last line."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    reason = next((line for line in reversed(lines) if _EXCEPTION.fullmatch(line)), lines[-1] if lines else "")
    reason = str(cleaned(reason))
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…"
