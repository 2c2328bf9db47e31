"""tf.cond in the element function: each element takes its branch; the batched rewrite computes both and chooses."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, width, dtype, seed):
    # All of a row's numbers have one sign: no rounding can send it the other way.
    rng = np.random.default_rng(seed)
    sign = np.where(rng.uniform(size=(batch, 1)) < 0.5, -1.0, 1.0)
    return (sign * rng.uniform(0.5, 2.0, size=(batch, width))).astype(dtype)


def element(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(-x), lambda: x * x)


def batched(x):
    positive = tf.reduce_sum(x, axis=1, keepdims=True) > 0
    return tf.where(positive, tf.exp(-x), x * x)


def in_numpy(x):
    return np.where(x.sum(axis=-1, keepdims=True) > 0, np.exp(-x), x * x)


WORKLOAD = Workload(
    title="Branch on the data",
    group="Limits",
    formula="y[b] = exp(−x[b]) where Σ x[b] > 0, else x[b]²",
    sizes=(
        SizeParameter("batch", 100, 0, 1_000_000, "rows in the batch, the mapped axis"),
        SizeParameter("width", 64, 1, 65_536, "numbers in a row"),
    ),
    presets={"Small": (10, 8), "Medium": (100, 64), "Wide": (100, 65_536)},
    dtypes=("float32", "float64", "float16", "bfloat16"),
    inputs=inputs,
    element=element,
    rewrites={"batched": batched},
    numpy=in_numpy,
    element_input=lambda width, dtype: Leaf((width,), dtype),
    cost=lambda width, dtype: Cost(ops=6, temporary_bytes=2 * width * ITEM_BYTES[dtype], depth=2),
)
