"""The square root of 8-bit images: through float32 and back, cut off to whole numbers, which must be exact."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, height, width, channels, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, size=(batch, height, width, channels), dtype=np.uint8)


def element(images):
    return tf.cast(tf.sqrt(tf.cast(images, tf.float32)), tf.uint8)


def in_numpy(images):
    return np.sqrt(images.astype(np.float32)).astype(np.uint8)


WORKLOAD = Workload(
    slug="image_sqrt_uint8",
    title="Square root of 8-bit images",
    group="Elementwise",
    formula="y[b] = ⌊√x[b]⌋, from and to uint8",
    summary="Numbers four times as wide in between as at both ends, and results that are either right or wrong.",
    sizes=(
        SizeParameter("batch", 100, 0, 1_000_000, "images in the batch, the mapped axis"),
        SizeParameter("height", 64, 1, 8_192, "rows of an image"),
        SizeParameter("width", 64, 1, 8_192, "columns of an image"),
        SizeParameter("channels", 3, 1, 1_024, "channels of an image"),
    ),
    presets={"Thumbnails": (100, 16, 16, 3), "Small images": (100, 64, 64, 3), "Photographs": (32, 512, 512, 3)},
    # What is computed with in between.
    dtypes=("float32",),
    inputs=inputs,
    element=element,
    numpy_element=in_numpy,
    rewrites={"batched": element, "numpy": in_numpy},
    element_input=lambda height, width, channels: Leaf((height, width, channels), "uint8"),
    cost=lambda height, width, channels, dtype: Cost(
        ops=3,
        temporary_bytes=height * width * channels * ITEM_BYTES[dtype],
    ),
)
