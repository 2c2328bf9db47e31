"""The forecast of a run before it is run: bytes, seconds and allocation events, from the cost models alone.

Pure arithmetic on metadata: no process, no TensorFlow and no array, so that it can follow every move of a slider.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import strategies
from strategies import planning
from strategies.spec import Estimate, Strategy
from workloads.case import Case

# One subject beside its first call: fork, runtime, inputs, a profiled call and its events, the way back.
SUBJECT_S = 0.35
MEMORY_SUBJECTS_AT_ONCE = 2
# Calls of a memory subject after its first one, and rounds of calls that decide a typical ranking.
MEMORY_CALLS = 2
ROUNDS = 30
LEAST_ROUNDS = 4
# Rounds stop for a strategy that clearly loses, so the slow ones do not see all of them.
SECONDS_OF_ROUNDS_EACH = 1.0
# Random numbers, float64 arithmetic and block-wise comparison in NumPy, bytes of float64 per second.
REFERENCE_BYTES_PER_S = 0.4e9
# Memory of one subject's process that it does not share with others, beside the tensors of its case: TensorFlow's
# runtime, graphs and compiled programs. At most 97 MiB were seen (USS of forks, TensorFlow 2.21 on Linux); the
# rest is for larger programs: too little here may cost a run its memory, too much lets a few wait for others.
PROCESS_BYTES = 120 * 2**20


@dataclass(frozen=True)
class RunForecast:
    """The forecast of a whole run: wall-clock seconds, at most the budget, and bytes of all its processes together.

    Those bytes are of the worst moment. ``per_strategy`` has an estimate for each canonical slug.
    """

    seconds: float
    peak_bytes: int
    per_strategy: dict[str, Estimate]


def estimate(case: Case, strategy: Strategy | str) -> Estimate:
    """Return the forecast of one strategy."""
    strategy = strategies.parse(strategy) if isinstance(strategy, str) else strategy
    return strategies.mapper(strategy.mapper).estimate(planning.plan(case, strategy))


def forecast_run(case: Case, slugs: Iterable[str], budget_s: float = float("inf")) -> RunForecast:
    """Return the forecast of a comparison of strategies: reference, memory and correctness, first calls, rounds."""
    per_strategy = {slug: estimate(case, slug) for slug in slugs}
    estimates = per_strategy.values()
    reference_s = SUBJECT_S + case.reference_bytes / REFERENCE_BYTES_PER_S
    memory_s = [reference_s + item.first_call_s + MEMORY_CALLS * item.latency_s for item in estimates]
    # Two at a time, but never faster than the slowest by itself.
    memory_stage_s = max(sum(memory_s) / MEMORY_SUBJECTS_AT_ONCE, max(memory_s, default=0.0))
    first_calls_s = sum(SUBJECT_S + item.first_call_s for item in estimates)
    rounds_s = sum(
        min(ROUNDS * item.latency_s, max(SECONDS_OF_ROUNDS_EACH, LEAST_ROUNDS * item.latency_s)) for item in estimates
    )
    seconds = reference_s + memory_stage_s + first_calls_s + rounds_s
    peak_bytes = together_bytes(case, [item.peak_bytes for item in estimates])
    return RunForecast(min(seconds, budget_s), peak_bytes, per_strategy)


def together_bytes(case: Case, peaks: Iterable[int]) -> int:
    """Return the bytes of all processes at the worst moment, where calls of the strategies have these peaks."""
    # A subject holds its inputs twice while TensorFlow copies them from NumPy; the reference is shared by all.
    held = PROCESS_BYTES + 2 * case.input_bytes + case.captured_bytes
    largest = sorted(peaks, reverse=True)[:MEMORY_SUBJECTS_AT_ONCE]
    return max(case.reference_bytes + sum(held + peak for peak in largest), case.reference_bytes + held)
