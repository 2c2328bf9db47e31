"""tf.data: a pipeline that calls the function for each slice or chunk, in several threads if asked."""

from strategies import vectorized_map
from strategies.spec import CHUNK, JIT_COMPILE, Mapper, Option
from workloads.spec import tf


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


_UNSUPPORTED = {"xla": "XLA compiles no tf.data pipelines: use dataset.graph, or another mapper"}
_CALLS = (1, 2, 4, 8, 16, 32, 64, -1)
_PARALLEL = Option("num_parallel_calls", 1, "calls of the function at a time; -1 leaves it to tf.data", _CALLS)

MAPPER = (
    Mapper(
        slug="dataset",
        title="tf.data map",
        summary="a tf.data pipeline calls the function for each slice and batches the results; "
        "eager, it traces every time",
        apply=map_with_dataset,
        side_effects="per element",
        apply_ragged=map_ragged_with_dataset,
        steps="pipeline",
        unsupported=_UNSUPPORTED,
        default_modes=(),
        options=(_PARALLEL, JIT_COMPILE),
        order=50,
    ),
    Mapper(
        slug="dataset_batched",
        title="tf.data map of chunks",
        summary="a tf.data pipeline that batches first, so that each call works on a chunk, vectorised",
        apply=map_batches_with_dataset,
        side_effects="once",
        steps="pipeline",
        one_shape=vectorized_map.ONE_SHAPE,
        unsupported=_UNSUPPORTED,
        default_modes=(),
        options=(CHUNK, _PARALLEL),
        order=52,
    ),
)
