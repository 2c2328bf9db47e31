"""tf.map_fn: one call of the function after the other, in a loop that TensorFlow runs."""

from strategies.spec import PARALLEL_ITERATIONS, Mapper
from workloads.spec import tf


def map_with_map_fn(fn, elems, signature, parallel_iterations=None):
    return tf.map_fn(fn, elems, fn_output_signature=signature, parallel_iterations=parallel_iterations)


MAPPER = Mapper(
    slug="map_fn",
    title="tf.map_fn",
    summary="calls the function slice by slice: a Python loop when eager, one tf.while_loop in a graph and under XLA",
    apply=map_with_map_fn,
    apply_ragged=map_with_map_fn,
    one_shape={"xla": "XLA has no kernel for the variants that tf.map_fn makes of a tf.RaggedTensor"},
    options=(PARALLEL_ITERATIONS,),
    order=20,
)
