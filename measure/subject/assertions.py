"""Assertions of an element function: whether a strategy makes them for every element, or silently leaves some out."""

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

LEFT_OUT = (
    "the strategy leaves out assertions: where one fails for the last element only, the function raises an error, and "
    "the strategy returns a result"
)


def are_left_out(module: ModuleType, function: str) -> bool:
    """True if a strategy returns a result though all assertions of its element function fail for the last element.

    ``module``: the strategy's script, loaded anew for this; ``function``: the name of the element function there. Not
    of all elements: `tf.vectorized_map` makes an assertion for the first one and forgets the others.
    """
    import tensorflow as tf

    original = getattr(module, function)
    batch = tf.nest.flatten(module.elems)[0].shape[0]
    is_last: list[Any] = []

    def telling(pair: Any) -> Any:
        element, number = pair
        is_last.append(tf.equal(number, batch - 1))
        try:
            return original(element)
        finally:
            is_last.pop()

    setattr(module, function, telling)
    with _failing(is_last):
        try:
            module.strategy((module.elems, tf.range(batch)))
        except tf.errors.InvalidArgumentError:
            return False
    return True


class _Arithmetic:
    """TensorFlow's arithmetic as its assertions use it, but for the one step by which they decide that all holds."""

    def __init__(self, arithmetic: Any, is_last: list[Any]) -> None:
        self._arithmetic, self._is_last = arithmetic, is_last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arithmetic, name)

    def reduce_all(self, *args: Any, **kwargs: Any) -> Any:
        holds = self._arithmetic.reduce_all(*args, **kwargs)
        for last in self._is_last[-1:]:
            holds = self._arithmetic.logical_and(holds, self._arithmetic.logical_not(last))
        return holds


@contextlib.contextmanager
def _failing(is_last: list[Any]) -> Iterator[None]:
    """Have every assertion that is made or traced meanwhile fail for the element that is the last."""
    import tensorflow as tf
    from tensorflow.python.ops import check_ops, control_flow_assert

    original, arithmetic = control_flow_assert.Assert, check_ops.math_ops
    failing = _Arithmetic(arithmetic, is_last)

    def assert_(condition: Any, *args: Any, **kwargs: Any) -> Any:
        return original(failing.reduce_all(condition), *args, **kwargs)

    control_flow_assert.Assert = tf.debugging.Assert = assert_
    check_ops.math_ops = failing
    try:
        yield
    finally:
        control_flow_assert.Assert = tf.debugging.Assert = original
        check_ops.math_ops = arithmetic
