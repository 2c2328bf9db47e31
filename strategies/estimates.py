"""The cost of ops, calls and copies: the constants and small formulas from which the mappers forecast.

A forecast decides what is offered by default and what a run needs; it never stands in for a measurement. All constants
were fitted on a 2-core x86 server with TensorFlow 2.21 on the CPU, over three workloads at four sizes each, and checked
at three others; tests/data/forecast_measured.csv holds what was measured. The plain numbers in a mapper's first call
are the seconds that tracing, converting or compiling takes at the least, and what one op adds.
"""

from strategies.spec import Plan

# Least time of one call, seconds: the op itself, a tf.function without and with XLA.
EAGER_CALL_S = 20e-6
GRAPH_CALL_S = 200e-6
XLA_CALL_S = 180e-6

# One op of an eager element function in a Python loop, its Python layers included; a bare op on tensors at hand; one
# slice of one input.
EAGER_OP_S = 60e-6
EAGER_BARE_OP_S = 25e-6
EAGER_SLICE_S = 80e-6

# One op of an unrolled graph at run time, and what each unrolled element adds beside its ops.
GRAPH_OP_S = 0.55e-6
GRAPH_ELEMENT_S = 1.5e-6

# Tracing: one op once, and per unrolled element beside its ops; compiling with XLA on top of it.
TRACE_OP_S = 1.05e-3
TRACE_ELEMENT_S = 1.5e-3
COMPILE_OP_S = 1.6e-3
COMPILE_ELEMENT_S = 11e-3

# Bytes written per second by whole-batch ops on all cores, and by XLA's sequential loops on one.
BYTES_PER_S = 12e9
SEQUENTIAL_BYTES_PER_S = 4e9
FLOPS_PER_S = 10e9

# Tensors that describe shapes and the scratch of matrix products, bytes per op of a vectorised function.
SCRATCH_BYTES_PER_OP = 450


def work_s(plan: Plan, written_bytes: float, bytes_per_s: float = BYTES_PER_S) -> float:
    """Seconds for writing the bytes or doing the whole batch's arithmetic, whichever takes longer."""
    return max(written_bytes / bytes_per_s, plan.batch * plan.element_flops / FLOPS_PER_S)


def fresh_pages_s(plan: Plan) -> float:
    """Seconds that a first call adds, in which the operating system maps and clears memory for the output."""
    return 2 * plan.output_bytes / BYTES_PER_S


def eager_loop_s(plan: Plan) -> float:
    """Seconds for slicing and calling the element function for every element from Python."""
    return plan.batch * (plan.input_leaves * EAGER_SLICE_S + plan.element_ops * EAGER_OP_S)


def eager_loop_events(plan: Plan) -> int:
    """Allocations and deallocations of the same: begin, end and stride of a slice, one output and more per op."""
    return plan.batch * (6 * plan.input_leaves + 3 * plan.element_ops)


def stacked_bytes(plan: Plan, in_flight: int = 1) -> int:
    """Peak where elements' outputs are kept apart and then copied into one tensor."""
    return plan.output_bytes + max(plan.output_bytes, in_flight * plan.element_temporary_bytes)
