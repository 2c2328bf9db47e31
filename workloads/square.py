"""The square of every number: the smallest work there is, so that all that is measured is overhead."""

from typing import TYPE_CHECKING

import numpy as np

from workloads.spec import Cost, Leaf, SizeParameter, Workload

if TYPE_CHECKING:
    import tensorflow as tf


def inputs(batch, dtype, seed):
    # Not near 0, where the square of a narrow number would be subnormal.
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 2.0, size=(batch,)).astype(dtype)


def element(x):
    return x**2


def batched(x):
    return tf.square(x)


def in_numpy(x):
    return x**2


def reference(x):
    return x.astype(np.float64) ** 2


def scalar(dtype):
    return Leaf((), dtype)


def cost():
    return Cost(flops=1, ops=1)


WORKLOAD = Workload(
    slug="square",
    title="Square",
    group="Elementwise",
    formula="y[b] = x[b]²",
    summary="One multiplication per element: whatever takes longer than that is the price of the mapper.",
    sizes=(SizeParameter("batch", 1_000, 0, 100_000_000, "numbers in the batch, the mapped axis"),),
    presets={
        "Ten": {"batch": 10},
        "A thousand": {"batch": 1_000},
        "Ten thousand": {"batch": 10_000},
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
