"""tf.vectorized_map: traces the function once and turns each op into one on the whole batch, or on chunks of it."""

from strategies.spec import CHUNK, MODES, Mapper, Option
from workloads.spec import tf


def map_with_vectorized_map(fn, elems, fallback_to_while_loop=True):
    return tf.vectorized_map(fn, elems, fallback_to_while_loop=fallback_to_while_loop)


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


ONE_SHAPE = dict.fromkeys(
    MODES, "tf.vectorized_map makes ops on the whole batch, which need elements and results of one shape"
)

_FALLBACK = Option(
    "fallback_to_while_loop", True, "run ops that cannot be vectorised in a loop, or fail", (True, False)
)

MAPPER = (
    Mapper(
        slug="vectorized_map",
        title="tf.vectorized_map",
        summary="rewrites the function's ops into ops on the whole batch; eager, it traces anew on every call",
        apply=map_with_vectorized_map,
        side_effects="once",
        steps="vectorised",
        one_shape=ONE_SHAPE,
        options=(_FALLBACK,),
        order=30,
    ),
    Mapper(
        slug="chunked",
        title="Vectorised chunks",
        summary="chunks of a few elements, each vectorised, one after another: memory follows the chunk, not the batch",
        apply=map_in_chunks,
        side_effects="once",
        steps="chunks",
        one_shape=ONE_SHAPE,
        # Eager, every chunk would be traced anew.
        default_modes=("graph",),
        options=(CHUNK,),
        order=40,
    ),
)
