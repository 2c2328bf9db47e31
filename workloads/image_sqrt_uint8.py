"""Numbers four times as wide in between as at both ends, and results that are either right or wrong."""

import numpy as np

from workloads import image_sqrt
from workloads.spec import Cost, Leaf, Workload, tf


def inputs(batch, height, width, channels, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, size=(batch, height, width, channels), dtype=np.uint8)


def element(images):
    return tf.cast(tf.sqrt(tf.cast(images, tf.float32)), tf.uint8)


def in_numpy(images):
    return np.sqrt(images.astype(np.float32)).astype(np.uint8)


WORKLOAD = Workload(
    title="Square root of 8-bit images",
    group="Elementwise",
    formula="y[b] = ⌊√x[b]⌋, from and to uint8",
    sizes=image_sqrt.WORKLOAD.sizes,
    presets={"Thumbnails": (100, 16, 16, 3), "Small images": (100, 64, 64, 3), "Photographs": (32, 512, 512, 3)},
    # What is computed with in between.
    dtypes=("float32",),
    inputs=inputs,
    element=element,
    rewrites={"batched": element},
    numpy=in_numpy,
    element_input=lambda height, width, channels: Leaf((height, width, channels), "uint8"),
    cost=lambda height, width, channels: Cost(ops=3, temporary_bytes=4 * height * width * channels),
)
