"""One cheap op on each image, which works on the whole batch as it is: a mapper can only add overhead."""

import numpy as np

from workloads.spec import Leaf, SizeParameter, Workload, tf


def inputs(batch, height, width, channels, dtype, seed):
    # Not below 0.1: the square root of a negative number is NaN, and near 0 a rounded input moves its root far.
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 4.0, size=(batch, height, width, channels)).astype(dtype)


def element(images):
    return tf.sqrt(images)


def in_numpy(images):
    return np.sqrt(images)


WORKLOAD = Workload(
    title="Square root of images",
    group="Elementwise",
    formula="y[b] = √x[b]",
    sizes=(
        SizeParameter("batch", 100, 0, 1_000_000, "images in the batch, the mapped axis"),
        SizeParameter("height", 64, 1, 8_192, "rows of an image"),
        SizeParameter("width", 64, 1, 8_192, "columns of an image"),
        SizeParameter("channels", 3, 1, 1_024, "channels of an image"),
    ),
    presets={
        "Thumbnails": (100, 16, 16, 3),
        "Small images": (100, 64, 64, 3),
        "Photographs": (32, 512, 512, 3),
        "Many thumbnails": (2_000, 16, 16, 3),
    },
    dtypes=("float32", "float64", "float16", "bfloat16"),
    inputs=inputs,
    element=element,
    rewrites={"batched": element},
    numpy=in_numpy,
    element_input=lambda height, width, channels, dtype: Leaf((height, width, channels), dtype),
)
