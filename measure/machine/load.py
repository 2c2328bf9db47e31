"""The load of others on the processors while a job measures: the busy time of the processors that it may use, less our
own processes'; and that of the pages, which the process that measures serves beside.

Where a control group limits processor time, as in most containers, only what its own processes use counts: what
neighbours do elsewhere on a large machine takes nothing of what is granted. Where they keep samples waiting all the
same, each sample knows (`waiting`). What the limit itself takes is counted apart.
"""

import os
import time
from pathlib import Path
from typing import Any

import psutil

from measure.machine import control_groups, system


class Watch:
    """A watch on the processors, from its making on."""

    def __init__(self, root: Path = system.ROOT) -> None:
        self._root = root
        self._use = control_groups.use(root)
        self._started_s, self._busy_s, self._own_s = time.monotonic(), _busy_s(self._use), _own_s()
        self._pages_s, self._measuring_s = time.process_time(), time.thread_time()

    def cores_of_others(self, least_s: float = 0.0) -> float:
        """Processor cores that others kept busy since then, on average; waits until ``least_s`` seconds have passed,
        since the system counts in ticks of 10 ms."""
        passed_s = time.monotonic() - self._started_s
        if passed_s < least_s:
            time.sleep(least_s - passed_s)
            passed_s = time.monotonic() - self._started_s
        use = control_groups.use(self._root)
        if passed_s <= 0 or (use is None) != (self._use is None):
            return 0.0
        return max(0.0, (_busy_s(use) - self._busy_s) - (_own_s() - self._own_s)) / passed_s

    def held(self) -> float:
        """The share of the periods since then in which a limit of processor time held us; 0 without a limit."""
        now = control_groups.use(self._root)
        if now is None or self._use is None or now.periods <= self._use.periods:
            return 0.0
        return (now.held - self._use.held) / (now.periods - self._use.periods)

    def cores_of_pages(self) -> float:
        """Processor cores that this process kept busy since then with anything but the thread that asks, which has to
        be the one that made the watch."""
        passed_s = time.monotonic() - self._started_s
        others_s = (time.process_time() - self._pages_s) - (time.thread_time() - self._measuring_s)
        return max(0.0, others_s) / passed_s if passed_s > 0 else 0.0


def _busy_s(use: control_groups.Use | None) -> float:
    """Seconds for which the processors that we may use were busy; where our group has a limit, with its processes."""
    if use is not None:
        return use.used_s
    ours = _ours()
    if ours is None:
        return _busy_of(psutil.cpu_times())
    return sum(_busy_of(times) for number, times in enumerate(psutil.cpu_times(percpu=True)) if number in ours)


def _busy_of(times: Any) -> float:
    # Linux counts the time of guests as time of users too.
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


def _ours() -> set[int] | None:
    """The processors that this process may use; None for all of them."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    ours = os.sched_getaffinity(0)
    return ours if len(ours) < (os.cpu_count() or 1) else None


def _own_s() -> float:
    """Processor time of this process and all below it, including those that have ended: a parent that has reaped a
    child carries its time."""
    total = 0.0
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:  # it has ended meanwhile
            continue
        total += times.user + times.system
        total += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return total
