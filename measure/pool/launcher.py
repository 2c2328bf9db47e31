"""The interface of a launcher, which starts subjects and delivers what becomes of them as `Event`s, in their order."""

import queue
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from measure.subject.messages import Spec

# For how long whoever needs a host waits until TensorFlow is loaded.
HOST_START_S = 120.0

# Absent: this server never measures.
State = Literal["starting", "ready", "restarting", "failed", "absent"]


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
    """A message of a subject, or its end. ``kind``: message, exit, or lost (its host died). ``fields``: of a message
    its line, which nobody has read yet, or what that holds."""

    subject: int
    kind: Literal["message", "exit", "lost"]
    fields: Any


class Launcher(Protocol):
    """Starts subjects and talks to them. `state` may be called from any thread at any time, all else from any thread
    while no other one measures."""

    start_method: Literal["fork", "fresh"]

    def state(self) -> HostState: ...

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """Wait until subjects can be started; False if that was cancelled, or took longer than ``timeout_s``."""
        ...

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        """Start a subject, whose events go to ``events``; its number."""
        ...

    def next(self, events: "queue.Queue[Event]", timeout_s: float) -> Event | None:
        """Wait for the next of these events; None where there is none within ``timeout_s``."""
        ...

    def send(self, subject: int, message: dict[str, Any]) -> None:
        """Send a message to a subject; one that has ended gets none."""
        ...

    def kill(self, subject: int) -> None: ...

    def close(self) -> None:
        """End all subjects, and what they were started by."""
        ...
