"""The gradient of a network's loss for every example by itself: many small ops and several outputs."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, Option, SizeParameter, Workload, tf


def inputs(batch, features, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(batch, features)).astype(dtype)
    # Labels far from any prediction: where the two nearly cancel, rounding alone would decide the relative error.
    label = rng.uniform(8.0, 12.0, size=(batch, 1)).astype(dtype)
    return x, label


def initial_values(features, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    kernel = (rng.uniform(-1.0, 1.0, size=(features, 1)) / np.sqrt(features)).astype(dtype)
    bias = rng.uniform(-1.0, 1.0, size=(1,)).astype(dtype)
    return kernel, bias


def element(example, kernel, bias):
    x, label = example
    with tf.GradientTape() as tape:
        prediction = tf.matmul(x[None, :], kernel)[0] + bias
        loss = tf.nn.l2_loss(label - prediction)
    return tape.gradient(loss, (kernel, bias))


def batched(examples, kernel, bias):
    x, label = examples
    residual = tf.matmul(x, kernel) + bias - label
    return residual[:, :, None] * x[:, :, None], residual


def jacobian(examples, kernel, bias):
    x, label = examples
    with tf.GradientTape() as tape:
        losses = tf.reduce_sum(tf.square(label - (tf.matmul(x, kernel) + bias)), axis=1) / 2
    return tape.jacobian(losses, (kernel, bias))


def reference(examples, kernel, bias):
    x, label = (array.astype(np.float64) for array in examples)
    residual = x @ kernel.astype(np.float64) + bias.astype(np.float64) - label
    return residual[:, :, None] * x[:, :, None], residual


def parameters(features, dtype):
    return Leaf((features, 1), dtype), Leaf((1,), dtype)


# --- a two-layer perceptron -------------------------------------------------------------------------------------------


def perceptron_values(features, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    first = rng.uniform(-1.0, 1.0, size=(features, 16)) / np.sqrt(features)
    second = rng.uniform(0.5, 1.0, size=(16, 1)) / 4
    biases = rng.uniform(-1.0, 1.0, size=(17,))
    return tuple(array.astype(dtype) for array in (first, biases[:16], second, biases[16:]))


def perceptron(x, first, first_bias, second, second_bias):
    return tf.matmul(tf.tanh(tf.matmul(x, first) + first_bias), second) + second_bias


def perceptron_element(example, *variables):
    x, label = example
    with tf.GradientTape() as tape:
        loss = tf.nn.l2_loss(label - perceptron(x[None, :], *variables)[0])
    return tape.gradient(loss, variables)


def perceptron_batched(examples, first, first_bias, second, second_bias):
    x, label = examples
    activation = tf.tanh(tf.matmul(x, first) + first_bias)
    residual = tf.matmul(activation, second) + second_bias - label
    back = tf.matmul(residual, second, transpose_b=True) * (1 - tf.square(activation))
    return x[:, :, None] * back[:, None, :], back, activation[:, :, None] * residual[:, None, :], residual


def perceptron_jacobian(examples, *variables):
    x, label = examples
    with tf.GradientTape() as tape:
        losses = tf.reduce_sum(tf.square(label - perceptron(x, *variables)), axis=1) / 2
    return tape.jacobian(losses, variables)


def perceptron_reference(examples, *variables):
    x, label = (array.astype(np.float64) for array in examples)
    first, first_bias, second, second_bias = (array.astype(np.float64) for array in variables)
    activation = np.tanh(x @ first + first_bias)
    residual = activation @ second + second_bias - label
    back = (residual @ second.T) * (1 - activation**2)
    return x[:, :, None] * back[:, None, :], back, activation[:, :, None] * residual[:, None, :], residual


def perceptron_parameters(features, dtype):
    return Leaf((features, 16), dtype), Leaf((16,), dtype), Leaf((16, 1), dtype), Leaf((1,), dtype)


# --- a convolutional network ------------------------------------------------------------------------------------------


def convolution_values(dtype, seed):
    rng = np.random.default_rng(seed + 1)
    filters = rng.uniform(-1.0, 1.0, size=(3, 1, 8)) / 2
    dense = rng.uniform(0.5, 1.0, size=(8, 1)) / 4
    biases = rng.uniform(-1.0, 1.0, size=(9,))
    return tuple(array.astype(dtype) for array in (filters, biases[:8], dense, biases[8:]))


def convolution(x, filters, filters_bias, dense, dense_bias):
    activation = tf.tanh(tf.nn.conv1d(x[:, :, None], filters, stride=1, padding="SAME") + filters_bias)
    return tf.matmul(tf.reduce_mean(activation, axis=1), dense) + dense_bias


def convolution_element(example, *variables):
    x, label = example
    with tf.GradientTape() as tape:
        loss = tf.nn.l2_loss(label - convolution(x[None, :], *variables)[0])
    return tape.gradient(loss, variables)


def convolution_jacobian(examples, *variables):
    x, label = examples
    with tf.GradientTape() as tape:
        losses = tf.reduce_sum(tf.square(label - convolution(x, *variables)), axis=1) / 2
    return tape.jacobian(losses, variables)


def convolution_reference(examples, *variables):
    x, label = (array.astype(np.float64) for array in examples)
    filters, filters_bias, dense, dense_bias = (array.astype(np.float64) for array in variables)
    features = x.shape[1]
    padded = np.pad(x, ((0, 0), (1, 1)))
    windows = np.stack([padded[:, i : i + features] for i in range(3)], axis=2)
    activation = np.tanh(windows @ filters[:, 0, :] + filters_bias)
    pooled = activation.mean(axis=1)
    residual = pooled @ dense + dense_bias - label
    back = (residual @ dense.T)[:, None, :] / features * (1 - activation**2)
    by_filters = np.swapaxes(windows, 1, 2) @ back
    return by_filters[:, :, None, :], back.sum(axis=1), pooled[:, :, None] * residual[:, None, :], residual


def convolution_parameters(dtype):
    return Leaf((3, 1, 8), dtype), Leaf((8,), dtype), Leaf((8, 1), dtype), Leaf((1,), dtype)


WORKLOAD = Workload(
    slug="per_example_gradients",
    title="Per-example gradients",
    group="Gradients",
    formula="∂ ½(label[b] − model(x[b]))² / ∂(parameters)",
    summary="A gradient for every example by itself, where a loss over the batch would give only their sum.",
    sizes=(
        SizeParameter("batch", 64, 0, 1_000_000, "examples in the batch, the mapped axis"),
        SizeParameter("features", 32, 1, 65_536, "inputs of the model, which has one output"),
    ),
    presets={
        "Small": {"batch": 10, "features": 32},
        "Medium": {"batch": 64, "features": 32},
        "Wide": {"batch": 64, "features": 16_384},
        "Many": {"batch": 1_000, "features": 256},
    },
    dtypes=("float32", "float64", "float16", "bfloat16"),
    inputs=inputs,
    element=element,
    rewrites={"batched": batched, "jacobian": jacobian},
    reference=reference,
    element_input=lambda features, dtype: (Leaf((features,), dtype), Leaf((1,), dtype)),
    element_output=parameters,
    # The depth is that of a sum over all features, one rounding each, and of the few ops around it.
    cost=lambda features, dtype: Cost(ops=13, temporary_bytes=4 * ITEM_BYTES[dtype], depth=features + 6),
    variables=initial_values,
    variable_leaves=parameters,
    options=(
        Option(
            "model",
            default="dense",
            help="dense: one layer; mlp: two layers, 16 hidden units; cnn: 8 filters of width 3, means, one layer",
            values=("dense", "mlp", "cnn"),
        ),
    ),
    helpers=(perceptron, convolution),
    variants={
        "model": {
            "mlp": {
                "element": perceptron_element,
                "rewrites": {"batched": perceptron_batched, "jacobian": perceptron_jacobian},
                "reference": perceptron_reference,
                "element_output": perceptron_parameters,
                "cost": lambda features, dtype: Cost(
                    ops=24,
                    temporary_bytes=128 * ITEM_BYTES[dtype],
                    depth=2 * features + 40,
                ),
                "variables": perceptron_values,
                "variable_leaves": perceptron_parameters,
            },
            "cnn": {
                "element": convolution_element,
                "rewrites": {"jacobian": convolution_jacobian},
                "reference": convolution_reference,
                "element_output": convolution_parameters,
                "cost": lambda features, dtype: Cost(
                    ops=40,
                    temporary_bytes=32 * features * ITEM_BYTES[dtype],
                    depth=2 * features + 30,
                ),
                "variables": convolution_values,
                "variable_leaves": convolution_parameters,
            },
        }
    },
)
