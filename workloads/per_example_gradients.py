"""The gradient of a dense layer's loss for every example by itself: many small ops, two outputs, a closed form."""

from typing import TYPE_CHECKING

import numpy as np

from workloads.spec import Cost, Leaf, SizeParameter, Workload

if TYPE_CHECKING:
    import tensorflow as tf


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


def reference(examples, kernel, bias):
    x, label = (array.astype(np.float64) for array in examples)
    residual = x @ kernel.astype(np.float64) + bias.astype(np.float64) - label
    return residual[:, :, None] * x[:, :, None], residual


def element_input(features, dtype):
    return Leaf((features,), dtype), Leaf((1,), dtype)


def parameters(features, dtype):
    return Leaf((features, 1), dtype), Leaf((1,), dtype)


def cost(features, dtype):
    # 13 ops forward and backward, as seen by an op callback. The depth is that of a sum over all features, one rounding
    # each, and of the few ops around it.
    return Cost(
        flops=4 * features + 8,
        ops=13,
        temporary_bytes=2 * Leaf((features,), dtype).bytes,
        batched_temporary_bytes=4 * Leaf((1,), dtype).bytes,
        depth=features + 6,
    )


WORKLOAD = Workload(
    slug="per_example_gradients",
    title="Per-example gradients",
    group="Gradients",
    formula="∂ ½(label[b] − x[b]·kernel − bias)² / ∂(kernel, bias)",
    summary="A gradient for every example by itself, where a loss over the batch would give only their sum.",
    sizes=(
        SizeParameter("batch", 64, 1, 1_000_000, "examples in the batch, the mapped axis"),
        SizeParameter("features", 32, 1, 65_536, "inputs of the dense layer, which has one output"),
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
    rewrites={"batched": batched},
    reference=reference,
    element_input=element_input,
    element_output=parameters,
    cost=cost,
    variables=initial_values,
    variable_leaves=parameters,
)
