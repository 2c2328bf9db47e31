"""Outputs against the right values: exact errors, places and words on made-up arrays."""

import copy
from collections import namedtuple
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from measure.subject import correctness
from measure.subject.correctness import BLOCK, leaves_of, tolerance_for
from workloads.spec import Leaf

Layer = namedtuple("Layer", ["kernel", "bias"])


def check(outputs: Any, right: Any, **more: Any) -> tuple[Any, str]:
    result, sentence = correctness.check(outputs, dict(leaves_of(right)), **more)
    assert result.ok == (sentence is None)
    return result, sentence or ""


def leaf(result: Any) -> Any:
    assert len(result.leaves) == 1
    return result.leaves[0]


@pytest.mark.parametrize(
    ("dtype", "epsilon"),
    [(np.float64, 2.0**-52), (np.float32, 2.0**-23), (np.float16, 2.0**-10), (ml_dtypes.bfloat16, 2.0**-7)],
)
def test_errors_are_counted_in_units_of_the_last_place_of_the_dtype(dtype: Any, epsilon: float):
    right = np.array([[1.0, 2.0], [6.0, 8.0]])
    output = right.copy()
    output[1, 0] = 6.0 + 3 * 4 * epsilon
    result, _ = check(output.astype(dtype), right)
    assert result.ok and (result.max_ulp, result.max_abs, result.max_rel) == (3.0, 12 * epsilon, 2 * epsilon)
    assert leaf(result).worst_index == [1, 0]
    result, _ = check(right.astype(dtype), right)
    assert result.ok and (result.max_abs, result.max_rel, result.max_ulp, result.nan_mismatches) == (0, 0, 0, 0)
    assert check(right[:0].astype(dtype), right[:0])[0].ok


def test_what_is_off_is_named_with_its_place():
    right = np.arange(8.0).reshape(2, 4) + 1
    output = right.astype(np.float32)
    output[0, 3] = 1.0
    output[1, 0] = 5.5
    result, sentence = check((output,), (right,))
    assert sentence == "leaf [0] is off in 2 of 8 values, the worst at (0, 3): 1.0 where 4.0 is right"
    assert (leaf(result).worst_index, leaf(result).mismatch_share) == ([0, 3], 0.25)
    assert (result.max_abs, result.max_rel, result.max_ulp) == (3.0, 0.75, 3.0 * 2**21)


def test_a_wrong_value_is_found_on_either_side_of_a_block():
    for place in (0, BLOCK - 1, BLOCK, 2 * BLOCK + 99):
        right = np.ones((2 * BLOCK + 100) // 4 * 4).reshape(-1, 4)
        output = right.astype(np.float32)
        output[np.unravel_index(place, right.shape)] = 1.5
        result, _ = check(output, right)
        assert (leaf(result).worst_index, leaf(result).mismatch_share) == ([place // 4, place % 4], 1 / right.size)


def test_whole_numbers_and_text_are_exact():
    right = np.array([[1.0, 2.0], [300.0, 4.0]])
    assert check(right.astype(np.int32), right)[0].ok
    result, _ = check(np.array([[1, 3], [290, 4]], np.int32), right)
    assert (leaf(result).worst_index, result.max_abs, result.max_ulp) == ([1, 0], 10.0, None)
    beyond_float64 = np.array([2**60, 2**60 + 1], np.int64)
    assert check(beyond_float64.copy(), beyond_float64)[0].ok
    assert not check(beyond_float64 - np.array([0, 1]), beyond_float64)[0].ok
    truth = np.array([True, False, True])
    assert check(truth.copy(), truth.astype(np.float64))[0].ok and leaf(check(~truth, truth)[0]).mismatch_share == 1.0
    text = np.array([[b"a", "é".encode()], [b"", b"ends\0"]], object)
    assert check(text.copy(), text)[0].ok and check(np.array([["a", "é"]]), text[:1])[0].ok, "as NumPy has it"
    (wrong := text.copy())[1, 1] = b"ends"
    result, _ = check(wrong, text, expected=Leaf((2, 2), "string"))
    assert (leaf(result).dtype, leaf(result).worst_index, result.max_abs) == ("string", [1, 1], None)


def test_complex_values_are_as_far_off_as_they_are_apart():
    right = np.array([3 + 4j, 1j, 0])
    result, sentence = check((right + np.array([0, 3 + 4j, 0])).astype(np.complex64), right)
    assert (result.max_abs, result.max_rel, leaf(result).worst_index) == (5.0, 5.0, [1])
    assert "(3+5j) where 1j is right" in sentence
    assert check(np.array([1.0 + 0j], np.complex64), np.array([1.0]))[0].ok, "a reference may give real numbers"


def test_every_difference_of_what_is_not_finite_counts():
    right = np.array([np.nan, np.inf, -np.inf, 1.0])
    result, _ = check(right.astype(np.float32), right)
    assert result.ok and (result.nan_mismatches, result.max_abs) == (0, 0.0)
    right = np.array([np.nan, np.inf, np.inf, 1.0, 1.0, 1.0])
    result, sentence = check(np.array([1.0, -np.inf, 1.0, np.inf, 2.0, 1.0], np.float32), right)
    assert (result.nan_mismatches, leaf(result).mismatch_share, result.max_abs) == (4, 5 / 6, 1.0)
    assert sentence == "the output is off in 5 of 6 values, the worst at (0,): 1.0 where nan is right"


def test_what_the_dtype_can_not_hold_is_infinite():
    right = np.array([1e39, -1e39, 3.0])
    assert check(np.array([np.inf, -np.inf, 3.0], np.float32), right)[0].ok
    assert not check(np.array([np.inf, np.inf, 3.0], np.float32), right)[0].ok
    assert check(np.array([np.inf], np.float16), np.array([65520.0]))[0].ok
    assert not check(np.array([np.inf], np.float16), np.array([65504.0]))[0].ok


def test_of_some_elements_the_worst_is_named_by_its_number_in_the_batch():
    output = np.arange(20.0, dtype=np.float32).reshape(10, 2)
    right, places = output.astype(np.float64)[[0, 4, 9]], np.array([0, 4, 9])
    options = {"expected": Leaf((10, 2), "float32"), "compared": places}
    assert check(output, right, **options)[0].ok
    output[4, 1] = -1.0
    result, sentence = check(output, right, **options)
    assert leaf(result).worst_index == [4, 1] and "the worst at (4, 1): -1.0 where 9.0 is right" in sentence
    assert "has shape (9, 2) where (10, 2) is right" in check(output[:9], right, **options)[1]
    for more in (options, {**options, "shapes_only": True}):
        assert check(output.astype(float), right, **more)[1].endswith("has dtype float64 where float32 is right")


def test_the_wrong_leaf_of_several_is_named():
    right = (Layer(kernel=np.ones(4), bias=np.ones(4)), {"b": [np.ones(4)], "a": np.ones(4)})
    output = copy.deepcopy(right)
    output[1]["b"][0][2] = 3.0
    result, sentence = check(output, right)
    assert [row.path for row in result.leaves] == ["[0][0]", "[0][1]", "[1].a", "[1].b[0]"]
    assert [row.mismatch_share for row in result.leaves] == [0, 0, 0, 0.25] and "leaf [1].b[0]" in sentence


def test_what_cannot_be_compared_is_said():
    for output, right, sentence in (
        ((np.ones(3),), (np.ones(3), np.ones(3)), "the output has nothing where leaf [1] is right"),
        ({"a": np.ones(3)}, {"b": np.ones(3)}, "the output has leaf .a where leaf .b is right"),
        ((np.ones((3, 4)),), (np.ones((3, 5)),), "leaf [0] has shape (3, 4) where (3, 5) is right"),
        ((None,), (np.ones(2),), "leaf [0] is a NoneType, not a tensor"),
        (np.ones(1), np.array(["a"]), "the output has dtype float64, which can not be compared with text"),
        (np.ones(1), np.array([1j]), "the output has dtype float64, which can not be compared with complex numbers"),
    ):
        assert check(output, right)[1] == sentence


def test_ragged_values_are_right_or_not(tf: Any):
    right = tf.ragged.constant([[1.0, 2.0], [], [3.0]], tf.float64)
    spec = Leaf((3, None), "float32", length=1.0)

    def judged(output: object, **more: Any) -> str:
        return check(output, right, expected=spec, **more)[1]

    assert judged(tf.cast(right, tf.float32)) == ""
    assert "leaf .values has dtype float64" in judged(right)
    assert "at (2,): 4.0 where 3.0 is right" in judged(tf.ragged.constant([[1.0, 2.0], [], [4.0]]))
    other_rows = tf.ragged.constant([[1.0, 2.0], [3.0], []])
    assert "leaf .row_lengths[0]" in judged(other_rows)
    assert judged(other_rows, shapes_only=True) == "", "of random ones lengths are not compared"
    assert "has a single tensor where leaf .row_lengths[0], leaf .values is right" in judged(tf.zeros([3, 2]))


def test_tolerances_grow_with_the_root_of_the_depth_and_the_width_of_the_dtype():
    assert tolerance_for("float32", 1, 10.0) == {"relative": 8 * 2.0**-23, "absolute": 80 * 2.0**-23}
    assert tolerance_for("float32", 64, 1.0)["relative"] == 64 * 2.0**-23
    assert tolerance_for("complex128", 4, 1.0)["relative"] == 16 * 2.0**-52
    assert tolerance_for("bfloat16", 10_000, 1.0)["relative"] == 0.25
    assert tolerance_for("float32", 1, 0.0)["absolute"] == 2.0**-126
    huge = np.array([3e200, 4e200, np.nan])
    assert leaf(check(huge, huge)[0]).tolerance["absolute"] == pytest.approx(8 * 2.0**-52 * 12.5**0.5 * 1e200)
