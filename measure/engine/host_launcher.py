"""The launcher of forks: it keeps one host running for the life of this process, and starts it again when it ends."""

import dataclasses
import errno
import itertools
import logging
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from measure.engine.host_log import HostLog
from measure.engine.host_process import HostProcess
from measure.engine.launcher import Event, HostState, command, environment_of_subjects, find_devices
from measure.engine.privacy import cleaned
from measure.model.place import PROJECT
from measure.subject.messages import Spec

# Waits between the ends of a host and its next starts; one that stayed up for long starts over at the first.
_BACK_OFF_S = (0.0, 1.0, 5.0, 15.0, 60.0)
_STABLE_S = 60.0
# Nobody waits for a host that has ended so often before it was ready: it will not start the next time either.
_IN_VAIN = 2
# Refusals of the system that pass, when there is memory or room for a process again.
_PASSING = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
# A host that is silent for longer, while this process runs on, stands still for good. Shorter, it may have been paused.
_SILENT_S = 45.0


class HostLauncher:
    """Subjects forked by one host process. ``silent_s``: how long it may stand still before it is killed."""

    start_method: Literal["fork", "fresh"] = "fork"

    def __init__(self, log_path: Path, delay_s: float = 0.0) -> None:
        """``delay_s``: how long the host's start may wait for somebody to need it."""
        self.silent_s = _SILENT_S
        self._log_path, self._delay_s = log_path, delay_s
        self._needed = False
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._routes: dict[int, queue.Queue[Event]] = {}
        self._host: HostProcess | None = None
        self._state = HostState("starting", "TensorFlow is being loaded")
        self._changed = threading.Condition(self._lock)
        self._closed = False
        # The kernel ends the host when the thread that started it ends, so one thread does it for good.
        threading.Thread(target=self._keep, name="mapbench-host", daemon=True).start()

    @property
    def pid(self) -> int | None:
        """The number of the host's process; None while there is none."""
        with self._lock:
            return None if self._host is None else self._host.pid

    def state(self) -> HostState:
        with self._lock:
            return self._state

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """Wait for the host; False if that was cancelled, took longer than ``timeout_s``, or it does not start."""
        end = time.monotonic() + timeout_s
        with self._changed:
            self._needed = True
            self._changed.notify_all()
            while self._state.state not in ("ready", "failed") and not cancelled():
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
            host = self._host
            self._changed.notify_all()
        if host is not None:
            host.close()

    def _write(self, message: dict[str, Any]) -> bool:
        with self._lock:
            return self._host is not None and self._host.write(message)

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
        failures = in_vain = 0
        with self._changed:
            self._changed.wait_for(lambda: self._needed or self._closed, self._delay_s)
        while not self._closed:
            began = time.monotonic()
            ended, may_start = self._one_life()
            if not self._closed:
                self._set(restarts=self._state.restarts + 1)
            for subject in list(self._routes):
                self._deliver(subject, "lost", {})
            if self._closed:
                return
            failures = 0 if time.monotonic() - began > _STABLE_S else failures + 1
            in_vain = 0 if may_start else in_vain + 1
            wait_s = _BACK_OFF_S[min(failures, len(_BACK_OFF_S) - 1)]
            if failures >= len(_BACK_OFF_S) or in_vain >= _IN_VAIN:
                self._set(state="failed", message=f"the measuring process {ended}")
            else:
                again = f"it is started again in {wait_s:.0f} s"
                self._set(state="restarting", message=f"the measuring process {ended}; {again}")
            with self._changed:
                self._changed.wait_for(lambda: self._closed, wait_s)

    def _one_life(self) -> tuple[str, bool]:
        """The reason for which a host ended, or was not even started, and whether another may do better."""
        process = host = None
        try:
            process = subprocess.Popen(
                command("measure.engine.host"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=PROJECT,
                env=environment_of_subjects(),
                # No session of its own: Linux may share the processors among sessions, whatever the priorities within.
                process_group=0,
            )
            host = HostProcess(process, HostLog(self._log_path))
            with self._lock:
                self._host, closed = host, self._closed
            if closed:
                host.close()
            ended = host.read(self._take, lambda: self.silent_s)
            return ended, host.was_ready
        except Exception as error:  # nothing ends the only thread that starts hosts
            if process is not None:
                process.kill()
            if host is not None:
                host.close()
            if not isinstance(error, OSError):
                logging.getLogger("mapbench").exception("the host could not be kept")
            return str(cleaned(f"could not be started: {error}")), getattr(error, "errno", None) in _PASSING
        finally:
            with self._lock:
                self._host = None

    def _take(self, message: dict[str, Any]) -> None:
        kind = message.pop("event")
        if kind == "ready":
            self._set(message="finding devices")
            threading.Thread(target=self._find_devices, name="mapbench-devices", daemon=True).start()
        elif kind != "pong":
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
