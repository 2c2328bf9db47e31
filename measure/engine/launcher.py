"""The interface of a launcher, which starts subjects and delivers what becomes of them as `Event`s, in their order."""

import os
import queue
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from measure.model.place import PROJECT
from measure.subject.messages import Spec

# For how long a subject is waited for that finds out which devices there are.
_DEVICES_S = 60.0
# For how long whoever needs a host waits until TensorFlow is loaded.
HOST_START_S = 120.0

# Absent: this server never measures.
State = Literal["starting", "ready", "restarting", "failed", "absent"]


@dataclass(frozen=True)
class HostState:
    """``devices`` are names like ``CPU:0``, known once the host is ready. ``message`` is a sentence for people."""

    state: State
    message: str
    devices: tuple[str, ...] = ()
    details: dict[str, Any] | None = None
    restarts: int = 0  # so often has it ended by itself


@dataclass(frozen=True)
class Event:
    """A message of a subject, or a change of its state. ``kind``: started, message, exit, or lost (its host died)."""

    subject: int
    kind: Literal["started", "message", "exit", "lost"]
    fields: dict[str, Any]


class Launcher(Protocol):
    """Starts subjects and talks to them. May be used from any thread."""

    start_method: Literal["fork", "fresh"]

    @property
    def pid(self) -> int | None:
        """The process that starts subjects and passes on what they say; None where it is this one, or there is none."""
        ...

    def state(self) -> HostState: ...

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """Wait until subjects can be started; False if that was cancelled, or took longer than ``timeout_s``."""
        ...

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        """Start a subject, whose events go to ``events``; its number."""
        ...

    def send(self, subject: int, message: dict[str, Any]) -> None:
        """Send a message to a subject; one that has ended gets none."""
        ...

    def kill(self, subject: int) -> None: ...

    def close(self) -> None:
        """End all subjects, and what they were started by."""
        ...


def find_devices(launcher: Launcher) -> dict[str, Any] | None:
    """Return what a throw-away subject says of the devices; empty where it failed, None where the host was lost."""
    events: queue.Queue[Event] = queue.Queue()
    subject = launcher.start(Spec(role="devices"), events)
    devices: dict[str, Any] = {}
    end = time.monotonic() + _DEVICES_S
    while True:
        try:
            event = events.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            launcher.kill(subject)
            return devices
        if event.kind == "message" and event.fields.get("event") == "devices":
            devices = event.fields
        if event.kind == "lost":
            return None
        if event.kind == "exit":
            return devices


def environment_of_subjects() -> dict[str, str]:
    """Return the environment of hosts and subjects: this one's, able to import the project, with quiet native logs."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PROJECT), environment.get("PYTHONPATH", "")]))
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    environment["PYTHONUNBUFFERED"] = "1"
    return environment


def command(module: str) -> list[str]:
    """Return the command for a host or a fresh subject. Not ``-m``, whose frames would lie below every call of a
    strategy: TensorFlow records the Python stack with each eager op, and a small one takes 1.1 times as long."""
    return [sys.executable, "-c", f"from {module} import main; main()", str(os.getpid())]
