"""Cheap functions of a number: `square`, `polynomial` and `trig_exp`. They share sizes, dtypes and shapes."""

from typing import Any

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def _of_numbers(slug: str, **fields: Any) -> Workload:
    return Workload(
        slug=slug,
        group="Elementwise",
        sizes=(SizeParameter("batch", 1_000, 0, 100_000_000, "numbers in the batch, the mapped axis"),),
        dtypes=("float32", "float64", "float16", "bfloat16"),
        element_input=lambda dtype: Leaf((), dtype),
        **fields,
    )


def _square() -> Workload:
    """The smallest work there is, so that all that is measured is overhead."""

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

    return _of_numbers(
        slug="square",
        title="Square",
        formula="y[b] = x[b]²",
        summary="One multiplication per element: whatever takes longer than that is the price of the mapper.",
        presets={
            "Ten": {"batch": 10},
            "A thousand": {"batch": 1_000},
            "Ten thousand": {"batch": 10_000},
            "A million": {"batch": 1_000_000},
        },
        inputs=inputs,
        element=element,
        numpy_element=in_numpy,
        rewrites={"batched": batched, "numpy": in_numpy},
        cost=lambda: Cost(ops=1),
    )


def _polynomial() -> Workload:
    """Code that works on a number works on the batch as it is."""

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

    return _of_numbers(
        slug="polynomial",
        title="Polynomial",
        formula="y[b] = x[b]² + 2 x[b] + 1",
        summary="A few cheap ops on a number, which mean the same for a whole batch: "
        "vectorised by hand it is one line.",
        presets={
            "Five": {"batch": 5},
            "A thousand": {"batch": 1_000},
            "A hundred thousand": {"batch": 100_000},
            "A million": {"batch": 1_000_000},
        },
        inputs=inputs,
        element=element,
        numpy_element=in_numpy,
        rewrites={"batched": batched, "numpy": in_numpy},
        cost=lambda dtype: Cost(ops=4, temporary_bytes=ITEM_BYTES[dtype], depth=4),
    )


def _trig_exp() -> Workload:
    """Where compiling the function for one element pays."""

    def inputs(batch, dtype, seed):
        # Sine and cosine are positive here, so that the sum does not cancel.
        rng = np.random.default_rng(seed)
        return rng.uniform(0.1, 1.4, size=(batch,)).astype(dtype)

    def element(x):
        return tf.sin(x) + tf.cos(x) * tf.exp(x)

    def batched(x):
        return tf.sin(x) + tf.cos(x) * tf.exp(x)

    def in_numpy(x):
        return np.sin(x) + np.cos(x) * np.exp(x)

    return _of_numbers(
        slug="trig_exp",
        title="Sine, cosine, exponential",
        formula="y[b] = sin x[b] + cos x[b] · exp x[b]",
        summary="Five ops on a number: an eager loop pays for each of them, a compiled element function for one call.",
        presets={
            "A thousand": {"batch": 1_000},
            "Ten thousand": {"batch": 10_000},
            "A million": {"batch": 1_000_000},
        },
        inputs=inputs,
        element=element,
        numpy_element=in_numpy,
        rewrites={"batched": batched, "numpy": in_numpy},
        # Three results are alive when the last two are joined.
        cost=lambda dtype: Cost(ops=5, temporary_bytes=2 * ITEM_BYTES[dtype], depth=3),
    )


WORKLOAD = (_square(), _polynomial(), _trig_exp())
