"""What is traced or compiled for the values of its elements is told from what is made once."""

from typing import Any

import numpy as np
import pytest

from measure.subject.messages import Anew
from measure.subject.new_values import NOTHING, anew


def counted(strategy: Any, elems: Any, *, compiles: bool = False) -> Anew:
    strategy(elems)
    return anew(strategy, elems, compiles=compiles)


def test_what_is_traced_once_is_not_counted_and_what_is_traced_for_its_values_is(tf: Any) -> None:
    x = np.linspace(0.1, 1.0, 6, dtype=np.float32)
    square = tf.function(lambda value: value * value)
    assert counted(square, tf.constant(x)) == NOTHING
    assert counted(lambda elems: [square(each.item()) for each in elems], x) == Anew(6, 0), "Python numbers"
    of_order = tf.function(lambda values: tf.constant(values))
    assert counted(lambda elems: of_order(tuple(elems.tolist())), np.arange(6)) == Anew(1, 0)


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


def test_programs_that_xla_compiles_for_values_are_counted(tf: Any) -> None:
    filled = tf.function(lambda counts: tf.fill([counts[0]], 1.0), jit_compile=True)
    assert counted(filled, tf.constant([2, 3, 4]), compiles=True) == Anew(0, 1)
    assert counted(tf.function(tf.sin, jit_compile=True), tf.ones([3]), compiles=True) == NOTHING


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "bool", "string"])
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
    first, *others = [tf.nest.map_structure(lambda leaf: (type(leaf), leaf.dtype, leaf.shape), each) for each in seen]
    assert others == [first, first]
    if values.dtype.is_floating:
        tops = [float(np.max(each["arrays"])) for each in seen]
        assert tops == sorted(set(tops), reverse=True) and tops[-1] > 1.9
