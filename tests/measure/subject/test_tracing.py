"""What is read of a function while it runs: its work, ops that `tf.vectorized_map` runs element by element, and what is
made anew for new values; and of its errors the line that helps."""

from typing import Any

import numpy as np

from measure.subject.counting import count
from measure.subject.errors import shorten
from measure.subject.messages import Anew
from measure.subject.tracing import NOTHING, anew, traced


def test_of_a_long_message_the_line_that_helps_is_kept() -> None:
    in_user_code = (
        'in user code:\n\n    File "<x>", line 3, in element  *\n        y = x[0]\n\n    ValueError: slice index 0\n'
    )
    for text, line in (
        ("{{function_node __wrapped__Foo}} Bad shapes: [2] vs. [3] [Op:AddV2] name: ", "Bad shapes: [2] vs. [3]"),
        (in_user_code, "ValueError: slice index 0"),
        ("Graph execution error:\n\nDetected at node x\nout of range\nand more", "out of range"),
        ("Graph execution error:\n\n    Detected at node x", "Detected at node x"),
        ("", ""),
        ("Shapes must be equal:\n\n  [2] and\n", "Shapes must be equal: [2] and"),
        ("in user code:\n\n    ValueError: these differ:\n    a, b\n", "ValueError: these differ: a, b"),
    ):
        assert shorten(text) == line


def test_work_is_counted_as_often_as_it_is_done_and_pythons_is_not_known(tf: Any) -> None:
    def loop(x):
        return tf.while_loop(lambda i, y: i < 7, lambda i, y: (i + 1, y * x), (0, x))[1]

    @tf.function
    def branch(x):
        return tf.cond(x[0] > 0, lambda: tf.exp(x), lambda: x + x + x)

    def unknown(x):
        return tf.ensure_shape(tf.py_function(lambda v: v, [x], tf.float32), [5])

    assert count(loop, tf.ones(5))[1].flops == 7 * 5
    assert [count(branch, sign * tf.ones(3))[1].flops for sign in (1.0, -1.0)] == [3 * 10, 2 * 3]
    assert count(tf.strings.to_number, tf.constant("1.5"))[1].flops == 0, "text is free"
    assert list(count(unknown, tf.ones(5))[1].unknown) == ["EagerPyFunc"]
    product = count(lambda x: tf.einsum("ij,jk->ik", x, x), tf.ones([3, 3]))[1]
    assert (product.flops, product.depth) == (2 * 3**3, 3)


def test_ops_that_fall_back_are_named_whether_or_not_tensorflow_warns_of_them(tf: Any) -> None:

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

    elems = tf.reshape(tf.range(10.0), [5, 2])
    for function, ops in (
        (unique, ["Unique"]), (diagonal, ["Diag"]), (nested, ["Unique"]), (branch, ["Unique"]), (loop, []),
        (vectorised, []),
    ):  # fmt: skip
        graph = tf.function(lambda elems, function=function: tf.vectorized_map(function, elems))
        with traced() as collected:
            graph(elems)
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
