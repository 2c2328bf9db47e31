"""Enough arithmetic per element to occupy the processor: what a mapper adds hardly shows."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload


def inputs(batch, side, dtype, seed):
    # Scaled so that products of any number of them stay near 1, and positive, so that nothing cancels.
    rng = np.random.default_rng(seed)
    return (rng.uniform(0.5, 1.5, size=(batch, side, side)) / side).astype(dtype)


def chain(x, *, products):
    y = x
    for _ in range(products):
        y = y @ x
    return y


WORKLOAD = Workload(
    title="Matrix products",
    group="Networks",
    formula="y[b] = x[b] · x[b] ⋯ x[b]",
    sizes=(
        SizeParameter("batch", 64, 0, 1_000_000, "matrices in the batch, the mapped axis"),
        SizeParameter("side", 64, 1, 4_096, "rows and columns of a matrix"),
        SizeParameter("products", 4, 1, 64, "products in the chain"),
    ),
    presets={"Small": (64, 16, 4), "Medium": (64, 64, 4), "Large": (64, 256, 4)},
    inputs=inputs,
    element=chain,
    rewrites={"batched": chain},
    numpy=chain,
    element_input=lambda side, dtype: Leaf((side, side), dtype),
    cost=lambda side, products, dtype: Cost(
        ops=products, flops=2 * products * side**3, temporary_bytes=side**2 * ITEM_BYTES[dtype], depth=products * side
    ),
)
