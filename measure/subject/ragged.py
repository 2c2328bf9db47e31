"""Ragged tensors as the parts that are compared: row lengths of each axis after the first, and all values in a row.

Which axes TensorFlow keeps as ragged does not matter: of an axis that happens to be uniform all row lengths are equal.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from workloads.spec import Leaf

LENGTHS, VALUES = "row_lengths", "values"
FIRST = f".{LENGTHS}[0]"


def spec(path: str, specs: Mapping[str, Leaf]) -> Leaf | None:
    """Return the spec of a leaf or of a part of a ragged one; None where nothing is known of it."""
    whole = specs.get(path.rpartition(".")[0])
    if path in specs or whole is None or path.endswith(FIRST):
        return specs.get(path)
    return whole if path.endswith(f".{VALUES}") else replace(whole, dtype="int64")


def parts(leaf: Any) -> dict[str, Any] | None:
    """Return row lengths and values of a ``tf.RaggedTensor``, or of an array of arrays, NumPy's form of one; None for
    anything else."""
    if hasattr(leaf, "nested_row_lengths"):
        lengths, values = list(leaf.nested_row_lengths()), leaf.flat_values.numpy()
    elif (
        isinstance(leaf, np.ndarray)
        and leaf.dtype == object
        and leaf.ndim == 1
        and leaf.size
        and isinstance(leaf[0], np.ndarray)
    ):
        lengths, values = [np.array([len(row) for row in leaf])], np.concatenate(list(leaf))
    else:
        return None
    for axis, side in enumerate(values.shape[1:], 1):
        lengths.append(np.full(int(np.prod(values.shape[:axis])), side))
    return {LENGTHS: [np.asarray(one).astype(np.int64) for one in lengths], VALUES: values.reshape(-1)}
