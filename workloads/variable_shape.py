"""The element function keeps as many numbers as are positive: it takes ragged tensors, or padding by hand."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, width, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 1.0, size=(batch, width))
    return (x * np.where(rng.uniform(size=(batch, width)) < 0.5, -1.0, 1.0)).astype(dtype)


def element(x):
    return tf.boolean_mask(x, x > 0)


def ragged(x):
    kept = tf.map_fn(element, x, fn_output_signature=tf.RaggedTensorSpec([None], x.dtype))
    return kept.to_tensor(shape=x.shape)


def batched(x):
    # A stable sort moves what is kept to the front and leaves its order as it is.
    keep = x > 0
    order = tf.argsort(tf.cast(keep, tf.int32), axis=1, direction="DESCENDING", stable=True)
    return tf.gather(tf.where(keep, x, tf.zeros_like(x)), order, batch_dims=1)


def numpy_batched(x):
    keep = x > 0
    order = np.argsort(~keep, axis=1, kind="stable")
    return np.take_along_axis(np.where(keep, x, 0), order, axis=1).astype(x.dtype)


WORKLOAD = Workload(
    title="Shape from values",
    group="Limits",
    formula="y[b] = the positive numbers of x[b], in order, then zeros",
    sizes=(
        SizeParameter("batch", 100, 0, 1_000_000, "rows in the batch, the mapped axis"),
        SizeParameter("width", 64, 2, 65_536, "numbers in a row"),
    ),
    presets={"Small": (10, 8), "Medium": (100, 64)},
    inputs=inputs,
    element=element,
    rewrites={"batched": batched, "ragged": ragged, "numpy": numpy_batched},
    element_input=lambda width, dtype: Leaf((width,), dtype),
    # Rows, and the places of their numbers.
    cost=lambda width, dtype: Cost(ops=8, temporary_bytes=2 * width * ITEM_BYTES[dtype] + 8 * width),
)
