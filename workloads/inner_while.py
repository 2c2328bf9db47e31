"""A tf.while_loop in the element function: vectorised, all elements wait for the one that takes longest."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, width, dtype, seed):
    # From 1 to some 60 000: between no and sixteen halvings, which are exact in every dtype.
    rng = np.random.default_rng(seed)
    scale = 2.0 ** rng.uniform(0.0, 15.8, size=(batch, 1))
    return (scale * rng.uniform(0.3, 1.0, size=(batch, width))).astype(dtype)


def element(x):
    def too_large(x, steps):
        return tf.reduce_max(x) > 1

    def halve(x, steps):
        return x / 2, steps + 1

    return tf.while_loop(too_large, halve, (x, 0))


def batched(x):
    def any_too_large(x, steps):
        return tf.reduce_any(x > 1)

    def halve(x, steps):
        large = tf.reduce_max(x, axis=1) > 1
        return tf.where(large[:, None], x / 2, x), tf.where(large, steps + 1, steps)

    return tf.while_loop(any_too_large, halve, (x, tf.zeros(tf.shape(x)[:1], tf.int32)))


def in_numpy(x):
    steps = np.zeros(x.shape[:-1], np.int32)
    while (large := x.max(axis=-1, initial=0) > 1).any():
        x, steps = np.where(large[..., None], x / 2, x), steps + large
    return x, steps


WORKLOAD = Workload(
    title="Loop until small",
    group="Limits",
    formula="y[b] = x[b] / 2ᵏ, with the least k that makes all of it at most 1",
    sizes=(
        SizeParameter("batch", 100, 0, 1_000_000, "rows in the batch, the mapped axis"),
        SizeParameter("width", 64, 1, 65_536, "numbers in a row"),
    ),
    presets={"Small": (10, 8), "Medium": (100, 64), "Many": (10_000, 64)},
    inputs=inputs,
    element=element,
    rewrites={"batched": batched},
    numpy=in_numpy,
    element_input=lambda width, dtype: Leaf((width,), dtype),
    element_output=lambda width, dtype: (Leaf((width,), dtype), Leaf((), "int32")),
    # Eight halvings on the average, each with a condition.
    cost=lambda width, dtype: Cost(ops=40, temporary_bytes=2 * width * ITEM_BYTES[dtype]),
)
