"""An op for each pixel where one would do for all. Items of a tensor cannot be assigned: see form=assign."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, Option, SizeParameter, Workload, tf


def inputs(batch, height, width, dtype, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 4.0, size=(batch, height, width)).astype(dtype)


def nested(image):
    return tf.map_fn(lambda row: tf.map_fn(tf.sqrt, row), image)


def assign(image):
    # A tensor cannot be changed in place: this raises TypeError. A list of results, tf.map_fn or an op on all pixels
    # at once are what to write instead.
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            image[i, j] = tf.sqrt(image[i, j])
    return image


def batched(images):
    return tf.sqrt(images)


def numpy_element(image):
    pixels = image.copy()
    for i in range(pixels.shape[0]):
        for j in range(pixels.shape[1]):
            pixels[i, j] = np.sqrt(pixels[i, j])
    return pixels


def numpy_batched(images):
    return np.sqrt(images)


WORKLOAD = Workload(
    title="Pixel by pixel",
    group="Limits",
    formula="y[b,i,j] = √x[b,i,j], one pixel at a time",
    sizes=(
        SizeParameter("batch", 10, 0, 100_000, "images in the batch, the mapped axis"),
        SizeParameter("height", 8, 1, 1_024, "rows of an image"),
        SizeParameter("width", 8, 1, 1_024, "columns of an image"),
    ),
    presets={"Icons": (10, 8, 8), "Thumbnails": (10, 32, 32), "A hundred images": (100, 64, 64)},
    dtypes=("float32", "float64", "float16", "bfloat16"),
    options=(
        Option("form", "nested", "nested: maps inside the map; assign: assignment, which fails", ("nested", "assign")),
    ),
    inputs=inputs,
    element=nested,
    variants={"form": {"assign": {"element": assign}}},
    numpy_element=numpy_element,
    rewrites={"batched": batched, "numpy": numpy_batched},
    element_input=lambda height, width, dtype: Leaf((height, width), dtype),
    # A row of pixels is read, computed and stacked as an inner loop of some ten ops.
    cost=lambda height, width, dtype: Cost(
        ops=12 + height * (12 + 10 * width), temporary_bytes=2 * height * width * ITEM_BYTES[dtype]
    ),
)
