"""Gradients by the variables of a layer, for each example by itself, as private training needs them."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, Option, SizeParameter, Workload, tf


def inputs(batch, length, width, units, layer, dtype, seed):
    rng = np.random.default_rng(seed)
    if layer == "embedding":
        return rng.integers(0, units, size=(batch, length), dtype=np.int32)
    return rng.uniform(0.5, 1.5, size=(batch, length, width)).astype(dtype)


def shapes(width, units, layer):
    return {
        "dense": ((width, units), (units,)),
        "convolution": ((3, width, units), (units,)),
        "embedding": ((units, width),),
        "normalisation": ((width,), (width,)),
    }[layer]


def initial_values(width, units, layer, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    # Positive, so that no sum cancels.
    return tuple(rng.uniform(0.5, 1.5, size=shape).astype(dtype) for shape in shapes(width, units, layer))


def keras_layer(x, weights, layer):
    # Made at the first call and kept, as a model keeps its layers, and outside of a graph that is being traced.
    made = vars(keras_layer)
    if "layer" not in made:
        with tf.init_scope():
            shape, dtype = weights[0].shape, weights[0].dtype.name
            if layer == "dense":
                new = tf.keras.layers.Dense(shape[1], dtype=dtype)
            elif layer == "convolution":
                new = tf.keras.layers.Conv1D(shape[2], 3, padding="same", dtype=dtype)
            elif layer == "embedding":
                new = tf.keras.layers.Embedding(*shape, dtype=dtype)
            else:
                new = tf.keras.layers.LayerNormalization(dtype=dtype)
            new.build(tuple(x.shape))
            new.set_weights(weights)
            made["layer"] = new
    return made["layer"]


def element(x, *weights, layer):
    # Layers want a batch axis: an example by itself is a batch of one.
    made = keras_layer(x[None], weights, layer)
    with tf.GradientTape() as tape:
        loss = tf.nn.l2_loss(made(x[None]))
    return tuple(tape.gradient(loss, [variable.value for variable in made.trainable_variables]))


def jacobian(x, *weights, layer):
    made = keras_layer(x, weights, layer)
    with tf.GradientTape() as tape:
        losses = tf.reduce_sum(tf.square(made(x)), axis=[1, 2]) / 2
    return tuple(tape.jacobian(losses, [variable.value for variable in made.trainable_variables]))


def dense(x, kernel, bias):
    y = tf.matmul(x, kernel) + bias
    return tf.matmul(x, y, transpose_a=True), tf.reduce_sum(y, axis=1)


def convolution(x, filters, bias):
    y = tf.nn.conv1d(x, filters, stride=1, padding="SAME") + bias
    padded = tf.pad(x, [[0, 0], [1, 1], [0, 0]])
    # What each of the three rows of a filter has met, times what came of it.
    by_filters = [tf.matmul(padded[:, i : i + x.shape[1]], y, transpose_a=True) for i in range(3)]
    return tf.stack(by_filters, axis=1), tf.reduce_sum(y, axis=1)


def embedding(x, table):
    batch, words = tf.shape(x)[0], table.shape[0]
    # The rows of each example's table lie behind those of the example before it.
    ids = x + words * tf.range(batch)[:, None]
    sums = tf.math.unsorted_segment_sum(tf.gather(table, x), ids, words * batch)
    return (tf.reshape(sums, [-1, *table.shape]),)


def normalisation(x, gamma, beta):
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    # 0.001 is what Keras adds to the variance.
    normal = (x - mean) * tf.math.rsqrt(variance + 1e-3)
    y = gamma * normal + beta
    return tf.reduce_sum(y * normal, axis=1), tf.reduce_sum(y, axis=1)


def parameters(width, units, layer, dtype):
    return tuple(Leaf(shape, dtype) for shape in shapes(width, units, layer))


WORKLOAD = Workload(
    title="Per-example gradients of a Keras layer",
    group="Gradients",
    formula="∂ ½ Σ layer(x[b])² / ∂(variables of the layer)",
    sizes=(
        SizeParameter("batch", 32, 0, 100_000, "examples in the batch, the mapped axis"),
        SizeParameter("length", 16, 1, 4_096, "positions of an example"),
        SizeParameter("width", 16, 1, 4_096, "numbers of a position, or of a word's row in the embedding"),
        SizeParameter("units", 16, 1, 65_536, "units of the dense layer, filters, or words of the embedding"),
    ),
    presets={"Small": (8, 8, 4, 4), "Medium": (32, 16, 16, 16), "Large": (64, 64, 64, 64)},
    options=(
        Option(
            "layer",
            default="dense",
            help="Dense at each position; Conv1D of width 3; Embedding of words; LayerNormalization of each position",
            values=("dense", "convolution", "embedding", "normalisation"),
        ),
    ),
    inputs=inputs,
    variables=initial_values,
    variable_leaves=parameters,
    element=element,
    rewrites={"batched": dense, "jacobian": jacobian},
    element_input=lambda length, width, dtype: Leaf((length, width), dtype),
    element_output=parameters,
    # As of the convolution; the other layers take less.
    cost=lambda length, width, units, dtype: Cost(
        flops=12 * length * width * units,
        ops=16,
        temporary_bytes=length * (2 * units + width) * ITEM_BYTES[dtype],
        depth=3 * width + length + 4,
    ),
    variants={
        "layer": {
            "convolution": {"rewrites": {"batched": convolution, "jacobian": jacobian}},
            "embedding": {
                "rewrites": {"batched": embedding, "jacobian": jacobian},
                "element_input": lambda length: Leaf((length,), "int32"),
                "element_output": lambda width, units, dtype: (Leaf((units, width), dtype, sparse=True),),
            },
            "normalisation": {"rewrites": {"batched": normalisation, "jacobian": jacobian}},
        }
    },
)
