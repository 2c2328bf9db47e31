"""Each row is summed by its keys: a batch of them needs other ids, or an op for every row."""

import numpy as np

from workloads.spec import Cost, Leaf, Option, SizeParameter, Workload, tf


def inputs(batch, width, groups, dtype, seed):
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.5, 1.5, size=(batch, width)).astype(dtype)
    return values, rng.integers(0, groups, size=(batch, width), dtype=np.int32)


def element(row, *, groups, ids):
    values, keys = row
    return tf.math.unsorted_segment_sum(values, tf.unique(keys).idx if ids == "unique" else keys, groups)


def batched(rows, *, groups, ids):
    values, keys = rows
    batch = tf.shape(keys)[0]
    # The segments of each row lie behind those of the row before it.
    first = groups * tf.range(batch)[:, None]
    if ids == "unique":
        # Keys of a row are new wherever they first appear in it, and its first one has the least place.
        places = tf.reshape(tf.unique(tf.reshape(keys + first, [-1])).idx, tf.shape(keys))
        keys = places - places[:, :1]
    return tf.reshape(tf.math.unsorted_segment_sum(values, keys + first, batch * groups), [-1, groups])


def in_numpy(rows, *, groups, ids):
    values, keys = rows
    batch = keys[..., 0].size
    shape, first = keys.shape, groups * np.arange(batch)[:, None]
    keys = keys.reshape(batch, shape[-1])
    if ids == "unique":
        _, met, inverse = np.unique((keys + first).ravel(), return_index=True, return_inverse=True)
        places = np.argsort(np.argsort(met))[inverse].reshape(keys.shape)
        keys = places - places[:, :1]
    sums = np.bincount((keys + first).ravel(), weights=values.ravel(), minlength=batch * groups)
    return sums.reshape(*shape[:-1], groups).astype(values.dtype)


WORKLOAD = Workload(
    title="Sums by key",
    group="Reductions",
    formula="y[b, g] = Σ x[b, i] over all i with key[b, i] = g",
    sizes=(
        SizeParameter("batch", 100, 0, 1_000_000, "rows in the batch, the mapped axis"),
        SizeParameter("width", 256, 1, 65_536, "numbers in a row"),
        SizeParameter("groups", 16, 1, 65_536, "keys that there are, and sums of a row"),
    ),
    presets={"Small": (10, 16, 4), "Medium": (100, 256, 16), "Many": (10_000, 64, 8)},
    options=(
        Option("ids", "keys", "keys: a segment for each; unique: for each in order, by tf.unique", ("keys", "unique")),
    ),
    inputs=inputs,
    element=element,
    rewrites={"batched": batched},
    numpy=in_numpy,
    element_input=lambda width, dtype: (Leaf((width,), dtype), Leaf((width,), "int32")),
    element_output=lambda groups, dtype: Leaf((groups,), dtype),
    cost=lambda width: Cost(ops=2, temporary_bytes=16 * width, depth=width),
)
