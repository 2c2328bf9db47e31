"""Correctness: structure, shapes, dtypes and values of an output against a reference in NumPy's float64.

Only ragged tensors need TensorFlow here. Values are compared in blocks, so that the reference may be a memory map.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from measure.run.run import Correctness, LeafCheck
from measure.subject.memory import host_array
from workloads.spec import Leaf

# A result that went through n roundings is off by at most about n·u, where u = epsilon / 2 (Higham, "Accuracy and
# Stability of Numerical Algorithms", 2002, lemma 3.1), and by less than λ·√n·u with overwhelming probability (Higham
# and Mary, "A new approach to probabilistic rounding error analysis", 2019, theorem 2.4: λ = 8 fails once in 4e13
# steps). λ = 8 is a factor of 4 epsilon. It is doubled where exp, tanh and the like are themselves only good to several
# units in the last place; narrow types compute those in float32 and round once.
# Relative tolerance = factor · epsilon · √depth.
_FACTOR, _FACTOR_OF_NARROW, _NARROW = 8.0, 4.0, ("float16", "bfloat16")
# Whatever the depth: what is off by more than a quarter is no answer.
_MOST_RELATIVE = 0.25

# Elements compared at a time: what a block needs stays in a core's own cache, and is too small for the C library to map
# it anew each time, which took ten times as long in blocks of 64 Ki.
BLOCK = 8 * 1024
# Of a value that is wrong, a text for instance, as many signs are shown.
_LONGEST_VALUE = 60


def check(
    outputs: Any, right: Mapping[str, np.ndarray], *, expected: Any = None, depth: int = 1, shapes_only: bool = False,
    compared: np.ndarray | None = None,
) -> tuple[Correctness, str | None]:  # fmt: skip
    """Compare a nest of arrays or tensors with the leaves of the right one, by their paths; the sentence says what is
    wrong, if anything.

    ``expected``: nest of `Leaf` for the whole output, of which dtypes are checked; without it any dtype will do.
    Errors are measured against the right values as they are, in float64; ULPs are those of the output's dtype at the
    reference's value. A relative error is defined only where the right value is not zero. ``depth``: of the roundings,
    see `tolerance_for`. ``shapes_only``: values are not compared.
    ``compared``: the numbers of the elements that are right here, where these are not all.
    """
    got, specs = dict(leaves_of(outputs)), dict(leaves_of(() if expected is None else expected))
    if got.keys() != right.keys():
        extra, missing = (
            ", ".join(f"leaf {path}" if path else "a single tensor" for path in one if path not in other) or "nothing"
            for one, other in ((got, right), (right, got))
        )
        return Correctness(ok=False), f"the output has {extra} where {missing} is right"
    leaves, faults = [], []
    for path, leaf in got.items():
        judged, fault = _check_leaf(path, leaf, right[path], specs.get(path), depth, shapes_only, compared)
        leaves.append(judged)
        if fault:
            faults.append(f"{f'leaf {path}' if path else 'the output'} {fault}")
    errors = {
        name: max((error for leaf in leaves if (error := getattr(leaf, name)) is not None), default=None)
        for name in ("max_abs", "max_rel", "max_ulp")
    }
    nan_mismatches = sum(leaf.nan_mismatches for leaf in leaves)
    result = Correctness(ok=not faults, nan_mismatches=nan_mismatches, leaves=leaves, **errors)
    return result, faults[0] if faults else None


def leaves_of(nest: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of tuples, named ones too, lists and dicts with their paths, such as ``[0].kernel``; keys are sorted.
    A ragged tensor, or its `Leaf`, is the row lengths of each axis after the first, also of one that is uniform, and
    all values in a row."""
    parts: dict[str, Any]
    if isinstance(nest, Mapping):
        parts = {f".{key}": nest[key] for key in sorted(nest)}
    elif isinstance(nest, tuple | list):
        parts = {f"[{place}]": part for place, part in enumerate(nest)}
    elif isinstance(nest, Leaf) and nest.is_ragged:
        lengths = replace(nest, dtype="int64")
        yield from ((f"{path}.row_lengths[{axis}]", lengths) for axis in range(len(nest.shape) - 1))
        yield f"{path}.values", nest
        return
    elif isinstance(nest, np.ndarray) and any(isinstance(row, np.ndarray) for row in nest.flat[:1]):
        import tensorflow as tf

        parts = {"": tf.ragged.stack(list(nest))}  # NumPy's form of a ragged tensor
    elif hasattr(nest, "nested_row_lengths"):
        values = nest.flat_values.numpy()
        axes = [*nest.nested_row_lengths()]
        axes += [np.full(math.prod(values.shape[:axis]), side) for axis, side in enumerate(values.shape[1:], 1)]
        parts = {f".row_lengths[{axis}]": np.asarray(one, np.int64) for axis, one in enumerate(axes)}
        parts[".values"] = values.reshape(-1)
    else:
        yield path, nest
        return
    for step, part in parts.items():
        yield from leaves_of(part, path + step)


def _check_leaf(
    path: str, leaf: Any, right: np.ndarray, spec: Leaf | None, depth: int, shapes_only: bool,
    compared: np.ndarray | None,
) -> tuple[LeafCheck, str]:  # fmt: skip
    """The figures of a leaf, and what is wrong with it as a predicate, empty where nothing is."""
    array = _array(leaf)
    if array is None:
        kind = type(leaf).__name__
        return LeafCheck(path=path, dtype=kind, shape=[], mismatch_share=1.0), f"is a {kind}, not a tensor"
    kind, kind_of_right = _kind(array), _kind(right)
    dtype = "string" if kind == "text" else str(array.dtype)
    result = LeafCheck(path=path, dtype=dtype, shape=list(array.shape))
    shape = right.shape if compared is None or spec is None else (spec.shape[0], *right.shape[1:])
    misfit = ""
    if array.shape != shape and not (shapes_only and spec is not None and spec.is_ragged):
        misfit = f"has shape {array.shape} where {shape} is right"
    elif spec is not None and dtype != spec.dtype:
        misfit = f"has dtype {dtype} where {spec.dtype} is right"
    elif not shapes_only and kind != kind_of_right and (kind, kind_of_right) != ("complex numbers", "real numbers"):
        misfit = f"has dtype {dtype}, which can not be compared with {kind_of_right}"
    if misfit:
        return structs.replace(result, mismatch_share=1.0), misfit
    if shapes_only:
        return result, ""

    array = array if compared is None else array[compared]
    right = _text(right) if kind == "text" else right
    if array.dtype.kind in "iubO":
        tolerance = {"relative": 0.0, "absolute": 0.0}
    else:
        tolerance = tolerance_for(dtype, depth, _root_mean_square(right, dtype))
    mismatches, worst, errors = _errors(array, right, dtype, tolerance)
    place = () if worst is None else tuple(map(int, np.unravel_index(worst, array.shape)))
    in_batch = place if compared is None or not place else (int(compared[place[0]]), *place[1:])
    share = mismatches / max(1, array.size)
    result = structs.replace(result, mismatch_share=share, worst_index=[*in_batch], tolerance=tolerance, **errors)
    if not mismatches:
        return result, ""
    here, there = (str(one[place])[:_LONGEST_VALUE] for one in (array, right))
    at = f"the worst at {in_batch}: {here} where {there} is right"
    return result, f"is off in {mismatches} of {array.size} values, {at}"


def _kind(array: np.ndarray) -> str:
    return {"O": "text", "S": "text", "U": "text", "c": "complex numbers"}.get(array.dtype.kind, "real numbers")


def _array(leaf: Any) -> np.ndarray | None:
    """A leaf as an array, a view of its memory where that can be had, and text as ``bytes`` objects; None for what is
    no tensor, or a sparse one: scripts make these dense."""
    array = host_array(leaf)
    if array is None and (hasattr(leaf, "__array__") or isinstance(leaf, bool | int | float | complex)):
        array = np.asarray(leaf)
    return _text(array) if array is not None and array.dtype.kind in "SU" else array


def _text(array: np.ndarray) -> np.ndarray:
    texts = np.empty(array.size, object)
    texts[:] = [one.encode() if isinstance(one, str) else bytes(one) for one in array.ravel()]
    return texts.reshape(array.shape)


# --- values ----------------------------------------------------------------------------------------------------------


def tolerance_for(dtype: str, depth: int, scale: float) -> dict[str, Any]:
    """The greatest error that counts as rounding: ``absolute`` + ``relative`` × |right value|.

    ``depth``: the longest chain of roundings between an input and the output. ``scale``: the root mean square of the
    leaf's right values; cancellation leaves errors of that order in values that are near zero. At least the least
    normal number is allowed, since kernels may flush smaller ones to zero.
    """
    epsilon, tiny, _ = precision(dtype)
    factor = _FACTOR_OF_NARROW if dtype in _NARROW else _FACTOR
    relative = min(_MOST_RELATIVE, factor * epsilon * math.sqrt(max(1, depth)))
    return {"relative": relative, "absolute": max(relative * scale, tiny)}


def precision(dtype: str) -> tuple[float, float, float]:
    """Of a floating-point type, or of a complex type's parts: the distance from 1 to the next value, the least normal
    value, and the greatest one."""
    if dtype == "bfloat16":  # which NumPy does not know
        return 2.0**-7, 2.0**-126, (2 - 2.0**-7) * 2.0**127
    info = np.finfo(dtype)
    return float(info.eps), float(info.smallest_normal), float(info.max)


def _errors(
    array: np.ndarray, right: np.ndarray, dtype: str, tolerance: Mapping[str, Any]
) -> tuple[int, int | None, dict[str, Any]]:
    """The number of values that are off, the flat index of the worst one, if any differs, and the largest errors, as
    fields of `LeafCheck`. Text, integers and booleans are equal or not."""
    if array.dtype == object:
        places = np.flatnonzero(array != right)
        return len(places), int(places[0]) if len(places) else None, {}
    is_exact = array.dtype.kind in "iub"
    epsilon, tiny, greatest = (1.0, 1.0, math.inf) if is_exact else precision(dtype)
    # Where no error is allowed any is infinitely many times too large: this keeps zero over zero out of it.
    relative, absolute = float(tolerance["relative"]), max(float(tolerance["absolute"]), float(np.finfo(float).tiny))
    wide = np.complex128 if array.dtype.kind == "c" else np.float64
    worst: int | None = None
    mismatches = nan_mismatches = 0
    worst_excess = max_abs = max_rel = max_ulp = 0.0
    for number, (got, wanted) in enumerate(zip(_blocks(array), _blocks(right), strict=True)):
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            values, goals = got.astype(wide, copy=False), wanted.astype(wide, copy=False)
            difference, size = np.abs(values - goals), np.abs(goals)
            wrong = np.zeros(0, np.int64)
            if not math.isfinite(difference.max()):
                # What the dtype cannot hold is infinite when rounded to it.
                rounded = np.where(size > greatest * (1 + epsilon / 4), np.sign(goals) * np.inf, goals)
                is_equal = (values == rounded) | (np.isnan(values) & np.isnan(rounded))
                broken = ~np.isfinite(difference)
                wrong = np.flatnonzero(broken & ~is_equal)
                difference[broken], size[broken] = 0.0, 1.0
            if is_exact:
                excess = np.where(got != wanted, np.maximum(difference, 2.0), 0.0)
            else:
                excess = difference / (size * relative + absolute)
                excess[wrong] = np.inf
            place = int(excess.argmax())
            if excess[place] > worst_excess:
                worst_excess, worst = float(excess[place]), number * BLOCK + place
            mismatches += int(np.count_nonzero(excess > 1.0))
            nan_mismatches += wrong.size
            max_abs = max(max_abs, float(difference.max()))
            max_rel = max(max_rel, float((difference / size).max(initial=0.0, where=size > 0.0)))
            # The unit in the last place is epsilon times the power of two at or below the value: its exponent bits.
            powers = (size.view(np.int64) & 0x7FF0_0000_0000_0000).view(np.float64)
            max_ulp = max(max_ulp, float((difference / np.maximum(powers, tiny)).max()) / epsilon)
    errors = {"max_abs": max_abs, "max_rel": max_rel, "max_ulp": None if is_exact else max_ulp}
    return mismatches, worst, errors | {"nan_mismatches": nan_mismatches}


def _root_mean_square(right: np.ndarray, dtype: str) -> float:
    """The root mean square of the finite values that the dtype can hold, 0 where there is none."""
    _, _, greatest = precision(dtype)
    norm, count = 0.0, 0
    for block in _blocks(right):
        sizes = np.abs(block).astype(np.float64)
        fitting = sizes[sizes <= greatest]
        scale = float(fitting.max(initial=0.0)) or 1.0  # so that no square is too large
        norm, count = math.hypot(norm, scale * float(np.linalg.norm(fitting / scale))), count + fitting.size
    return norm / math.sqrt(count) if count else 0.0


def _blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    return (np.asarray(flat[start : start + BLOCK]) for start in range(0, array.size, BLOCK))


# --- the reference on disk: a process computes it once, and those that check a strategy read it ----------------------

_NAMES, _COMPARED = "reference.json", "compared"


def save_reference(folder: Path, results: Any, compared: np.ndarray | None) -> None:
    """Write the leaves of a nest, each into a file of its own, and the numbers of the elements that these are of."""
    arrays = dict(leaves_of(results)) | ({} if compared is None else {_COMPARED: compared})
    for number, array in enumerate(arrays.values()):
        np.save(folder / f"reference_{number}.npy", np.asarray(array))
    (folder / _NAMES).write_text(json.dumps([*arrays]), encoding="utf-8")


def read_reference(folder: Path) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
    """The leaves by path: memory maps, but for text, which NumPy keeps as Python objects; and the elements' numbers,
    None for all."""
    arrays = {}
    for number, path in enumerate(json.loads((folder / _NAMES).read_text(encoding="utf-8"))):
        file = folder / f"reference_{number}.npy"
        try:
            arrays[path] = np.load(file, mmap_mode="r")
        except ValueError:
            arrays[path] = np.load(file, allow_pickle=True)
    return arrays, arrays.pop(_COMPARED, None)
