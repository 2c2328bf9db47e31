"""Sine, cosine and exponential of every number: where compiling the function for one element pays."""

from typing import TYPE_CHECKING

import numpy as np

from workloads.spec import Cost, Leaf, SizeParameter, Workload

if TYPE_CHECKING:
    import tensorflow as tf


def inputs(batch, dtype, seed):
    # Sine and cosine are positive here, so that the sum does not cancel.
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 1.4, size=(batch,)).astype(dtype)


def element(x):
    return tf.sin(x) + tf.cos(x) * tf.exp(x)


def batched(x):
    return tf.sin(x) + tf.cos(x) * tf.exp(x)


def in_numpy(x):
    return np.sin(x) + np.cos(x) * np.exp(x)


def reference(x):
    x = x.astype(np.float64)
    return np.sin(x) + np.cos(x) * np.exp(x)


def scalar(dtype):
    return Leaf((), dtype)


def cost(dtype):
    # A transcendental function takes some ten operations. Three results are alive when the last two are joined.
    return Cost(
        flops=32,
        ops=5,
        temporary_bytes=2 * Leaf((), dtype).bytes,
        batched_temporary_bytes=2 * Leaf((), dtype).bytes,
        depth=3,
        functions={"sin": 1, "cos": 1, "exp": 1},
    )


WORKLOAD = Workload(
    slug="trig_exp",
    title="Sine, cosine, exponential",
    group="Elementwise",
    formula="y[b] = sin x[b] + cos x[b] · exp x[b]",
    summary="Five ops on a number: an eager loop pays for each of them, a compiled element function for one call.",
    sizes=(SizeParameter("batch", 1_000, 0, 100_000_000, "numbers in the batch, the mapped axis"),),
    presets={
        "A thousand": {"batch": 1_000},
        "Ten thousand": {"batch": 10_000},
        "A million": {"batch": 1_000_000},
    },
    dtypes=("float32", "float64", "float16", "bfloat16"),
    inputs=inputs,
    element=element,
    numpy_element=in_numpy,
    rewrites={"batched": batched, "numpy": in_numpy},
    reference=reference,
    element_input=scalar,
    element_output=scalar,
    cost=cost,
)
