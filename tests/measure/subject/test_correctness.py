"""Outputs against references: exact errors, places and words on made-up arrays."""

import copy
from collections import namedtuple
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from measure.subject import differences
from measure.subject.correctness import check, leaves_of
from measure.subject.tolerances import tolerance_for
from workloads.spec import Leaf

BLOCK = differences.BLOCK
Layer = namedtuple("Layer", ["kernel", "bias"])


def leaf(result: Any) -> Any:
    assert len(result.leaves) == 1
    return result.leaves[0]


# --- errors of values -------------------------------------------------------------------------------------------------


def test_equal_values_have_no_error():
    right = np.linspace(-3, 3, 12).reshape(3, 4).astype(np.float32)
    result, sentence = check(right, right.astype(np.float64))
    assert sentence is None and result.ok
    assert (result.max_abs, result.max_rel, result.max_ulp, result.nan_mismatches) == (0, 0, 0, 0)
    assert (leaf(result).path, leaf(result).dtype, leaf(result).shape) == ("", "float32", [3, 4])
    result, sentence = check(np.zeros((0, 5), np.float32), np.zeros((0, 5)))
    assert result.ok and sentence is None and leaf(result).mismatch_share == 0.0


@pytest.mark.parametrize(
    ("dtype", "epsilon"),
    [(np.float64, 2.0**-52), (np.float32, 2.0**-23), (np.float16, 2.0**-10), (ml_dtypes.bfloat16, 2.0**-7)],
)
def test_errors_are_counted_in_units_of_the_last_place_of_the_dtype(dtype: Any, epsilon: float):
    right = np.array([[1.0, 2.0], [4.0, 8.0]])
    output = right.copy()
    output[1, 0] = 4.0 * (1 + 3 * epsilon)
    result, sentence = check(output.astype(dtype), right)
    assert sentence is None and result.ok
    assert (result.max_ulp, result.max_abs, result.max_rel) == (3.0, 12 * epsilon, 3 * epsilon)
    assert leaf(result).worst_index == [1, 0]


def test_what_is_off_is_named_with_its_place():
    right = np.arange(8.0).reshape(2, 4) + 1
    output = right.astype(np.float32)
    output[0, 3] = 1.0
    output[1, 0] = 5.5
    result, sentence = check((output,), (right,))
    assert not result.ok
    assert sentence == "25 % of the values of leaf [0] are off, the worst at (0, 3): 1.0 where 4.0 is right"
    assert (leaf(result).worst_index, leaf(result).mismatch_share) == ([0, 3], 0.25)
    assert (result.max_abs, result.max_rel, result.max_ulp) == (3.0, 0.75, 3.0 * 2**21)


def test_the_worst_value_is_the_one_farthest_beyond_its_tolerance():
    output, right = np.array([1e6 + 10, 2.0]), np.array([1e6, 1.0])
    tolerance = {"relative": 1e-3, "absolute": 0.0, "reason": "made up"}
    result, _ = check(output, right, tolerance=tolerance)
    assert (leaf(result).worst_index, leaf(result).mismatch_share, result.max_abs) == ([1], 0.5, 10.0)
    assert leaf(result).tolerance == tolerance
    nothing = {"relative": 0.0, "absolute": 0.0}
    assert check(right, right, tolerance=nothing)[0].ok
    assert not check(np.nextafter(right, 2e6), right, tolerance=nothing)[0].ok


@pytest.mark.parametrize("place", [0, BLOCK - 1, BLOCK, 2 * BLOCK + 99])
def test_a_wrong_value_is_found_on_either_side_of_a_block(place: int):
    right = np.ones((2 * BLOCK + 100) // 4 * 4).reshape(-1, 4)
    output = right.astype(np.float32)
    output[np.unravel_index(place, right.shape)] = 1.5
    result, _ = check(output, right)
    assert leaf(result).worst_index == [place // 4, place % 4]
    assert leaf(result).mismatch_share == 1 / right.size


def test_whole_numbers_are_exact():
    right = np.array([[1.0, 2.0], [300.0, 4.0]])
    assert check(right.astype(np.int32), right)[0].ok
    result, _ = check(np.array([[1, 3], [290, 4]], np.int32), right, tolerance={"relative": 1, "absolute": 99})
    assert (leaf(result).worst_index, result.max_abs, result.max_ulp) == ([1, 0], 10.0, None)
    assert leaf(result).tolerance == {"relative": 0.0, "absolute": 0.0}
    beyond_float64 = np.array([2**60, 2**60 + 1], np.int64)
    assert check(beyond_float64.copy(), beyond_float64)[0].ok
    assert not check(beyond_float64 - np.array([0, 1]), beyond_float64)[0].ok
    truth = np.array([True, False, True])
    assert check(truth.copy(), truth.astype(np.float64))[0].ok
    assert leaf(check(~truth, truth)[0]).mismatch_share == 1.0


# --- not finite -------------------------------------------------------------------------------------------------------


def test_every_difference_of_what_is_not_finite_counts():
    right = np.array([np.nan, np.inf, -np.inf, 1.0])
    result, sentence = check(right.astype(np.float32), right)
    assert result.ok and sentence is None and (result.nan_mismatches, result.max_abs) == (0, 0.0)
    right = np.array([np.nan, np.inf, np.inf, 1.0, 1.0])
    result, sentence = check(np.array([1.0, -np.inf, 1.0, np.inf, 1.0], np.float32), right)
    assert result.nan_mismatches == 4 and leaf(result).worst_index == [0]
    right = np.ones(10)
    output = right.copy()
    output[2], output[5] = 2.0, np.nan
    result, sentence = check(output, right)
    assert (leaf(result).mismatch_share, result.nan_mismatches, result.max_abs) == (0.2, 1, 1.0)
    assert sentence == (
        "1 value of the output is NaN where numbers are right and 10 % of the values of the output are off, "
        "the worst at (5,): nan where 1.0 is right"
    )


def test_what_the_dtype_can_not_hold_is_infinite():
    right = np.array([1e39, -1e39, 3.0])
    assert check(np.array([np.inf, -np.inf, 3.0], np.float32), right)[0].ok
    assert not check(np.array([np.inf, np.inf, 3.0], np.float32), right)[0].ok
    assert check(np.array([np.inf], np.float16), np.array([65520.0]))[0].ok
    assert not check(np.array([np.inf], np.float16), np.array([65504.0]))[0].ok


# --- structure, shape, dtype ------------------------------------------------------------------------------------------


def test_of_some_elements_the_worst_is_named_by_its_number_in_the_batch():
    output = np.arange(20.0, dtype=np.float32).reshape(10, 2)
    right, places = output.astype(np.float64)[[0, 4, 9]], np.array([0, 4, 9])
    options = {"expected": Leaf((10, 2), "float32"), "batch": None, "compared": places}
    assert check(output, right, **options)[1] is None
    output[4, 1] = -1.0
    result, sentence = check(output, right, **options)
    assert leaf(result).worst_index == [4, 1] and "the worst at (4, 1): -1.0 where 9.0 is right" in str(sentence)
    assert "has shape (9, 2) where (10, 2) is right" in str(check(output[:9], right, **options)[1])


def test_the_wrong_leaf_of_several_is_named():
    nest = (Layer(kernel=1, bias=2), {"b": [3, 4], "a": 5}, 6)
    paths = [("[0][0]", 1), ("[0][1]", 2), ("[1].a", 5), ("[1].b[0]", 3), ("[1].b[1]", 4), ("[2]", 6)]
    assert list(leaves_of(nest)) == paths and list(leaves_of(7)) == [("", 7)]
    right = {"first": np.ones(4), "second": (np.ones(4), np.ones(4))}
    output = copy.deepcopy(right)
    output["second"][1][2] = 3.0
    result, sentence = check(output, right)
    assert [row.path for row in result.leaves] == [".first", ".second[0]", ".second[1]"]
    assert [row.mismatch_share for row in result.leaves] == [0.0, 0.0, 0.25]
    assert sentence is not None and "leaf .second[1]" in sentence


@pytest.mark.parametrize(
    ("output", "right", "sentence"),
    [
        ((np.ones(3),), (np.ones(3), np.ones(3)), "output has 1 leaf where the reference has 2"),
        ({"a": np.ones(3)}, {"b": np.ones(3)}, "output has leaf .a where the reference has leaf .b"),
        ((np.ones((3, 4)),), (np.ones((3, 5)),), "leaf [0] has shape (3, 4) where (3, 5) is right"),
        ((None,), (np.ones(2),), "leaf [0] is a NoneType, not a tensor"),
        (np.ones(1), np.array(["a"]), "the output has dtype float64, which can not be compared with text"),
    ],
)
def test_what_cannot_be_compared_is_said(output: Any, right: Any, sentence: str):
    result, said = check(output, right)
    assert not result.ok and said == sentence


def test_shape_and_dtype_come_from_what_is_expected():
    expected = (Leaf((4,), "float32"),)
    right = (np.ones((3, 4)),)
    assert check((np.ones((3, 4), np.float32),), right, expected=expected, batch=3)[0].ok
    _, sentence = check((np.ones((3, 4)),), right, expected=expected, batch=3)
    assert sentence == "leaf [0] has dtype float64 where float32 is right"
    _, sentence = check((np.ones((2, 4), np.float32),), (np.ones((2, 4)),), expected=expected, batch=3)
    assert sentence == "leaf [0] has shape (2, 4) where (3, 4) is right"


# --- tensors that are no dense numbers --------------------------------------------------------------------------------


def test_text_is_right_or_not(tf: Any):
    right = np.array([[b"a", "é".encode()], [b"", b"ends\0"]], object)
    assert check(tf.constant(right), right)[0].ok
    assert check(np.array([["a", "é"]]), right[:1])[0].ok  # as NumPy has it
    wrong = right.copy()
    wrong[1, 1] = b"ends"
    result, _ = check(tf.constant(wrong), right, expected=Leaf((2, 2), "string"), batch=None)
    assert (leaf(result).dtype, leaf(result).worst_index, result.max_abs) == ("string", [1, 1], None)


def test_sparse_values_are_compared_as_dense_ones(tf: Any):
    right = np.array([[0.0, 2.0], [3.0, 0.0]])
    assert check(tf.SparseTensor([[1, 0], [0, 1]], tf.constant([3.0, 2.0]), [2, 2]), right)[0].ok, "in any order"
    # The values of one index are added up.
    slices = tf.IndexedSlices(tf.constant([[3.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), tf.constant([1, 0, 0]), [2, 2])
    assert check({"a": slices}, {"a": right})[0].ok and not check(slices, right + 1.0)[0].ok


def test_ragged_values_are_right_or_not(tf: Any):
    right = tf.ragged.constant([[1.0, 2.0], [], [3.0]], tf.float64)
    spec = Leaf((3, None), "float32", length=1.0)

    def judged(output: object, **more: Any) -> str:
        return check(output, right, expected=spec, batch=None, **more)[1] or ""

    assert judged(tf.cast(right, tf.float32)) == ""
    assert "leaf .values has dtype float64" in judged(right)
    assert "at (2,): 4.0 where 3.0 is right" in judged(tf.ragged.constant([[1.0, 2.0], [], [4.0]]))
    other_rows = tf.ragged.constant([[1.0, 2.0], [3.0], []])
    assert "leaf .row_lengths[0]" in judged(other_rows)
    assert judged(other_rows, shapes_only=True) == "", "of random ones lengths are not compared"
    assert judged(tf.zeros([3, 2])) == "the output is a tensor where a tf.RaggedTensor is right"
    rows = [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])]
    as_numpy = np.empty(2, object)
    as_numpy[:] = rows
    for output in (tf.RaggedTensor.from_row_lengths(tf.concat(rows, 0), [1, 2]), tf.ragged.stack(rows)):
        assert check({"a": output}, {"a": as_numpy})[0].ok, "one or both of its axes are ragged"


# --- tolerances -------------------------------------------------------------------------------------------------------


def test_tolerances_grow_with_the_root_of_the_depth_and_the_width_of_the_dtype():
    assert tolerance_for("float32", 1, 10.0) == {"relative": 8 * 2.0**-23, "absolute": 80 * 2.0**-23}
    assert tolerance_for("float32", 64, 1.0)["relative"] == 64 * 2.0**-23
    assert tolerance_for("float64", 4, 1.0)["relative"] == 16 * 2.0**-52
    assert tolerance_for("bfloat16", 4, 1.0)["relative"] == 8 * 2.0**-7
    assert tolerance_for("bfloat16", 10_000, 1.0)["relative"] == 0.25
    assert tolerance_for("int32", 100, 5.0) == {"relative": 0.0, "absolute": 0.0}
    assert tolerance_for("float32", 1, 0.0)["absolute"] == 2.0**-126
