"""Correctness: structure, shapes, dtypes and values of an output against a reference in NumPy's float64.

Only ragged tensors need TensorFlow here. Values are compared in blocks, so that the reference may be a
memory map.
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
_FACTORS = {"float64": 8.0, "float32": 8.0, "float16": 4.0, "bfloat16": 4.0}
# Whatever the depth: what is off by more than a quarter is no answer.
_MOST_RELATIVE = 0.25
# Of complex types, the type of their parts.
_COMPONENT = {"complex64": "float32", "complex128": "float64"}

# Elements compared at a time: what a block needs stays in a core's own cache, and is too small for the C library to map
# it anew each time, which took ten times as long in blocks of 64 Ki.
BLOCK = 8 * 1024
# Of a value that is wrong, a text for instance, as many signs are shown.
_LONGEST_VALUE = 60


def check(
    outputs: Any,
    right: Mapping[str, np.ndarray],
    *,
    expected: Any = None,
    depth: int = 1,
    shapes_only: bool = False,
    compared: np.ndarray | None = None,
) -> tuple[Correctness, str | None]:
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
            ", ".join(_named(path) if path else "a single tensor" for path in one if path not in other) or "nothing"
            for one, other in ((got, right), (right, got))
        )
        return Correctness(ok=False), f"the output has {extra} where {missing} is right"
    leaves, faults = [], []
    for path, leaf in got.items():
        judged, fault = _check_leaf(path, leaf, right[path], specs.get(path), depth, shapes_only, compared)
        leaves.append(judged)
        faults += [fault] if fault else []
    errors = {
        name: max((error for leaf in leaves if (error := getattr(leaf, name)) is not None), default=None)
        for name in ("max_abs", "max_rel", "max_ulp")
    }
    nan_mismatches = sum(leaf.nan_mismatches for leaf in leaves)
    more = f"; of {len(faults)} leaves that are wrong, this is the first" if faults[1:] else ""
    return (
        Correctness(ok=not faults, nan_mismatches=nan_mismatches, leaves=leaves, **errors),
        faults[0] + more if faults else None,
    )


def leaves_of(nest: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of tuples, named ones too, lists and dicts with their paths, such as ``[0].kernel``; keys are sorted.

    A ragged tensor, or its `Leaf`, is the row lengths of each axis after the first and all values in a row. Which axes
    TensorFlow keeps as ragged does not matter: of an axis that happens to be uniform all row lengths are equal.
    """
    parts: Iterator[tuple[str, Any]]
    if isinstance(nest, Mapping):
        parts = ((f".{key}", nest[key]) for key in sorted(nest))
    elif isinstance(nest, tuple | list):
        parts = ((f"[{place}]", part) for place, part in enumerate(nest))
    elif isinstance(nest, Leaf) and nest.is_ragged:
        lengths = replace(nest, dtype="int64")
        yield from ((f"{path}.row_lengths[{axis}]", lengths) for axis in range(len(nest.shape) - 1))
        yield f"{path}.values", nest
        return
    elif isinstance(nest, np.ndarray) and any(isinstance(row, np.ndarray) for row in nest.flat[:1]):
        import tensorflow as tf

        parts = iter([("", tf.ragged.stack(list(nest)))])  # NumPy's form of a ragged tensor
    elif hasattr(nest, "nested_row_lengths"):
        values = nest.flat_values.numpy()
        axes = [*nest.nested_row_lengths()]
        axes += [np.full(math.prod(values.shape[:axis]), side) for axis, side in enumerate(values.shape[1:], 1)]
        lengths_of = ((f".row_lengths[{axis}]", np.asarray(one, np.int64)) for axis, one in enumerate(axes))
        parts = iter([*lengths_of, (".values", values.reshape(-1))])
    else:
        yield path, nest
        return
    for step, part in parts:
        yield from leaves_of(part, path + step)


def _check_leaf(
    path: str,
    leaf: Any,
    right: np.ndarray,
    spec: Leaf | None,
    depth: int,
    shapes_only: bool,
    compared: np.ndarray | None,
) -> tuple[LeafCheck, str | None]:
    name, array = _named(path), _array(leaf)
    if array is None:
        kind = type(leaf).__name__
        return LeafCheck(path=path, dtype=kind, shape=[], mismatch_share=1.0), f"{name} is a {kind}, not a tensor"
    dtype = "string" if array.dtype == object else str(array.dtype)
    result = LeafCheck(path=path, dtype=dtype, shape=list(array.shape))
    wrong = structs.replace(result, mismatch_share=1.0)
    other_dtype = f"{name} has dtype {dtype} where {spec.dtype} is right" if spec and dtype != spec.dtype else None

    shape = right.shape if compared is None or spec is None else (spec.shape[0], *right.shape[1:])
    if array.shape != shape and not (shapes_only and spec is not None and spec.is_ragged):
        return wrong, f"{name} has shape {array.shape} where {shape} is right"
    if shapes_only:
        return result, other_dtype
    is_text = right.dtype.kind in "OSU"
    is_number = array.dtype.kind in "iubO" or _component(dtype) in _FACTORS
    if is_text != (dtype == "string") or not is_number or (right.dtype.kind == "c" and dtype not in _COMPONENT):
        there = "text" if is_text else right.dtype
        return wrong, f"{name} has dtype {dtype}, which can not be compared with {there}"

    if compared is not None:
        array = array[compared]
    is_exact = array.dtype.kind in "iubO"
    if is_text:
        right = _text(right)
    if is_exact:
        tolerance = {"relative": 0.0, "absolute": 0.0}
    else:
        tolerance = tolerance_for(dtype, depth, _root_mean_square(right, dtype))
    mismatches, place, errors = _errors(array, right, dtype, tolerance)
    in_batch = [int(compared[place[0]]), *place[1:]] if compared is not None and place else place
    share = mismatches / max(1, array.size)
    result = structs.replace(result, mismatch_share=share, worst_index=in_batch, tolerance=tolerance, **errors)
    if other_dtype or not mismatches:
        return result, other_dtype
    here, there = (str(one[tuple(place)])[:_LONGEST_VALUE] for one in (array, right))
    at = f"the worst at {tuple(in_batch)}: {here} where {there} is right"
    return result, f"{name} is off in {mismatches} of {array.size} values, {at}"


def _array(leaf: Any) -> np.ndarray | None:
    """A leaf as an array, a view of its memory where that can be had, and text as ``bytes`` objects; None for what is
    no tensor, or a sparse one: scripts make these dense."""
    array = host_array(leaf)
    if array is None and (hasattr(leaf, "__array__") or isinstance(leaf, bool | int | float | complex)):
        array = np.asarray(leaf)
    return _text(array) if array is not None and array.dtype.kind in "SU" else array


def _text(array: np.ndarray) -> np.ndarray:
    """Text, as NumPy or TensorFlow has it, as ``bytes`` objects."""
    texts = np.empty(array.size, object)
    texts[:] = [one.encode() if isinstance(one, str) else bytes(one) for one in array.ravel()]
    return texts.reshape(array.shape)


def _named(path: str) -> str:
    return f"leaf {path}" if path else "the output"


# --- values ----------------------------------------------------------------------------------------------------------


def tolerance_for(dtype: str, depth: int, scale: float) -> dict[str, Any]:
    """The greatest error that counts as rounding: ``absolute`` + ``relative`` × |right value|.

    ``depth``: the longest chain of roundings between an input and the output. ``scale``: the root mean square of the
    leaf's right values; cancellation leaves errors of that order in values that are near zero. At least the least
    normal number is allowed, since kernels may flush smaller ones to zero.
    """
    epsilon, tiny, _ = precision(dtype)
    relative = min(_MOST_RELATIVE, _FACTORS[_component(dtype)] * epsilon * math.sqrt(max(1, depth)))
    return {"relative": relative, "absolute": max(relative * scale, tiny)}


def precision(dtype: str) -> tuple[float, float, float]:
    """Of a floating-point type, or of a complex type's parts: the distance from 1 to the next value, the least normal
    value, and the greatest one."""
    if dtype == "bfloat16":  # which NumPy does not know
        return 2.0**-7, 2.0**-126, (2 - 2.0**-7) * 2.0**127
    info = np.finfo(_component(dtype))
    return float(info.eps), float(info.smallest_normal), float(info.max)


def _component(dtype: str) -> str:
    return _COMPONENT.get(dtype, dtype)


def _errors(
    array: np.ndarray, right: np.ndarray, dtype: str, tolerance: Mapping[str, Any]
) -> tuple[int, list[int], dict[str, Any]]:
    """The number of values that are off, the place of the worst one, if any differs, and the largest errors, as fields
    of `LeafCheck`. Text, integers and booleans are equal or not."""
    if array.dtype == object:
        places = np.argwhere(array != right)
        return len(places), places[0].tolist() if len(places) else [], {}
    is_exact = array.dtype.kind in "iub"
    epsilon, tiny, greatest = (1.0, 1.0, math.inf) if is_exact else precision(dtype)
    # Where no error is allowed any is infinitely many times too large: this keeps zero over zero out of it.
    relative, absolute = float(tolerance["relative"]), max(float(tolerance["absolute"]), float(np.finfo(float).tiny))
    wide = np.complex128 if dtype in _COMPONENT else np.float64
    mismatches = nan_mismatches = worst = 0
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
    largest = {"max_abs": max_abs, "max_rel": max_rel, "max_ulp": None if is_exact else max_ulp}
    worst_place = [int(index) for index in np.unravel_index(worst, array.shape)] if worst_excess else []
    return mismatches, worst_place, largest | {"nan_mismatches": nan_mismatches}


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
    """The elements in C order, without copying the whole array."""
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    return (np.asarray(flat[start : start + BLOCK]) for start in range(0, array.size, BLOCK))


# --- the reference on disk: a process computes it once, and those that check a strategy read it ----------------------

_NAMES, _COMPARED = "reference.json", "compared"


def save_reference(folder: Path, results: Any, compared: np.ndarray | None) -> None:
    """Write the leaves of a nest, each into a file of its own, and the numbers of the elements that these are of."""
    arrays = dict(leaves_of(results)) | ({} if compared is None else {_COMPARED: compared})
    names = {path: f"reference_{number}.npy" for number, path in enumerate(arrays)}
    for path, name in names.items():
        np.save(folder / name, np.asarray(arrays[path]))
    (folder / _NAMES).write_text(json.dumps(names), encoding="utf-8")


def read_reference(folder: Path) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
    """The leaves by path: memory maps, but for text, which NumPy keeps as Python objects; and the elements' numbers,
    None for all."""

    def read(path: Path) -> np.ndarray:
        try:
            return np.load(path, mmap_mode="r")
        except ValueError:
            return np.load(path, allow_pickle=True)

    names = json.loads((folder / _NAMES).read_text(encoding="utf-8"))
    arrays = {path: read(folder / name) for path, name in names.items()}
    return arrays, arrays.pop(_COMPARED, None)
