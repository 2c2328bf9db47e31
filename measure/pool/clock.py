"""The clock of a run: it says when the run's time is over, and it stands still while this process does.

A process that was stopped finds on its return that every deadline has passed, though nobody has kept it waiting. While
a machine sleeps, its monotonic clock stands still by itself, and only another clock tells that it has slept.
"""

import contextlib
import math
import time
from collections.abc import Iterator

# No busy machine makes a wait longer by so much.
PAUSE_S = 1.0
# A shorter difference is no sleep: between the looks at the two clocks another process may have had its turn.
_NAP_S = 0.5


class TimeIsUp(Exception):
    """The run's time is over: what was measured by then is kept."""


class Clock:
    """The time of a run. ``bound_s``: seconds from its start within which it ends, whatever it is doing; None: as long
    as it takes. Belongs to the thread that measures."""

    # Since the start of this process, for all clocks: a part of a run has one of its own.
    _all_still_s = _all_waited_s = _all_asleep_s = 0.0
    _apart_s = 0.0  # what the two clocks were apart by at the last look

    def __init__(self, bound_s: float | None = None) -> None:
        self.bound_s = bound_s
        self._end_s, self._still_before_s, self._waited_before_s = math.inf, 0.0, 0.0
        Clock._apart_s = _clocks_apart_s()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Start the time of the run."""
        self._still_before_s, self._waited_before_s = Clock._all_still_s + Clock._all_asleep_s, Clock._all_waited_s
        self._end_s = self.now_s + (math.inf if self.bound_s is None else self.bound_s)
        yield

    def leave_out(self, begun_s: float, expected_s: float = 0.0, *, for_host: bool = False) -> None:
        """Leave out the time since ``begun_s``, if it is much more than what a wait was expected to take. ``for_host``:
        nothing stood still, and what was waited for counts for the end of the run."""
        passed_s = self.now_s - begun_s
        if passed_s > expected_s + PAUSE_S:
            Clock._all_still_s += 0.0 if for_host else passed_s
            Clock._all_waited_s += passed_s if for_host else 0.0
        before_s, Clock._apart_s = Clock._apart_s, _clocks_apart_s()
        if (asleep_s := Clock._apart_s - before_s) > _NAP_S:
            Clock._all_asleep_s += asleep_s  # in which no deadline has come nearer

    @property
    def now_s(self) -> float:
        """The time of deadlines and budgets."""
        return time.monotonic() - Clock._all_still_s - Clock._all_waited_s

    @property
    def still_s(self) -> float:
        """Seconds for which the run stood still."""
        return Clock._all_still_s + Clock._all_asleep_s - self._still_before_s

    @property
    def left_s(self) -> float:
        return self._end_s - self.now_s - (Clock._all_waited_s - self._waited_before_s)

    @property
    def is_over(self) -> bool:
        return self.left_s <= 0

    @property
    def over(self) -> str:
        """The words for its end, as the beginning of a sentence's reason."""
        return f"the time of this run, {self.bound_s:.0f} s, was over"


def _clocks_apart_s() -> float:
    """Seconds that the clock which goes on while the machine sleeps is ahead of the one that does not: their growth is
    sleep. Linux alone has the former, and elsewhere none is seen."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) - time.monotonic()
