"""tf.map_fn: one call of the function after the other, in a loop that TensorFlow runs; and such a loop by
tf.while_loop with a TensorArray for each output, written out or by AutoGraph."""

from strategies.spec import PARALLEL_ITERATIONS, Mapper
from workloads.spec import tf


def map_with_map_fn(fn, elems, signature, parallel_iterations=None):
    return tf.map_fn(fn, elems, fn_output_signature=signature, parallel_iterations=parallel_iterations)


def map_with_while_loop(fn, elems, signature, parallel_iterations=10):
    batch = tf.nest.flatten(elems)[0].shape[0]
    if batch == 0:  # XLA would still compile the body, and slice what is not there
        return tf.nest.map_structure(lambda spec: tf.zeros([0, *spec.shape], spec.dtype), signature)
    arrays = tf.nest.map_structure(lambda spec: tf.TensorArray(spec.dtype, batch, element_shape=spec.shape), signature)

    def body(index, arrays):
        output = fn(tf.nest.map_structure(lambda leaf: leaf[index], elems))
        return index + 1, tf.nest.map_structure(lambda array, leaf: array.write(index, leaf), arrays, output)

    _, arrays = tf.while_loop(
        lambda index, arrays: index < batch,
        body,
        (0, arrays),
        parallel_iterations=parallel_iterations,
        maximum_iterations=batch,  # lets XLA compile a gradient through the loop
    )
    return tf.nest.map_structure(lambda array: array.stack(), arrays)


def map_with_autograph(fn, elems, signature):
    def one(index):
        return fn(tf.nest.map_structure(lambda leaf: leaf[index], elems))

    def written(index, arrays, output):
        return tf.nest.map_structure(lambda array, leaf: array.write(index, leaf), arrays, output)

    batch = tf.nest.flatten(elems)[0].shape[0]
    if batch == 0:  # XLA would still compile the body, and slice what is not there
        return tf.nest.map_structure(lambda spec: tf.zeros([0, *spec.shape], spec.dtype), signature)
    arrays = tf.nest.map_structure(lambda spec: tf.TensorArray(spec.dtype, batch, element_shape=spec.shape), signature)
    for index in tf.range(batch):
        arrays = written(index, arrays, one(index))
    return tf.nest.map_structure(lambda array: array.stack(), arrays)


MAPPER = (
    Mapper(
        slug="map_fn",
        title="tf.map_fn",
        summary="calls the function slice by slice: "
        "a Python loop when eager, one tf.while_loop in a graph and under XLA",
        apply=map_with_map_fn,
        side_effects="per element",
        apply_ragged=map_with_map_fn,
        one_shape={"xla": "XLA has no kernel for the variants that tf.map_fn makes of a tf.RaggedTensor"},
        options=(PARALLEL_ITERATIONS,),
        order=20,
    ),
    Mapper(
        slug="while_loop",
        title="tf.while_loop",
        summary="a loop that TensorFlow runs, writing each output into a TensorArray: tf.map_fn written out",
        apply=map_with_while_loop,
        side_effects="per element",
        default_modes=(),
        options=(PARALLEL_ITERATIONS,),
        order=22,
    ),
    Mapper(
        slug="autograph",
        title="AutoGraph loop",
        summary="for index in tf.range(n) inside tf.function, which AutoGraph turns into a tf.while_loop",
        apply=map_with_autograph,
        side_effects="per element",
        # Eager, AutoGraph does nothing: this would be the Python loop again.
        modes=("graph", "xla"),
        default_modes=(),
        order=24,
    ),
)
