"""An op that had no vectorised form in earlier releases of TensorFlow: does it fall back to a loop here?"""

import numpy as np

from workloads.spec import Leaf, SizeParameter, Workload, tf


def inputs(batch, width, dtype, seed):
    # All numbers of a row differ, in every dtype, so that no two of them can change places.
    rng = np.random.default_rng(seed)
    rows = np.argsort(rng.uniform(size=(batch, width)), axis=1)
    return (rows + 1).astype(dtype)


def element(rows, *, k):
    largest = tf.math.top_k(rows, k)
    return largest.values, largest.indices


def in_numpy(rows, *, k):
    places = np.argsort(-rows, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(rows, places, axis=-1), places.astype(np.int32)


WORKLOAD = Workload(
    title="Largest numbers",
    group="Limits",
    formula="y[b] = the k largest of x[b], and where they are",
    sizes=(
        SizeParameter("batch", 100, 0, 1_000_000, "rows in the batch, the mapped axis"),
        SizeParameter("width", 256, 16, 2_048, "numbers in a row"),
        SizeParameter("k", 5, 1, 16, "how many are wanted"),
    ),
    presets={"Small": (10, 16, 3), "Medium": (100, 256, 5), "Many": (10_000, 256, 5)},
    dtypes=("float32", "float64", "float16"),
    inputs=inputs,
    element=element,
    rewrites={"batched": element},
    numpy=in_numpy,
    element_input=lambda width, dtype: Leaf((width,), dtype),
    element_output=lambda k, dtype: (Leaf((k,), dtype), Leaf((k,), "int32")),
)
