"""Augmenting images one at a time: a flip, another contrast, a rotation, each by a number of the image's own."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, Option, SizeParameter, Tolerance, Workload, tf


def images(batch, height, width, dtype, rng):
    return rng.uniform(0.0, 1.0, size=(batch, height, width, 3)).astype(dtype)


# --- flip -------------------------------------------------------------------------------------------------------------


def inputs_to_flip(batch, height, width, dtype, seed):
    rng = np.random.default_rng(seed)
    return images(batch, height, width, dtype, rng), rng.uniform(size=batch) < 0.5


def flip(x):
    image, flips = x
    return tf.where(flips, tf.image.flip_left_right(image), image)


def flip_batched(x):
    images, flips = x
    return tf.where(flips[:, None, None, None], tf.reverse(images, [2]), images)


def flip_reference(x):
    images, flips = x
    images = images.astype(np.float64)
    return np.where(flips[:, None, None, None], images[:, :, ::-1], images)


# --- contrast ---------------------------------------------------------------------------------------------------------


def inputs_to_scale(batch, height, width, dtype, seed):
    rng = np.random.default_rng(seed)
    return images(batch, height, width, dtype, rng), rng.uniform(0.5, 1.5, size=batch).astype(dtype)


def contrast(x):
    image, factor = x
    return tf.image.adjust_contrast(image, factor)


def contrast_batched(x):
    images, factors = x
    means = tf.reduce_mean(images, axis=[1, 2], keepdims=True)
    return (images - means) * factors[:, None, None, None] + means


def contrast_reference(x):
    images, factors = (array.astype(np.float64) for array in x)
    means = images.mean(axis=(1, 2), keepdims=True)
    return (images - means) * factors[:, None, None, None] + means


# --- rotation ---------------------------------------------------------------------------------------------------------


def inputs_to_rotate(batch, height, width, dtype, seed):
    rng = np.random.default_rng(seed)
    return images(batch, height, width, dtype, rng), rng.uniform(-0.5, 0.5, size=batch).astype(dtype)


def rotate(x):
    image, angle = x
    return rotate_batched((image[None], angle[None]))[0]


def rotate_batched(x):
    images, angles = x
    height, width = images.shape[1], images.shape[2]
    cos, sin, zero = tf.cos(angles), tf.sin(angles), tf.zeros_like(angles)
    # Around the middle of the image.
    right = ((width - 1) - (cos * (width - 1) - sin * (height - 1))) / 2
    down = ((height - 1) - (sin * (width - 1) + cos * (height - 1))) / 2
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=tf.stack([cos, -sin, right, sin, cos, down, zero, zero], axis=1),
        output_shape=[height, width],
        fill_value=0.0,
        interpolation="BILINEAR",
    )


def rotate_reference(x):
    images, angles = (array.astype(np.float64) for array in x)
    return np.array([rotated(image, angle) for image, angle in zip(images, angles, strict=True)]).reshape(images.shape)


def rotated(image, angle):
    height, width = image.shape[:2]
    cos, sin = np.cos(angle), np.sin(angle)
    rows, columns = np.mgrid[:height, :width]
    # Where in the image each pixel of the result comes from, with a frame of zeros around it.
    down, right = rows - (height - 1) / 2, columns - (width - 1) / 2
    y = np.clip(sin * right + cos * down + (height - 1) / 2, -1, height) + 1
    x = np.clip(cos * right - sin * down + (width - 1) / 2, -1, width) + 1
    top, left = np.minimum(y.astype(int), height), np.minimum(x.astype(int), width)
    below, after = (y - top)[:, :, None], (x - left)[:, :, None]
    framed = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    upper = framed[top, left] * (1 - after) + framed[top, left + 1] * after
    lower = framed[top + 1, left] * (1 - after) + framed[top + 1, left + 1] * after
    return upper * (1 - below) + lower * below


WORKLOAD = Workload(
    slug="augment",
    title="Image augmentation",
    group="Images",
    formula="y[b] = the image x[b], flipped, with another contrast, or rotated by a number of its own",
    summary="As layers augment a batch, image by image: some ops vectorise, and others become a loop over the images.",
    sizes=(
        SizeParameter("batch", 32, 0, 100_000, "images in the batch, the mapped axis"),
        SizeParameter("height", 64, 1, 2_048, "pixels"),
        SizeParameter("width", 64, 1, 2_048, "pixels"),
    ),
    presets={
        "Small": {"batch": 8, "height": 16, "width": 16},
        "Medium": {"batch": 32, "height": 64, "width": 64},
        "Large": {"batch": 64, "height": 224, "width": 224},
    },
    dtypes=("float32",),
    inputs=inputs_to_rotate,
    element=rotate,
    rewrites={"batched": rotate_batched},
    reference=rotate_reference,
    helpers=(images, rotate_batched, rotated),
    element_input=lambda height, width, dtype: (Leaf((height, width, 3), dtype), Leaf((), dtype)),
    element_output=lambda height, width, dtype: Leaf((height, width, 3), dtype),
    cost=lambda: Cost(ops=20, depth=12),
    tolerances={
        "float32": Tolerance(
            relative=1e-4,
            absolute=1e-4,
            reason="a pixel comes from a place that is rounded to float32: its error grows with the image's side",
        )
    },
    unsupported={"*.xla": "XLA has no kernel for tf.raw_ops.ImageProjectiveTransformV3, which rotates"},
    options=(
        Option(
            "op",
            default="rotate",
            help="rotate: by an angle, with bilinear interpolation; contrast: by tf.image.adjust_contrast; flip: left "
            "to right, or not",
            values=("rotate", "contrast", "flip"),
        ),
    ),
    variants={
        "op": {
            "contrast": {
                "inputs": inputs_to_scale,
                "element": contrast,
                "rewrites": {"batched": contrast_batched},
                "reference": contrast_reference,
                "helpers": (images,),
                "cost": lambda height, width, dtype: Cost(
                    ops=1,
                    temporary_bytes=3 * height * width * ITEM_BYTES[dtype],
                    depth=height * width + 3,
                ),
                "tolerances": {},
                "unsupported": {},
            },
            "flip": {
                "inputs": inputs_to_flip,
                "element": flip,
                "rewrites": {"batched": flip_batched},
                "reference": flip_reference,
                "helpers": (images,),
                "element_input": lambda height, width, dtype: (Leaf((height, width, 3), dtype), Leaf((), "bool")),
                "cost": lambda height, width, dtype: Cost(
                    ops=2, temporary_bytes=3 * height * width * ITEM_BYTES[dtype]
                ),
                "tolerances": {},
                "unsupported": {},
            },
        }
    },
)
