"""As layers augment a batch, image by image: some ops vectorise, and others become a loop over the images."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, Option, SizeParameter, Workload, tf


def inputs(batch, height, width, dtype, seed):
    rng = np.random.default_rng(seed)
    images = rng.uniform(0.0, 1.0, size=(batch, height, width, 3)).astype(dtype)
    return images, rng.uniform(-0.5, 0.5, size=batch).astype(dtype)


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
    from scipy import ndimage

    images, angles = (array.astype(np.float64) for array in x)
    middle = [(images.shape[1] - 1) / 2, (images.shape[2] - 1) / 2, 0]
    outputs = np.empty_like(images)
    for image, angle, output in zip(images, angles, outputs, strict=True):
        cos, sin = np.cos(angle), np.sin(angle)
        # Rows, columns and channels: where in the image each pixel of the result comes from.
        turn = np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])
        offset = middle - turn @ middle
        ndimage.affine_transform(image, turn, offset, output=output, order=1, mode="grid-constant")
    return outputs


def contrast(x):
    image, more = x
    return tf.image.adjust_contrast(image, 1 + more)


def contrast_batched(x):
    images, more = x
    means = tf.reduce_mean(images, axis=[1, 2], keepdims=True)
    return (images - means) * (1 + more[:, None, None, None]) + means


def contrast_reference(x):
    images, more = (array.astype(np.float64) for array in x)
    means = images.mean(axis=(1, 2), keepdims=True)
    return (images - means) * (1 + more[:, None, None, None]) + means


def flip(x):
    image, side = x
    return tf.where(side > 0, tf.image.flip_left_right(image), image)


def flip_batched(x):
    images, sides = x
    return tf.where(sides[:, None, None, None] > 0, tf.reverse(images, [2]), images)


WORKLOAD = Workload(
    title="Image augmentation",
    group="Images",
    formula="y[b] = the image x[b], flipped, with another contrast, or rotated by a number of its own",
    sizes=(
        SizeParameter("batch", 32, 0, 100_000, "images in the batch, the mapped axis"),
        SizeParameter("height", 64, 1, 2_048, "pixels"),
        SizeParameter("width", 64, 1, 2_048, "pixels"),
    ),
    presets={"Small": (8, 16, 16), "Medium": (32, 64, 64), "Large": (64, 224, 224)},
    dtypes=("float32",),
    options=(
        Option(
            "op",
            default="rotate",
            help="rotate: by an angle, bilinear; contrast: by tf.image.adjust_contrast; flip: left to right, or not",
            values=("rotate", "contrast", "flip"),
        ),
    ),
    inputs=inputs,
    element=flip,
    rewrites={"batched": flip_batched},
    element_input=lambda height, width, dtype: (Leaf((height, width, 3), dtype), Leaf((), dtype)),
    element_output=lambda height, width, dtype: Leaf((height, width, 3), dtype),
    # A pixel comes from a place that is rounded to float32: its error grows with the image's side.
    cost=lambda height, width, dtype: Cost(
        ops=20, temporary_bytes=3 * height * width * ITEM_BYTES[dtype], depth=height * width + 12
    ),
    variants={
        "op": {
            "rotate": {
                "element": rotate,
                "rewrites": {"batched": rotate_batched},
                "reference": rotate_reference,
                "unsupported": {"*.xla": "XLA has no kernel for tf.raw_ops.ImageProjectiveTransformV3, which rotates"},
            },
            "contrast": {
                "element": contrast,
                "rewrites": {"batched": contrast_batched},
                "reference": contrast_reference,
            },
        }
    },
)
