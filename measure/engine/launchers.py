"""Subjects as the runner sees them, whether they are forked by the host or start in fresh interpreters.

Both kinds of `Launcher` deliver what happens as `Event`s into one queue, in the order in which it happened. The
host's launcher keeps one host running for the life of this process, and starts it again when it ends.
"""

import contextlib
import dataclasses
import itertools
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import msgspec

from measure.model.place import PROJECT
from measure.subject.lifeline import end_family, family_name
from measure.subject.messages import Lines, ProtocolError, encode
from measure.subject.subject import Spec, disturbed

# Waits between the ends of a host and its next starts; one that stayed up for long starts over at the first.
_BACK_OFF_S = (0.0, 1.0, 5.0, 15.0, 60.0)
_STABLE_S = 60.0
_TAIL_BYTES = 8_192
# A host starts a new log when the old one is larger than this; one old log is kept.
_MOST_LOG_BYTES = 2**20
# For what a subject in a fresh interpreter has written before its end.
_LAST_WORDS_S = 1.0

State = Literal["starting", "ready", "restarting", "failed"]


@dataclass(frozen=True)
class HostState:
    """``devices`` are names like ``CPU:0``, known once the host is ready. ``message`` is a sentence for people."""

    state: State
    message: str
    devices: tuple[str, ...] = ()
    details: dict[str, Any] | None = None


@dataclass(frozen=True)
class Event:
    """Something that a subject said or that became of it. ``kind``: started, message, exit, or lost (its host died)."""

    subject: int
    kind: Literal["started", "message", "exit", "lost"]
    fields: dict[str, Any]


class Launcher(Protocol):
    """Starts subjects and talks to them. ``events`` receives their events until `forget`."""

    start_method: Literal["fork", "fresh"]

    def state(self) -> HostState: ...

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool: ...

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int: ...

    def send(self, subject: int, message: dict[str, Any]) -> None: ...

    def kill(self, subject: int) -> None: ...

    def close(self) -> None: ...


def _environment() -> dict[str, str]:
    """The environment of hosts and subjects: this one's, able to import the project, with quiet native logs."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PROJECT), environment.get("PYTHONPATH", "")]))
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    environment["PYTHONUNBUFFERED"] = "1"
    return environment


def _python(module: str) -> list[str]:
    """The command for a host or a fresh subject. Not ``-m``, whose frames would lie below every call of a strategy:
    TensorFlow records the Python stack with each eager op, and a small one takes 1.1 times as long."""
    return [sys.executable, "-c", f"from {module} import main; main()", str(os.getpid())]


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

    def state(self) -> HostState:
        with self._lock:
            return self._state

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """Whether the host is ready within ``timeout_s``."""
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
                _python("measure.engine.host"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=PROJECT,
                env=_environment(),
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
        found = find_devices(self)
        if found is None:  # this host has died meanwhile, and the next one asks again
            return
        self._set(
            state="ready",
            message="ready to measure",
            devices=tuple(found.get("names") or ("CPU:0",)),
            details=found,
        )


class FreshLauncher:
    """Subjects in fresh interpreters: where `fork` is missing or unsafe. Each imports TensorFlow itself.

    ``environment`` is what their environment has beside this process's. With ``finds_devices`` False it is ready at
    once, for what needs no list of devices.
    """

    start_method: Literal["fork", "fresh"] = "fresh"

    def __init__(self, environment: dict[str, str] | None = None, finds_devices: bool = True) -> None:
        self._environment = environment or {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._processes: dict[int, tuple[subprocess.Popen[bytes], dict[str, str]]] = {}  # and its family
        self._killed: set[int] = set()  # killed before their process existed
        self._state = HostState("starting", "finding devices")
        self._ready = threading.Event()
        if finds_devices:
            threading.Thread(target=self._find_devices, name="mapbench-devices", daemon=True).start()
        else:
            self._state = HostState("ready", "ready to measure")
            self._ready.set()

    def _find_devices(self) -> None:
        found = find_devices(self) or {}
        self._state = HostState("ready", "ready to measure", tuple(found.get("names") or ("CPU:0",)), found)
        self._ready.set()

    def state(self) -> HostState:
        return self._state

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        end = time.monotonic() + timeout_s
        while not self._ready.wait(0.1):
            if cancelled() or time.monotonic() > end:
                return False
        return True

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        number = next(self._numbers)
        threading.Thread(
            target=self._serve, args=(number, spec, events), name=f"mapbench-subject-{number}", daemon=True
        ).start()
        return number

    def _serve(self, number: int, spec: Spec, events: "queue.Queue[Event]") -> None:
        """Start one subject, pass on what it says, and report its end; the thread lives as long as the subject."""
        family = family_name()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                _python("measure.subject.subject"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=PROJECT,
                env={**_environment(), **self._environment, **family},
                start_new_session=True,
            )
            with self._lock:
                self._processes[number] = process, family
                killed = number in self._killed
            if killed:
                self.kill(number)
            events.put(Event(number, "started", {"pid": process.pid}))
            self.send(number, msgspec.to_builtins(spec))
            reader = threading.Thread(target=self._read, args=(number, process, events), daemon=True)
            reader.start()
            status = process.wait()
            end_family(family)  # what the subject has left behind may hold the pipe open for ever
            reader.join(_LAST_WORDS_S)
            with self._lock:
                del self._processes[number]
                self._killed.discard(number)
            output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL_BYTES))
            events.put(
                Event(
                    number,
                    "exit",
                    {
                        "status": status if status >= 0 else None,
                        "signal": -status if status < 0 else None,
                        "tail": output.read().decode(errors="replace"),
                    },
                )
            )

    def _read(self, number: int, process: "subprocess.Popen[bytes]", events: "queue.Queue[Event]") -> None:
        """Pass on what a subject says until it has closed its end."""
        lines = Lines()
        assert process.stdout is not None
        while data := os.read(process.stdout.fileno(), 2**18):
            try:
                messages = lines.feed(data)
            except ProtocolError as error:
                events.put(Event(number, "message", disturbed(str(error))))
                self.kill(number)
                return
            for message in messages:
                events.put(Event(number, "message", message))

    def send(self, subject: int, message: dict[str, Any]) -> None:
        with self._lock:
            process, _ = self._processes.get(subject, (None, {}))
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                process.stdin.write(encode(message))
                process.stdin.flush()

    def kill(self, subject: int) -> None:
        with self._lock:
            if subject not in self._processes:
                self._killed.add(subject)
                return
            process, family = self._processes[subject]
        process.kill()
        end_family(family)

    def close(self) -> None:
        with self._lock:
            subjects = list(self._processes)
        for subject in subjects:
            self.kill(subject)


def find_devices(launcher: HostLauncher | FreshLauncher) -> dict[str, Any] | None:
    """What a throw-away subject says of the devices; empty where it failed, None where the host was lost."""
    events: queue.Queue[Event] = queue.Queue()
    subject = launcher.start(Spec(role="devices"), events)
    found: dict[str, Any] = {}
    end = time.monotonic() + 60.0
    while True:
        try:
            event = events.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            launcher.kill(subject)
            return found
        if event.kind == "message" and event.fields.get("event") == "devices":
            found = event.fields
        if event.kind == "lost":
            return None
        if event.kind == "exit":
            return found


def launcher(log_path: Path, delay_s: float = 0.0) -> HostLauncher | FreshLauncher:
    """The kind of launcher that this platform allows; ``MAPBENCH_START=fresh`` or ``fork`` chooses by hand.

    macOS has `fork`, but its system libraries may abort in a forked child; Windows has none.
    """
    chosen = os.environ.get("MAPBENCH_START") or ("fork" if sys.platform.startswith("linux") else "fresh")
    return HostLauncher(log_path, delay_s) if chosen == "fork" else FreshLauncher()
