"""The launcher of a server that shows runs and measures none: it starts no process, and needs no TensorFlow."""

import queue
from collections.abc import Callable
from typing import Any, Literal

from measure.engine.launcher import Event, HostState
from measure.subject.messages import Spec

_ABSENT = HostState("absent", "this server shows runs and measures none, since MAPBENCH_VIEWER is set")


class NoLauncher:
    """Never ready; who asks for a subject all the same hears that it is lost."""

    start_method: Literal["fork", "fresh"] = "fresh"
    pid: int | None = None

    def state(self) -> HostState:
        return _ABSENT

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        return False

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        events.put(Event(0, "lost", {}))
        return 0

    def send(self, subject: int, message: dict[str, Any]) -> None: ...

    def kill(self, subject: int) -> None: ...

    def close(self) -> None: ...
