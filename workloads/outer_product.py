"""Every matrix times itself, all pairs of entries: the output is side² times the input, so copies hurt."""

import numpy as np

from workloads.spec import Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, side, dtype, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, size=(batch, side, side)).astype(dtype)


def element(x):
    return tf.tensordot(x, x, 0)


def batched(x):
    return x[..., None, None] * x[..., None, None, :, :]


WORKLOAD = Workload(
    title="Outer product of matrices",
    group="Elementwise",
    formula="y[b,i,j,k,l] = x[b,i,j] · x[b,k,l]",
    sizes=(
        SizeParameter("batch", 100, 0, 1_000_000, "matrices in the batch, the mapped axis"),
        SizeParameter("side", 16, 1, 128, "rows and columns of a matrix; the output grows with its fourth power"),
    ),
    presets={"Small": (10, 8), "Medium": (100, 16), "Large (400 MiB)": (100, 32), "Many small": (2_000, 6)},
    dtypes=("float32", "float64", "float16", "bfloat16"),
    inputs=inputs,
    element=element,
    rewrites={"batched": batched},
    numpy=batched,
    element_input=lambda side, dtype: Leaf((side, side), dtype),
    element_output=lambda side, dtype: Leaf((side, side, side, side), dtype),
    # tf.tensordot issues two reshapes, a matrix product and a reshape; reshapes share their input's buffer.
    cost=lambda: Cost(ops=4),
)
