"""The ops that `tf.vectorized_map` runs element by element are named, whether and however TensorFlow tells of them."""

import logging
from typing import Any

from measure.subject.traced import told_fallback, traced


def functions(tf: Any) -> dict[Any, tuple[list[str], bool]]:
    """Element functions → the ops that fall back, and whether TensorFlow says so."""

    def unique(x):  # has no converter
        return tf.reduce_sum(tf.unique(x)[0])

    def diagonal(x):  # has a converter that falls back and says nothing
        return tf.linalg.tensor_diag(tf.stack([x, x]))

    inner = tf.function(unique)

    def nested(x):  # in a function that is called, nothing is said of any op
        return inner(x)

    def branch(x):
        return tf.cond(x[0] > 1, lambda: unique(x), lambda: x[0])

    def in_loop(x):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + unique(x)), (0, 0.0))[1]

    def python(x):
        return tf.ensure_shape(tf.py_function(lambda value: value * 2, [x], tf.float32), [2])

    def loop(x):  # loops of its own are converted, and so are its arrays
        def body(i, array):
            return i + 1, array.write(i, x)

        return tf.while_loop(lambda i, array: i < 3, body, (0, tf.TensorArray(tf.float32, 3)))[1].stack()

    def vectorised(x):
        return tf.sin(x) + tf.reduce_sum(tf.where(x > 0, x, -x))

    return {
        unique: (["Unique"], True),
        python: (["EagerPyFunc"], True),
        diagonal: (["Diag"], False),
        nested: (["Unique"], False),
        branch: (["Unique"], False),
        in_loop: (["Unique"], False),
        loop: ([], False),
        vectorised: ([], False),
    }


def test_ops_that_fall_back_are_named_whatever_tensorflow_says(tf: Any) -> None:
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("tensorflow")
    logger.addHandler(handler)
    x = tf.reshape(tf.range(10.0), [5, 2])
    try:
        for function, (ops, is_told) in functions(tf).items():

            def mapped(elems, function=function):
                return tf.vectorized_map(function, elems)

            graph, compiled = tf.function(mapped), tf.function(mapped, jit_compile=True)
            for call in (mapped, graph, compiled.get_concrete_function) if is_told else (graph,):
                said.clear()
                with traced() as collected:
                    call(x)
                told = [sentence for sentence in said if "while_loop" in sentence]
                assert (collected.fallbacks, bool(told)) == (ops, is_told), function
                # What is named need not be said a second time, in TensorFlow's words.
                assert all(told_fallback(sentence) in collected.fallbacks for sentence in told)
    finally:
        logger.removeHandler(handler)


def test_a_jacobian_is_vectorised_by_the_same_code(tf: Any) -> None:
    with traced() as collected, tf.GradientTape() as tape:
        x = tf.ones([2, 2])
        tape.watch(x)
        y = tf.linalg.tensor_diag(x)
        tape.jacobian(y, x)
    assert collected.fallbacks == ["DiagPart"]


def test_whatever_words_tensorflow_uses_for_a_fall_back_name_its_op() -> None:
    for sentence, op in (
        ("Using a while_loop for converting Unique cause there is no registered converter for this op.", "Unique"),
        ("Using a while_loop for converting QueueDequeue", "QueueDequeue"),
        ("Conv2DBackpropFilter uses a while_loop. Fix that!", "Conv2DBackpropFilter"),
        ("The name Unique is not unique: tf.while_loop was called twice.", ""),
    ):
        assert told_fallback(sentence) == op
