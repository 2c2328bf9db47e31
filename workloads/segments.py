"""Sums by key within a row: one op that TensorFlow vectorises, and one that it does not."""

import numpy as np

from workloads.spec import Cost, Leaf, Option, SizeParameter, Workload, tf


def inputs(batch, width, groups, dtype, seed):
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.5, 1.5, size=(batch, width)).astype(dtype)
    return values, rng.integers(0, groups, size=(batch, width), dtype=np.int32)


def element(row, *, groups):
    values, keys = row
    return tf.math.unsorted_segment_sum(values, keys, groups)


def batched(rows, *, groups):
    values, keys = rows
    batch = tf.shape(keys)[0]
    # The segments of each row lie behind those of the row before it.
    ids = keys + groups * tf.range(batch)[:, None]
    return tf.reshape(tf.math.unsorted_segment_sum(values, ids, batch * groups), [-1, groups])


def in_numpy(rows, *, groups):
    values, keys = rows
    batch = keys[..., 0].size
    ids = keys.reshape(batch, keys.shape[-1]) + groups * np.arange(batch)[:, None]
    sums = np.bincount(ids.ravel(), weights=values.ravel(), minlength=batch * groups)
    return sums.reshape(*keys.shape[:-1], groups).astype(values.dtype)


# --- keys in the order in which they appear ---------------------------------------------------------------------------


def unique_element(row, *, groups):
    values, keys = row
    return tf.math.unsorted_segment_sum(values, tf.unique(keys).idx, groups)


def unique_batched(rows, *, groups):
    values, keys = rows
    batch = tf.shape(keys)[0]
    offset = keys + groups * tf.range(batch)[:, None]
    # Of all rows at once, keys of a row are new wherever they first appear in it: its first one has its least place.
    places = tf.reshape(tf.unique(tf.reshape(offset, [-1])).idx, tf.shape(keys))
    ids = places - places[:, :1] + groups * tf.range(batch)[:, None]
    return tf.reshape(tf.math.unsorted_segment_sum(values, ids, batch * groups), [-1, groups])


def unique_in_numpy(rows, *, groups):
    values, keys = rows
    batch = keys[..., 0].size
    offset = keys.reshape(batch, keys.shape[-1]) + groups * np.arange(batch)[:, None]
    _, first, inverse = np.unique(offset.ravel(), return_index=True, return_inverse=True)
    places = np.argsort(np.argsort(first))[inverse].reshape(keys.shape)
    return in_numpy((values, places - places[..., :1]), groups=groups)


WORKLOAD = Workload(
    slug="segments",
    title="Sums by key",
    group="Reductions",
    formula="y[b, g] = Σ x[b, i] over all i with key[b, i] = g",
    summary="Each row is summed by its keys: a batch of them needs other ids, or an op for every row.",
    sizes=(
        SizeParameter("batch", 100, 0, 1_000_000, "rows in the batch, the mapped axis"),
        SizeParameter("width", 256, 1, 65_536, "numbers in a row"),
        SizeParameter("groups", 16, 1, 65_536, "keys that there are, and sums of a row"),
    ),
    presets={
        "Small": {"batch": 10, "width": 16, "groups": 4},
        "Medium": {"batch": 100, "width": 256, "groups": 16},
        "Many": {"batch": 10_000, "width": 64, "groups": 8},
    },
    dtypes=("float32", "float64"),
    inputs=inputs,
    element=element,
    numpy_element=in_numpy,
    rewrites={"batched": batched, "numpy": in_numpy},
    element_input=lambda width, dtype: (Leaf((width,), dtype), Leaf((width,), "int32")),
    element_output=lambda groups, dtype: Leaf((groups,), dtype),
    cost=lambda width: Cost(ops=1, temporary_bytes=4 * width, depth=width),
    options=(
        Option(
            "ids",
            default="keys",
            help="keys: a segment for each key; unique: keys in the order in which they appear, by tf.unique, of which "
            "TensorFlow has no vectorised form",
            values=("keys", "unique"),
        ),
    ),
    variants={
        "ids": {
            "unique": {
                "element": unique_element,
                "numpy_element": unique_in_numpy,
                "rewrites": {"batched": unique_batched, "numpy": unique_in_numpy},
                "helpers": (in_numpy,),
                "cost": lambda width: Cost(ops=2, temporary_bytes=16 * width, depth=width),
            },
        }
    },
)
