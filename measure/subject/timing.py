"""Latency inside a subject: turns, each of calls until the process is at its pace, then a few short samples."""

import gc
import resource
import time
from collections.abc import Callable
from typing import Any

from measure.subject.messages import Sampled

# A sample is the mean of as many calls in a row as take this long: a hundred times what the clock takes and what the
# kernel's counters do, and so short that some lie between two disturbances.
SAMPLE_S = 0.003
MOST_CALLS = 4_096
# Samples of one turn last this long, all together. What one turn is off by, mostly by where its threads were put, does
# not get less in a longer one, and that of two turns is independent: many short ones tell most in a given time.
TURN_S = 0.006
# Calls before the first sample of a turn, and of the first turn.
WARM_S, FIRST_WARM_S = 0.004, 0.02
# A call that takes this long comes to its pace by itself, and is a turn of its own.
LONG_CALL_S = 0.1


def usage() -> tuple[float, float, float]:
    """Minor page faults of this process so far, of all its threads, the seconds that they have spent in the kernel, and
    those of processors in all."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_minflt, used.ru_stime, used.ru_utime + used.ru_stime


class Clock:
    """A clock for calls of ``strategy(elems)``. On a GPU a call returns before its work is done, so ``synchronise``
    waits for the device before and after; on a CPU the outputs of eager and compiled calls are ready on return."""

    def __init__(self, strategy: Callable[[Any], Any], elems: Any, synchronise: Callable[[], None]) -> None:
        self._strategy, self._elems, self._synchronise = strategy, elems, synchronise
        self._calls, self._call_s = 0, 0.0  # of a sample; known from the first turn on

    def call(self, calls: int = 1) -> float:
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

    def turn(self) -> Sampled:
        """Come to the pace, then take samples, all of as many calls in a row; one at the least."""
        if not self._calls:
            # What exists by now (graphs, compiled code) is not garbage: keep the collector, which users pay for too,
            # from walking over it again and again.
            gc.collect()
            gc.freeze()
            first = self._sample(1)
            self._call_s, self._calls = first[0], 1
            if self._call_s >= LONG_CALL_S:
                return Sampled(1, *([figure] for figure in first))
            self._call_s = min(self._call_s, self.come_to_pace(FIRST_WARM_S))
            self._calls = max(1, min(MOST_CALLS, round(SAMPLE_S / max(self._call_s, 1e-9))))
        elif self._call_s < LONG_CALL_S:
            self.come_to_pace(WARM_S)
        samples, end_s = [self._sample(self._calls)], time.perf_counter() + TURN_S - SAMPLE_S
        while time.perf_counter() < end_s:
            samples.append(self._sample(self._calls))
        return Sampled(self._calls, *map(list, zip(*samples, strict=True)))

    def _sample(self, calls: int) -> tuple[float, ...]:
        """Seconds of a call, its page faults, its seconds in the kernel and of processors: the mean of ``calls``."""
        before, seconds, after = usage(), self.call(calls), usage()
        return seconds, *(round((end - begin) / calls, 9) for begin, end in zip(before, after, strict=True))

    def come_to_pace(self, seconds: float) -> float:
        """Call for a while, and at least once; seconds of the quickest call, since a disturbed one would make samples
        too short."""
        end_s = time.perf_counter() + seconds
        quickest_s = self.call()
        while time.perf_counter() < end_s:
            quickest_s = min(quickest_s, self.call())
        return quickest_s
