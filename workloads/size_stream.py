"""Two small layers: where the size of the batch changes, tracing and compiling take far longer than a call."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, features, dtype, seed):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, size=(batch, features)).astype(dtype)


def initial_values(features, hidden, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    first = rng.uniform(-1.0, 1.0, size=(features, hidden)) / np.sqrt(features)
    # Positive, so that a result is no small difference of large numbers.
    second = rng.uniform(0.5, 1.5, size=(hidden, 1)) / hidden
    return first.astype(dtype), np.full(hidden, 0.5, dtype), second.astype(dtype)


def element(x, first, bias, second):
    return batched(x[None, :], first, bias, second)[0]


def batched(x, first, bias, second):
    return tf.matmul(tf.nn.relu(tf.matmul(x, first) + bias), second)


def numpy_element(x, first, bias, second):
    return np.maximum(x @ first + bias, 0) @ second


WORKLOAD = Workload(
    title="Batches of any size",
    group="Networks",
    formula="y[b] = relu(x[b] · W₁ + b₁) · W₂",
    sizes=(
        SizeParameter("batch", 32, 0, 1_000_000, "rows in the batch, the mapped axis"),
        SizeParameter("features", 16, 1, 4_096, "numbers in a row"),
        SizeParameter("hidden", 16, 1, 4_096, "units of the hidden layer"),
    ),
    presets={"Small": (1, 8, 8), "Medium": (32, 16, 16), "Large": (1_000, 64, 64)},
    inputs=inputs,
    variables=initial_values,
    variable_leaves=lambda features, hidden, dtype: (
        Leaf((features, hidden), dtype),
        Leaf((hidden,), dtype),
        Leaf((hidden, 1), dtype),
    ),
    element=element,
    rewrites={"batched": batched},
    numpy=numpy_element,
    element_input=lambda features, dtype: Leaf((features,), dtype),
    element_output=lambda dtype: Leaf((1,), dtype),
    cost=lambda features, hidden, dtype: Cost(
        ops=6,
        flops=2 * features * hidden + 4 * hidden,
        temporary_bytes=2 * hidden * ITEM_BYTES[dtype],
        depth=features + hidden + 2,
    ),
)
