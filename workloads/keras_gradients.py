"""The gradient of a loss by the variables of a Keras layer, for every example by itself."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, Option, SizeParameter, Workload, tf


def inputs(batch, length, width, dtype, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1.5, size=(batch, length, width)).astype(dtype)


def gradients(layer, x):
    with tf.GradientTape() as tape:
        # Layers want a batch axis: an example by itself is a batch of one.
        loss = tf.nn.l2_loss(layer(x[None]))
    return tuple(tape.gradient(loss, [variable.value for variable in layer.trainable_variables]))


def rows_of_jacobian(layer, x):
    with tf.GradientTape() as tape:
        losses = tf.reduce_sum(tf.square(layer(x)), axis=[1, 2]) / 2
    return tuple(tape.jacobian(losses, [variable.value for variable in layer.trainable_variables]))


def as_float64(*arrays):
    return tuple(array.astype(np.float64) for array in arrays)


# --- dense ------------------------------------------------------------------------------------------------------------


def dense_values(width, units, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    # Positive, so that no sum cancels.
    kernel, bias = rng.uniform(0.5, 1.5, size=(width, units)) / width, rng.uniform(0.5, 1.5, size=(units,))
    return kernel.astype(dtype), bias.astype(dtype)


def dense_layer(kernel, bias):
    # Made at the first call and kept, as a model keeps its layers, and outside of a graph that is being traced.
    made = vars(dense_layer)
    if "layer" not in made:
        with tf.init_scope():
            layer = tf.keras.layers.Dense(kernel.shape[1], dtype=kernel.dtype.name)
            layer.build([None, None, kernel.shape[0]])
            layer.set_weights([kernel, bias])
            made["layer"] = layer
    return made["layer"]


def dense_element(x, kernel, bias):
    return gradients(dense_layer(kernel, bias), x)


def dense_jacobian(x, kernel, bias):
    return rows_of_jacobian(dense_layer(kernel, bias), x)


def dense_batched(x, kernel, bias):
    y = tf.matmul(x, kernel) + bias
    return tf.matmul(x, y, transpose_a=True), tf.reduce_sum(y, axis=1)


def dense_reference(x, kernel, bias):
    x, kernel, bias = as_float64(x, kernel, bias)
    y = x @ kernel + bias
    return np.swapaxes(x, 1, 2) @ y, y.sum(axis=1)


def dense_parameters(width, units, dtype):
    return Leaf((width, units), dtype), Leaf((units,), dtype)


# --- convolution ------------------------------------------------------------------------------------------------------


def convolution_values(width, units, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    filters = rng.uniform(0.5, 1.5, size=(3, width, units)) / (3 * width)
    return filters.astype(dtype), rng.uniform(0.5, 1.5, size=(units,)).astype(dtype)


def convolution_layer(filters, bias):
    made = vars(convolution_layer)
    if "layer" not in made:
        with tf.init_scope():
            layer = tf.keras.layers.Conv1D(filters.shape[2], 3, padding="same", dtype=filters.dtype.name)
            layer.build([None, None, filters.shape[1]])
            layer.set_weights([filters, bias])
            made["layer"] = layer
    return made["layer"]


def convolution_element(x, filters, bias):
    return gradients(convolution_layer(filters, bias), x)


def convolution_jacobian(x, filters, bias):
    return rows_of_jacobian(convolution_layer(filters, bias), x)


def convolution_batched(x, filters, bias):
    y = tf.nn.conv1d(x, filters, stride=1, padding="SAME") + bias
    padded = tf.pad(x, [[0, 0], [1, 1], [0, 0]])
    # What each of the three rows of a filter has met, times what came of it.
    by_filters = [tf.matmul(padded[:, i : i + x.shape[1]], y, transpose_a=True) for i in range(3)]
    return tf.stack(by_filters, axis=1), tf.reduce_sum(y, axis=1)


def convolution_reference(x, filters, bias):
    x, filters, bias = as_float64(x, filters, bias)
    length = x.shape[1]
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    windows = np.stack([padded[:, i : i + length] for i in range(3)], axis=2)
    y = np.einsum("blkw,kwu->blu", windows, filters) + bias
    return np.einsum("blkw,blu->bkwu", windows, y), y.sum(axis=1)


def convolution_parameters(width, units, dtype):
    return Leaf((3, width, units), dtype), Leaf((units,), dtype)


# --- embedding --------------------------------------------------------------------------------------------------------


def words(batch, length, units, seed):
    return np.random.default_rng(seed).integers(0, units, size=(batch, length), dtype=np.int32)


def table_values(width, units, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    return (rng.uniform(0.5, 1.5, size=(units, width)).astype(dtype),)


def embedding_layer(table):
    made = vars(embedding_layer)
    if "layer" not in made:
        with tf.init_scope():
            layer = tf.keras.layers.Embedding(*table.shape, dtype=table.dtype.name)
            layer.build()
            layer.set_weights([table])
            made["layer"] = layer
    return made["layer"]


def embedding_element(x, table):
    return gradients(embedding_layer(table), x)


def embedding_jacobian(x, table):
    return rows_of_jacobian(embedding_layer(table), x)


def embedding_batched(x, table):
    batch, words = tf.shape(x)[0], table.shape[0]
    # The rows of each example's table lie behind those of the example before it.
    ids = x + words * tf.range(batch)[:, None]
    sums = tf.math.unsorted_segment_sum(tf.gather(table, x), ids, words * batch)
    return (tf.reshape(sums, [-1, *table.shape]),)


def embedding_reference(x, table):
    (table,) = as_float64(table)
    counts = (x[:, :, None] == np.arange(len(table))).sum(axis=1)
    return (counts[:, :, None] * table,)


# --- normalisation ----------------------------------------------------------------------------------------------------


def normalisation_values(width, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    return tuple(rng.uniform(0.5, 1.5, size=(2, width)).astype(dtype))


def normalisation_layer(gamma, beta):
    made = vars(normalisation_layer)
    if "layer" not in made:
        with tf.init_scope():
            layer = tf.keras.layers.LayerNormalization(dtype=gamma.dtype.name)
            layer.build([None, None, gamma.shape[0]])
            layer.set_weights([gamma, beta])
            made["layer"] = layer
    return made["layer"]


def normalisation_element(x, gamma, beta):
    return gradients(normalisation_layer(gamma, beta), x)


def normalisation_jacobian(x, gamma, beta):
    return rows_of_jacobian(normalisation_layer(gamma, beta), x)


def normalisation_batched(x, gamma, beta):
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    normal = (x - mean) * tf.math.rsqrt(variance + 1e-3)
    y = gamma * normal + beta
    return tf.reduce_sum(y * normal, axis=1), tf.reduce_sum(y, axis=1)


def normalisation_reference(x, gamma, beta):
    x, gamma, beta = as_float64(x, gamma, beta)
    # 0.001 is what Keras adds to the variance.
    normal = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-3)
    y = gamma * normal + beta
    return (y * normal).sum(axis=1), y.sum(axis=1)


def normalisation_parameters(width, dtype):
    return (Leaf((width,), dtype),) * 2


WORKLOAD = Workload(
    slug="keras_gradients",
    title="Per-example gradients of a Keras layer",
    group="Gradients",
    formula="∂ ½ Σ layer(x[b])² / ∂(variables of the layer)",
    summary="Gradients by the variables of a layer, for each example by itself, as private training needs them.",
    sizes=(
        SizeParameter("batch", 32, 0, 100_000, "examples in the batch, the mapped axis"),
        SizeParameter("length", 16, 1, 4_096, "positions of an example"),
        SizeParameter("width", 16, 1, 4_096, "numbers of a position, or of a word's row in the embedding"),
        SizeParameter("units", 16, 1, 65_536, "units of the dense layer, filters, or words of the embedding"),
    ),
    presets={
        "Small": {"batch": 8, "length": 8, "width": 4, "units": 4},
        "Medium": {"batch": 32, "length": 16, "width": 16, "units": 16},
        "Large": {"batch": 64, "length": 64, "width": 64, "units": 64},
    },
    dtypes=("float32", "float64"),
    inputs=inputs,
    element=dense_element,
    rewrites={"batched": dense_batched, "jacobian": dense_jacobian},
    reference=dense_reference,
    element_input=lambda length, width, dtype: Leaf((length, width), dtype),
    element_output=dense_parameters,
    cost=lambda length, width, units, dtype: Cost(
        flops=4 * length * width * units + 4 * length * units,
        ops=12,
        temporary_bytes=2 * length * units * ITEM_BYTES[dtype],
        depth=width + length + 4,
    ),
    variables=dense_values,
    variable_leaves=dense_parameters,
    options=(
        Option(
            "layer",
            default="dense",
            help="Dense at each position; Conv1D of width 3; Embedding of words; LayerNormalization of each position",
            values=("dense", "convolution", "embedding", "normalisation"),
        ),
    ),
    helpers=(
        *(gradients, rows_of_jacobian, as_float64),
        *(dense_layer, convolution_layer, embedding_layer, normalisation_layer),
    ),
    variants={
        "layer": {
            "convolution": {
                "element": convolution_element,
                "rewrites": {"batched": convolution_batched, "jacobian": convolution_jacobian},
                "reference": convolution_reference,
                "element_output": convolution_parameters,
                "cost": lambda length, width, units, dtype: Cost(
                    flops=12 * length * width * units + 4 * length * units,
                    ops=16,
                    temporary_bytes=length * (2 * units + width) * ITEM_BYTES[dtype],
                    depth=3 * width + length + 4,
                ),
                "variables": convolution_values,
                "variable_leaves": convolution_parameters,
            },
            "embedding": {
                "inputs": words,
                "element": embedding_element,
                "rewrites": {"batched": embedding_batched, "jacobian": embedding_jacobian},
                "reference": embedding_reference,
                "element_input": lambda length: Leaf((length,), "int32"),
                "element_output": lambda width, units, dtype: (Leaf((units, width), dtype, sparse=True),),
                "cost": lambda length, width, dtype: Cost(
                    ops=10,
                    temporary_bytes=2 * length * width * ITEM_BYTES[dtype],
                    depth=length,
                ),
                "variables": table_values,
                "variable_leaves": lambda width, units, dtype: (Leaf((units, width), dtype),),
            },
            "normalisation": {
                "element": normalisation_element,
                "rewrites": {"batched": normalisation_batched, "jacobian": normalisation_jacobian},
                "reference": normalisation_reference,
                "element_output": normalisation_parameters,
                "cost": lambda length, width, dtype: Cost(
                    ops=40,
                    temporary_bytes=4 * length * width * ITEM_BYTES[dtype],
                    depth=width + length + 20,
                ),
                "variables": normalisation_values,
                "variable_leaves": normalisation_parameters,
            },
        }
    },
)
