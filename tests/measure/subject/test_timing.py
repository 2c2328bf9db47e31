"""The clock inside a subject: how it comes to its pace, how long it samples, and what it says when."""

import gc
import weakref
from collections.abc import Iterator, Mapping

import pytest

from measure.subject import timing
from measure.subject.messages import Sampled
from measure.subject.timing import MOST_CALLS, SAMPLE_S, SAMPLING_S, WARM_S, Clock


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
        monkeypatch.setattr(timing, "usage", lambda: (self.taken, 1e-6 * self.taken))

    def __call__(self, _: object) -> None:
        self.now_s += self._took_s[min(self.calls, len(self._took_s) - 1)]
        self.calls += 1
        self.taken += self._faults.get(self.calls, 0)

    def samples(self) -> list[Sampled]:
        return list(Clock(self, None, lambda: None).samples())


def seconds(said: list[Sampled]) -> list[float]:
    return [sample_s for sampled in said for sample_s in sampled.seconds]


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

    list(Clock(strategy, 0, lambda: None).samples())
    assert len(counts) > 60 and set(counts) == {0}


@pytest.mark.parametrize(
    ("took_ms", "calls"),
    [
        ([1.0], 60),
        ([50.0, 1.0], 11),
        ([7.0], 9),  # the last one ends later
        ([70.0], 1),
    ],
)
def test_calls_before_the_first_sample_last_as_long_as_a_process_needs_to_come_to_its_pace(
    monkeypatch: pytest.MonkeyPatch, took_ms: list[float], calls: int
) -> None:
    strategy = Paced(monkeypatch, *(took / 1e3 for took in took_ms))
    said = strategy.samples()
    sampled = sum(len(sampled.seconds) * sampled.calls for sampled in said)
    assert strategy.calls - sampled == pytest.approx(calls, abs=1)
    assert seconds(said) == pytest.approx([took_ms[-1] / 1e3] * len(seconds(said))), "what came before is no sample"


@pytest.mark.parametrize(
    ("call_s", "calls", "samples"),
    [(5e-7, MOST_CALLS, 20), (1e-5, 300, 20), (1e-3, 3, 20), (0.0016, 2, 20), (0.01, 1, 6), (0.4, 1, 3), (0.51, 1, 1)],
)
def test_samples_are_means_of_as_many_calls_as_the_clock_needs_for_a_while_and_of_long_calls_a_few(
    monkeypatch: pytest.MonkeyPatch, call_s: float, calls: int, samples: int
) -> None:
    strategy = Paced(monkeypatch, call_s)
    said = strategy.samples()
    assert {sampled.calls for sampled in said} == {calls}
    assert calls in (1, MOST_CALLS) or calls * call_s == pytest.approx(SAMPLE_S, rel=0.1)
    assert seconds(said) == pytest.approx([call_s] * len(seconds(said)))
    assert calls == MOST_CALLS or len(seconds(said)) == pytest.approx(samples, abs=samples // 6)
    assert strategy.now_s <= max(WARM_S, call_s) + max(SAMPLING_S, samples * call_s) + 2 * max(SAMPLE_S, call_s)


@pytest.mark.parametrize(("call_s", "counts"), [(0.4, [1, 1, 1]), (0.05, [2, 1]), (0.6, [1])])
def test_samples_of_long_calls_are_said_before_the_next_is_taken_and_those_of_short_ones_together(
    monkeypatch: pytest.MonkeyPatch, call_s: float, counts: list[int]
) -> None:
    strategy = Paced(monkeypatch, call_s)
    calls_when_said: list[int] = []
    said: list[Sampled] = []
    for sampled in Clock(strategy, None, lambda: None).samples():
        calls_when_said.append(strategy.calls)
        said.append(sampled)
    to_pace = strategy.calls - sum(counts)
    assert [len(sampled.seconds) for sampled in said] == counts
    assert calls_when_said == [to_pace + sum(counts[: place + 1]) for place in range(len(counts))]
    assert [sampled.last for sampled in said] == [False] * (len(counts) - 1) + [True]
    (together,) = Paced(monkeypatch, 0.001).samples()
    assert together.last and len(together.seconds) >= 19


def test_each_sample_counts_the_page_faults_and_the_kernel_time_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a millisecond a call, the first sample is made of the calls 61 to 63."""
    (said,) = Paced(monkeypatch, 0.001, faults={10: 900, 62: 6, 65: 3}).samples()
    assert said.faults[:3] == [2.0, 1.0, 0.0] and len(said.faults) == len(said.seconds)
    assert said.kernel_s[:3] == pytest.approx([2e-6, 1e-6, 0.0])
