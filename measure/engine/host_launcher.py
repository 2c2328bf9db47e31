"""The launcher of forks: it keeps one host running for the life of this process, and starts it again when it ends."""

import contextlib
import dataclasses
import itertools
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from measure.engine.launcher import Event, HostState, command, environment_of_subjects, find_devices
from measure.model.place import PROJECT
from measure.subject.messages import Lines, ProtocolError, Spec, encode

# Waits between the ends of a host and its next starts; one that stayed up for long starts over at the first.
_BACK_OFF_S = (0.0, 1.0, 5.0, 15.0, 60.0)
_STABLE_S = 60.0
# A host starts a new log when the old one is larger than this; one old log is kept.
_MOST_LOG_BYTES = 2**20


class HostLauncher:
    """Subjects forked by one host process."""

    start_method: Literal["fork", "fresh"] = "fork"

    def __init__(self, log_path: Path, delay_s: float = 0.0) -> None:
        """``delay_s``: how long the host's start may wait for somebody to need it."""
        self._log_path, self._delay_s = log_path, delay_s
        self._needed = False
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._routes: dict[int, queue.Queue[Event]] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._state = HostState("starting", "TensorFlow is being loaded")
        self._changed = threading.Condition(self._lock)
        self._closed = False
        # The kernel ends the host when the thread that started it ends, so one thread does it for good.
        threading.Thread(target=self._keep, name="mapbench-host", daemon=True).start()

    @property
    def pid(self) -> int | None:
        """The number of the host's process; None while there is none."""
        with self._lock:
            return None if self._process is None else self._process.pid

    def state(self) -> HostState:
        with self._lock:
            return self._state

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """Wait for the host; False if that was cancelled, or took longer than ``timeout_s``."""
        end = time.monotonic() + timeout_s
        with self._changed:
            self._needed = True
            self._changed.notify_all()
            while self._state.state != "ready" and not cancelled():
                left = end - time.monotonic()
                if left <= 0 or self._closed:
                    return False
                self._changed.wait(min(left, 0.2))
            return self._state.state == "ready"

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        number = next(self._numbers)
        with self._lock:
            self._routes[number] = events
        if not self._write({"op": "fork", "id": number, "spec": msgspec.to_builtins(spec)}):
            self._deliver(number, "lost", {})
        return number

    def send(self, subject: int, message: dict[str, Any]) -> None:
        self._write({"op": "send", "id": subject, "message": message})

    def kill(self, subject: int) -> None:
        self._write({"op": "kill", "id": subject})

    def close(self) -> None:
        """End the host and wait for it."""
        with self._changed:
            self._closed = True
            process = self._process
            self._changed.notify_all()
        if process is not None:
            with contextlib.suppress(OSError, ValueError):
                if process.stdin:
                    process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _write(self, message: dict[str, Any]) -> bool:
        with self._lock:
            process = self._process
            if process is None or process.stdin is None:
                return False
            try:
                process.stdin.write(encode(message))
                process.stdin.flush()
            except (OSError, ValueError):
                return False
            return True

    def _set(self, **changes: Any) -> None:
        with self._changed:
            self._state = dataclasses.replace(self._state, **changes)
            self._changed.notify_all()

    def _deliver(self, subject: int, kind: Any, fields: dict[str, Any]) -> None:
        with self._lock:
            route = self._routes.get(subject)
            if kind in ("exit", "lost"):
                self._routes.pop(subject, None)
        if route is not None:
            route.put(Event(subject, kind, fields))

    def _keep(self) -> None:
        """Start the host, read it until it ends, and start it again."""
        failures = 0
        with self._changed:
            self._changed.wait_for(lambda: self._needed or self._closed, self._delay_s)
        while not self._closed:
            began = time.monotonic()
            ended = self._one_life()
            if self._closed:
                return
            for subject in list(self._routes):
                self._deliver(subject, "lost", {})
            failures = 0 if time.monotonic() - began > _STABLE_S else failures + 1
            wait_s = _BACK_OFF_S[min(failures, len(_BACK_OFF_S) - 1)]
            self._set(
                state="failed" if failures >= len(_BACK_OFF_S) else "restarting",
                message=f"the measuring process ended ({ended}); it is started again in {wait_s:.0f} s",
            )
            with self._changed:
                self._changed.wait_for(lambda: self._closed, wait_s)

    def _one_life(self) -> str:
        with self._open_log() as log:
            process = subprocess.Popen(
                command("measure.engine.host"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=PROJECT,
                env=environment_of_subjects(),
                start_new_session=True,
            )
        with self._lock:
            self._process = process
        assert process.stdout is not None
        lines = Lines()
        try:
            while data := os.read(process.stdout.fileno(), 2**18):
                for message in lines.feed(data):
                    self._take(message)
        except ProtocolError:
            process.kill()
        status = process.wait()
        with self._lock:
            self._process = None
        return f"signal {-status}" if status < 0 else f"exit status {status}"

    def _open_log(self) -> IO[bytes]:
        """The host's log, or nowhere where it cannot be written: measuring does not depend on it."""
        try:
            self._log_path.parent.mkdir(parents=True, exist_ok=True)
            if self._log_path.exists() and self._log_path.stat().st_size > _MOST_LOG_BYTES:
                self._log_path.replace(self._log_path.with_suffix(".old.log"))
            return open(self._log_path, "ab")
        except OSError:
            return open(os.devnull, "ab")

    def _take(self, message: dict[str, Any]) -> None:
        kind = message.pop("event")
        if kind == "ready":
            self._set(message="finding devices")
            threading.Thread(target=self._find_devices, name="mapbench-devices", daemon=True).start()
        else:
            self._deliver(message.pop("id"), kind, message.get("message", message))

    def _find_devices(self) -> None:
        details = find_devices(self)
        if details is None:  # this host has died meanwhile, and the next one asks again
            return
        self._set(
            state="ready",
            message="ready to measure",
            devices=tuple(details.get("names") or ("CPU:0",)),
            details=details,
        )
