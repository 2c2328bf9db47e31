"""A ragged tensor goes in: loops take it as it is, its own ops reduce it whole, and padding makes it dense."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, width, dtype, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 2 * width, size=batch)
    rows = np.empty(batch, dtype=object)
    for index, length in enumerate(lengths):
        rows[index] = rng.uniform(0.5, 1.5, size=length).astype(dtype)
    return rows


def element(x):
    return tf.reduce_mean(tf.square(x))


def batched(x):
    return tf.reduce_mean(tf.square(x), axis=1)


def padded(x):
    # The zeros of the padding add nothing to a sum.
    sums = tf.reduce_sum(tf.square(x.to_tensor()), axis=1)
    return sums / tf.cast(x.row_lengths(), x.dtype)


def reference(x):
    return np.array([np.mean(np.square(row.astype(np.float64))) for row in x])


WORKLOAD = Workload(
    title="Rows of different lengths",
    group="Reductions",
    formula="y[b] = mean of x[b, i]², over as many i as the row has",
    sizes=(
        SizeParameter("batch", 100, 1, 1_000_000, "rows in the batch, the mapped axis"),
        SizeParameter("width", 64, 1, 65_536, "numbers in a row, on average: from one to nearly twice as many"),
    ),
    presets={"Small": (10, 8), "Medium": (100, 64), "Many": (10_000, 32)},
    inputs=inputs,
    element=element,
    rewrites={"batched": batched, "padded": padded},
    reference=reference,
    element_input=lambda width, dtype: Leaf((None,), dtype, length=width),
    element_output=lambda dtype: Leaf((), dtype),
    # Padded, each row is as long as the longest, which is nearly twice the average.
    cost=lambda width, dtype: Cost(ops=2, temporary_bytes=4 * width * ITEM_BYTES[dtype], depth=width + 2),
    unsupported={"padded.xla": "XLA has no kernel for the op that pads a tf.RaggedTensor"},
)
