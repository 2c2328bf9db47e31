"""Latency inside a subject: calls until the process is at its pace, then many short samples of calls in a row."""

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

from measure.subject.messages import Sampled

try:
    import resource
except ImportError:  # Windows counts neither
    resource = None  # type: ignore[assignment]

# A sample is the mean of as many calls in a row as take this long: a hundred times what the clock takes and what the
# kernel's counters do, and so short that of twenty samples some lie between two disturbances.
SAMPLE_S = 0.003
MOST_CALLS = 4_096
# Calls before the first sample. Those of several threads, which a kernel spreads over its processors only as they prove
# busy, come to their pace within 20 to 100 ms.
WARM_S = 0.06
# Samples of one process last this long, all together, and there are at least so many of them.
SAMPLING_S = 0.06
LEAST_SAMPLES = 3
# A call that takes this long is at its pace after the first one, and another process says more than another call.
LONG_CALL_S = 0.5
# What was sampled is said this often: calls that are long arrive one by one, so that a crash costs none of them.
_SAY_EVERY_S = 0.1


def usage() -> tuple[int, float]:
    """Minor page faults of this process so far, of all its threads, and the seconds that it has spent in the kernel;
    zeros where the system does not tell."""
    if resource is None:
        return 0, 0.0
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_minflt, used.ru_stime


class Clock:
    """A clock for calls of ``strategy(elems)`` on one device.

    On a GPU a call returns before its work is done, so ``synchronise`` waits for the device before and after; on a CPU
    the outputs of eager and compiled calls are ready on return.
    """

    def __init__(self, strategy: Callable[[Any], Any], elems: Any, synchronise: Callable[[], None]) -> None:
        self._strategy, self._elems, self._synchronise = strategy, elems, synchronise

    def call(self) -> float:
        """Seconds of one call."""
        return self.mean(1)

    def mean(self, calls: int) -> float:
        """Seconds per call over ``calls`` calls in a row.

        Each output is freed before the next call, as `timeit` does it. Two that live at once would have the C library
        fetch fresh pages for the second in each sample, and give them back after it: a call of 0.5 ms with an output of
        4 MB took 1.1 times as long.
        """
        strategy, elems, clock = self._strategy, self._elems, time.perf_counter
        repeat = range(calls)
        self._synchronise()
        start = clock()
        for _ in repeat:
            strategy(elems)
        self._synchronise()
        return (clock() - start) / calls

    def samples(self) -> Iterator[Sampled]:
        """Come to the pace, then yield samples as they are taken, those of a tenth of a second together."""
        # What exists by now (graphs, compiled code) is not garbage: keep the collector, which users pay for too, from
        # walking over it again and again.
        gc.collect()
        gc.freeze()
        quickest_s = self._come_to_pace()
        calls = max(1, min(MOST_CALLS, round(SAMPLE_S / max(quickest_s, 1e-9))))
        least = 1 if quickest_s > LONG_CALL_S else LEAST_SAMPLES
        taken = 0
        seconds: list[float] = []
        faults: list[float] = []
        kernel_s: list[float] = []
        begun_s = said_s = time.perf_counter()
        while True:
            faults_before, kernel_before_s = usage()
            seconds.append(self.mean(calls))
            faults_after, kernel_after_s = usage()
            faults.append(round((faults_after - faults_before) / calls, 3))
            kernel_s.append(round((kernel_after_s - kernel_before_s) / calls, 9))
            taken += 1
            now_s = time.perf_counter()
            last = taken >= least and now_s - begun_s >= SAMPLING_S
            if last or now_s - said_s >= _SAY_EVERY_S:
                yield Sampled(calls, seconds, faults, kernel_s, last)
                seconds, faults, kernel_s, said_s = [], [], [], now_s
            if last:
                return

    def _come_to_pace(self) -> float:
        """Call for a while, and at least once; seconds of the quickest call, since a disturbed one would make samples
        too short."""
        end = time.perf_counter() + WARM_S
        quickest_s = self.call()
        while time.perf_counter() < end:
            quickest_s = min(quickest_s, self.call())
        return quickest_s
