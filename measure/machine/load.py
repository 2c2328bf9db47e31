"""The load of others on the processors while a run measures: the busy time of the processors that it may use, less that
of the measuring process and all below it. The server of the pages is one of the others.

In a container, and where a control group limits processor time, only what its own processes use counts: what neighbours
do takes nothing of what is granted. What the limit itself takes is counted apart.
"""

import contextlib
import threading
import time
from pathlib import Path

import psutil

from measure.machine import control_groups

# The system counts in ticks of 10 ms: a shorter time tells nothing.
_LEAST_S = 0.1
# A look at the load of the moment covers the time since the one before, where that is as long as this.
_MOMENT_S = 0.5, 30.0


class Watch:
    """A watch on the processors, from its making on."""

    def __init__(self, root: Path = control_groups.ROOT) -> None:
        self._root, self._use = root, control_groups.use(root)
        self._started_s, self._others_s = time.monotonic(), _others_s(self._use)

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._started_s

    def cores_of_others(self, least_s: float = 0.0) -> float:
        """Processor cores that others kept busy since then, on average; waits until ``least_s`` seconds have passed.
        0 of a time that tells nothing."""
        if (left_s := self._started_s + least_s - time.monotonic()) > 0:
            time.sleep(left_s)
        now, passed_s = control_groups.use(self._root), time.monotonic() - self._started_s
        if passed_s < _LEAST_S or (now is None) != (self._use is None):
            return 0.0
        return max(0.0, _others_s(now) - self._others_s) / passed_s

    def held(self) -> float:
        """The share of the periods since then in which a limit of processor time held us; 0 without a limit."""
        before, now = self._use, control_groups.use(self._root)
        if before is None or now is None or now.periods <= before.periods:
            return 0.0
        return (now.held - before.held) / (now.periods - before.periods)


class Moment:
    """The load of the moment, seen by looks now and then. Safe to use from any thread."""

    def __init__(self) -> None:
        self._watch, self._cores, self._looking = Watch(), 0.0, threading.Lock()

    def cores_of_others(self) -> float:
        """Processor cores that others have used since the last look; waits for a fifth of a second where that was long
        ago."""
        least_s, most_s = _MOMENT_S
        with self._looking:
            if self._watch.age_s > most_s:
                self._watch = Watch()
                self._cores = self._watch.cores_of_others(2 * _LEAST_S)
            elif self._watch.age_s >= least_s:
                self._cores, self._watch = self._watch.cores_of_others(), Watch()
            return self._cores

    def slowdown(self) -> float:
        """How many times longer work takes that would use all cores, beside the programs of others."""
        granted = control_groups.cores_granted()
        return 1.0 + min(self.cores_of_others(), granted) / granted


def _others_s(use: control_groups.Use | None) -> float:
    """Seconds for which the processors that we may use, or the processes of our group where that counts, were busy,
    less those of this process and all below it. A parent that has reaped a child carries its time."""
    if use is not None:
        busy_s = use.used_s
    else:
        ours = control_groups.processors()
        busy_s = sum(
            # Linux counts the time of guests as time of users too.
            sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0)
            for number, times in enumerate(psutil.cpu_times(percpu=True))
            if number in ours
        )
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            busy_s -= sum(process.cpu_times()[:4])  # user, system, and those of children that have ended
    return busy_s
