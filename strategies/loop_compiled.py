"""A Python loop over an element function that is a tf.function of its own: traced once, called for each slice."""

from strategies import estimates, loop
from strategies.spec import Estimate, Mapper, Option, Plan

# One call of a small traced function from Python, and of one compiled with XLA, with its slice and its output.
_CALL_S = 160e-6
_GRAPH_CALL_S = 8e-6


def estimate(plan: Plan) -> Estimate:
    peak = estimates.stacked_bytes(plan)
    copies_s = estimates.work_s(plan, 2 * plan.output_bytes)
    trace_s = 0.05 + plan.element_ops * estimates.TRACE_OP_S
    if plan.mode == "eager":
        latency = plan.batch * (plan.input_leaves * estimates.EAGER_SLICE_S + _CALL_S) + copies_s
        return Estimate(peak, trace_s + latency, latency, plan.batch * (6 * plan.input_leaves + 4))
    inner = loop.estimate(plan)
    # Calls are inlined into the graph, or into XLA's program: from there on it is the loop.
    latency = inner.latency_s + plan.batch * _GRAPH_CALL_S
    return Estimate(inner.peak_bytes, inner.first_call_s + plan.batch * _GRAPH_CALL_S, latency, inner.events)


MAPPER = Mapper(
    slug="loop_compiled",
    title="Loop, compiled function",
    summary="the Python loop over an element function that tf.function traces once: fewer Python steps per element",
    apply=loop.map_with_loop,
    apply_ragged=loop.map_ragged_with_loop,
    estimate=estimate,
    compiled=True,
    default_modes=(),
    options=(
        Option(
            "jit_compile",
            default=False,
            help="compile the element function with XLA",
            values=(False, True),
        ),
    ),
    order=12,
)
