"""Latency inside a subject: how one call, and one sample of several calls, is timed."""

import gc
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

# A sample lasts at least this long, so that the clock's resolution (tens of ns) and a wake-up of the kernel
# (tens of µs) stay under a percent or so; short enough that a round over twenty subjects takes a third of a second.
SAMPLE_S = 0.008
MOST_CALLS = 4_096
# A process that has waited while others ran comes back to its pace before it is timed. Calls of one thread are steady
# after 5 ms; those that go through 7 MB read 1.12 times as long after 6 ms, as long as alone after 30. Those of several
# threads, which a kernel spreads over its processors only as they prove busy, took 1.8 times as long in the first 5 ms,
# 1.1 times in the next 5, and came to their pace within 20 ms or not before 100 ms.
LEAST_WARM_S = 0.006
MOST_WARM_S = 0.03
MOST_WARM_THREADED_S = 0.15
# Calls that keep more processors busy than this, on average, are of several threads. One thread keeps one busy at most;
# two that hand over to each other were seen at 1.02 to 1.27.
SEVERAL_THREADS = 1.05
# Calls until the pace is steady: until the last few take as long as the few before them, within the tolerance. Medians
# of three are not moved by one disturbed call, and see a pace that falls by 4 % with each call, which two neighbours do
# not show. Calls that are so long that this takes more time than given are steady after the second or third.
_STEADY_CALLS = 3
_STEADY_TOLERANCE = 0.10
_STEADY_MOST_S = 0.25


class Clock:
    """A clock for calls of ``strategy(elems)`` on one device.

    On a GPU a call returns before its work is done, so ``synchronise`` waits for the device before and after; on a CPU
    the outputs of eager and compiled calls are ready on return.
    """

    def __init__(self, strategy: Callable[[Any], Any], elems: Any, synchronise: Callable[[], None]) -> None:
        self._strategy, self._elems, self._synchronise = strategy, elems, synchronise

    def call(self) -> float:
        """Seconds of one call."""
        return self.sample(1)

    def sample(self, calls: int) -> float:
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

    def warm(self, seconds: float) -> None:
        """Call outside of the clock for at least so long: the subjects sampled in between have taken the caches, and
        a processor that was idle has to come up to its pace."""
        until = time.perf_counter() + seconds
        while True:
            self.call()
            if time.perf_counter() >= until:
                return

    def settle(self) -> tuple[float, int]:
        """Call until the pace is steady; seconds per call, and the number of calls made."""
        # What exists by now (graphs, compiled code) is not garbage: keep the collector, which users pay for too,
        # from walking over it again and again.
        gc.collect()
        gc.freeze()
        begun = time.perf_counter()
        took_s = [self.call() for _ in range(_STEADY_CALLS)]
        while time.perf_counter() - begun < _STEADY_MOST_S and not _is_steady(took_s):
            took_s.append(self.call())
        # The least, since a disturbed call would make samples too short.
        return min(took_s), len(took_s)


def _is_steady(took_s: Sequence[float]) -> bool:
    """True if the last few calls took as long as the few before them."""
    if len(took_s) < 2 * _STEADY_CALLS:
        return False
    now, before = median(took_s[-_STEADY_CALLS:]), median(took_s[-2 * _STEADY_CALLS : -_STEADY_CALLS])
    return abs(now - before) <= _STEADY_TOLERANCE * before


def warm_up_s(round_s: float, subjects: int, threaded: int) -> tuple[float, float]:
    """The seconds for which each of ``subjects`` may warm up before its sample, where a round over all takes about
    ``round_s``: for those whose calls are of one thread, and for the ``threaded`` among them, whose are of several.

    What a round leaves goes to the threaded first, since they need the most, and then to the others.
    """
    single, left_s = subjects - threaded, round_s - subjects * (SAMPLE_S + LEAST_WARM_S)
    threaded_s = min(MOST_WARM_THREADED_S, LEAST_WARM_S + max(0.0, left_s) / max(1, threaded))
    left_s -= threaded * (threaded_s - LEAST_WARM_S)
    single_s = min(MOST_WARM_S, LEAST_WARM_S + max(0.0, left_s) / max(1, single))
    return single_s, threaded_s


def calls_per_sample(call_s: float) -> int:
    """The number of calls that make a sample of at least `SAMPLE_S` at ``call_s`` seconds a call."""
    if call_s >= SAMPLE_S:
        return 1
    return min(MOST_CALLS, int(SAMPLE_S / max(call_s, 1e-9)) + 1)
