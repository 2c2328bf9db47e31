"""The clock inside a subject: how it comes to its pace, and how long a turn is."""

import gc
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from measure.subject import timing
from measure.subject.messages import Sampled
from measure.subject.timing import MOST_CALLS, Clock


@pytest.fixture(autouse=True)
def _garbage_is_collected_as_before() -> Iterator[None]:
    """The clock keeps the collector from what exists by now."""
    yield
    gc.unfreeze()


class Paced:
    """A strategy that takes, by a clock of its own, ``took_s`` call by call, the last of them for ever. ``faults``: of
    calls that are numbered from 1; each takes a microsecond in the kernel."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *took_s: float, faults: Mapping[int, int] | None = None):
        self.now_s, self.taken = 0.0, 0
        self.calls, self._took_s, self._faults = 0, took_s, faults or {}
        monkeypatch.setattr(timing.time, "perf_counter", lambda: self.now_s)
        monkeypatch.setattr(timing, "usage", lambda: (self.taken, 1e-6 * self.taken, self.now_s))

    def __call__(self, _: object) -> None:
        self.now_s += self._took_s[min(self.calls, len(self._took_s) - 1)]
        self.calls += 1
        self.taken += self._faults.get(self.calls, 0)

    def turns(self, count: int) -> list[Sampled]:
        clock = Clock(self, None, lambda: None)
        return [clock.turn() for _ in range(count)]


def test_no_two_outputs_live_at_once_while_a_strategy_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Output:
        pass

    alive: weakref.WeakSet[Output] = weakref.WeakSet()
    counts: list[int] = []
    paced = Paced(monkeypatch, 0.001)

    def strategy(elems: int) -> Any:
        counts.append(len(alive))
        paced(elems)
        output = Output()
        alive.add(output)
        return output

    Clock(strategy, 0, lambda: None).turn()
    assert len(counts) > 20 and set(counts) == {0}


@pytest.mark.parametrize(
    ("took_ms", "first", "later", "calls", "samples"),
    [
        ([1.0], 21, 4, 3, 2),
        ([50.0, 1.0], 21, 4, 3, 2),
        ([7.0], 4, 1, 1, 1),  # the last one ends later
        ([70.0], 2, 1, 1, 1),
        ([110.0], 0, 0, 1, 1),  # comes to its pace by itself
        ([5e-3], 4_000, 800, 600, 2),
        ([5e-4], 40_000, 8_000, MOST_CALLS, 2),
    ],
)
def test_a_turn_comes_to_its_pace_and_its_samples_are_means_of_as_many_calls_in_each_turn(
    monkeypatch: pytest.MonkeyPatch, took_ms: list[float], first: int, later: int, calls: int, samples: int
) -> None:
    strategy, before = Paced(monkeypatch, *(took / 1e3 for took in took_ms)), 0
    clock = Clock(strategy, None, lambda: None)
    for wanted in (first, later, later):
        sampled = clock.turn()
        warm = strategy.calls - before - len(sampled.seconds) * sampled.calls
        assert warm == pytest.approx(wanted, abs=1, rel=0.01)
        assert sampled.calls == calls and len(sampled.seconds) == pytest.approx(samples, abs=1)
        assert sampled.seconds == pytest.approx([took_ms[-1] / 1e3] * len(sampled.seconds)), "what was before is none"
        before = strategy.calls


def test_each_sample_counts_the_page_faults_and_the_kernel_time_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a millisecond a call, the first sample is made of the calls 22 to 24."""
    (sampled,) = Paced(monkeypatch, 0.001, faults={10: 900, 23: 6, 26: 3}).turns(1)
    assert sampled.faults[:2] == [2.0, 1.0] and len(sampled.faults) == len(sampled.seconds)
    assert sampled.kernel_s[:2] == pytest.approx([2e-6, 1e-6])
