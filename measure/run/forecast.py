"""The forecast of a run before it is run: bytes, seconds and allocation events, from metadata alone.

Pure arithmetic on metadata: no process, no TensorFlow and no array, so that it can follow every move of a slider.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import strategies
from strategies import estimates
from strategies.spec import Estimate, Strategy
from workloads.case import Case

# One subject beside its first call: fork, runtime, inputs, a profiled call and its events, the way back.
_SUBJECT_S = 0.35
# Processes that make their first calls side by side: one takes 1.02 times as long beside another, in the median of
# twelve strategies on two processors, and reruns scatter by more.
AT_ONCE = 2
# Calls of a memory subject after its first one.
_MEMORY_CALLS = 2
# A process that is timed beside its calls: fork, runtime, inputs. Then calls to come to its pace, and its first turns.
_PROCESS_S = 0.1
TURNS_S = 0.12
LEAST_CALLS = 4
# After so many seconds of turns, more of them would hardly tell the fastest from others.
_MOST_TURNS_S = 30.0
# Random numbers, float64 arithmetic and block-wise comparison in NumPy, bytes of float64 per second.
_REFERENCE_BYTES_PER_S = 0.4e9
# Memory of one subject's process that it does not share with others, beside the tensors of its case: TensorFlow's
# runtime, graphs and compiled programs. At most 97 MiB were seen (USS of forks, TensorFlow 2.21 on Linux); the
# rest is for larger programs: too little here may cost a run its memory, too much lets a few wait for others.
PROCESS_BYTES = 120 * 2**20


@dataclass(frozen=True)
class RunForecast:
    """The forecast of a whole run: wall-clock seconds to its verdict, and bytes of all its processes together.

    Those bytes are of the worst moment. ``per_strategy`` has an estimate for each canonical slug.
    """

    seconds: float
    peak_bytes: int
    per_strategy: dict[str, Estimate]


def estimate(case: Case, strategy: Strategy | str) -> Estimate:
    """Return the forecast of one strategy."""
    return estimates.estimate(case, strategies.parse(strategy) if isinstance(strategy, str) else strategy)


def forecast_run(case: Case, slugs: Iterable[str], budget_s: float = 0.0) -> RunForecast:
    """Return the forecast of a comparison of strategies. ``budget_s``: for the whole of it."""
    per_strategy = {slug: estimate(case, slug) for slug in slugs}
    peak_bytes = together_bytes(case, [item.peak_bytes for item in per_strategy.values()])
    needed = needed_s(case, per_strategy.values())
    return RunForecast(max(needed, min(budget_s, needed + _MOST_TURNS_S)), peak_bytes, per_strategy)


def needed_s(case: Case, estimates: Collection[Estimate]) -> float:
    """Return the seconds of a comparison before its first sample: reference, memory and correctness, first calls."""
    memory_s = [_memory_s(case, item) for item in estimates]
    # Two at a time, but never faster than the slowest by itself.
    memory_stage_s = max(sum(memory_s) / AT_ONCE, max(memory_s, default=0.0))
    return reference_s(case) + memory_stage_s + sum(_PROCESS_S + item.first_call_s for item in estimates) / AT_ONCE


def cell_s(case: Case, estimate: Estimate, strategies: int) -> float:
    """Return the seconds that a strategy takes in a comparison of so many, its first turns included."""
    turns_s = max(TURNS_S, LEAST_CALLS * estimate.latency_s)
    memory_s = _memory_s(case, estimate) / min(AT_ONCE, strategies)
    return memory_s + (_PROCESS_S + estimate.first_call_s) / AT_ONCE + turns_s


def reference_s(case: Case) -> float:
    """Return the seconds that computing the reference takes."""
    return _SUBJECT_S + case.reference_bytes / _REFERENCE_BYTES_PER_S


def _memory_s(case: Case, estimate: Estimate) -> float:
    return reference_s(case) + estimate.first_call_s + _MEMORY_CALLS * estimate.latency_s


def together_bytes(case: Case, peaks: Iterable[int]) -> int:
    """Return the bytes of all processes at the worst moment, where calls of the strategies have these peaks."""
    # A subject holds its inputs twice while TensorFlow copies them from NumPy; the reference is shared by all.
    held = PROCESS_BYTES + 2 * case.input_bytes + case.captured_bytes
    largest = sorted(peaks, reverse=True)[:AT_ONCE] or [0]
    return case.reference_bytes + sum(held + peak for peak in largest)
