"""A Python loop: slice, call, collect, stack."""

from typing import TYPE_CHECKING

from strategies import estimates
from strategies.spec import Estimate, Mapper, Plan

if TYPE_CHECKING:
    import tensorflow as tf


def map_with_loop(fn, elems, signature):
    def one(index):
        return fn(tf.nest.map_structure(lambda leaf: leaf[index], elems))

    batch = tf.nest.flatten(elems)[0].shape[0]
    outputs = [one(index) for index in range(batch)]
    if not outputs:
        return tf.nest.map_structure(lambda spec: tf.zeros([0, *spec.shape], spec.dtype), signature)
    return tf.nest.map_structure(lambda *leaves: tf.stack(leaves), *outputs)


def map_ragged_with_loop(fn, elems, signature):
    def one(index):
        return fn(tf.nest.map_structure(lambda leaf: leaf[index], elems))

    def stacked(spec, *leaves):
        return tf.ragged.stack(leaves) if isinstance(spec, tf.RaggedTensorSpec) else tf.stack(leaves)

    outputs = [one(index) for index in range(tf.nest.flatten(elems)[0].shape[0])]
    return tf.nest.map_structure(stacked, signature, *outputs)


def estimate(plan: Plan) -> Estimate:
    # The outputs of all elements are alive when tf.stack writes its own: twice the output, in every mode.
    peak = estimates.stacked_bytes(plan)
    copies_s = estimates.work_s(plan, 2 * plan.output_bytes)
    trace_s = plan.batch * (estimates.TRACE_ELEMENT_S + plan.element_ops * estimates.TRACE_OP_S)
    unrolled_s = plan.batch * (estimates.GRAPH_ELEMENT_S + plan.element_ops * estimates.GRAPH_OP_S)
    if plan.mode == "eager":
        latency = estimates.eager_loop_s(plan) + copies_s
        first_call = 0.04 + latency + estimates.fresh_pages_s(plan)
        return Estimate(peak, first_call, latency, estimates.eager_loop_events(plan) + plan.output_leaves)
    if plan.mode == "graph":
        latency = estimates.GRAPH_CALL_S + unrolled_s + copies_s
        events = int(plan.batch * (2 * plan.output_leaves + 0.3 * plan.element_ops)) + plan.output_leaves
        return Estimate(peak, 0.1 + trace_s + latency + estimates.fresh_pages_s(plan), latency, events)
    compile_s = plan.batch * (estimates.COMPILE_ELEMENT_S + plan.element_ops * estimates.COMPILE_OP_S)
    latency = estimates.XLA_CALL_S + unrolled_s + copies_s
    first_call = 0.1 + trace_s + compile_s + latency + estimates.fresh_pages_s(plan)
    return Estimate(peak, first_call, latency, 1 + 2 * plan.output_leaves)


MAPPER = Mapper(
    slug="loop",
    title="Python loop",
    summary="for each slice: call the function, then tf.stack; in a tf.function the loop is unrolled into the graph",
    apply=map_with_loop,
    apply_ragged=map_ragged_with_loop,
    estimate=estimate,
    # Unrolled into one program, the loop takes XLA seconds to minutes to compile.
    default_modes=("eager", "graph"),
    order=10,
)
