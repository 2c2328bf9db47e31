"""The load of others on the processors while a run measures: the busy time of the processors that it may use, less that
of the measuring process and all below it. The server of the pages is one of the others.

Where a control group limits processor time, as in most containers, only what its own processes use counts: what
neighbours do elsewhere on a large machine takes nothing of what is granted. What the limit itself takes is counted
apart.
"""

import os
import time
from pathlib import Path

import psutil

from measure.machine import control_groups

# The system counts in ticks of 10 ms: a shorter time tells nothing.
_LEAST_S = 0.1


class Watch:
    """A watch on the processors, from its making on."""

    def __init__(self, root: Path = control_groups.ROOT) -> None:
        self._root = root
        self._use = control_groups.use(root)
        self._started_s, self._busy_s, self._own_s = time.monotonic(), _busy_s(self._use), _own_s()

    def cores_of_others(self, least_s: float = 0.0) -> float:
        """Processor cores that others kept busy since then, on average; waits until ``least_s`` seconds have passed.
        0 of a time that tells nothing."""
        if (passed_s := time.monotonic() - self._started_s) < least_s:
            time.sleep(least_s - passed_s)
            passed_s = time.monotonic() - self._started_s
        use = control_groups.use(self._root)
        if passed_s < _LEAST_S or (use is None) != (self._use is None):
            return 0.0
        return max(0.0, (_busy_s(use) - self._busy_s) - (_own_s() - self._own_s)) / passed_s

    def held(self) -> float:
        """The share of the periods since then in which a limit of processor time held us; 0 without a limit."""
        now = control_groups.use(self._root)
        if now is None or self._use is None or now.periods <= self._use.periods:
            return 0.0
        return (now.held - self._use.held) / (now.periods - self._use.periods)


def _busy_s(use: control_groups.Use | None) -> float:
    """Seconds for which the processors that we may use were busy; where our group has a limit, with its processes."""
    if use is not None:
        return use.used_s
    ours = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    busy_s = 0.0
    for number, times in enumerate(psutil.cpu_times(percpu=True)):
        if number in ours:  # Linux counts the time of guests as time of users too
            busy_s += sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0)
    return busy_s


def _own_s() -> float:
    """Processor time of this process and all below it, including those that have ended: a parent that has reaped a
    child carries its time."""
    total = 0.0
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        try:
            total += sum(process.cpu_times()[:4])  # user, system, and those of children that have ended
        except psutil.Error:  # it has ended meanwhile
            continue
    return total
