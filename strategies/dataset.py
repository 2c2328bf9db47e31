"""tf.data: a pipeline that calls the function for each slice, in several threads if asked, and makes one batch."""

from typing import TYPE_CHECKING

from strategies import estimates
from strategies.spec import Estimate, Mapper, Option, Plan

if TYPE_CHECKING:
    import tensorflow as tf


def map_with_dataset(fn, elems, signature, num_parallel_calls=None):
    batch = tf.nest.flatten(elems)[0].shape[0]
    if batch == 0:  # an empty pipeline has no element to get
        return tf.nest.map_structure(lambda spec: tf.zeros([0, *spec.shape], spec.dtype), signature)
    # In a tuple of one, since map would hand the parts of a nested slice over one by one.
    dataset = tf.data.Dataset.from_tensor_slices((elems,)).map(fn, num_parallel_calls=num_parallel_calls)
    return dataset.batch(batch, drop_remainder=True).get_single_element()


def map_ragged_with_dataset(fn, elems, num_parallel_calls=None):
    dataset = tf.data.Dataset.from_tensor_slices((elems,)).map(fn, num_parallel_calls=num_parallel_calls)
    return dataset.ragged_batch(tf.nest.flatten(elems)[0].shape[0], drop_remainder=True).get_single_element()


# Making, optimising and closing a pipeline; one element's way through it.
PIPELINE_S = 4e-3
_ELEMENT_S = 20e-6
_OP_S = 1e-6

XLA = "XLA compiles no tf.data pipelines: use dataset.graph, or another mapper"

OPTIONS = (
    Option(
        "num_parallel_calls",
        default=1,
        help="calls of the function at a time; -1 leaves it to tf.data (AUTOTUNE)",
        values=(1, 2, 4, 8, 16, 32, 64, -1),
    ),
    Option("jit_compile", default=False, help="compile the element function with XLA", values=(False, True)),
)


def estimate(plan: Plan) -> Estimate:
    latency = (
        PIPELINE_S
        + plan.batch * (_ELEMENT_S + plan.element_ops * _OP_S)
        + estimates.work_s(plan, plan.input_bytes + 2 * plan.output_bytes)
    )
    trace_s = plan.element_ops * estimates.TRACE_OP_S
    if plan.mode == "eager":
        latency += 0.02 + trace_s  # the function is traced in every call
    peak = estimates.stacked_bytes(plan) + plan.input_bytes
    events = plan.batch * (6 + 2 * plan.element_ops)
    return Estimate(peak, 0.1 + trace_s + latency + estimates.fresh_pages_s(plan), latency, events)


MAPPER = Mapper(
    slug="dataset",
    title="tf.data map",
    summary="a tf.data pipeline calls the function for each slice and batches the results; eager, it traces every time",
    apply=map_with_dataset,
    apply_ragged=map_ragged_with_dataset,
    estimate=estimate,
    unsupported={"xla": XLA},
    default_modes=(),
    options=OPTIONS,
    order=50,
)
