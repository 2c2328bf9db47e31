"""The choice of the launcher that starts subjects on this platform."""

import os
import queue
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from measure.pool.fresh_launcher import FreshLauncher
from measure.pool.host_launcher import HostLauncher
from measure.pool.launcher import Event, HostState, Launcher
from measure.subject.messages import Spec
from workloads import places


def launcher(log_path: Path, delay_s: float = 0.0) -> Launcher:
    """Return the kind of launcher that this platform allows; ``MAPBENCH_START=fresh`` or ``fork`` chooses by hand.

    ``delay_s``: how long a host's start may wait for somebody to need it. macOS has `fork`, but its system libraries
    may abort in a forked child. A viewer has a launcher that starts nothing.
    """
    if places.viewer():
        return NoLauncher()
    chosen = os.environ.get("MAPBENCH_START") or ("fork" if sys.platform.startswith("linux") else "fresh")
    return HostLauncher(log_path, delay_s) if chosen == "fork" else FreshLauncher()


class NoLauncher:
    """The launcher of a server that shows runs and measures none: it is never ready, and needs no TensorFlow."""

    start_method: Literal["fork", "fresh"] = "fresh"

    def state(self) -> HostState:
        return HostState("absent", "this server shows runs and measures none, since MAPBENCH_VIEWER is set")

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        return False

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        raise RuntimeError(self.state().message)

    def next(self, events: "queue.Queue[Event]", timeout_s: float) -> Event | None:
        return None

    def send(self, subject: int, message: dict[str, Any]) -> None: ...

    def kill(self, subject: int) -> None: ...

    def close(self) -> None: ...
