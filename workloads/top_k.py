"""The k largest numbers of every row, with their places: two outputs of different dtypes."""

from typing import TYPE_CHECKING

import numpy as np

from workloads.spec import Cost, Leaf, SizeParameter, Workload

if TYPE_CHECKING:
    import tensorflow as tf


def inputs(batch, width, dtype, seed):
    # All numbers of a row differ, in every dtype, so that no two of them can change places.
    rng = np.random.default_rng(seed)
    rows = np.argsort(rng.uniform(size=(batch, width)), axis=1)
    return (rows + 1).astype(dtype)


def element(row, *, k):
    largest = tf.math.top_k(row, k)
    return largest.values, largest.indices


def batched(rows, *, k):
    largest = tf.math.top_k(rows, k)
    return largest.values, largest.indices


def in_numpy(rows, *, k):
    places = np.argsort(-rows, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(rows, places, axis=-1), places.astype(np.int32)


def reference(rows, *, k):
    values, places = in_numpy(rows.astype(np.float64), k=k)
    return values, places.astype(np.float64)


def element_input(width, dtype):
    return Leaf((width,), dtype)


def element_output(k, dtype):
    return Leaf((k,), dtype), Leaf((k,), "int32")


def cost(width, k):
    return Cost(flops=width * max(1, k.bit_length()), ops=1)


WORKLOAD = Workload(
    slug="top_k",
    title="Largest numbers",
    group="Limits",
    formula="y[b] = the k largest of x[b], and where they are",
    summary="An op that had no vectorised form in earlier releases of TensorFlow: does it fall back to a loop here?",
    sizes=(
        SizeParameter("batch", 100, 0, 1_000_000, "rows in the batch, the mapped axis"),
        SizeParameter("width", 256, 16, 2_048, "numbers in a row"),
        SizeParameter("k", 5, 1, 16, "how many are wanted"),
    ),
    presets={
        "Small": {"batch": 10, "width": 16, "k": 3},
        "Medium": {"batch": 100, "width": 256, "k": 5},
        "Many": {"batch": 10_000, "width": 256, "k": 5},
    },
    dtypes=("float32", "float64", "float16"),
    inputs=inputs,
    element=element,
    numpy_element=in_numpy,
    rewrites={"batched": batched, "numpy": in_numpy},
    reference=reference,
    helpers=(in_numpy,),
    element_input=element_input,
    element_output=element_output,
    cost=cost,
)
