"""One attention head per sequence with shared weights: vectorised, its products broadcast."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, length, width, dtype, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1.5, size=(batch, length, width)).astype(dtype)


def initial_values(width, dtype, seed):
    # Positive, so that no sum cancels, and small, so that the softmax is far from a maximum.
    rng = np.random.default_rng(seed + 1)
    return tuple((rng.uniform(0.5, 1.5, size=(width, width)) / width).astype(dtype) for _ in range(3))


def element(sequence, to_query, to_key, to_value):
    # Layers want a batch axis: a sequence by itself is a batch of one.
    return batched(sequence[None], to_query, to_key, to_value)[0]


def batched(x, to_query, to_key, to_value):
    query, key, value = tf.matmul(x, to_query), tf.matmul(x, to_key), tf.matmul(x, to_value)
    scores = tf.matmul(query, key, transpose_b=True) / tf.sqrt(tf.cast(tf.shape(x)[-1], x.dtype))
    return tf.matmul(tf.nn.softmax(scores), value)


def in_numpy(x, to_query, to_key, to_value):
    query, key, value = x @ to_query, x @ to_key, x @ to_value
    scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(x.shape[-1]).astype(x.dtype)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ value


WORKLOAD = Workload(
    title="Attention",
    group="Networks",
    formula="y[b] = softmax(x[b]·Q · (x[b]·K)ᵀ / √width) · x[b]·V",
    sizes=(
        SizeParameter("batch", 32, 0, 100_000, "sequences in the batch, the mapped axis"),
        SizeParameter("length", 32, 1, 8_192, "positions in a sequence"),
        SizeParameter("width", 32, 1, 4_096, "numbers per position, and rows and columns of each weight"),
    ),
    presets={"Small": (4, 6, 8), "Medium": (32, 32, 32), "Large": (64, 128, 64)},
    inputs=inputs,
    element=element,
    rewrites={"batched": batched},
    numpy=in_numpy,
    element_input=lambda length, width, dtype: Leaf((length, width), dtype),
    cost=lambda length, width, dtype: Cost(
        flops=6 * length * width**2 + 4 * length**2 * width + 10 * length**2,
        ops=16,
        temporary_bytes=(3 * length * width + 2 * length**2) * ITEM_BYTES[dtype],
        depth=4 * width + 2 * length,
    ),
    variables=initial_values,
    variable_leaves=lambda width, dtype: (Leaf((width, width), dtype),) * 3,
)
