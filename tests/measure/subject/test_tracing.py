"""Traces, ops that `tf.vectorized_map` runs element by element, and what is made anew for new values are counted."""

from typing import Any

import numpy as np
import pytest

from measure.subject import roles
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
        unique: ["Unique"], python: ["EagerPyFunc"], diagonal: ["Diag"], nested: ["Unique"], branch: ["Unique"],
        in_loop: ["Unique"], loop: [], vectorised: [],
    }  # fmt: skip


def test_ops_that_fall_back_are_named_and_are_no_warning_besides(tf: Any) -> None:
    x = tf.reshape(tf.range(10.0), [5, 2])
    for function, ops in functions(tf).items():
        graph = tf.function(lambda elems, function=function: tf.vectorized_map(function, elems))
        with roles.warnings_of_tensorflow() as said, traced() as collected:
            graph(x)
        assert collected.fallbacks == ops, function
        assert not [sentence for sentence in said if "while_loop" in sentence]


# --- calls with new values -------------------------------------------------------------------------------------------


def counted(strategy: Any, elems: Any, *, compiles: bool = False) -> Anew:
    strategy(elems)
    return anew(strategy, elems, compiles=compiles)


def test_what_is_traced_or_compiled_for_its_values_is_counted_and_what_is_made_once_is_not(tf: Any) -> None:
    x = np.linspace(0.1, 1.0, 6, dtype=np.float32)
    square = tf.function(lambda value: value * value)
    assert counted(square, tf.constant(x)) == NOTHING
    assert counted(lambda elems: [square(number.item()) for number in elems], x) == Anew(6, 0), "Python numbers"
    of_order = tf.function(lambda values: tf.constant(values))
    assert counted(lambda elems: of_order(tuple(elems.tolist())), np.arange(6)) == Anew(1, 0)
    filled = tf.function(lambda counts: tf.fill([counts[0]], 1.0), jit_compile=True)
    assert counted(filled, tf.constant([2, 3, 4]), compiles=True) == Anew(0, 1)
    assert counted(tf.function(tf.sin, jit_compile=True), tf.ones([3]), compiles=True) == NOTHING


def test_what_happens_in_one_call_only_and_what_does_not_take_other_values_are_not_counted(tf: Any) -> None:
    calls: list[int] = []
    x = np.arange(4)

    def now_and_then(elems: Any) -> Any:
        calls.append(len(calls))
        return tf.function(lambda: tf.constant(1))() if len(calls) == 2 else elems

    def these_alone(elems: Any) -> Any:
        assert elems[0] == 0
        return elems

    assert counted(now_and_then, x) == NOTHING and len(calls) == 3
    assert counted(these_alone, x) == NOTHING


@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "int32", "string"])
def test_new_values_have_the_type_and_the_shape_of_the_timed_ones(tf: Any, dtype: str) -> None:
    x = np.asarray([["a"], ["b"], ["c"]], object) if dtype == "string" else np.asarray([[1], [2], [0]])
    values = tf.constant(x) if dtype == "string" else tf.cast(x, dtype)
    ragged = tf.RaggedTensor.from_row_lengths(tf.reshape(values, [-1]), [1, 0, 2])
    seen: list[Any] = []
    elems = {"tensors": values, "arrays": values.numpy(), "ragged": ragged}

    def strategy(elems: Any) -> None:
        seen.append(elems)
        tf.function(lambda: tf.constant(1))()  # so that it is called with other values twice

    assert counted(strategy, elems) == Anew(1, 0)
    first, *others = [tf.nest.map_structure(lambda leaf: (type(leaf), leaf.dtype, leaf.shape), one) for one in seen]
    assert others == [first, first]
    if values.dtype.is_floating:
        tops = [float(np.max(one["arrays"])) for one in seen]
        assert tops == sorted(set(tops), reverse=True) and tops[-1] > 1.9
