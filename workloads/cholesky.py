"""A factorisation and two triangular systems for each matrix: TensorFlow's ops take a batch of them, too."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, side, columns, dtype, seed):
    # A matrix times its transpose has no negative eigenvalue, and the identity keeps all of them away from zero.
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1.0, 1.0, size=(batch, side, side))
    matrix = rows @ np.swapaxes(rows, 1, 2) / side + np.eye(side)
    right = rng.uniform(-1.0, 1.0, size=(batch, side, columns))
    return matrix.astype(dtype), right.astype(dtype)


def solve(equations):
    matrix, right = equations
    return tf.linalg.cholesky_solve(tf.linalg.cholesky(matrix), right)


def in_numpy(equations):
    matrix, right = equations
    return np.linalg.solve(matrix, right)


WORKLOAD = Workload(
    title="Cholesky solve",
    group="Linear algebra",
    formula="y[b] = A[b]⁻¹ · r[b], by A[b] = L[b] · L[b]ᵀ",
    sizes=(
        SizeParameter("batch", 64, 0, 1_000_000, "matrices in the batch, the mapped axis"),
        SizeParameter("side", 32, 1, 4_096, "rows and columns of a matrix"),
        SizeParameter("columns", 1, 1, 4_096, "right-hand sides of each matrix"),
    ),
    presets={"Small": (10, 4, 1), "Medium": (64, 32, 1), "Many": (10_000, 8, 1), "Large": (16, 256, 16)},
    inputs=inputs,
    element=solve,
    rewrites={"batched": solve},
    numpy=in_numpy,
    element_input=lambda side, columns, dtype: (Leaf((side, side), dtype), Leaf((side, columns), dtype)),
    element_output=lambda side, columns, dtype: Leaf((side, columns), dtype),
    # The factor, and two triangular systems for each column.
    cost=lambda side, columns, dtype: Cost(
        flops=side**3 // 3 + 2 * side**2 * columns,
        ops=3,
        temporary_bytes=side * (side + columns) * ITEM_BYTES[dtype],
        depth=3 * side,
    ),
)
