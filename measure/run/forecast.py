"""The forecast of a run before it is run: bytes, seconds and allocation events, from metadata alone.

Pure arithmetic, so that it can follow every move of a slider. A forecast decides what is offered by default and what a
run needs; it never stands in for a measurement. The paces were fitted on a 2-core x86 server with TensorFlow 2.21 on
the CPU, over three workloads at seven sizes each: tests/data/forecast_measured.csv, to which a test holds them.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import strategies
from strategies import chunks
from strategies.spec import CHUNK, PARALLEL_ITERATIONS, Strategy
from workloads.case import Case

# Bytes read and written per second by ops on all cores; floating-point operations per second.
_BYTES_PER_S, _FLOPS_PER_S = 12e9, 10e9
# A rewrite has few ops, however many the element function has, such as one for each pixel.
_MOST_OPS_OF_REWRITE = 30
# Allocations and deallocations of each op of a step; XLA's program allocates once.
_EVENTS_OF_OP = 3

# One subject beside its first call: fork, runtime, inputs, a profiled call and its events, the way back.
_SUBJECT_S = 0.35
# Processes that make their first calls side by side: one takes 1.02 times as long beside another, in the median of
# twelve strategies on two processors, and reruns scatter by more.
AT_ONCE = 2
# Calls of a memory subject after its first one.
_MEMORY_CALLS = 2
# A process that is timed beside its calls: fork, runtime, inputs.
_PROCESS_S = 0.1
# After so many seconds of turns, more of them would hardly tell the fastest from others.
_MOST_TURNS_S = 30.0
# From the verdict to the end: the probes of the limit and the process peaks.
_AFTER_S = 3.5
# Random numbers, float64 arithmetic and block-wise comparison in NumPy, bytes of float64 per second.
_REFERENCE_BYTES_PER_S = 0.4e9
# Memory of one subject's process that it does not share with others, beside the tensors of its case: TensorFlow's
# runtime, graphs and compiled programs. At most 97 MiB were seen (USS of forks, TensorFlow 2.21 on Linux).
PROCESS_BYTES = 120 * 2**20

_EAGER_S, _GRAPH_S, _XLA_S = 20e-6, 200e-6, 180e-6
# (`strategies.spec.Mapper.steps`, mode) → seconds of a call, of each step in it and of each op of a step; of a first
# call, beside a call, and of each op that is traced or compiled. A mode that is not there takes as long as a graph.
_PACES: dict[tuple[str, str], tuple[float, float, float, float, float]] = {
    ("numpy", "eager"): (0, 6e-6, 2e-6, 1e-3, 0),
    ("python", "eager"): (_EAGER_S, 100e-6, 60e-6, 0.04, 0),
    ("python", "graph"): (_GRAPH_S, 1.5e-6, 0.55e-6, 0.1, 1.2e-3),
    ("python", "xla"): (_XLA_S, 1.5e-6, 0.55e-6, 0.1, 4.5e-3),
    ("compiled", "eager"): (_EAGER_S, 240e-6, 0.6e-6, 0.05, 1e-3),
    ("while", "eager"): (_EAGER_S, 400e-6, 60e-6, 0.1, 0),
    ("while", "graph"): (_GRAPH_S, 6e-6, 0.7e-6, 0.13, 4.5e-3),
    ("while", "xla"): (_XLA_S, 0, 0, 0.16, 9e-3),
    ("pipeline", "graph"): (4e-3, 20e-6, 1e-6, 0.1, 1e-3),
    ("vectorised", "eager"): (_EAGER_S, 4e-3, 2.6e-3, 0.06, 0),
    ("vectorised", "graph"): (_GRAPH_S, 0, 15e-6, 0.07, 4e-3),
    ("whole", "eager"): (_EAGER_S, 0, 25e-6, 0.006, 3e-3),
    ("whole", "graph"): (_GRAPH_S, 0, 0, 0.07, 1.5e-3),
    ("called_back", "graph"): (_GRAPH_S, 60e-6, 2e-6, 0.2, 0),
}


@dataclass(frozen=True)
class Estimate:
    """A forecast for one strategy on a CPU. Of one steady call: the peak of requested bytes, outputs counted and inputs
    not, and ``events``, its allocations and deallocations."""

    peak_bytes: int
    first_call_s: float
    latency_s: float
    events: int


@dataclass(frozen=True)
class RunForecast:
    """The forecast of a whole run: seconds before its first sample, to its end, and to its end at most where the budget
    is automatic; bytes of all its processes together at the worst moment; an estimate for each canonical slug."""

    needed_s: float
    seconds: float
    max_seconds: float
    peak_bytes: int
    per_strategy: dict[str, Estimate]


def estimate(case: Case, strategy: Strategy | str) -> Estimate:
    strategy = strategies.parse(strategy) if isinstance(strategy, str) else strategy
    mapper, mode, batch = strategies.mapper(strategy.mapper), strategy.mode, case.batch
    by, whole = mapper.steps, mapper.steps in ("vectorised", "whole")
    chosen = chunks.chosen(case, strategy)
    chunk: int = chosen[0] if chosen else strategy.options.get(CHUNK.name, 0)
    key: str = "numpy" if mapper.arrays else "vectorised" if by == "chunks" else by
    if mapper.compiled and mode == "eager":  # in a graph the function is inlined
        key = "compiled"
    call_s, step_s, op_s, first_s, traced_op_s = _PACES.get((key, mode)) or _PACES[key, "graph"]
    ops = min(case.cost.ops, _MOST_OPS_OF_REWRITE) if by == "whole" else case.cost.ops
    output_bytes, temporary_bytes = chunks.output_bytes(case, mapper), batch * case.cost.temporary_bytes
    steps = 1 if whole else -(-batch // chunk) if by == "chunks" else batch
    traced = steps if by == "python" and mode != "eager" else 1

    work_s = max((output_bytes + temporary_bytes) / _BYTES_PER_S, batch * case.cost.flops / _FLOPS_PER_S)
    latency_s = call_s + steps * (step_s + ops * op_s) + work_s
    first_call_s = first_s + traced * (ops + 1) * traced_op_s + latency_s

    if whole:
        beside_bytes = temporary_bytes
    elif chunk:
        beside_bytes = max(output_bytes, min(chunk, batch) * chunks.element_bytes(case, mapper))
    elif mode == "xla" and by == "while":  # each output is written into its place
        beside_bytes = case.cost.temporary_bytes
    else:  # the outputs of all elements are there when they are put together
        asked = strategy.options.get(PARALLEL_ITERATIONS.name, PARALLEL_ITERATIONS.default)
        in_flight = min(batch, asked) if (by, mode) == ("while", "graph") else 1
        beside_bytes = max(output_bytes, in_flight * case.cost.temporary_bytes)
    beside_bytes += case.input_bytes if by == "pipeline" else 0
    events = 1 if mode == "xla" else 1 + _EVENTS_OF_OP * steps * (ops + 1)
    return Estimate(output_bytes + beside_bytes, first_call_s, latency_s, events)


def forecast_run(
    case: Case, slugs: Iterable[str], budget_s: float = 0.0, max_budget_s: float = 0.0, slowdown: float = 1.0
) -> RunForecast:
    """Return the forecast of a comparison of strategies. ``budget_s``: until its verdict, at most ``max_budget_s``
    where that is longer; ``slowdown``: by other programs, as `measure.machine.load.Moment` sees them."""
    per_strategy = {slug: estimate(case, slug) for slug in slugs}
    before_s = slowdown * needed_s(case, per_strategy.values())
    verdict_s = max(before_s, min(budget_s, before_s + _MOST_TURNS_S))
    # A subject holds its inputs twice while TensorFlow copies them from NumPy; the reference is shared by all.
    held_bytes = PROCESS_BYTES + 2 * case.input_bytes + case.captured_bytes
    largest = sorted((item.peak_bytes for item in per_strategy.values()), reverse=True)[:AT_ONCE] or [0]
    peak_bytes = case.reference_bytes + sum(held_bytes + peak for peak in largest)
    after_s = slowdown * _AFTER_S
    return RunForecast(before_s, verdict_s + after_s, max(verdict_s, max_budget_s) + after_s, peak_bytes, per_strategy)


def needed_s(case: Case, estimates: Collection[Estimate]) -> float:
    """Return the seconds of a comparison before its first sample: reference, memory and correctness, first calls."""
    memory_s = [reference_s(case) + item.first_call_s + _MEMORY_CALLS * item.latency_s for item in estimates]
    # Two at a time, but never faster than the slowest by itself.
    memory_stage_s = max(sum(memory_s) / AT_ONCE, max(memory_s, default=0.0))
    return reference_s(case) + memory_stage_s + sum(_PROCESS_S + item.first_call_s for item in estimates) / AT_ONCE


def reference_s(case: Case) -> float:
    return _SUBJECT_S + case.reference_bytes / _REFERENCE_BYTES_PER_S
