"""Strings are decoded: no op on them has a vectorised form, though each takes a whole batch."""

import numpy as np

from workloads.spec import Leaf, Option, SizeParameter, Workload, tf


def inputs(batch, width, of, dtype, seed):
    numbers = np.random.default_rng(seed).uniform(0.5, 1.5, size=(batch, width)).astype(dtype)
    if of == "bytes":
        return np.array([row.tobytes() for row in numbers], dtype=object)
    return np.array([[b"%.6f" % number for number in row] for row in numbers], dtype=object).reshape(batch, width)


def element(x, *, dtype):
    return tf.strings.to_number(x, dtype)


def element_of_bytes(x, *, width, dtype):
    # The length of a string is not known from its type: the shape says how many numbers it holds.
    return tf.reshape(tf.io.decode_raw(x, dtype), [width])


def batched_of_bytes(x, *, width, dtype):
    return tf.reshape(tf.io.decode_raw(x, dtype), [-1, width])


def reference(x, *, width, of, dtype):
    numbers = np.array([np.frombuffer(row, dtype) for row in x]) if of == "bytes" else x
    return numbers.astype(np.float64).reshape(len(x), width)


WORKLOAD = Workload(
    title="Numbers from strings",
    group="Text",
    formula="y[b] = the numbers that the strings x[b] hold",
    sizes=(
        SizeParameter("batch", 100, 1, 1_000_000, "elements in the batch, the mapped axis"),
        SizeParameter("width", 16, 1, 65_536, "numbers of an element"),
    ),
    presets={"Small": (10, 4), "Medium": (100, 16), "Wide": (100, 1_024)},
    options=(
        Option("of", "text", "text: a string for each number; bytes: one for all of an element", ("text", "bytes")),
    ),
    inputs=inputs,
    element=element,
    rewrites={"batched": element},
    reference=reference,
    element_input=lambda width, of: Leaf((), "string") if of == "bytes" else Leaf((width,), "string"),
    element_output=lambda width, dtype: Leaf((width,), dtype),
    variants={"of": {"bytes": {"element": element_of_bytes, "rewrites": {"batched": batched_of_bytes}}}},
)
