"""Assertions of an element function: whether a strategy still makes them, or silently leaves them out."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

SKIPPED = (
    "the strategy leaves out the function's assertions: where one fails, the function raises an error, and the "
    "strategy returns a result"
)


def are_skipped(prepare: Callable[[], Callable[[], Any]]) -> bool:
    """True if a strategy returns a result though all assertions of its element function fail.

    ``prepare`` loads the script of the strategy anew, and returns a call of it.
    """
    import tensorflow as tf

    with _failing():
        try:
            prepare()()
        except tf.errors.InvalidArgumentError:
            return False
    return True


class _NothingHolds:
    """TensorFlow's arithmetic as its assertions use it, but for the one step by which they decide that all holds."""

    def __init__(self, arithmetic: Any) -> None:
        self._arithmetic = arithmetic

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arithmetic, name)

    def reduce_all(self, *args: Any, **kwargs: Any) -> Any:
        # Of the condition still, so that nothing can be decided without the element.
        holds = self._arithmetic.reduce_all(*args, **kwargs)
        return self._arithmetic.logical_and(holds, self._arithmetic.logical_not(holds))


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    """Have every assertion that is made or traced meanwhile fail, whatever its condition is."""
    import tensorflow as tf
    from tensorflow.python.ops import check_ops, control_flow_assert

    original, arithmetic = control_flow_assert.Assert, check_ops.math_ops
    nothing_holds = _NothingHolds(arithmetic)

    def failing(condition: Any, *args: Any, **kwargs: Any) -> Any:
        return original(nothing_holds.reduce_all(condition), *args, **kwargs)

    control_flow_assert.Assert = tf.debugging.Assert = failing
    check_ops.math_ops = nothing_holds
    try:
        yield
    finally:
        control_flow_assert.Assert = tf.debugging.Assert = original
        check_ops.math_ops = arithmetic
