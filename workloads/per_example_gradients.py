"""A gradient for every example by itself, where a loss over the batch would give only their sum."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, Option, SizeParameter, Workload, tf


def inputs(batch, features, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(batch, features)).astype(dtype)
    # Labels far from any prediction: where the two nearly cancel, rounding alone would decide the relative error.
    label = rng.uniform(8.0, 12.0, size=(batch, 1)).astype(dtype)
    return x, label


def shapes(features, model):
    return {
        "dense": ((features, 1), (1,)),
        "mlp": ((features, 16), (16,), (16, 1), (1,)),
        "cnn": ((3, 1, 8), (8,), (8, 1), (1,)),
    }[model]


def initial_values(features, model, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    arrays = [rng.uniform(-1.0, 1.0, size=shape) / np.sqrt(np.prod(shape[:-1])) for shape in shapes(features, model)]
    return tuple(array.astype(dtype) for array in arrays)


def predicted(x, variables, model):
    if model == "mlp":
        kernel, bias, *variables = variables
        x = tf.tanh(tf.matmul(x, kernel) + bias)
    elif model == "cnn":
        filters, bias, *variables = variables
        x = tf.reduce_mean(tf.tanh(tf.nn.conv1d(x[:, :, None], filters, stride=1, padding="SAME") + bias), axis=1)
    kernel, bias = variables
    return tf.matmul(x, kernel) + bias


def element(example, *variables, model):
    x, label = example
    with tf.GradientTape() as tape:
        loss = tf.nn.l2_loss(label - predicted(x[None, :], variables, model)[0])
    return tape.gradient(loss, variables)


def jacobian(examples, *variables, model):
    x, label = examples
    with tf.GradientTape() as tape:
        losses = tf.reduce_sum(tf.square(label - predicted(x, variables, model)), axis=1) / 2
    return tape.jacobian(losses, variables)


def batched(examples, kernel, bias):
    x, label = examples
    residual = tf.matmul(x, kernel) + bias - label
    return residual[:, :, None] * x[:, :, None], residual


def mlp_batched(examples, first, first_bias, second, second_bias):
    x, label = examples
    activation = tf.tanh(tf.matmul(x, first) + first_bias)
    residual = tf.matmul(activation, second) + second_bias - label
    back = tf.matmul(residual, second, transpose_b=True) * (1 - tf.square(activation))
    return x[:, :, None] * back[:, None, :], back, activation[:, :, None] * residual[:, None, :], residual


def parameters(features, model, dtype):
    return tuple(Leaf(shape, dtype) for shape in shapes(features, model))


WORKLOAD = Workload(
    title="Per-example gradients",
    group="Gradients",
    formula="∂ ½(label[b] − model(x[b]))² / ∂(parameters)",
    sizes=(
        SizeParameter("batch", 64, 0, 1_000_000, "examples in the batch, the mapped axis"),
        SizeParameter("features", 32, 1, 65_536, "inputs of the model, which has one output"),
    ),
    presets={"Small": (10, 32), "Medium": (64, 32), "Wide": (64, 16_384), "Many": (1_000, 256)},
    dtypes=("float32", "float64", "float16", "bfloat16"),
    options=(
        Option(
            "model",
            default="dense",
            help="dense: one layer; mlp: two layers, 16 hidden units; cnn: 8 filters of width 3, means, one layer",
            values=("dense", "mlp", "cnn"),
        ),
    ),
    inputs=inputs,
    variables=initial_values,
    variable_leaves=parameters,
    element=element,
    rewrites={"batched": batched, "jacobian": jacobian},
    element_input=lambda features, dtype: (Leaf((features,), dtype), Leaf((1,), dtype)),
    element_output=parameters,
    # The depth is that of a sum over all features, one rounding each, and of the few ops around it.
    cost=lambda features, model, dtype: Cost(
        ops={"dense": 13, "mlp": 24, "cnn": 40}[model],
        temporary_bytes={"dense": 4, "mlp": 128, "cnn": 32 * features}[model] * ITEM_BYTES[dtype],
        depth=features + 6 if model == "dense" else 2 * features + 40,
    ),
    variants={
        "model": {
            "mlp": {"rewrites": {"batched": mlp_batched, "jacobian": jacobian}},
            "cnn": {"rewrites": {"jacobian": jacobian}},
        }
    },
)
