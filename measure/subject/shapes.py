"""The shapes of elements and of results, where these may differ from one element to the next."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from measure.subject.limits import Refused
from workloads.functions import leaves_from_wire, leaves_to_wire
from workloads.spec import Leaf, leaves, type_nest

# Elements on which a function is called to see whether shapes differ, and where its graph has none.
_FEW, _MANY = 4, 16


def of_elements(elems: Any) -> Any:
    """Return the wire of a nest of `Leaf` of one element, from a batch of them."""
    import tensorflow as tf

    def one(leaf: Any) -> Leaf:
        values = leaf.flat_values if isinstance(leaf, tf.RaggedTensor) else leaf
        return _leaf(tuple(leaf.shape[1:]), leaf.dtype.name, int(tf.size(values)) / leaf.shape[0])

    return leaves_to_wire(tf.nest.map_structure(one, elems))


def specs(elems: Any) -> Any:
    """Return the nest of specs that each element fits."""
    import tensorflow as tf

    def one(leaf: Any) -> Any:
        shape, dtype, rank = leaf.shape[1:], leaf.dtype, getattr(leaf, "ragged_rank", 0)
        return tf.RaggedTensorSpec(shape, dtype, ragged_rank=rank - 1) if rank > 1 else tf.TensorSpec(shape, dtype)

    return tf.nest.map_structure(one, elems)


def typical(elems: Any) -> int:
    """Return the number of the element whose length is the nearest to the average; the first where all are alike."""
    lengths = _lengths(elems)
    return int(np.abs(lengths - lengths.mean()).argmin())


def spread(elems: Any, is_fixed: bool) -> set[int]:
    """Return the numbers of elements from the first to the last, the shortest and the longest among them, whose results
    tell whether shapes differ: more where the function's graph has no fixed shape."""
    lengths = _lengths(elems)
    places = np.linspace(0, len(lengths) - 1, _FEW if is_fixed else _MANY).round().astype(int)
    return set(map(int, (lengths.argmin(), lengths.argmax(), *places)))


def _lengths(elems: Any) -> np.ndarray:
    import tensorflow as tf

    leaves = tf.nest.flatten(elems)
    ragged = [leaf.row_lengths().numpy() for leaf in leaves if isinstance(leaf, tf.RaggedTensor)]
    return np.sum(ragged, axis=0) if ragged else np.zeros(leaves[0].shape[0])


def of_result(function: str, output: Any, made_dense: Callable[[Any], Any]) -> type_nest:
    """Return the result of one element as a nest of `Leaf`. Raises `Refused` where it is no tensors."""
    import tensorflow as tf

    def one(leaf: Any) -> Leaf:
        is_sparse = isinstance(leaf, tf.SparseTensor | tf.IndexedSlices)
        if isinstance(leaf, tf.RaggedTensor):
            return _leaf(tuple(leaf.shape), leaf.dtype.name, int(tf.size(leaf.flat_values)))
        if not is_sparse and not isinstance(leaf, tf.Tensor | tf.Variable | np.ndarray | np.generic | int | float):
            raise Refused(
                f"{function} returns a value of type {type(leaf).__name__}: a tensor, or a tuple, list or dict of "
                "tensors is needed"
            )
        exact = tf.convert_to_tensor(made_dense(leaf))
        return Leaf(tuple(exact.shape), exact.dtype.name, is_sparse)

    return tf.nest.map_structure(one, output)


def merged(function: str, results: Sequence[type_nest]) -> Any:
    """Return the wire of what all results fit: an axis in which they differ has no fixed length. Raises `Refused` where
    there is no such thing."""
    import tensorflow as tf

    def one(*leaves: Leaf) -> Leaf:
        first = leaves[0]
        for leaf in leaves:
            if (len(leaf.shape), leaf.dtype) != (len(first.shape), first.dtype):
                shapes = (f"{part.dtype} ({', '.join(map(str, part.sides))})" for part in (first, leaf))
                raise Refused(
                    f"the result of {function} differs from element to element ({', then '.join(shapes)}): "
                    "a batch needs one dtype and one number of axes"
                )
        axes = zip(*(leaf.shape for leaf in leaves), strict=True)
        shape = tuple(sides[0] if len(set(sides)) == 1 else None for sides in axes)
        return _leaf(shape, first.dtype, float(np.mean([leaf.values for leaf in leaves])), first.sparse)

    try:
        return leaves_to_wire(tf.nest.map_structure(one, *results))
    except (TypeError, ValueError):
        raise Refused(f"the structure of what {function} returns differs from element to element") from None


def unsupported(output: Any, result: Any) -> dict[str, str]:
    """Return pattern of ``mapper.mode`` → why such a strategy cannot work for results like this ``output`` of one
    element; ``result``: the wire of what all fit."""
    import tensorflow as tf

    for leaf, spec in zip(tf.nest.flatten(output), leaves(leaves_from_wire(result)), strict=True):
        if not isinstance(leaf, tf.RaggedTensor) and None in spec.shape[1:]:
            return {"map_fn.*": "tf.map_fn takes tensors whose lengths differ in their first axis alone"}
    return {}


def _leaf(shape: tuple[int | None, ...], dtype: str, values: float, sparse: bool = False) -> Leaf:
    """A leaf whose lengths are such that it has so many values."""
    if None not in shape:
        return Leaf(shape, dtype, sparse)
    fixed = float(np.prod([side for side in shape if side is not None]))
    return Leaf(shape, dtype, sparse, length=(values / fixed) ** (1 / shape.count(None)) if fixed else 0.0)
