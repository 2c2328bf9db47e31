"""A few matrix products per element: the work outweighs the overhead, and batching buys least."""

from typing import TYPE_CHECKING

import numpy as np

from workloads.spec import Cost, Leaf, SizeParameter, Workload

if TYPE_CHECKING:
    import tensorflow as tf


def inputs(batch, side, dtype, seed):
    # Scaled so that products of any number of them stay near 1, and positive, so that nothing cancels.
    rng = np.random.default_rng(seed)
    return (rng.uniform(0.5, 1.5, size=(batch, side, side)) / side).astype(dtype)


def chain(x, *, products):
    y = x
    for _ in range(products):
        y = tf.matmul(y, x)
    return y


def in_numpy(x, *, products):
    y = x
    for _ in range(products):
        y = y @ x
    return y


def reference(x, *, products):
    x = x.astype(np.float64)
    y = x
    for _ in range(products):
        y = y @ x
    return y


def leaf(side, dtype):
    return Leaf((side, side), dtype)


def cost(side, products, dtype):
    matrix = Leaf((side, side), dtype).bytes
    return Cost(
        flops=2 * products * side**3,
        ops=products,
        temporary_bytes=matrix,
        batched_temporary_bytes=matrix,
        depth=products * side,
    )


WORKLOAD = Workload(
    slug="matmul_chain",
    title="Matrix products",
    group="Networks",
    formula="y[b] = x[b] · x[b] ⋯ x[b]",
    summary="Enough arithmetic per element to occupy the processor: what a mapper adds hardly shows.",
    sizes=(
        SizeParameter("batch", 64, 0, 1_000_000, "matrices in the batch, the mapped axis"),
        SizeParameter("side", 64, 1, 4_096, "rows and columns of a matrix"),
        SizeParameter("products", 4, 1, 64, "products in the chain"),
    ),
    presets={
        "Small": {"batch": 64, "side": 16, "products": 4},
        "Medium": {"batch": 64, "side": 64, "products": 4},
        "Large": {"batch": 64, "side": 256, "products": 4},
    },
    dtypes=("float32", "float64"),
    inputs=inputs,
    element=chain,
    numpy_element=in_numpy,
    rewrites={"batched": chain, "numpy": in_numpy},
    reference=reference,
    element_input=leaf,
    element_output=leaf,
    cost=cost,
)
