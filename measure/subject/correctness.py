"""Correctness: structure, shapes, dtypes and values of an output against a NumPy float64 reference, in sentences.

Only sparse tensors need TensorFlow here.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from measure.model.run import Correctness, LeafCheck
from measure.subject import differences, ragged
from measure.subject.differences import Errors
from measure.subject.memory import host_array
from measure.subject.tolerances import COMPONENT, TOLERANCES, tolerance_for

# Of a text that is wrong, as many bytes are shown.
_LONGEST_TEXT = 60


def check(
    outputs: Any,
    reference: Any,
    *,
    expected: Any = None,
    batch: int | None = 0,
    depth: int = 1,
    tolerance: Mapping[str, Any] | None = None,
    shapes_only: bool = False,
    compared: np.ndarray | None = None,
) -> tuple[Correctness, str | None]:
    """Compare a nest of arrays or tensors with a nest of float64 arrays; the sentence says what is wrong, if anything.

    ``expected``: nest of `workloads.spec.Leaf` for one of ``batch`` elements, or, with ``batch`` None, for the whole
    output; shapes and dtypes are checked against it. Without it shapes come from the reference and any dtype will do.
    ``tolerance``: ``relative`` and ``absolute`` (and a ``reason``) in place of `tolerance_for`. Errors are measured
    against the reference as it is, in float64; ULPs are those of the output's dtype at the reference's value. A
    relative error is defined only where the right value is not zero. ``shapes_only``: values are not compared.
    ``compared``: the numbers of the elements that the reference has, where these are not all.
    """
    got, right = dict(leaves_of(outputs)), dict(leaves_of(reference))
    if (sentence := _structure_fault(got, right)) is not None:
        return Correctness(ok=False), sentence
    specs = dict(leaves_of(expected)) if expected is not None else {}
    leaves, faults = [], []
    for path, leaf in got.items():
        result, fault = _check_leaf(
            path, leaf, np.asanyarray(right[path]), ragged.spec(path, specs), batch, depth, tolerance, shapes_only,
            compared,
        )  # fmt: skip
        leaves.append(result)
        if fault is not None:
            faults.append(fault)
    sentence = None
    if faults:
        more = len(faults) - 1
        sentence = faults[0] + (f"; {more} more {'leaf is' if more == 1 else 'leaves are'} wrong" if more else "")
    return (
        Correctness(
            ok=not faults,
            max_abs=_most(leaf.max_abs for leaf in leaves),
            max_rel=_most(leaf.max_rel for leaf in leaves),
            max_ulp=_most(leaf.max_ulp for leaf in leaves),
            nan_mismatches=sum(leaf.nan_mismatches for leaf in leaves),
            leaves=leaves,
        ),
        sentence,
    )


def leaves_of(nest: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of tuples, named ones too, lists and dicts with their paths, such as ``[0].kernel``; keys are sorted.
    A ragged tensor is its row lengths and values."""
    for step, part in _parts(nest) or ():
        yield from leaves_of(part, path + step)
    if _parts(nest) is None:
        yield path, nest


def _parts(nest: Any) -> list[tuple[str, Any]] | None:
    """The parts of a nest, each with its step of the path; None for a leaf."""
    if isinstance(nest, Mapping):
        return [(f".{key}", nest[key]) for key in sorted(nest)]
    if isinstance(nest, tuple | list):
        return [(f"[{place}]", part) for place, part in enumerate(nest)]
    parts = ragged.parts(nest)
    return None if parts is None else _parts(parts)


def _structure_fault(got: Mapping[str, Any], right: Mapping[str, Any]) -> str | None:
    if got.keys() == right.keys():
        return None
    for path in (*got, *right):
        if path + ragged.FIRST in right:
            return f"{_named(path)} is a tensor where a tf.RaggedTensor is right"
        if path + ragged.FIRST in got:
            return f"{_named(path)} is a tf.RaggedTensor where a tensor is right"
    if len(got) != len(right):
        return f"output has {_count(len(got), 'leaf', 'leaves')} where the reference has {len(right)}"
    missing = [_named(path) for path in right if path not in got]
    extra = [_named(path) for path in got if path not in right]
    return f"output has {', '.join(extra[:3])} where the reference has {', '.join(missing[:3])}"


def _check_leaf(
    path: str,
    leaf: Any,
    right: np.ndarray,
    spec: Any,
    batch: int | None,
    depth: int,
    override: Mapping[str, Any] | None,
    shapes_only: bool,
    compared: np.ndarray | None,
) -> tuple[LeafCheck, str | None]:
    name = _named(path)
    array = as_array(leaf)
    if array is None:
        kind = type(leaf).__name__
        return LeafCheck(path=path, dtype=kind, shape=[], mismatch_share=1.0), f"{name} is a {kind}, not a tensor"
    dtype, shape = "string" if array.dtype == object else str(array.dtype), list(array.shape)
    is_free = spec is not None and spec.is_ragged
    if is_free and shapes_only:
        right = array
    wanted = right.shape if spec is None or is_free else (spec.shape if batch is None else (batch, *spec.shape))
    if compared is not None and array.shape == wanted:
        array = array[compared]
        wanted = array.shape
    if array.shape != wanted or array.shape != right.shape:
        is_right = wanted if array.shape != wanted else right.shape
        fault = f"{name} has shape {_tuple(array.shape)} where {_tuple(is_right)} is right"
        return LeafCheck(path=path, dtype=dtype, shape=shape, mismatch_share=1.0), fault
    is_real, is_text = dtype in TOLERANCES or array.dtype.kind in "iub", right.dtype.kind in "OSU"
    if is_text != (dtype == "string") or not (is_text or dtype in COMPONENT or (is_real and right.dtype.kind != "c")):
        there = "text" if is_text else f"{right.dtype} numbers"
        return (
            LeafCheck(path=path, dtype=dtype, shape=shape, mismatch_share=1.0),
            f"{name} has dtype {dtype}, which can not be compared with {there}",
        )

    if shapes_only:
        wrong = spec is not None and dtype != spec.dtype
        other = f"{name} has dtype {dtype} where {spec.dtype} is right" if wrong else None
        return LeafCheck(path=path, dtype=dtype, shape=shape), other

    is_exact = array.dtype.kind in "iubO"
    tolerance: dict[str, Any]
    if override is not None and not is_exact:
        tolerance = dict(override)
    else:
        tolerance = tolerance_for(dtype, depth, 0.0 if is_exact else differences.root_mean_square(right, dtype))
    if is_text:
        right = _text(right)
        errors = differences.compare_text(array, right)
    elif is_exact:
        errors = differences.compare_exactly(array, right)
    else:
        errors = differences.compare(array, right, dtype, tolerance)
    share = errors.mismatches / array.size if array.size else 0.0
    place = [int(i) for i in np.unravel_index(errors.worst, array.shape)] if errors.differs else []
    result = LeafCheck(
        path=path,
        dtype=dtype,
        shape=shape,
        max_abs=_finite(errors.max_abs),
        max_rel=_finite(errors.max_rel),
        max_ulp=None if is_exact else _finite(errors.max_ulp),
        nan_mismatches=errors.nan_mismatches,
        mismatch_share=share,
        worst_index=_in_batch(place, compared),
        tolerance=tolerance,
    )
    if spec is not None and dtype != spec.dtype:
        return result, f"{name} has dtype {dtype} where {spec.dtype} is right"
    if errors.mismatches == 0:
        return result, None
    return result, _values_fault(name, array, right, errors, place, result)


def _in_batch(place: Sequence[int], compared: np.ndarray | None) -> list[int]:
    """The index in the whole batch of a place among the elements that are compared."""
    return list(place) if compared is None or not place else [int(compared[place[0]]), *place[1:]]


def _values_fault(
    name: str, array: np.ndarray, right: np.ndarray, errors: Errors, place: Sequence[int], result: LeafCheck
) -> str:
    parts = []
    if errors.nan_mismatches:
        kinds = [kind for kind, count in errors.non_finite.items() if count]
        kind, where = kinds[0].split("/") if len(kinds) == 1 else ("NaN or infinite or not", "the other")
        count = _count(errors.nan_mismatches, "value", "values")
        verb = "is" if errors.nan_mismatches == 1 else "are"
        parts.append(f"{count} of {name} {verb} {kind} where {where} {'is' if where == 'NaN' else 'are'} right")
    wrong = errors.mismatches - errors.nan_mismatches
    if wrong:
        if wrong < array.size / 1000:
            parts.append(f"{wrong} of {array.size} values of {name} {'is' if wrong == 1 else 'are'} off")
        else:
            parts.append(f"{100 * wrong / array.size:.3g} % of the values of {name} are off")
    at = f", the worst at {_tuple(result.worst_index)}" if place else ""
    is_right = _value(right[tuple(place)], is_whole=array.dtype.kind in "iub")
    return f"{' and '.join(parts)}{at}: {_value(array[tuple(place)])} where {is_right} is right"


def as_array(leaf: Any) -> np.ndarray | None:
    """A leaf as an array, a view of its memory where that can be had; of sparse ones the dense values, and of text
    ``bytes`` objects. None for what is no tensor."""
    if hasattr(leaf, "dense_shape"):
        leaf = _dense(leaf)
    array = host_array(leaf)
    if array is None and (hasattr(leaf, "__array__") or isinstance(leaf, bool | int | float | complex)):
        array = np.asarray(leaf)
    return _text(array) if array is not None and array.dtype.kind in "SU" else array


def _dense(leaf: Any) -> Any:
    import tensorflow as tf

    if isinstance(leaf, tf.SparseTensor):
        return tf.sparse.to_dense(leaf, validate_indices=False)
    return tf.convert_to_tensor(leaf)


def _text(array: np.ndarray) -> np.ndarray:
    """Text, as NumPy or TensorFlow has it, as ``bytes`` objects."""
    texts = [one.encode() if isinstance(one, str) else bytes(one) for one in array.ravel()]
    return np.array([*texts, None], object)[:-1].reshape(array.shape)


# --- words ------------------------------------------------------------------------------------------------------------


def _named(path: str) -> str:
    return f"leaf {path}" if path else "the output"


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _tuple(numbers: Sequence[int]) -> str:
    return str(tuple(int(number) for number in numbers))


def _value(value: Any, is_whole: bool = False) -> str:
    """Nine digits tell all float32 values apart. ``is_whole``: integers are meant, whatever the dtype."""
    if isinstance(value, bytes):
        return _shortened(value)
    value = np.asarray(value)
    if value.dtype.kind in "iub":
        return str(value)
    if value.dtype.kind == "c":
        return f"{complex(value):.9g}"
    text = f"{float(value):.9g}"
    return text if is_whole or any(sign in text for sign in ".en") else text + ".0"


def _shortened(text: bytes) -> str:
    """Text as Python writes it, the first characters where there are many."""
    return repr(text) if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]!r} and more"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
