"""The forecast of a strategy before it is run: bytes, seconds and allocation events, from metadata alone.

A forecast decides what is offered by default and what a run needs; it never stands in for a measurement. The paces
were fitted on a 2-core x86 server with TensorFlow 2.21 on the CPU, over three workloads at seven sizes each: what was
measured of loops, vectorised ops and rewrites is in tests/data/forecast_measured.csv, to which a test holds them.
"""

from typing import NamedTuple

import strategies
from strategies import chunks
from strategies.spec import Estimate, Strategy
from workloads.case import Case

# Bytes read and written per second by ops on all cores, and by loops on one; floating-point operations per second.
_BYTES_PER_S, _SEQUENTIAL_BYTES_PER_S, _FLOPS_PER_S = 12e9, 4e9, 10e9
# What describes shapes and the scratch of matrix products take, of each op of a vectorised function.
_SCRATCH_BYTES = 450
# Iterations of a loop of TensorFlow's that are in flight at once, where nobody says how many.
_IN_FLIGHT = 10
# A rewrite has few ops, however many the element function has, such as one for each pixel.
_MOST_OPS_OF_REWRITE = 30


class _Pace(NamedTuple):
    """Seconds of a call, of each step in it and of each op of a step; of a first call, beside a call, and of each op
    that is traced or compiled."""

    call_s: float
    step_s: float
    op_s: float
    first_s: float
    traced_op_s: float


_EAGER_S, _GRAPH_S, _XLA_S = 20e-6, 200e-6, 180e-6
_NUMPY = _Pace(0, 6e-6, 2e-6, 1e-3, 0)
# (`strategies.spec.Mapper.steps`, mode) → the pace; what has none of its own has that of a graph.
_PACES = {
    ("python", "eager"): _Pace(_EAGER_S, 100e-6, 60e-6, 0.04, 0),
    ("python", "graph"): _Pace(_GRAPH_S, 1.5e-6, 0.55e-6, 0.1, 1.2e-3),
    ("python", "xla"): _Pace(_XLA_S, 1.5e-6, 0.55e-6, 0.1, 4.5e-3),
    ("compiled", "eager"): _Pace(_EAGER_S, 240e-6, 0.6e-6, 0.05, 1e-3),
    ("while", "eager"): _Pace(_EAGER_S, 400e-6, 60e-6, 0.1, 0),
    ("while", "graph"): _Pace(_GRAPH_S, 6e-6, 0.7e-6, 0.13, 4.5e-3),
    ("while", "xla"): _Pace(_XLA_S, 0, 0, 0.16, 9e-3),
    ("pipeline", "eager"): _Pace(30e-3, 20e-6, 1e-6, 0.1, 1e-3),
    ("pipeline", "graph"): _Pace(4e-3, 20e-6, 1e-6, 0.1, 1e-3),
    ("vectorised", "eager"): _Pace(_EAGER_S, 4e-3, 2.6e-3, 0.06, 0),
    ("vectorised", "graph"): _Pace(_GRAPH_S, 0, 15e-6, 0.07, 4e-3),
    ("vectorised", "xla"): _Pace(_XLA_S, 0, 0, 0.14, 6e-3),
    ("whole", "eager"): _Pace(_EAGER_S, 0, 25e-6, 0.006, 3e-3),
    ("whole", "graph"): _Pace(_GRAPH_S, 0, 0, 0.07, 1.5e-3),
    ("whole", "xla"): _Pace(_XLA_S, 0, 0, 0.13, 3e-3),
    ("called_back", "eager"): _Pace(_GRAPH_S, 320e-6, 2e-6, 0.2, 0),
    ("called_back", "graph"): _Pace(_GRAPH_S, 60e-6, 2e-6, 0.2, 0),
}
# Allocations and deallocations of each op of a step; XLA's program allocates once.
_EVENTS_OF_OP = 3


def estimate(case: Case, strategy: Strategy) -> Estimate:
    """Return the forecast of a strategy, as on a CPU."""
    mapper, mode = strategies.mapper(strategy.mapper), strategy.mode
    steps_as, whole = mapper.steps, mapper.steps in ("vectorised", "whole")
    key: str = "vectorised" if steps_as == "chunks" else steps_as
    if mapper.compiled and mode == "eager":  # in a graph the function is inlined
        key = "compiled"
    ops = min(case.cost.ops, _MOST_OPS_OF_REWRITE) if steps_as == "whole" else case.cost.ops
    pace = _NUMPY if mapper.arrays else _PACES.get((key, mode)) or _PACES[key, "graph"]
    output_bytes, temporary_bytes = chunks.output_bytes(case, mapper), case.batch * case.cost.temporary_bytes
    chunk = chunks.length(case, strategy)
    steps = 1 if whole else -(-case.batch // chunk) if steps_as == "chunks" else case.batch
    traced = steps if steps_as == "python" and mode != "eager" else 1

    copied_bytes = 0 if steps_as == "whole" or mode == "xla" else case.input_bytes + output_bytes
    moved_bytes = output_bytes + temporary_bytes + copied_bytes
    is_sequential = mapper.arrays or (mode == "xla" and steps_as in ("while", "chunks"))
    moved_s = moved_bytes / (_SEQUENTIAL_BYTES_PER_S if is_sequential else _BYTES_PER_S)
    latency_s = pace.call_s + steps * (pace.step_s + ops * pace.op_s)
    latency_s += max(moved_s, case.batch * case.cost.flops / _FLOPS_PER_S)
    # In a first call the operating system maps and clears memory for the output.
    first_call_s = pace.first_s + traced * (ops + 1) * pace.traced_op_s + latency_s + 2 * output_bytes / _BYTES_PER_S

    if whole:
        scratch_bytes = ops * _SCRATCH_BYTES if steps_as == "vectorised" and mode != "xla" else 0
        peak_bytes = output_bytes + temporary_bytes + scratch_bytes
    elif chunk:
        peak_bytes = output_bytes + max(output_bytes, min(chunk, case.batch) * chunks.element_bytes(case, mapper))
    elif mode == "xla" and steps_as == "while":  # each output is written into its place
        peak_bytes = output_bytes + case.cost.temporary_bytes
    else:  # the outputs of all elements are there when they are put together
        in_flight = 1
        if (steps_as, mode) == ("while", "graph"):
            in_flight = min(case.batch, strategy.options.get("parallel_iterations", _IN_FLIGHT))
        peak_bytes = output_bytes + max(output_bytes, in_flight * case.cost.temporary_bytes)
    peak_bytes += case.input_bytes if steps_as == "pipeline" else 0
    events = 1 if mode == "xla" else 1 + _EVENTS_OF_OP * steps * (ops + 1)
    return Estimate(peak_bytes, first_call_s, latency_s, events)
