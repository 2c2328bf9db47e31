"""A Python loop: slice, call, collect, stack; over the function as it is, or as a tf.function that is traced once."""

from strategies.spec import JIT_COMPILE, Mapper
from workloads.spec import tf


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


MAPPER = (
    Mapper(
        slug="loop",
        title="Python loop",
        summary="for each slice: call the function, then tf.stack; "
        "in a tf.function the loop is unrolled into the graph",
        apply=map_with_loop,
        side_effects="per element",
        apply_ragged=map_ragged_with_loop,
        steps="python",
        # Unrolled into one program, the loop takes XLA seconds to minutes to compile.
        default_modes=("eager", "graph"),
        order=10,
    ),
    Mapper(
        slug="loop_compiled",
        title="Loop, compiled function",
        summary="the Python loop over an element function that tf.function traces once: fewer Python steps per element",
        apply=map_with_loop,
        side_effects="per element",
        apply_ragged=map_ragged_with_loop,
        steps="python",
        compiled=True,
        default_modes=(),
        options=(JIT_COMPILE,),
        order=12,
    ),
)
