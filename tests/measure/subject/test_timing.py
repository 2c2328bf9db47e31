"""The clock inside a subject: how it comes to its pace, and how long a turn is."""

import gc
import weakref
from collections.abc import Iterator, Mapping

import pytest

from measure.subject import timing
from measure.subject.messages import Sampled
from measure.subject.timing import MOST_CALLS, SAMPLE_S, Clock


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

    def strategy(elems: int) -> Output:
        counts.append(len(alive))
        paced(elems)
        output = Output()
        alive.add(output)
        return output

    Clock(strategy, 0, lambda: None).turn()
    assert len(counts) > 20 and set(counts) == {0}


@pytest.mark.parametrize(
    ("took_ms", "first", "later"),
    [
        ([1.0], 21, 4),
        ([50.0, 1.0], 21, 4),
        ([7.0], 4, 1),  # the last one ends later
        ([70.0], 2, 1),
        ([110.0], 0, 0),  # comes to its pace by itself
    ],
)
def test_calls_before_the_samples_of_a_turn_last_as_long_as_a_process_needs_to_come_to_its_pace(
    monkeypatch: pytest.MonkeyPatch, took_ms: list[float], first: int, later: int
) -> None:
    strategy = Paced(monkeypatch, *(took / 1e3 for took in took_ms))
    clock, calls = Clock(strategy, None, lambda: None), 0
    for wanted in (first, later, later):
        sampled = clock.turn()
        warm = strategy.calls - calls - len(sampled.seconds) * sampled.calls
        assert warm == pytest.approx(wanted, abs=1)
        assert sampled.seconds == pytest.approx([took_ms[-1] / 1e3] * len(sampled.seconds)), "what was before is none"
        calls = strategy.calls


@pytest.mark.parametrize(
    ("call_s", "calls", "samples"),
    [(5e-7, MOST_CALLS, 2), (1e-5, 300, 2), (1e-3, 3, 2), (0.0016, 2, 2), (0.01, 1, 1), (0.4, 1, 1)],
)
def test_samples_are_means_of_as_many_calls_as_the_clock_needs_for_a_while_the_same_in_each_turn(
    monkeypatch: pytest.MonkeyPatch, call_s: float, calls: int, samples: int
) -> None:
    for sampled in Paced(monkeypatch, call_s).turns(3):
        assert sampled.calls == calls
        assert calls in (1, MOST_CALLS) or calls * call_s == pytest.approx(SAMPLE_S, rel=0.1)
        assert sampled.seconds == pytest.approx([call_s] * len(sampled.seconds))
        assert len(sampled.seconds) == pytest.approx(samples, abs=1)


def test_each_sample_counts_the_page_faults_and_the_kernel_time_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a millisecond a call, the first sample is made of the calls 22 to 24."""
    (sampled,) = Paced(monkeypatch, 0.001, faults={10: 900, 23: 6, 26: 3}).turns(1)
    assert sampled.faults[:2] == [2.0, 1.0] and len(sampled.faults) == len(sampled.seconds)
    assert sampled.kernel_s[:2] == pytest.approx([2e-6, 1e-6])
