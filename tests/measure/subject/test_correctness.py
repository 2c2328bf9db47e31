"""Outputs against references: exact errors, places and words on made-up arrays."""

import copy
import math
import tracemalloc
from collections import namedtuple

import ml_dtypes
import numpy as np
import pytest

from measure.subject import differences
from measure.subject.correctness import check, leaves_of
from measure.subject.tolerances import tolerance_for
from workloads.spec import Leaf

BLOCK = differences.BLOCK
Layer = namedtuple("Layer", ["kernel", "bias"])


def leaf(result):
    assert len(result.leaves) == 1
    return result.leaves[0]


# --- errors of values -------------------------------------------------------------------------------------------------


def test_equal_values_have_no_error():
    right = np.linspace(-3, 3, 12).reshape(3, 4).astype(np.float32)
    result, sentence = check(right, right.astype(np.float64))
    assert sentence is None and result.ok
    assert (result.max_abs, result.max_rel, result.max_ulp, result.nan_mismatches) == (0, 0, 0, 0)
    assert leaf(result).worst_index == []
    assert (leaf(result).path, leaf(result).dtype, leaf(result).shape) == ("", "float32", [3, 4])


@pytest.mark.parametrize(
    ("dtype", "epsilon"),
    [(np.float64, 2.0**-52), (np.float32, 2.0**-23), (np.float16, 2.0**-10), (ml_dtypes.bfloat16, 2.0**-7)],
)
def test_errors_are_counted_in_units_of_the_last_place_of_the_dtype(dtype, epsilon):
    right = np.array([[1.0, 2.0], [4.0, 8.0]])
    output = right.copy()
    output[1, 0] = 4.0 * (1 + 3 * epsilon)
    result, sentence = check(output.astype(dtype), right)
    assert sentence is None and result.ok
    assert result.max_ulp == 3.0
    assert result.max_abs == 12 * epsilon
    assert result.max_rel == 3 * epsilon
    assert leaf(result).worst_index == [1, 0]
    assert leaf(result).mismatch_share == 0.0


def test_a_unit_in_the_last_place_is_that_of_the_right_value():
    # Between 4 and 8 float32 values are 2^-21 apart; the reference lies between two of them.
    output, right = np.array([5.0], np.float32), np.array([5.0 + 2.0**-22])
    assert check(output, right)[0].max_ulp == 0.5
    # Under the least normal value they are 2^-149 apart.
    tiny = np.array([3 * 2.0**-149], np.float32)
    assert check(tiny, np.array([2.0**-149]))[0].max_ulp == 2.0


def test_what_is_off_is_named_with_its_place():
    right = np.arange(8.0).reshape(2, 4) + 1
    output = right.astype(np.float32)
    output[0, 3] = 1.0
    output[1, 0] = 5.5
    result, sentence = check((output,), (right,))
    assert not result.ok
    assert sentence == "25 % of the values of leaf [0] are off, the worst at (0, 3): 1.0 where 4.0 is right"
    assert leaf(result).worst_index == [0, 3]
    assert leaf(result).mismatch_share == 0.25
    assert (result.max_abs, result.max_rel, result.max_ulp) == (3.0, 0.75, 3.0 * 2**21)


def test_few_wrong_values_are_counted():
    right = np.ones(5000)
    output = right.astype(np.float32)
    output[4321] = 2.0
    _, sentence = check(output, right)
    assert sentence == "1 of 5000 values of the output is off, the worst at (4321,): 2.0 where 1.0 is right"


def test_the_worst_value_is_the_one_farthest_beyond_its_tolerance():
    right = np.array([1e6, 1.0])
    output = np.array([1e6 + 10, 2.0])
    result, _ = check(output, right, tolerance={"relative": 1e-3, "absolute": 0.0, "reason": "made up"})
    assert leaf(result).worst_index == [1]
    assert leaf(result).mismatch_share == 0.5
    assert result.max_abs == 10.0
    assert leaf(result).tolerance == {"relative": 1e-3, "absolute": 0.0, "reason": "made up"}


def test_a_relative_error_is_defined_where_the_right_value_is_not_zero():
    result, _ = check(np.array([0.5, 1.5]), np.array([0.0, 1.0]), tolerance={"relative": 1.0, "absolute": 1.0})
    assert result.ok
    assert (result.max_abs, result.max_rel) == (0.5, 0.5)


def test_no_tolerance_at_all():
    nothing = {"relative": 0.0, "absolute": 0.0}
    assert check(np.array([0.0, 1.0]), np.array([0.0, 1.0]), tolerance=nothing)[0].ok
    result, _ = check(np.array([0.0, np.nextafter(1.0, 2.0)]), np.array([0.0, 1.0]), tolerance=nothing)
    assert not result.ok and leaf(result).mismatch_share == 0.5


@pytest.mark.parametrize("place", [0, BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 99])
def test_a_wrong_value_is_found_on_either_side_of_a_block(place):
    right = np.ones((2 * BLOCK + 100) // 4 * 4).reshape(-1, 4)
    output = right.astype(np.float32)
    output[np.unravel_index(place, right.shape)] = 1.5
    result, _ = check(output, right)
    assert leaf(result).worst_index == [place // 4, place % 4]
    assert leaf(result).mismatch_share == 1 / right.size
    assert result.max_abs == 0.5


def test_any_layout_of_the_reference_will_do(tmp_path):
    right = np.random.default_rng(0).standard_normal((300, 700))
    output = right.astype(np.float32)
    output[299, 3] += 1
    plain = check(output, right)
    np.save(tmp_path / "reference.npy", np.asfortranarray(right))
    mapped = np.load(tmp_path / "reference.npy", mmap_mode="r")
    assert not mapped.flags.c_contiguous
    assert check(output, mapped) == plain
    assert check(np.asfortranarray(output), right) == plain
    assert leaf(plain[0]).worst_index == [299, 3]


@pytest.mark.parametrize("order", ["C", "F"])
def test_little_memory_is_needed_beside_the_arrays(order):
    right = np.ones((2000, 2000), order=order)
    output = right.astype(np.float32)
    tracemalloc.start()
    check(output, right)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 10 * BLOCK * 8 < right.nbytes / 6


def test_complex_values():
    right = np.array([[1 + 1j, 2 - 2j], [3 + 0j, 4j]])
    output = right.astype(np.complex64)
    output[0, 1] = 2 - 3j
    result, sentence = check(output, right)
    assert leaf(result).worst_index == [0, 1]
    assert leaf(result).mismatch_share == 0.25
    assert result.max_abs == 1.0
    assert sentence == "25 % of the values of the output are off, the worst at (0, 1): 2-3j where 2-2j is right"


# --- not finite -------------------------------------------------------------------------------------------------------


def test_nan_where_numbers_are_right():
    right = np.ones((4, 5))
    output = right.astype(np.float32)
    output[1, 2] = output[3, 0] = output[3, 4] = np.nan
    result, sentence = check(output, right)
    assert result.nan_mismatches == 3
    assert leaf(result).mismatch_share == 0.15
    assert leaf(result).worst_index == [1, 2]
    assert (result.max_abs, result.max_ulp) == (0.0, 0.0)
    assert sentence == (
        "3 values of the output are NaN where numbers are right, the worst at (1, 2): nan where 1.0 is right"
    )


def test_what_is_not_finite_may_be_right():
    right = np.array([np.nan, np.inf, -np.inf, 1.0])
    result, sentence = check(right.astype(np.float32), right)
    assert result.ok and sentence is None and result.nan_mismatches == 0
    assert result.max_abs == 0.0


def test_every_difference_of_pattern_counts():
    right = np.array([np.nan, np.inf, np.inf, 1.0, 1.0])
    output = np.array([1.0, -np.inf, 1.0, np.inf, 1.0], np.float32)
    result, sentence = check(output, right)
    assert result.nan_mismatches == 4
    assert leaf(result).worst_index == [0]
    assert "4 values of the output are" in sentence


def test_what_the_dtype_can_not_hold_is_infinite():
    right = np.array([1e39, -1e39, 3.0])
    assert check(np.array([np.inf, -np.inf, 3.0], np.float32), right)[0].ok
    assert not check(np.array([np.inf, np.inf, 3.0], np.float32), right)[0].ok
    assert check(np.array([np.inf], np.float16), np.array([65520.0]))[0].ok
    assert not check(np.array([np.inf], np.float16), np.array([65504.0]))[0].ok


def test_wrong_and_not_finite_values_in_one_leaf():
    right = np.ones(10)
    output = right.copy()
    output[2], output[5] = 2.0, np.nan
    result, sentence = check(output, right)
    assert leaf(result).mismatch_share == 0.2
    assert result.nan_mismatches == 1
    assert result.max_abs == 1.0
    assert sentence == (
        "1 value of the output is NaN where numbers are right and 10 % of the values of the output are off, "
        "the worst at (5,): nan where 1.0 is right"
    )


# --- integers and booleans --------------------------------------------------------------------------------------------


def test_integers_are_exact():
    right = np.array([[1.0, 2.0], [300.0, 4.0]])
    assert check(right.astype(np.int32), right)[0].ok
    result, sentence = check(np.array([[1, 3], [290, 4]], np.int32), right, tolerance={"relative": 1, "absolute": 99})
    assert leaf(result).worst_index == [1, 0]
    assert (result.max_abs, result.max_rel, result.max_ulp) == (10.0, 0.5, None)
    assert leaf(result).tolerance == {"relative": 0.0, "absolute": 0.0}
    assert sentence == "50 % of the values of the output are off, the worst at (1, 0): 290 where 300 is right"


def test_integers_beyond_float64_are_exact_too():
    right = np.array([2**60, 2**60 + 1], np.int64)
    assert check(right.copy(), right)[0].ok
    assert not check(right - np.array([0, 1]), right)[0].ok


def test_booleans_are_exact():
    right = np.array([True, False, True])
    assert check(right.copy(), right.astype(np.float64))[0].ok
    result, _ = check(~right, right)
    assert leaf(result).mismatch_share == 1.0


# --- structure, shape, dtype ------------------------------------------------------------------------------------------


def test_paths_of_nested_outputs():
    nest = (Layer(kernel=1, bias=2), {"b": [3, 4], "a": 5}, 6)
    assert list(leaves_of(nest)) == [
        ("[0].kernel", 1),
        ("[0].bias", 2),
        ("[1].a", 5),
        ("[1].b[0]", 3),
        ("[1].b[1]", 4),
        ("[2]", 6),
    ]
    assert list(leaves_of(7)) == [("", 7)]


def test_the_wrong_leaf_of_several_is_named():
    right = {"first": np.ones(4), "second": (np.ones(4), np.ones(4))}
    output = copy.deepcopy(right)
    output["second"][1][2] = 3.0
    result, sentence = check(output, right)
    assert [row.path for row in result.leaves] == [".first", ".second[0]", ".second[1]"]
    assert [row.mismatch_share for row in result.leaves] == [0.0, 0.0, 0.25]
    assert sentence == "25 % of the values of leaf .second[1] are off, the worst at (2,): 3.0 where 1.0 is right"
    output["first"][:] = np.nan
    assert check(output, right)[1].endswith("; 1 more leaf is wrong")


def test_missing_leaves():
    result, sentence = check((np.ones(3),), (np.ones(3), np.ones(3)))
    assert not result.ok and result.leaves == []
    assert sentence == "output has 1 leaf where the reference has 2"
    _, sentence = check({"a": np.ones(3)}, {"b": np.ones(3)})
    assert sentence == "output has leaf .a where the reference has leaf .b"
    _, sentence = check((np.ones(3),), np.ones(3))
    assert sentence == "output has leaf [0] where the reference has the output"


def test_wrong_shapes():
    result, sentence = check((np.ones((3, 4)),), (np.ones((3, 5)),))
    assert sentence == "leaf [0] has shape (3, 4) where (3, 5) is right"
    assert not result.ok
    assert (leaf(result).shape, leaf(result).mismatch_share, leaf(result).max_abs) == ([3, 4], 1.0, None)


def test_shape_and_dtype_come_from_what_is_expected():
    expected = (Leaf((4,), "float32"),)
    right = (np.ones((3, 4)),)
    assert check((np.ones((3, 4), np.float32),), right, expected=expected, batch=3)[0].ok
    result, sentence = check((np.ones((3, 4)),), right, expected=expected, batch=3)
    assert not result.ok and sentence == "leaf [0] has dtype float64 where float32 is right"
    assert result.max_abs == 0.0
    _, sentence = check((np.ones((2, 4), np.float32),), (np.ones((2, 4)),), expected=expected, batch=3)
    assert sentence == "leaf [0] has shape (2, 4) where (3, 4) is right"


def test_scalars_and_empty_outputs():
    assert check(np.float32(2.0), 2.0)[0].ok
    result, sentence = check(3.0, np.array(2.0))
    assert leaf(result).worst_index == []
    assert sentence == "100 % of the values of the output are off: 3.0 where 2.0 is right"
    result, sentence = check(np.zeros((0, 5), np.float32), np.zeros((0, 5)))
    assert result.ok and sentence is None and leaf(result).mismatch_share == 0.0


def test_what_is_no_tensor_is_said():
    assert check((None,), (np.ones(2),))[1] == "leaf [0] is a NoneType, not a tensor"
    assert check(np.array(["a"]), np.ones(1))[1] == (
        "the output has dtype string, which can not be compared with float64 numbers"
    )
    assert check(np.ones(1), np.array(["a"]))[1] == "the output has dtype float64, which can not be compared with text"
    assert not check(np.ones(2), np.ones(2, np.complex128))[0].ok


def test_text_is_right_or_not():
    import tensorflow as tf  # it takes seconds, and not every process of the tests needs it

    right = np.array([[b"a", "é".encode()], [b"", b"ends\0"]], object)
    assert check(tf.constant(right), right)[0].ok
    assert check(np.array([["a", "é"]]), right[:1])[0].ok  # as NumPy has it
    wrong = right.copy()
    wrong[1, 1] = b"ends"
    result, sentence = check(tf.constant(wrong), right, expected=Leaf((2, 2), "string"), batch=None)
    assert (
        sentence == "25 % of the values of the output are off, the worst at (1, 1): b'ends' where b'ends\\x00' is right"
    )
    assert (leaf(result).dtype, leaf(result).worst_index, result.max_abs) == ("string", [1, 1], None)
    assert check(tf.constant([b"x" * 100]), np.array([b"y"]))[1].endswith(f"{b'x' * 60} and more where b'y' is right")


def test_sparse_values_are_compared_as_dense_ones():
    import tensorflow as tf  # it takes seconds, and not every process of the tests needs it

    right = np.array([[0.0, 2.0], [3.0, 0.0]])
    in_any_order = tf.SparseTensor([[1, 0], [0, 1]], tf.constant([3.0, 2.0]), [2, 2])
    assert check(in_any_order, right)[0].ok
    # The values of one index are added up.
    slices = tf.IndexedSlices(tf.constant([[3.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), tf.constant([1, 0, 0]), [2, 2])
    assert check({"a": slices}, {"a": right})[0].ok
    assert not check(slices, right + 1.0)[0].ok


def test_ragged_values_are_right_or_not():
    import tensorflow as tf  # it takes seconds, and not every process of the tests needs it

    right = tf.ragged.constant([[1.0, 2.0], [], [3.0]], tf.float64)
    spec = Leaf((3, None), "float32", length=1.0)

    def judged(output: object, right: object = right) -> str | None:
        return check(output, right, expected=spec, batch=None)[1]

    assert judged(tf.cast(right, tf.float32)) is None
    assert judged(right) == "leaf .values has dtype float64 where float32 is right"
    assert judged(tf.ragged.constant([[1.0, 2.0], [], [4.0]])) == (
        "33.3 % of the values of leaf .values are off, the worst at (2,): 4.0 where 3.0 is right"
    )
    # The same values, in other rows.
    assert judged(tf.ragged.constant([[1.0, 2.0], [3.0], []])) == (
        "66.7 % of the values of leaf .row_lengths[0] are off, the worst at (1,): 1 where 0 is right"
    )
    assert judged(tf.zeros([3, 2])) == "the output is a tensor where a tf.RaggedTensor is right"
    assert judged(tf.cast(right, tf.float32), np.zeros((3, 2))) == (
        "the output is a tf.RaggedTensor where a tensor is right"
    )


def test_ragged_values_may_come_in_other_forms():
    import tensorflow as tf  # it takes seconds, and not every process of the tests needs it

    rows = [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])]
    as_numpy = np.empty(2, object)
    as_numpy[:] = rows
    inner_is_uniform = tf.RaggedTensor.from_row_lengths(tf.concat(rows, 0), [1, 2])
    both_are_ragged = tf.ragged.stack(rows)
    assert (inner_is_uniform.ragged_rank, both_are_ragged.ragged_rank) == (1, 2)
    for output in (inner_is_uniform, both_are_ragged):
        assert check({"a": output}, {"a": as_numpy})[0].ok


@pytest.mark.parametrize(
    ("rows", "dtype", "ok"),
    [
        ([[1.0, 1.0], []], "float64", True),
        ([[1.0], [1.0]], "float32", False),
        ([[1.0], [], []], "float64", False),
    ],
)
def test_of_random_ragged_values_lengths_are_not_compared(rows: list[list[float]], dtype: str, ok: bool):
    import tensorflow as tf  # it takes seconds, and not every process of the tests needs it

    right = tf.ragged.constant([[1.0], [2.0, 3.0]])
    spec = Leaf((2, None), "float64", length=1.5)
    output = tf.ragged.constant(rows, dtype)
    assert check(output, right, expected=spec, batch=None, shapes_only=True)[0].ok is ok


# --- tolerances -------------------------------------------------------------------------------------------------------


def test_tolerances_grow_with_the_root_of_the_depth_and_the_width_of_the_dtype():
    assert tolerance_for("float32", 1, 10.0) == {"relative": 8 * 2.0**-23, "absolute": 80 * 2.0**-23}
    assert tolerance_for("float32", 64, 1.0)["relative"] == 64 * 2.0**-23
    assert tolerance_for("float64", 4, 1.0)["relative"] == 16 * 2.0**-52
    assert tolerance_for("float16", 4, 1.0)["relative"] == 8 * 2.0**-10
    assert tolerance_for("bfloat16", 4, 1.0)["relative"] == 8 * 2.0**-7
    assert tolerance_for("bfloat16", 10_000, 1.0)["relative"] == 0.25
    assert tolerance_for("complex64", 1, 1.0) == tolerance_for("float32", 1, 1.0)
    assert tolerance_for("int32", 100, 5.0) == {"relative": 0.0, "absolute": 0.0}
    assert tolerance_for("float32", 1, 0.0)["absolute"] == 2.0**-126


def test_the_scale_of_a_leaf_is_its_root_mean_square():
    right = np.array([3.0, 4.0, np.nan, np.inf])
    result, _ = check(right.astype(np.float32), right)
    assert leaf(result).tolerance["absolute"] == pytest.approx(8 * 2.0**-23 * math.sqrt(12.5), rel=1e-12)
    huge = np.array([3e200, 4e200])
    assert differences.root_mean_square(huge, "float64") == pytest.approx(1e200 * math.sqrt(12.5), rel=1e-12)


@pytest.mark.parametrize("depth", [16, 1024])
def test_honest_rounding_passes_and_a_small_defect_does_not(depth):
    random = np.random.default_rng(depth)
    a, b = random.standard_normal((200, depth)), random.standard_normal((depth, 50))
    a, b = a.astype(np.float32), b.astype(np.float32)
    right = a.astype(np.float64) @ b.astype(np.float64)
    running = np.zeros((200, 50), np.float32)
    for k in range(depth):  # one rounding after the other: the least exact order
        running += a[:, k, None] * b[k]
    assert check(running, right, depth=depth)[0].ok
    assert check(a @ b, right, depth=depth)[0].ok
    running[17, 23] += 0.01
    result, _ = check(running, right, depth=depth)
    assert leaf(result).worst_index == [17, 23]
    assert leaf(result).mismatch_share == 1 / 10_000
