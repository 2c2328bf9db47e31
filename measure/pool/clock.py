"""The clock of a run: it says when the run's time is over, and it stands still while this process does.

A process that was stopped, or whose machine slept, finds on its return that every deadline has passed, though nobody
has kept it waiting. So it looks at the time twice a second: where much more has passed between two looks, nothing of it
ran, and that time does not count.
"""

import contextlib
import math
import threading
import time
from collections.abc import Iterator

LOOK_S = 0.5
# No busy machine keeps a thread from running for as long as this.
PAUSE_S = 3.0


class TimeIsUp(Exception):
    """The run's time is over: what was measured by then is kept."""


class Clock:
    """The time of a run. ``bound_s``: seconds from its start within which it ends, whatever it is doing; None: as long
    as it takes. Safe to use from any thread."""

    def __init__(self, bound_s: float | None = None) -> None:
        self.bound_s = bound_s
        self._end_s = math.inf
        self._lock = threading.Lock()
        self._seen: tuple[float, float] | None = None  # while somebody looks
        self._paused_s, self._pauses = 0.0, 0
        self.still_s = 0.0  # for which this process stood still, or the machine slept

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Start the time of the run, and look at it until the run has ended."""
        self._seen = _both()
        if self.bound_s is not None:
            self._end_s = self.now_s + self.bound_s
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(LOOK_S):
                self.now_s  # noqa: B018

        threading.Thread(target=look, name="mapbench-clock", daemon=True).start()
        try:
            yield
        finally:
            ended.set()
            self._seen = None

    @property
    def now_s(self) -> float:
        """Seconds, those left out in which this process stood still."""
        with self._lock:
            now = _both()
            if self._seen is not None:
                passed_s, passed_asleep_s = (after - before for after, before in zip(now, self._seen, strict=True))
                if max(passed_s, passed_asleep_s) > PAUSE_S:
                    self._paused_s += passed_s
                    self._pauses += 1
                    self.still_s += max(passed_s, passed_asleep_s)
                self._seen = now
            return now[0] - self._paused_s

    @property
    def pauses(self) -> int:
        """The number of times that this process stood still."""
        _ = self.now_s
        return self._pauses

    @property
    def left_s(self) -> float:
        return self._end_s - self.now_s

    @property
    def is_over(self) -> bool:
        return self.left_s <= 0

    @property
    def over(self) -> str:
        """The words for its end, as the beginning of a sentence's reason."""
        return f"the time of this run, {self.bound_s:.0f} s, was over"


def _both() -> tuple[float, float]:
    """The time by two clocks, of which the second one goes on while the machine sleeps, where there is such a one."""
    asleep_too = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic(), time.monotonic() if asleep_too is None else time.clock_gettime(asleep_too)
