"""tf.numpy_function: TensorFlow calls back into Python, where NumPy computes one slice."""

from typing import TYPE_CHECKING

import numpy as np

from strategies import estimates
from strategies.spec import Estimate, Mapper, Plan

if TYPE_CHECKING:
    import tensorflow as tf


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


# One call back into Python, and one NumPy operation there.
_CALLBACK_S = 60e-6
_NUMPY_OP_S = 2e-6


def estimate(plan: Plan) -> Estimate:
    latency = (
        estimates.GRAPH_CALL_S
        + plan.batch * (_CALLBACK_S + plan.element_ops * _NUMPY_OP_S)
        + 2 * estimates.work_s(plan, plan.input_bytes + plan.output_bytes)
    )
    if plan.mode == "eager":
        latency += plan.batch * (plan.input_leaves * estimates.EAGER_SLICE_S + 3 * estimates.EAGER_OP_S)
    peak = estimates.stacked_bytes(plan)
    return Estimate(peak, 0.2 + latency + estimates.fresh_pages_s(plan), latency, plan.batch * 14)


MAPPER = Mapper(
    slug="numpy_function",
    title="tf.numpy_function",
    summary="tf.map_fn over a call back into Python, where NumPy computes one slice: no gradient, one at a time",
    apply=map_with_numpy_function,
    estimate=estimate,
    unsupported={"xla": "XLA cannot compile a call back into Python: use numpy_function.graph"},
    default_modes=(),
    element="numpy_element",
    memory="events_with_numpy",
    order=60,
)
