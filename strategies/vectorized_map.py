"""tf.vectorized_map: traces the function once and turns each op into one on the whole batch."""

from typing import TYPE_CHECKING

from strategies import estimates
from strategies.spec import MODES, Estimate, Mapper, Option, Plan

if TYPE_CHECKING:
    import tensorflow as tf


def map_with_vectorized_map(fn, elems, fallback_to_while_loop=True):
    return tf.vectorized_map(fn, elems, fallback_to_while_loop=fallback_to_while_loop)


ONE_SHAPE = "tf.vectorized_map makes ops on the whole batch, which need elements and results of one shape"

# An eager call traces the function and converts each op, every time.
_CONVERT_S = 5.5e-3
_CONVERT_OP_S = 2.6e-3
# Beyond so many ops XLA was seen to copy the result once more, where a single fused op wrote it in place.
_FUSED_OPS = 10


def estimate(plan: Plan) -> Estimate:
    peak = plan.output_bytes + plan.batched_temporary_bytes + plan.element_ops * estimates.SCRATCH_BYTES_PER_OP
    # Each op passes over the batch, most of them over small intermediate results.
    passes_s = estimates.work_s(plan, (plan.input_bytes + plan.output_bytes) * (1 + 0.08 * plan.element_ops))
    fresh_s = estimates.fresh_pages_s(plan)
    if plan.mode == "eager":
        latency = _CONVERT_S + plan.element_ops * _CONVERT_OP_S + passes_s
        return Estimate(peak, 0.06 + latency + fresh_s, latency, 5 + 65 * max(0, plan.element_ops - 1))
    if plan.mode == "graph":
        latency = estimates.GRAPH_CALL_S + plan.element_ops * 15e-6 + passes_s
        return Estimate(peak, 0.07 + 0.004 * plan.element_ops + latency + fresh_s, latency, 3 * plan.output_leaves)
    copies = 1 if plan.element_ops <= _FUSED_OPS else 2
    latency = estimates.XLA_CALL_S + copies * estimates.work_s(plan, plan.output_bytes)
    first_call = 0.14 + 0.006 * plan.element_ops + latency + fresh_s
    return Estimate(
        copies * plan.output_bytes + plan.batched_temporary_bytes, first_call, latency, 3 * plan.output_leaves
    )


MAPPER = Mapper(
    slug="vectorized_map",
    title="tf.vectorized_map",
    summary="rewrites the function's ops into ops on the whole batch; eager, it traces anew on every call",
    apply=map_with_vectorized_map,
    estimate=estimate,
    one_shape=dict.fromkeys(MODES, ONE_SHAPE),
    options=(
        Option(
            "fallback_to_while_loop",
            default=True,
            help="run ops that cannot be vectorised in a while loop, instead of failing",
            values=(True, False),
        ),
    ),
    order=30,
)
