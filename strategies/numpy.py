"""NumPy: slice by slice or on the whole array without TensorFlow, or called back from it for each slice."""

import numpy as np

from strategies.spec import Mapper
from workloads.spec import tf


def map_with_numpy(fn, elems, signature):
    def one(index):
        return fn(tf.nest.map_structure(lambda leaf: leaf[index], elems))

    outputs = [one(index) for index in range(len(tf.nest.flatten(elems)[0]))]
    if not outputs:
        return tf.nest.map_structure(lambda spec: np.zeros([0, *spec.shape], spec.dtype.as_numpy_dtype), signature)
    return tf.nest.map_structure(lambda *leaves: np.stack(leaves), *outputs)


def map_with_numpy_function(fn, elems, signature):
    def in_numpy(*leaves):
        output = fn(tf.nest.pack_sequence_as(elems, leaves))
        exact = tf.nest.map_structure(lambda spec, leaf: np.asarray(leaf, spec.dtype.as_numpy_dtype), signature, output)
        return tf.nest.flatten(exact)

    def one(x):
        dtypes = [spec.dtype for spec in tf.nest.flatten(signature)]
        leaves = tf.nest.flatten(tf.numpy_function(in_numpy, tf.nest.flatten(x), dtypes))
        output = tf.nest.pack_sequence_as(signature, leaves)
        # What comes back from Python has no static shape.
        return tf.nest.map_structure(lambda spec, leaf: tf.ensure_shape(leaf, spec.shape), signature, output)

    return tf.map_fn(one, elems, fn_output_signature=signature)


MAPPER = (
    Mapper(
        slug="numpy_function",
        title="tf.numpy_function",
        summary="tf.map_fn over a call back into Python, where NumPy computes one slice: no gradient, one at a time",
        apply=map_with_numpy_function,
        steps="called_back",
        unsupported={"xla": "XLA cannot compile a call back into Python: use numpy_function.graph"},
        default_modes=(),
        element="numpy_element",
        order=60,
    ),
    Mapper(
        slug="numpy",
        title="NumPy loop",
        summary="the element function written in NumPy, called for each slice: no TensorFlow at all",
        apply=map_with_numpy,
        steps="python",
        modes=("eager",),
        default_modes=(),
        element="numpy_element",
        arrays=True,
        order=70,
    ),
    Mapper(
        slug="numpy_batched",
        title="NumPy on the whole array",
        summary="the workload written in NumPy for the whole array at once: no mapping and no TensorFlow",
        rewrite="numpy",
        steps="whole",
        modes=("eager",),
        default_modes=(),
        arrays=True,
        order=72,
    ),
)
