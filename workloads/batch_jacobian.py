"""A Jacobian matrix for each example: inside a map it is a vectorised map inside the map."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, features, dtype, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, size=(batch, features)).astype(dtype)


def initial_values(features, hidden, outputs, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    # The second layer is positive, so that no sum of the Jacobian cancels.
    first = rng.uniform(0.5, 1.5, size=(features, hidden)) / features
    second = rng.uniform(0.5, 1.5, size=(hidden, outputs)) / hidden
    return first.astype(dtype), second.astype(dtype)


def network(x, first, second):
    return tf.matmul(tf.tanh(tf.matmul(x, first)), second)


def element(x, first, second):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = network(x[None], first, second)[0]
    return tape.jacobian(y, x)


def batched(x, first, second):
    slope = 1 - tf.square(tf.tanh(tf.matmul(x, first)))
    return tf.matmul(slope[:, None, :] * tf.transpose(second), first, transpose_b=True)


def tape_batch_jacobian(x, first, second):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = network(x, first, second)
    return tape.batch_jacobian(y, x)


def in_numpy(x, first, second):
    slope = 1 - np.tanh(x @ first) ** 2
    return (slope[..., None, :] * second.T) @ first.T


WORKLOAD = Workload(
    title="Jacobian per example",
    group="Gradients",
    formula="∂ tanh(x[b]·V)·W / ∂ x[b]",
    sizes=(
        SizeParameter("batch", 64, 0, 1_000_000, "examples in the batch, the mapped axis"),
        SizeParameter("features", 32, 1, 4_096, "inputs of the network"),
        SizeParameter("hidden", 32, 1, 4_096, "units of its hidden layer"),
        SizeParameter("outputs", 8, 1, 1_024, "outputs, the rows of a Jacobian"),
    ),
    presets={"Small": (10, 8, 16, 4), "Medium": (64, 32, 32, 8), "Many outputs": (64, 32, 64, 64)},
    inputs=inputs,
    element=element,
    rewrites={"batched": batched, "tape_batch_jacobian": tape_batch_jacobian},
    numpy=in_numpy,
    element_input=lambda features, dtype: Leaf((features,), dtype),
    element_output=lambda features, outputs, dtype: Leaf((outputs, features), dtype),
    # Forward, and backward for each output, which the Jacobian vectorises.
    cost=lambda features, hidden, outputs, dtype: Cost(
        flops=2 * features * hidden + 2 * outputs * hidden * (1 + features),
        ops=30,
        temporary_bytes=(outputs + 2) * hidden * ITEM_BYTES[dtype],
        depth=2 * (features + hidden),
    ),
    variables=initial_values,
    variable_leaves=lambda features, hidden, outputs, dtype: (
        Leaf((features, hidden), dtype),
        Leaf((hidden, outputs), dtype),
    ),
)
