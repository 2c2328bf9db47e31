"""The condition of a function: by how much its results move, where its elements do in their last bit.

The error of a computation is at most its condition times what its roundings amount to (Higham, "Accuracy and Stability
of Numerical Algorithms", 2002, section 1.6): where neighbouring pixels are interpolated at places that are computed, or
a system of equations is solved, right results differ by far more than the roundings along their way.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from measure.subject.correctness import precision

# Of the values of a result, those that move most do not count: one that is rounded to a whole number may jump.
_QUANTILE = 0.9
# Beyond this, a function tells more of its roundings than of its elements.
_MOST = 1_000.0


def condition(function: Callable[[Any], Any], element: Any, output: Any) -> float:
    """Return how many times as far results move as elements, relative to each; at least 1. ``output``: the function's
    result for ``element``, a nest of tensors. Values that are no floating-point numbers do not count."""
    import tensorflow as tf

    rng = np.random.default_rng(0)

    def moved(leaf: Any) -> Any:
        if not leaf.dtype.is_floating or isinstance(leaf, tf.RaggedTensor):
            return leaf
        signs = rng.choice([-1.0, 1.0], size=leaf.shape)
        return leaf * tf.cast(1.0 + signs * precision(leaf.dtype.name)[0], leaf.dtype)

    other = function(tf.nest.map_structure(moved, element))
    pairs = zip(tf.nest.flatten(output), tf.nest.flatten(other), strict=True)
    return min(_MOST, max([1.0, *(_moves(first, second) for first, second in pairs)]))


def _moves(first: Any, second: Any) -> float:
    """The distance of two results of the same dtype, in epsilons of it, relative to what the values amount to."""
    if not first.dtype.is_floating or first.shape != second.shape or not np.size(first):
        return 0.0
    epsilon, tiny, _ = precision(first.dtype.name)
    values = np.asarray(first, np.float64)
    with np.errstate(invalid="ignore"):
        distance = np.quantile(np.abs(np.asarray(second, np.float64) - values), _QUANTILE)
        scale = np.sqrt(np.mean(np.square(values)))
    moves = distance / max(float(scale), tiny) / epsilon
    return float(moves) if np.isfinite(moves) else 0.0
