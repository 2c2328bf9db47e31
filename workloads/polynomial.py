"""A quadratic polynomial of every number: code that works on a number works on the batch as it is."""

from typing import TYPE_CHECKING

import numpy as np

from workloads.spec import Cost, Leaf, SizeParameter, Workload

if TYPE_CHECKING:
    import tensorflow as tf


def inputs(batch, dtype, seed):
    # Positive, so that nothing cancels.
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 2.0, size=(batch,)).astype(dtype)


def element(x):
    return tf.square(x) + 2 * x + 1


def batched(x):
    return tf.square(x) + 2 * x + 1


def in_numpy(x):
    return x**2 + 2 * x + 1


def reference(x):
    x = x.astype(np.float64)
    return x**2 + 2 * x + 1


def scalar(dtype):
    return Leaf((), dtype)


def cost(dtype):
    return Cost(
        flops=4, ops=4, temporary_bytes=Leaf((), dtype).bytes, batched_temporary_bytes=Leaf((), dtype).bytes, depth=4
    )


WORKLOAD = Workload(
    slug="polynomial",
    title="Polynomial",
    group="Elementwise",
    formula="y[b] = x[b]² + 2 x[b] + 1",
    summary="A few cheap ops on a number, which mean the same for a whole batch: vectorised by hand it is one line.",
    sizes=(SizeParameter("batch", 1_000, 0, 100_000_000, "numbers in the batch, the mapped axis"),),
    presets={
        "Five": {"batch": 5},
        "A thousand": {"batch": 1_000},
        "A hundred thousand": {"batch": 100_000},
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
