"""All products of a matrix's entries, of which only the largest are kept: where chunks save memory."""

import numpy as np

from workloads.outer_product import inputs
from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def element(x):
    return tf.reduce_max(tf.tensordot(x, x, 0), axis=[2, 3])


def batched(x):
    # The largest product with a positive number is that with the largest, with a negative one that with the smallest.
    largest = tf.reduce_max(x, axis=[1, 2], keepdims=True)
    smallest = tf.reduce_min(x, axis=[1, 2], keepdims=True)
    return tf.maximum(x * largest, x * smallest)


def in_numpy(x):
    return (x[..., None, None] * x[..., None, None, :, :]).max(axis=(-2, -1))


def reference(x):
    x = x.astype(np.float64)
    largest, smallest = x.max(axis=(1, 2), keepdims=True), x.min(axis=(1, 2), keepdims=True)
    return np.maximum(x * largest, x * smallest)


WORKLOAD = Workload(
    title="Outer product, reduced",
    group="Reductions",
    formula="y[b,i,j] = max over k, l of x[b,i,j] · x[b,k,l]",
    sizes=(
        SizeParameter("batch", 256, 0, 1_000_000, "matrices in the batch, the mapped axis"),
        SizeParameter("side", 16, 1, 128, "rows and columns of a matrix; temporaries grow with its fourth power"),
    ),
    presets={"Small": (100, 8), "Medium (64 MiB)": (256, 16), "Large (1 GiB)": (256, 32)},
    dtypes=("float32", "float64", "float16", "bfloat16"),
    inputs=inputs,
    element=element,
    rewrites={"batched": batched},
    numpy=in_numpy,
    reference=reference,
    element_input=lambda side, dtype: Leaf((side, side), dtype),
    cost=lambda side, dtype: Cost(ops=5, temporary_bytes=side**4 * ITEM_BYTES[dtype]),
)
