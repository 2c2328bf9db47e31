"""A Python for over tf.range: AutoGraph turns it into a loop that TensorFlow runs."""

from strategies.spec import Mapper
from workloads.spec import tf


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


MAPPER = Mapper(
    slug="autograph",
    title="AutoGraph loop",
    summary="for index in tf.range(n) inside tf.function, which AutoGraph turns into a tf.while_loop",
    apply=map_with_autograph,
    # Eager, AutoGraph does nothing: this would be the Python loop again.
    modes=("graph", "xla"),
    default_modes=(),
    order=24,
)
