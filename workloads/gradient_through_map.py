"""A gradient by the inputs of a map: on the way back a loop needs what each element left behind."""

import numpy as np

from workloads.spec import ITEM_BYTES, Cost, Leaf, SizeParameter, Workload, tf


def inputs(batch, width, dtype, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 0.9, size=(batch, width)).astype(dtype)


def waves(x, *, steps):
    for _ in range(steps):
        x = tf.sin(x)
    return x


def waves_in_numpy(x, *, steps):
    for _ in range(steps):
        x = np.sin(x)
    return x


def gradient_of_sum(mapped, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(mapped(x))
    return tape.gradient(total, x)


def batched(x, *, steps):
    def on_batch(x):
        return waves(x, steps=steps)

    return gradient_of_sum(on_batch, x)


def recompute(x, *, steps):
    @tf.recompute_grad
    def on_batch(x):
        return waves(x, steps=steps)

    return gradient_of_sum(on_batch, x)


def in_numpy(x, *, steps):
    slope = np.ones_like(x)
    for _ in range(steps):
        slope, x = slope * np.cos(x), np.sin(x)
    return slope


WORKLOAD = Workload(
    title="Gradient through a map",
    group="Gradients",
    formula="∂ Σ sin(sin(… x[b])) / ∂ x",
    sizes=(
        SizeParameter("batch", 64, 0, 1_000_000, "elements in the batch, the mapped axis"),
        SizeParameter("width", 1_024, 1, 10_000_000, "numbers in an element"),
        SizeParameter("steps", 8, 1, 100, "sines one after the other, each of which keeps its input"),
    ),
    presets={"Small": (16, 64, 4), "Medium": (64, 1_024, 8), "Large (256 MiB kept)": (64, 65_536, 16)},
    inputs=inputs,
    element=waves,
    numpy_element=waves_in_numpy,
    use=gradient_of_sum,
    rewrites={"batched": batched, "recompute": recompute, "numpy": in_numpy},
    element_input=lambda width, dtype: Leaf((width,), dtype),
    # Each step keeps its input for the way back.
    cost=lambda width, steps, dtype: Cost(
        ops=3 * steps + 2, flops=30 * steps * width, temporary_bytes=steps * width * ITEM_BYTES[dtype], depth=3 * steps
    ),
    unsupported={
        "numpy.eager": "TensorFlow's tape records no NumPy: write the gradient by hand, as numpy_batched does"
    },
)
