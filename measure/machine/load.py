"""The load of others on the processors while a job measures: the whole machine's busy time less our own processes'."""

import time

import psutil


class Watch:
    """A watch on the processors, from its making on."""

    def __init__(self) -> None:
        self._started_s, self._busy_s, self._own_s = time.monotonic(), _busy_s(), _own_s()

    def cores_of_others(self, least_s: float = 0.0) -> float:
        """Processor cores that others kept busy since then, on average; waits until ``least_s`` seconds have passed,
        since the system counts in ticks of 10 ms."""
        passed_s = time.monotonic() - self._started_s
        if passed_s < least_s:
            time.sleep(least_s - passed_s)
            passed_s = time.monotonic() - self._started_s
        if passed_s <= 0:
            return 0.0
        return max(0.0, (_busy_s() - self._busy_s) - (_own_s() - self._own_s)) / passed_s


def _busy_s() -> float:
    times = psutil.cpu_times()
    # Linux counts the time of guests as time of users too.
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


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
