"""tf.data over chunks: each is vectorised by tf.vectorized_map, as in a pipeline that maps after batch."""

from typing import TYPE_CHECKING

from strategies import chunks, dataset, estimates, vectorized_map
from strategies.spec import MODES, Estimate, Mapper, Plan

if TYPE_CHECKING:
    import tensorflow as tf


def map_batches_with_dataset(fn, elems, signature, chunk, num_parallel_calls=None):
    def vectorised(part):
        return tf.vectorized_map(fn, part)

    batch = tf.nest.flatten(elems)[0].shape[0]
    if batch == 0:  # an empty pipeline has no element to get
        return tf.nest.map_structure(lambda spec: tf.zeros([0, *spec.shape], spec.dtype), signature)
    # In a tuple of one, since map would hand the parts of a nested slice over one by one.
    dataset = tf.data.Dataset.from_tensor_slices((elems,)).batch(chunk)
    dataset = dataset.map(vectorised, num_parallel_calls=num_parallel_calls)
    return dataset.unbatch().batch(batch, drop_remainder=True).get_single_element()


def estimate(plan: Plan) -> Estimate:
    chunk = plan.options["chunk"]
    parts = -(-plan.batch // chunk)
    latency = (
        dataset.PIPELINE_S
        + parts * plan.element_ops * 15e-6
        + plan.batch * 6e-6
        + estimates.work_s(plan, 2 * plan.input_bytes + 3 * plan.output_bytes)
    )
    trace_s = 0.05 + plan.element_ops * 0.004
    if plan.mode == "eager":
        latency += trace_s  # the function is traced and converted in every call
    peak = 2 * plan.output_bytes + chunk * chunks.element_bytes(plan) + plan.input_bytes
    events = plan.batch * 8 + parts * plan.element_ops * 3
    return Estimate(peak, 0.1 + trace_s + latency + estimates.fresh_pages_s(plan), latency, events)


MAPPER = Mapper(
    slug="dataset_batched",
    title="tf.data map of chunks",
    summary="a tf.data pipeline that batches first, so that each call works on a chunk, vectorised",
    apply=map_batches_with_dataset,
    estimate=estimate,
    one_shape=dict.fromkeys(MODES, vectorized_map.ONE_SHAPE),
    unsupported={"xla": dataset.XLA},
    default_modes=(),
    options=(chunks.OPTION, dataset.OPTIONS[0]),
    choose=chunks.choose,
    reason=chunks.reason,
    order=52,
)
