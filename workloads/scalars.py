"""Cheap functions of a number, which share inputs, sizes, dtypes and shapes: `square`, `polynomial` and `trig_exp`."""

from typing import Any

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, dtype, seed):
    # Not near 0, where the square of a narrow number would be subnormal; sine and cosine are positive, so that no sum
    # cancels.
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1.4, size=(batch,)).astype(dtype)


def square(x):
    return x**2


def square_batched(x):
    return tf.square(x)


def polynomial(x):
    return tf.square(x) + 2 * x + 1


def polynomial_in_numpy(x):
    return x**2 + 2 * x + 1


def trig_exp(x):
    return tf.sin(x) + tf.cos(x) * tf.exp(x)


def trig_exp_in_numpy(x):
    return np.sin(x) + np.cos(x) * np.exp(x)


def _of_numbers(element: Any, batched: Any, in_numpy: Any, **fields: Any) -> Workload:
    return Workload(
        slug=element.__name__,
        group="Elementwise",
        sizes=(SizeParameter("batch", 1_000, 0, 100_000_000, "numbers in the batch, the mapped axis"),),
        dtypes=("float32", "float64", "float16", "bfloat16"),
        inputs=inputs,
        element=element,
        rewrites={"batched": batched},
        numpy=in_numpy,
        element_input=lambda dtype: Leaf((), dtype),
        **fields,
    )


WORKLOAD = (
    # The smallest work there is, so that all that is measured is overhead.
    _of_numbers(
        *(square, square_batched, square),
        title="Square",
        formula="y[b] = x[b]²",
        summary="One multiplication per element: whatever takes longer than that is the price of the mapper.",
        presets={"Ten": (10,), "A thousand": (1_000,), "Ten thousand": (10_000,), "A million": (1_000_000,)},
    ),
    # Code that works on a number works on the batch as it is.
    _of_numbers(
        *(polynomial, polynomial, polynomial_in_numpy),
        title="Polynomial",
        formula="y[b] = x[b]² + 2 x[b] + 1",
        summary="A few cheap ops on a number, which mean the same for a whole batch: "
        "vectorised by hand it is one line.",
        presets={"Five": (5,), "A thousand": (1_000,), "A hundred thousand": (100_000,), "A million": (1_000_000,)},
        cost=lambda dtype: Cost(ops=4, temporary_bytes=ITEM_BYTES[dtype], depth=4),
    ),
    # Where compiling the function for one element pays.
    _of_numbers(
        *(trig_exp, trig_exp, trig_exp_in_numpy),
        title="Sine, cosine, exponential",
        formula="y[b] = sin x[b] + cos x[b] · exp x[b]",
        summary="Five ops on a number: an eager loop pays for each of them, a compiled element function for one call.",
        presets={"A thousand": (1_000,), "Ten thousand": (10_000,), "A million": (1_000_000,)},
        # Three results are alive when the last two are joined.
        cost=lambda dtype: Cost(ops=5, temporary_bytes=2 * ITEM_BYTES[dtype], depth=3),
    ),
)
