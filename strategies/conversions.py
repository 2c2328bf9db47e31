"""Conversions of elements and results into the tensors that strategies map: functions whose source scripts hold."""

from typing import TYPE_CHECKING

import numpy as np

from workloads.spec import leaves, type_nest

if TYPE_CHECKING:
    import tensorflow as tf


def tensors(value):
    if isinstance(value, dict):
        return {key: tensors(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(tensors(part) for part in value)
    objects = list(value.flat) if isinstance(value, np.ndarray) and value.dtype == object else []
    if any(isinstance(one, np.ndarray) for one in objects) or (
        isinstance(value, list) and len({np.shape(row) for row in value}) > 1
    ):
        rows = [tf.convert_to_tensor(row) for row in value]
        return tf.RaggedTensor.from_row_lengths(tf.concat(rows, axis=0), [len(row) for row in rows])
    return value if isinstance(value, tf.RaggedTensor) else tf.convert_to_tensor(value)


def made_dense(output):
    def one(leaf):
        if isinstance(leaf, tf.sparse.SparseTensor):
            return tf.sparse.to_dense(leaf, validate_indices=False)  # they may stand in any order
        return tf.convert_to_tensor(leaf) if isinstance(leaf, tf.IndexedSlices) else leaf

    return tf.nest.map_structure(one, output)


def as_tuples(output):
    if isinstance(output, dict):
        return {key: as_tuples(part) for key, part in output.items()}
    if isinstance(output, list):
        return [as_tuples(part) for part in output]
    return tuple(as_tuples(part) for part in output) if isinstance(output, tuple) else output


def in_float64(nest, integers=False):
    if isinstance(nest, tuple):
        return tuple(in_float64(part, integers) for part in nest)
    return nest.astype(np.float64) if integers or nest.dtype.kind not in "iub" else nest


def is_ragged(nest: type_nest) -> bool:
    """True if elements or results, a nest of `Leaf`, have leaves whose lengths differ from element to element."""
    return any(leaf.is_ragged for leaf in leaves(nest))
