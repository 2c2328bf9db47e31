"""Each number becomes a long tensor that a sum makes small again: a mapper decides how many exist at once."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, dtype, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1.0, size=(batch,)).astype(dtype)


def element(x, *, repeats):
    return tf.reduce_sum(tf.repeat(x, repeats))


def batched(x, *, repeats):
    return x * repeats


def in_numpy(x, *, repeats):
    return np.sum(np.repeat(x[..., None], repeats, axis=-1), axis=-1)


def reference(x, *, repeats):
    return x.astype(np.float64) * repeats


WORKLOAD = Workload(
    title="Repeat and sum",
    group="Reductions",
    formula="y[b] = Σᵣ x[b], repeats times",
    sizes=(
        SizeParameter("batch", 1_000, 0, 10_000_000, "numbers in the batch, the mapped axis"),
        SizeParameter("repeats", 10_000, 1, 10_000_000, "how often a number is repeated"),
    ),
    presets={"Small": (100, 1_000), "Medium (38 MiB)": (1_000, 10_000), "Large (380 MiB)": (10_000, 10_000)},
    inputs=inputs,
    element=element,
    rewrites={"batched": batched},
    numpy=in_numpy,
    reference=reference,
    element_input=lambda dtype: Leaf((), dtype),
    # tf.repeat issues an expansion, a tile or broadcast and a reshape, beside the sum.
    cost=lambda repeats, dtype: Cost(ops=5, temporary_bytes=repeats * ITEM_BYTES[dtype], depth=repeats),
)
