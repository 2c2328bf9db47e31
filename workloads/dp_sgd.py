"""Private training: one gradient comes out, but each example's own is needed first, to cut its length."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, features, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.1, 1.0, size=(batch, features)).astype(dtype)
    # Some gradients are longer than the limit and some are not; none is near zero, where rounding would decide.
    label = rng.uniform(0.6, 2.0, size=(batch, 1)).astype(dtype)
    return x, label


def initial_values(features, hidden, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    first = rng.uniform(0.1, 0.3, size=(features, hidden)) / features
    second = rng.uniform(0.5, 1.5, size=(hidden, 1)) / hidden
    return first.astype(dtype), second.astype(dtype)


def clipped(example, first, second):
    x, label = example
    with tf.GradientTape() as tape:
        prediction = tf.matmul(tf.tanh(tf.matmul(x[None], first)), second)[0]
        loss = tf.nn.l2_loss(label - prediction)
    gradients = tape.gradient(loss, (first, second))
    # To a length of at most 1. Not tf.linalg.global_norm, whose op tf.vectorized_map would run in a loop.
    squared = tf.add_n([tf.reduce_sum(tf.square(gradient)) for gradient in gradients])
    scale = 1 / tf.maximum(tf.sqrt(squared), 1)
    return tuple(gradient * scale for gradient in gradients)


def summed(mapped, examples, first, second):
    return tf.nest.map_structure(lambda gradient: tf.reduce_sum(gradient, axis=0), mapped(examples))


def batched(examples, first, second):
    # The gradient of a layer is the product of its input and of what comes back, and so is its length: no example's
    # own gradient has to exist.
    x, label = examples
    activation = tf.tanh(tf.matmul(x, first))
    residual = tf.matmul(activation, second) - label
    back = tf.matmul(residual, second, transpose_b=True) * (1 - tf.square(activation))
    squared = square_length(activation) * square_length(residual) + square_length(x) * square_length(back)
    scale = 1 / tf.maximum(tf.sqrt(squared), 1)
    return tf.matmul(x, back * scale, transpose_a=True), tf.matmul(activation, residual * scale, transpose_a=True)


def square_length(rows):
    return tf.reduce_sum(tf.square(rows), axis=1, keepdims=True)


def accumulate(examples, first, second, *, chunk=32):
    def add(start, size, totals):
        part = tf.nest.map_structure(lambda leaf: tf.slice(leaf, [start, 0], [size, leaf.shape[1]]), examples)
        gradients = tf.vectorized_map(lambda example: clipped(example, first, second), part)
        return tf.nest.map_structure(lambda total, more: total + tf.reduce_sum(more, axis=0), totals, gradients)

    whole, rest = divmod(examples[0].shape[0], chunk)
    _, totals = tf.while_loop(
        lambda index, totals: index < whole,
        lambda index, totals: (index + 1, add(index * chunk, chunk, totals)),
        (0, (tf.zeros_like(first), tf.zeros_like(second))),
        parallel_iterations=1,
    )
    return add(whole * chunk, rest, totals) if rest else totals


def numpy_batched(examples, first, second):
    x, label = examples
    activation = np.tanh(x @ first)
    residual = activation @ second - label
    back = (residual @ second.T) * (1 - activation**2)
    squared = (activation**2).sum(1) * (residual**2).sum(1) + (x**2).sum(1) * (back**2).sum(1)
    scale = 1 / np.maximum(np.sqrt(squared), 1)[:, None]
    return x.T @ (back * scale), activation.T @ (residual * scale)


def parameters(features, hidden, dtype):
    return Leaf((features, hidden), dtype), Leaf((hidden, 1), dtype)


WORKLOAD = Workload(
    title="Clipped gradients, summed",
    group="Gradients",
    formula="Σ over b of g[b] / max(1, ‖g[b]‖), with g[b] the gradient of example b",
    sizes=(
        SizeParameter("batch", 256, 0, 1_000_000, "examples in the batch, the mapped axis"),
        SizeParameter("features", 64, 1, 65_536, "inputs of the network"),
        SizeParameter("hidden", 64, 1, 65_536, "units of its hidden layer"),
    ),
    presets={"Small": (32, 16, 16), "Medium": (256, 64, 64), "Large (256 MiB of gradients)": (1_024, 256, 256)},
    inputs=inputs,
    element=clipped,
    use=summed,
    rewrites={"batched": batched, "accumulate": accumulate, "numpy": numpy_batched},
    element_input=lambda features, dtype: (Leaf((features,), dtype), Leaf((1,), dtype)),
    element_output=parameters,
    output=parameters,
    # The gradient, its square and what is scaled; then a sum over the batch, one rounding each.
    cost=lambda batch, features, hidden, dtype: Cost(
        flops=8 * features * hidden,
        ops=30,
        temporary_bytes=2 * (features + 1) * hidden * ITEM_BYTES[dtype],
        depth=batch + 2 * features + 2 * hidden,
    ),
    variables=initial_values,
    variable_leaves=parameters,
)
