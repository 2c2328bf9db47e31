"""Errors are told in a line that helps, and the work of a function is counted while it runs."""

from typing import Any

from measure.subject.counting import count
from measure.subject.errors import shorten


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


def test_a_loop_is_counted_as_often_as_it_turns_and_a_branch_where_it_is_taken(tf: Any):
    def loop(x):
        return tf.while_loop(lambda i, y: i < 7, lambda i, y: (i + 1, y * x), (0, x))[1]

    @tf.function
    def branch(x):
        return tf.cond(x[0] > 0, lambda: tf.exp(x), lambda: x + x + x)

    assert count(loop, tf.ones(5))[1].flops == 7 * 5
    assert [count(branch, sign * tf.ones(3))[1].flops for sign in (1.0, -1.0)] == [3 * 10, 2 * 3]


def test_text_is_free_a_product_has_two_operations_a_multiplication_and_pythons_work_is_not_known(tf: Any):
    def unknown(x):
        return tf.ensure_shape(tf.py_function(lambda v: v, [x], tf.float32), [5])

    assert count(tf.strings.to_number, tf.constant("1.5"))[1].flops == 0
    assert list(count(unknown, tf.ones(5))[1].unknown) == ["EagerPyFunc"]
    product = count(lambda x: tf.einsum("ij,jk->ik", x, x), tf.ones([3, 3]))[1]
    assert (product.flops, product.depth) == (2 * 3**3, 3)
