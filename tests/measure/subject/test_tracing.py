"""Traces, ops that `tf.vectorized_map` runs element by element, and what is made anew for new values are counted."""

from typing import Any

import numpy as np

from measure.subject.messages import Anew
from measure.subject.tracing import NOTHING, anew, traced


def functions(tf: Any) -> dict[Any, list[str]]:
    """Element functions → the ops that fall back, whether or not TensorFlow warns of them."""

    def unique(x):  # has no converter
        return tf.reduce_sum(tf.unique(x)[0])

    def diagonal(x):  # has a converter that falls back, without a warning
        return tf.linalg.tensor_diag(tf.stack([x, x]))

    inner = tf.function(unique)

    def nested(x):  # of a function that is called there is no warning
        return inner(x)

    def branch(x):
        return tf.cond(x[0] > 1, lambda: unique(x), lambda: x[0])

    def loop(x):  # loops of its own are converted, and so are its arrays
        def body(i, array):
            return i + 1, array.write(i, x)

        return tf.while_loop(lambda i, array: i < 3, body, (0, tf.TensorArray(tf.float32, 3)))[1].stack()

    def vectorised(x):
        return tf.sin(x) + tf.reduce_sum(tf.where(x > 0, x, -x))

    return {
        unique: ["Unique"], diagonal: ["Diag"], nested: ["Unique"], branch: ["Unique"],
        loop: [], vectorised: [],
    }  # fmt: skip


def test_ops_that_fall_back_are_named(tf: Any) -> None:
    x = tf.reshape(tf.range(10.0), [5, 2])
    for function, ops in functions(tf).items():
        graph = tf.function(lambda elems, function=function: tf.vectorized_map(function, elems))
        with traced() as collected:
            graph(x)
        assert collected.fallbacks == ops, function


def counted(strategy: Any, elems: Any) -> Anew:
    strategy(elems)
    return anew(strategy, elems)


def test_what_is_traced_or_compiled_for_its_values_is_counted_and_what_is_made_once_is_not(tf: Any) -> None:
    x = np.linspace(0.1, 1.0, 6, dtype=np.float32)
    square = tf.function(lambda value: value * value)
    assert counted(square, tf.constant(x)) == NOTHING
    assert counted(lambda elems: [square(number.item()) for number in elems], x) == Anew(6, 0), "Python numbers"
    of_order = tf.function(lambda values: tf.constant(values))
    assert counted(lambda elems: of_order(tuple(elems.tolist())), np.arange(6)) == Anew(1, 0)
    filled = tf.function(lambda counts: tf.fill([counts[0]], 1.0), jit_compile=True)
    assert counted(filled, tf.constant([2, 3, 4])) == Anew(0, 1)
    assert counted(tf.function(tf.sin, jit_compile=True), tf.ones([3])) == NOTHING
