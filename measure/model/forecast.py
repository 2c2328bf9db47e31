"""The forecast of a run before it is run: bytes, seconds and allocation events, from the cost models alone.

Pure arithmetic on metadata: no process, no TensorFlow and no array, so that it can follow every move of a slider.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import strategies
from measure.model.processes import CONTENDER
from strategies import planning
from strategies.spec import Estimate, Strategy
from workloads.case import Case

# One subject beside its first call: fork, runtime, inputs, a profiled call and its events, the way back.
SUBJECT_S = 0.35
MEMORY_SUBJECTS_AT_ONCE = 2
# Calls of a memory subject after its first one.
MEMORY_CALLS = 2
# A visit beside its calls: fork, runtime, inputs. Then calls to come to its pace, and those that are sampled.
VISIT_S = 0.1
WARM_S, SAMPLING_S = 0.06, 0.06
LEAST_CALLS = 3
# Processes that make their first calls side by side: one takes 1.02 times as long beside another, in the median of
# twelve strategies on two processors, and reruns scatter by more. Those that take longer than this are by themselves.
PREPARED_AT_ONCE = 2
SHORT_FIRST_CALL_S = 1.0
# Visits that decide a typical ranking: one of every strategy, and further ones of so many that may lead, twin included.
LEADERS = 3
FURTHER_VISITS = CONTENDER - 1
# Where first visits take most of the budget, deciding the ranking gets this share of it all the same.
DECIDING_SHARE = 1 / 3
# Random numbers, float64 arithmetic and block-wise comparison in NumPy, bytes of float64 per second.
REFERENCE_BYTES_PER_S = 0.4e9
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
    strategy = strategies.parse(strategy) if isinstance(strategy, str) else strategy
    return strategies.mapper(strategy.mapper).estimate(planning.plan(case, strategy))


def forecast_run(case: Case, slugs: Iterable[str], budget_s: float = float("inf")) -> RunForecast:
    """Return the forecast of a comparison of strategies. ``budget_s``: for the visits."""
    per_strategy = {slug: estimate(case, slug) for slug in slugs}
    peak_bytes = together_bytes(case, [item.peak_bytes for item in per_strategy.values()])
    return RunForecast(run_s(case, per_strategy.values(), budget_s), peak_bytes, per_strategy)


def run_s(case: Case, estimates: Collection[Estimate], budget_s: float) -> float:
    """Return the seconds of a comparison: reference, memory and correctness, visits. The budget ends the visits that
    decide the ranking; the first one of each strategy takes what it takes."""
    reference_s = SUBJECT_S + case.reference_bytes / REFERENCE_BYTES_PER_S
    memory_s = [reference_s + item.first_call_s + MEMORY_CALLS * item.latency_s for item in estimates]
    # Two at a time, but never faster than the slowest by itself.
    memory_stage_s = max(sum(memory_s) / MEMORY_SUBJECTS_AT_ONCE, max(memory_s, default=0.0))
    visits_s = sorted(visit_s(item.first_call_s, item.latency_s) for item in estimates)
    sampling_s = sum(visits_s) + FURTHER_VISITS * sum(visits_s[:LEADERS])
    return reference_s + memory_stage_s + min(sampling_s, max(budget_s, sum(visits_s) + DECIDING_SHARE * budget_s))


def visit_s(first_call_s: float, latency_s: float) -> float:
    """Return the seconds that one more process of a strategy takes."""
    prepared_s = (VISIT_S + first_call_s) / (PREPARED_AT_ONCE if first_call_s < SHORT_FIRST_CALL_S else 1)
    return prepared_s + max(WARM_S, latency_s) + max(SAMPLING_S, LEAST_CALLS * latency_s)


def together_bytes(case: Case, peaks: Iterable[int]) -> int:
    """Return the bytes of all processes at the worst moment, where calls of the strategies have these peaks."""
    # A subject holds its inputs twice while TensorFlow copies them from NumPy; the reference is shared by all.
    held = PROCESS_BYTES + 2 * case.input_bytes + case.captured_bytes
    largest = sorted(peaks, reverse=True)[:MEMORY_SUBJECTS_AT_ONCE]
    return max(case.reference_bytes + sum(held + peak for peak in largest), case.reference_bytes + held)
