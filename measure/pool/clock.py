"""The clock of a run: it says when the run's time is over, and it stands still while this process does.

A process that was stopped finds on its return that every deadline has passed, though nobody has kept it waiting. So it
looks at the time twice a second: where much more has passed between two looks, nothing of it ran, and that time does
not count. While a machine sleeps, its monotonic clock stands still by itself.
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
        self._end_s, self._still_s = math.inf, 0.0
        self._looked_s: float | None = None  # the last look, while somebody looks
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Start the time of the run, and look at it until the run has ended."""
        self._looked_s = time.monotonic()
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
            self._looked_s = None

    @property
    def now_s(self) -> float:
        """Seconds, those left out in which this process stood still."""
        with self._lock:
            now_s = time.monotonic()
            if self._looked_s is not None:
                if now_s - self._looked_s > PAUSE_S:
                    self._still_s += now_s - self._looked_s
                self._looked_s = now_s
            return now_s - self._still_s

    @property
    def still_s(self) -> float:
        """Seconds for which this process stood still."""
        self.now_s  # noqa: B018
        return self._still_s

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
