"""A Python loop in the element function: traced, it is that many ops; eager, each runs for each element."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, dtype, seed):
    # Small, so that a sum over many terms fits a narrow dtype.
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1.0, size=(batch,)).astype(dtype)


def element(x, *, terms):
    total = tf.zeros_like(x)
    for i in range(terms):
        total += x * i
    return total


def batched(x, *, terms):
    return x * sum(range(terms))


def in_numpy(x, *, terms):
    total = 0 * x
    for i in range(terms):
        total += x * i
    return total


WORKLOAD = Workload(
    title="Sum in a Python loop",
    group="Reductions",
    formula="y[b] = Σᵢ x[b] · i, for i from 0 to terms − 1",
    sizes=(
        SizeParameter("batch", 100, 0, 10_000_000, "numbers in the batch, the mapped axis"),
        SizeParameter("terms", 100, 1, 10_000, "steps of the Python loop in the element function"),
    ),
    presets={"Five numbers": (5, 100), "A hundred": (100, 100), "Many, short loop": (10_000, 10)},
    inputs=inputs,
    element=element,
    rewrites={"batched": batched},
    numpy=in_numpy,
    element_input=lambda dtype: Leaf((), dtype),
    cost=lambda terms, dtype: Cost(
        flops=2 * terms, ops=2 * terms + 1, temporary_bytes=2 * ITEM_BYTES[dtype], depth=2 * terms
    ),
)
