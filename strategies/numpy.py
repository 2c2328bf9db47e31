"""Plain NumPy, slice by slice: the baseline outside of TensorFlow."""

from typing import TYPE_CHECKING

import numpy as np

from strategies import estimates
from strategies.spec import Estimate, Mapper, Plan

if TYPE_CHECKING:
    import tensorflow as tf


def map_with_numpy(fn, elems, signature):
    def one(index):
        return fn(tf.nest.map_structure(lambda leaf: leaf[index], elems))

    outputs = [one(index) for index in range(len(tf.nest.flatten(elems)[0]))]
    if not outputs:
        return tf.nest.map_structure(lambda spec: np.zeros([0, *spec.shape], spec.dtype.as_numpy_dtype), signature)
    return tf.nest.map_structure(lambda *leaves: np.stack(leaves), *outputs)


# Slicing and calling for one element, one NumPy operation on little data, and what a thread alone writes.
_ELEMENT_S = 6e-6
_NUMPY_OP_S = 2e-6


def estimate(plan: Plan) -> Estimate:
    latency = plan.batch * (_ELEMENT_S + plan.element_ops * _NUMPY_OP_S) + estimates.work_s(
        plan, 2 * plan.output_bytes, estimates.SEQUENTIAL_BYTES_PER_S
    )
    return Estimate(estimates.stacked_bytes(plan), 0.001 + latency + estimates.fresh_pages_s(plan), latency, 1)


MAPPER = Mapper(
    slug="numpy",
    title="NumPy loop",
    summary="the element function written in NumPy, called for each slice: no TensorFlow at all",
    apply=map_with_numpy,
    estimate=estimate,
    modes=("eager",),
    default_modes=(),
    element="numpy_element",
    arrays=True,
    memory="tracemalloc",
    order=70,
)
