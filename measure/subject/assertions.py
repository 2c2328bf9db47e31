"""Assertions of an element function: whether a strategy makes them for every element, or silently leaves some out."""

import contextlib
import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

LEFT_OUT = (
    "the strategy leaves out assertions: where one fails for the last element only, the function raises an error, and "
    "the strategy returns a result"
)


# Whether an assertion of a condition, and whether one of finite numbers, fails for the element that is mapped.
Fails = tuple[Any, Any]


def are_left_out(module: ModuleType, function: str) -> bool:
    """True if a strategy returns a result though all assertions of its element function fail for the last element.

    ``module``: the strategy's script, loaded anew for this; ``function``: the name of the element function there. Not
    of all elements: `tf.vectorized_map` makes an assertion for the first one and forgets the others. Conditions and
    checks of finite numbers fail by turns, since a strategy may leave out the ones and make the others.
    """
    import tensorflow as tf

    original = getattr(module, function)
    batch = tf.nest.flatten(module.elems)[0].shape[0]
    fails: list[Fails] = []

    def telling(parts: Any) -> Any:
        element, number, turn = parts
        is_last = tf.equal(number, batch - 1)
        fails.append((tf.logical_and(is_last, tf.equal(turn, 0)), tf.logical_and(is_last, tf.equal(turn, 1))))
        try:
            return original(element)
        finally:
            fails.pop()

    setattr(module, function, telling)
    with _failing(fails):
        for turn in (0, 1):
            elems = (module.elems, tf.range(batch), tf.fill([batch], turn))
            last = tf.nest.map_structure(lambda leaf: leaf[batch - 1], elems)
            # A function has assertions of one kind or of both, and some may be made where nothing here reaches.
            if _raises(telling, last) and not _raises(module.strategy, elems):
                return True
    return False


def _raises(call: Callable[[Any], Any], elems: Any) -> bool:
    import tensorflow as tf

    try:
        call(elems)
    except tf.errors.InvalidArgumentError:
        return True
    return False


class _Arithmetic:
    """TensorFlow's arithmetic as its assertions use it, but for the one step by which they decide that all holds."""

    def __init__(self, arithmetic: Any, fails: list[Fails]) -> None:
        self._arithmetic, self._fails = arithmetic, fails

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arithmetic, name)

    def reduce_all(self, *args: Any, **kwargs: Any) -> Any:
        holds = self._arithmetic.reduce_all(*args, **kwargs)
        for fails, _ in self._fails[-1:]:
            holds = self._arithmetic.logical_and(holds, self._arithmetic.logical_not(fails))
        return holds


@contextlib.contextmanager
def _failing(fails: list[Fails]) -> Iterator[None]:
    """Have every assertion that is made or traced meanwhile fail where the last of ``fails`` says so."""
    import tensorflow as tf
    from tensorflow.python.ops import array_ops, check_ops, control_flow_assert

    original, arithmetic, numerics = control_flow_assert.Assert, check_ops.math_ops, array_ops.check_numerics
    failing = _Arithmetic(arithmetic, fails)

    def assert_(condition: Any, *args: Any, **kwargs: Any) -> Any:
        return original(failing.reduce_all(condition), *args, **kwargs)

    def check_numerics(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        tensor = tf.convert_to_tensor(tensor)
        for _, fails_here in fails[-1:]:
            tensor = tf.where(fails_here, tf.constant(math.nan, tensor.dtype), tensor)
        return numerics(tensor, *args, **kwargs)

    control_flow_assert.Assert = tf.debugging.Assert = assert_
    check_ops.math_ops = failing
    array_ops.check_numerics = tf.debugging.check_numerics = check_numerics
    try:
        yield
    finally:
        control_flow_assert.Assert = tf.debugging.Assert = original
        check_ops.math_ops = arithmetic
        array_ops.check_numerics = tf.debugging.check_numerics = numerics
