"""Whether an output is right: structure, shape, dtype and values against a NumPy float64 reference, with tolerances.

Values are compared in blocks, so that a reference may be a memory map as large as the output and little more memory is
needed. Nothing here needs TensorFlow.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from measure.model.run import Correctness, LeafCheck
from measure.subject.memory import host_array

# Elements compared at a time: what a block needs stays in a core's own cache.
_BLOCK = 64 * 1024


@dataclass(frozen=True)
class Precision:
    """``epsilon``: distance from 1 to the next value. ``tiny``: least normal value. ``factor``: see `TOLERANCES`."""

    epsilon: float
    tiny: float
    greatest: float
    factor: float


# A result that went through n roundings is off by at most about n·u, where u = epsilon / 2 (Higham, "Accuracy and
# Stability of Numerical Algorithms", 2002, lemma 3.1), and by less than λ·√n·u with overwhelming probability (Higham
# and Mary, "A new approach to probabilistic rounding error analysis", 2019, theorem 2.4: λ = 8 fails once in 4e13
# steps). λ = 8 is a factor of 4 epsilon. It is doubled where exp, tanh and the like are themselves only good to several
# units in the last place; narrow types compute those in float32 and round once.
# Relative tolerance = factor · epsilon · √depth.
TOLERANCES: Mapping[str, Precision] = {
    "float64": Precision(2.0**-52, 2.0**-1022, float(np.finfo(np.float64).max), 8.0),
    "float32": Precision(2.0**-23, 2.0**-126, float(np.finfo(np.float32).max), 8.0),
    "float16": Precision(2.0**-10, 2.0**-14, 65504.0, 4.0),
    "bfloat16": Precision(2.0**-7, 2.0**-126, (2 - 2.0**-7) * 2.0**127, 4.0),
}
# Whatever the depth: what is off by more than a quarter is no answer.
MOST_RELATIVE = 0.25

_COMPONENT = {"complex64": "float32", "complex128": "float64"}


def tolerance_for(dtype: str, depth: int, scale: float) -> dict[str, Any]:
    """The greatest error that counts as rounding: ``absolute`` + ``relative`` × |right value|.

    ``depth``: the longest chain of roundings between an input and the output. ``scale``: the root mean square of the
    leaf's right values; cancellation leaves errors of that order in values that are near zero. At least the least
    normal number is allowed, since kernels may flush smaller ones to zero. Integers and booleans must be exact.
    """
    precision = TOLERANCES.get(_COMPONENT.get(dtype, dtype))
    if precision is None:
        return {"relative": 0.0, "absolute": 0.0}
    relative = min(MOST_RELATIVE, precision.factor * precision.epsilon * math.sqrt(max(1, depth)))
    return {"relative": relative, "absolute": max(relative * scale, precision.tiny)}


def check(
    outputs: Any,
    reference: Any,
    *,
    expected: Any = None,
    batch: int | None = 0,
    depth: int = 1,
    tolerance: Mapping[str, Any] | None = None,
) -> tuple[Correctness, str | None]:
    """Compares a nest of arrays or tensors with a nest of float64 arrays; the sentence says what is wrong, if anything.

    ``expected``: nest of `workloads.spec.Leaf` for one of ``batch`` elements, or, with ``batch`` None, for the whole
    output; shapes and dtypes are checked against it. Without it shapes come from the reference and any dtype will do.
    ``tolerance``: ``relative`` and ``absolute`` (and a ``reason``) in place of `tolerance_for`. Errors are measured
    against the reference as it is, in float64; ULPs are
    those of the output's dtype at the reference's value. A relative error is defined only where the right value is not
    zero.
    """
    got, right = dict(leaves_of(outputs)), dict(leaves_of(reference))
    if (sentence := _structure_fault(got, right)) is not None:
        return Correctness(ok=False), sentence
    specs = dict(leaves_of(expected)) if expected is not None else {}
    leaves, faults = [], []
    for path, leaf in got.items():
        result, fault = _check_leaf(path, leaf, np.asanyarray(right[path]), specs.get(path), batch, depth, tolerance)
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
    """The leaves of tuples, lists, dicts and named tuples with their paths, such as ``[0].kernel``; keys are sorted."""
    for step, part in _parts(nest) or ():
        yield from leaves_of(part, path + step)
    if _parts(nest) is None:
        yield path, nest


def map_nest(function: Callable[[Any], Any], nest: Any) -> Any:
    """The same structure with ``function`` applied to every leaf, in the order of `leaves_of`."""
    if isinstance(nest, Mapping):
        results = {key: map_nest(function, nest[key]) for key in sorted(nest)}
        return {key: results[key] for key in nest}
    if isinstance(nest, tuple | list):
        parts = [map_nest(function, part) for part in nest]
        return type(nest)(*parts) if hasattr(nest, "_fields") else type(nest)(parts)
    return function(nest)


def _parts(nest: Any) -> list[tuple[str, Any]] | None:
    """The parts of a nest, each with its step of the path; None for a leaf."""
    if isinstance(nest, Mapping):
        return [(f".{key}", nest[key]) for key in sorted(nest)]
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return [(f".{key}", part) for key, part in zip(nest._fields, nest, strict=True)]
    if isinstance(nest, tuple | list):
        return [(f"[{place}]", part) for place, part in enumerate(nest)]
    return None


def _structure_fault(got: Mapping[str, Any], right: Mapping[str, Any]) -> str | None:
    if got.keys() == right.keys():
        return None
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
) -> tuple[LeafCheck, str | None]:
    name = _named(path)
    array = _as_array(leaf)
    if array is None:
        kind = type(leaf).__name__
        return LeafCheck(path=path, dtype=kind, shape=[], mismatch_share=1.0), f"{name} is a {kind}, not a tensor"
    dtype, shape = str(array.dtype), list(array.shape)
    wanted = right.shape if spec is None else (spec.shape if batch is None else (batch, *spec.shape))
    if array.shape != wanted or array.shape != right.shape:
        is_right = wanted if array.shape != wanted else right.shape
        fault = f"{name} has shape {_tuple(array.shape)} where {_tuple(is_right)} is right"
        return LeafCheck(path=path, dtype=dtype, shape=shape, mismatch_share=1.0), fault
    is_real = dtype in TOLERANCES or array.dtype.kind in "iub"
    if not (dtype in _COMPONENT or (is_real and right.dtype.kind != "c")):
        return (
            LeafCheck(path=path, dtype=dtype, shape=shape, mismatch_share=1.0),
            f"{name} has dtype {dtype}, which can not be compared with {right.dtype} numbers",
        )

    is_exact = array.dtype.kind in "iub"
    tolerance: dict[str, Any]
    if override is not None and not is_exact:
        tolerance = dict(override)
    else:
        tolerance = tolerance_for(dtype, depth, 0.0 if is_exact else _root_mean_square(right, dtype))
    errors = _compare_exactly(array, right) if is_exact else _compare(array, right, dtype, tolerance)
    share = errors.mismatches / array.size if array.size else 0.0
    result = LeafCheck(
        path=path,
        dtype=dtype,
        shape=shape,
        max_abs=_finite(errors.max_abs),
        max_rel=_finite(errors.max_rel),
        max_ulp=None if is_exact else _finite(errors.max_ulp),
        nan_mismatches=errors.nan_mismatches,
        mismatch_share=share,
        worst_index=[int(i) for i in np.unravel_index(errors.worst, array.shape)] if errors.differs else [],
        tolerance=tolerance,
    )
    if spec is not None and dtype != spec.dtype:
        return result, f"{name} has dtype {dtype} where {spec.dtype} is right"
    if errors.mismatches == 0:
        return result, None
    return result, _values_fault(name, array, right, errors, result)


def _values_fault(name: str, array: np.ndarray, right: np.ndarray, errors: "_Errors", result: LeafCheck) -> str:
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
    index = tuple(result.worst_index)
    at = f", the worst at {_tuple(index)}" if index else ""
    is_right = _value(right[index], is_whole=array.dtype.kind in "iub")
    return f"{' and '.join(parts)}{at}: {_value(array[index])} where {is_right} is right"


# --- values -----------------------------------------------------------------------------------------------------------


@dataclass
class _Errors:
    """Largest errors of a leaf, how many values are off, and the flat index of the worst one."""

    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: float = 0.0
    mismatches: int = 0
    nan_mismatches: int = 0
    worst: int = 0
    differs: bool = False
    # What there is / what is right, how often.
    non_finite: dict[str, int] = field(default_factory=dict)


def _compare(array: np.ndarray, right: np.ndarray, dtype: str, tolerance: Mapping[str, Any]) -> _Errors:
    """Floating-point values; the parts of complex ones are compared on their own."""
    precision = TOLERANCES[_COMPONENT.get(dtype, dtype)]
    # Where no error is allowed any is infinitely many times too large: this keeps zero over zero out of it.
    relative, absolute = float(tolerance["relative"]), max(float(tolerance["absolute"]), float(np.finfo(float).tiny))
    parts = 2 if dtype in _COMPONENT else 1
    errors = _Errors()
    worst_ratio = -1.0
    for start, values, wanted in _blocks(array, right, parts):
        with np.errstate(invalid="ignore"):  # infinity less infinity is judged below
            difference = np.abs(values - wanted)
        size = np.abs(wanted)
        greatest = float(difference.max())
        if not math.isfinite(greatest):
            broken = _reconcile(values, wanted, difference, size, precision, errors)
            greatest = float(difference.max())
            count = np.unique(broken // parts).size
            errors.nan_mismatches += count
            errors.mismatches += count
            errors.differs |= count > 0
            if count and worst_ratio < math.inf:
                worst_ratio, errors.worst = math.inf, (start + int(broken[0])) // parts
        if greatest == 0.0:
            continue
        errors.differs = True
        errors.max_abs = max(errors.max_abs, greatest)
        ratio = size * relative
        ratio += absolute
        with np.errstate(over="ignore"):
            np.divide(difference, ratio, out=ratio)
        place = int(ratio.argmax())
        if ratio[place] > worst_ratio:
            worst_ratio, errors.worst = float(ratio[place]), (start + place) // parts
        if ratio[place] > 1.0:
            errors.mismatches += _count_true(ratio > 1.0, parts)

        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            np.divide(difference, size, out=ratio)
            rel = float(ratio.max())
            if not math.isfinite(rel):  # something was divided by zero
                rel = float(ratio.max(initial=0.0, where=size > 0.0))
        errors.max_rel = max(errors.max_rel, rel)

        # The unit in the last place is epsilon times the power of two at or below the value: its exponent bits alone.
        exponents = size.view(np.int64)
        exponents &= 0x7FF0_0000_0000_0000
        np.maximum(size, precision.tiny, out=size)
        with np.errstate(over="ignore"):
            np.divide(difference, size, out=difference)
        errors.max_ulp = max(errors.max_ulp, float(difference.max()) / precision.epsilon)
    return errors


def _reconcile(
    values: np.ndarray,
    wanted: np.ndarray,
    difference: np.ndarray,
    size: np.ndarray,
    precision: Precision,
    errors: _Errors,
) -> np.ndarray:
    """Judges the values that are not finite, on either side, and takes them out of ``difference`` and ``size``.

    What the dtype can not hold is infinite when rounded to it. Returns the places that are wrong.
    """
    places = np.flatnonzero(~np.isfinite(difference))
    value, right = values[places], wanted[places]
    right = np.where(np.abs(right) > precision.greatest * (1 + precision.epsilon / 4), np.sign(right) * np.inf, right)
    wrong = ~((value == right) | (np.isnan(value) & np.isnan(right)))
    difference[places] = 0.0
    size[places] = 1.0
    value, right = value[wrong], right[wrong]
    for there, is_there in (("NaN", np.isnan), ("infinite", np.isinf), ("numbers", np.isfinite)):
        for where, is_where in (("NaN", np.isnan), ("infinities", np.isinf), ("numbers", np.isfinite)):
            kind = f"{there}/{where}"
            errors.non_finite[kind] = errors.non_finite.get(kind, 0) + int((is_there(value) & is_where(right)).sum())
    return places[wrong]


def _compare_exactly(array: np.ndarray, right: np.ndarray) -> _Errors:
    """Integers and booleans: equal or not."""
    errors = _Errors()
    flat, wanted_flat = _flat(array), _flat(right)
    for start in range(0, array.size, _BLOCK):
        values, wanted = flat[start : start + _BLOCK], wanted_flat[start : start + _BLOCK]
        different = values != wanted
        count = int(different.sum())
        if not count:
            continue
        errors.mismatches += count
        errors.differs = True
        bad = np.flatnonzero(different)
        wanted_bad = wanted[bad].astype(np.float64)
        difference = np.abs(values[bad].astype(np.float64) - wanted_bad)
        place = int(difference.argmax())
        if errors.max_abs == 0.0 or difference[place] > errors.max_abs:
            errors.max_abs, errors.worst = float(difference[place]), start + int(bad[place])
        size = np.abs(wanted_bad)
        if (size > 0).any():
            errors.max_rel = max(errors.max_rel, float((difference[size > 0] / size[size > 0]).max()))
    return errors


def _blocks(array: np.ndarray, right: np.ndarray, parts: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Start in the flat array, values and right values of each block as float64; complex ones as their ``parts``."""
    flat, wanted_flat = _flat(array), _flat(right)
    kind = np.complex128 if parts == 2 else np.float64
    for start in range(0, array.size, _BLOCK):
        values = np.asarray(flat[start : start + _BLOCK]).astype(kind, copy=False)
        wanted = np.asarray(wanted_flat[start : start + _BLOCK]).astype(kind, copy=False)
        yield start * parts, values.view(np.float64), wanted.view(np.float64)


def _root_mean_square(right: np.ndarray, dtype: str) -> float:
    """Of the finite values that the dtype can hold, 0 where there is none."""
    precision = TOLERANCES[_COMPONENT.get(dtype, dtype)]
    norm, count = 0.0, right.size
    flat = _flat(right)
    for start in range(0, right.size, _BLOCK):
        block = np.asarray(flat[start : start + _BLOCK])
        if block.dtype.kind == "c":
            block = np.abs(block)
        block = block.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            square = float(np.dot(block, block))
        if not math.isfinite(square):
            kept = block[np.abs(block) <= precision.greatest]
            count -= block.size - kept.size
            greatest = float(np.abs(kept).max(initial=0.0)) or 1.0
            kept = kept / greatest
            norm = math.hypot(norm, greatest * math.sqrt(float(np.dot(kept, kept))))
        else:
            norm = math.hypot(norm, math.sqrt(square))
    return norm / math.sqrt(count) if count else 0.0


def _flat(array: np.ndarray) -> Any:
    """Something that gives the elements of any slice in C order, without copying the whole array."""
    return array.reshape(-1) if array.flags.c_contiguous else array.flat


def _as_array(leaf: Any) -> np.ndarray | None:
    """A leaf as an array, a view of its memory where that can be had; None for what is not numbers."""
    array = host_array(leaf)
    if array is None and (hasattr(leaf, "__array__") or isinstance(leaf, bool | int | float | complex)):
        return np.asarray(leaf)
    return array


def _count_true(wrong: np.ndarray, parts: int) -> int:
    """How many values are wrong; a complex one is when either of its parts is."""
    return int((wrong if parts == 1 else wrong.reshape(-1, parts).any(axis=1)).sum())


# --- words ------------------------------------------------------------------------------------------------------------


def _named(path: str) -> str:
    return f"leaf {path}" if path else "the output"


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _tuple(numbers: Sequence[int]) -> str:
    return str(tuple(int(number) for number in numbers))


def _value(value: Any, is_whole: bool = False) -> str:
    """Nine digits tell all float32 values apart. ``is_whole``: integers are meant, whatever the dtype."""
    value = np.asarray(value)
    if value.dtype.kind in "iub":
        return str(value)
    if value.dtype.kind == "c":
        return f"{complex(value):.9g}"
    text = f"{float(value):.9g}"
    return text if is_whole or any(sign in text for sign in ".en") else text + ".0"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
