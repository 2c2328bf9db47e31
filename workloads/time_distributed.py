"""A map over time inside a map over the batch: by tf.map_fn, by Keras' TimeDistributed, or as one product."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, steps, features, dtype, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, size=(batch, steps, features)).astype(dtype)


def initial_values(features, units, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    kernel = rng.uniform(-1.0, 1.0, size=(features, units)) / np.sqrt(features)
    bias = rng.uniform(-1.0, 1.0, size=(units,))
    return kernel.astype(dtype), bias.astype(dtype)


def dense(x, kernel, bias):
    return tf.nn.relu(tf.matmul(x, kernel) + bias)


def element(sequence, kernel, bias):
    def one_step(step):
        # Layers want a batch axis: a step by itself is a batch of one.
        return dense(step[None], kernel, bias)[0]

    return tf.map_fn(one_step, sequence)


def reshape(x, kernel, bias):
    batch, steps, features = tf.unstack(tf.shape(x))
    rows = tf.reshape(x, [batch * steps, features])
    return tf.reshape(dense(rows, kernel, bias), [batch, steps, kernel.shape[1]])


def keras_layer(x, kernel, bias):
    # Made at the first call and kept, as a model keeps its layers, and outside of a graph that is being traced.
    made = vars(keras_layer)
    if "layer" not in made:
        with tf.init_scope():
            dtype = kernel.dtype.name
            of_a_step = tf.keras.layers.Dense(kernel.shape[1], activation="relu", dtype=dtype)
            layer = tf.keras.layers.TimeDistributed(of_a_step, dtype=dtype)
            layer.build(tuple(x.shape))
            layer.set_weights([kernel, bias])
            made["layer"] = layer
    return made["layer"]


def time_distributed(x, kernel, bias):
    return keras_layer(x, kernel, bias)(x)


def in_numpy(x, kernel, bias):
    return np.maximum(x @ kernel + bias, 0)


WORKLOAD = Workload(
    title="A layer on every time step",
    group="Networks",
    formula="y[b, t] = relu(x[b, t] · W + c)",
    sizes=(
        SizeParameter("batch", 32, 0, 100_000, "sequences in the batch, the mapped axis"),
        SizeParameter("steps", 16, 1, 4_096, "time steps of a sequence"),
        SizeParameter("features", 32, 1, 4_096, "numbers of a step"),
        SizeParameter("units", 32, 1, 4_096, "units of the layer, numbers of a step's result"),
    ),
    presets={"Small": (4, 5, 8, 8), "Medium": (32, 16, 32, 32), "Long": (32, 128, 32, 32), "Large": (64, 64, 256, 256)},
    inputs=inputs,
    element=element,
    elements={"at_once": dense},
    rewrites={"batched": dense, "reshape": reshape, "time_distributed": time_distributed},
    numpy=in_numpy,
    element_input=lambda steps, features, dtype: Leaf((steps, features), dtype),
    element_output=lambda steps, units, dtype: Leaf((steps, units), dtype),
    # A few ops for each step, and those that take a sequence apart and put its results together.
    cost=lambda steps, features, units, dtype: Cost(
        flops=2 * steps * units * (features + 1),
        ops=5 * steps + 2,
        temporary_bytes=steps * units * ITEM_BYTES[dtype],
        depth=features + 1,
    ),
    variables=initial_values,
    variable_leaves=lambda features, units, dtype: (Leaf((features, units), dtype), Leaf((units,), dtype)),
)
