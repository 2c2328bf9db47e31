"""Chunks of a few elements, each vectorised, mapped one after another: speed of the one, memory of the other."""

from typing import TYPE_CHECKING

from strategies import chunks, estimates, vectorized_map
from strategies.spec import MODES, Estimate, Mapper, Plan

if TYPE_CHECKING:
    import tensorflow as tf


def map_in_chunks(fn, elems, signature, chunk):
    def vectorised(start, size):
        part = tf.nest.map_structure(lambda leaf: tf.slice(leaf, *window(leaf, start, size)), elems)
        return tf.vectorized_map(fn, part)

    def window(leaf, start, size):
        return [start] + [0] * (leaf.shape.rank - 1), [size, *leaf.shape[1:]]

    def new_array(spec):
        return tf.TensorArray(spec.dtype, whole, element_shape=[chunk, *spec.shape])

    def body(index, arrays):
        output = vectorised(index * chunk, chunk)
        return index + 1, tf.nest.map_structure(lambda array, leaf: array.write(index, leaf), arrays, output)

    def joined(array, spec):
        return tf.reshape(array.stack(), [whole * chunk, *spec.shape])

    batch = tf.nest.flatten(elems)[0].shape[0]
    if chunk >= batch:
        return tf.vectorized_map(fn, elems)
    whole, rest = divmod(batch, chunk)
    # One chunk at a time, so that the temporaries of one chunk are all there are.
    _, arrays = tf.while_loop(
        lambda index, arrays: index < whole,
        body,
        (0, tf.nest.map_structure(new_array, signature)),
        parallel_iterations=1,
        maximum_iterations=whole,  # lets XLA compile a gradient through the loop
    )
    outputs = tf.nest.map_structure(joined, arrays, signature)
    if rest:
        last = vectorised(whole * chunk, rest)
        outputs = tf.nest.map_structure(lambda *pair: tf.concat(pair, axis=0), outputs, last)
    return outputs


def estimate(plan: Plan) -> Estimate:
    chunk = max(1, plan.options["chunk"])
    parts = -(-plan.batch // chunk)
    held = min(plan.batch, chunk) * chunks.element_bytes(plan)
    peak = plan.output_bytes + max(plan.output_bytes, held)
    passes_s = estimates.work_s(plan, (plan.input_bytes + plan.output_bytes) * (2 + 0.08 * plan.element_ops))
    passes_s += plan.batched_temporary_bytes / estimates.BYTES_PER_S
    fresh_s = estimates.fresh_pages_s(plan)
    if plan.mode == "eager":
        # Every chunk is traced and converted anew.
        latency = parts * (5.5e-3 + plan.element_ops * 2.6e-3) + passes_s
        return Estimate(peak, 0.06 + latency + fresh_s, latency, parts * (20 + 65 * plan.element_ops))
    if plan.mode == "graph":
        latency = estimates.GRAPH_CALL_S + parts * (10e-6 + plan.element_ops * 5e-6) + passes_s
        first_call = 0.15 + 0.008 * plan.element_ops + latency + fresh_s
        return Estimate(peak, first_call, latency, 12 + parts * (9 + 2 * plan.element_ops))
    latency = estimates.XLA_CALL_S + estimates.work_s(plan, plan.output_bytes, estimates.SEQUENTIAL_BYTES_PER_S)
    first_call = 0.2 + 0.012 * plan.element_ops + latency + fresh_s
    return Estimate(peak, first_call, latency, 3 * plan.output_leaves)


MAPPER = Mapper(
    slug="chunked",
    title="Vectorised chunks",
    summary="chunks of a few elements, each vectorised, one after another: memory follows the chunk, not the batch",
    apply=map_in_chunks,
    estimate=estimate,
    one_shape=dict.fromkeys(MODES, vectorized_map.ONE_SHAPE),
    # Eager, every chunk would be traced anew.
    default_modes=("graph",),
    options=(chunks.OPTION,),
    choose=chunks.choose,
    reason=chunks.reason,
    order=40,
)
