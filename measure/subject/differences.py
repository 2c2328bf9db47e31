"""Differences between an array and the right values: the largest errors, what is off, and where.

Values are compared in blocks, so that the right ones may be a memory map and little more memory is needed.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from measure.subject.tolerances import COMPONENT, Precision, precision_of

# Elements compared at a time: what a block needs stays in a core's own cache.
BLOCK = 64 * 1024


@dataclass
class Errors:
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


def compare(array: np.ndarray, right: np.ndarray, dtype: str, tolerance: Mapping[str, Any]) -> Errors:
    """Compare floating-point values; the parts of complex ones on their own."""
    precision = precision_of(dtype)
    # Where no error is allowed any is infinitely many times too large: this keeps zero over zero out of it.
    relative, absolute = float(tolerance["relative"]), max(float(tolerance["absolute"]), float(np.finfo(float).tiny))
    parts = 2 if dtype in COMPONENT else 1
    errors = Errors()
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
    errors: Errors,
) -> np.ndarray:
    """Judge the values that are not finite, on either side, and take them out of ``difference`` and ``size``.

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


def compare_text(array: np.ndarray, right: np.ndarray) -> Errors:
    """Compare text, arrays of ``bytes`` objects: each is equal or not, and how far off it is has no meaning."""
    places = np.flatnonzero(array.ravel() != right.ravel())
    if not places.size:
        return Errors()
    return Errors(math.nan, math.nan, mismatches=places.size, worst=int(places[0]), differs=True)


def compare_exactly(array: np.ndarray, right: np.ndarray) -> Errors:
    """Compare integers and booleans: they are equal or not."""
    values, wanted = array.reshape(-1), right.reshape(-1)
    places = np.flatnonzero(values != wanted)
    if not places.size:
        return Errors()
    size = np.abs(wanted[places].astype(np.float64))
    difference = np.abs(values[places].astype(np.float64) - wanted[places].astype(np.float64))
    return Errors(
        max_abs=float(difference.max()),
        max_rel=float((difference[size > 0] / size[size > 0]).max(initial=0.0)),
        mismatches=places.size,
        worst=int(places[difference.argmax()]),
        differs=True,
    )


def _blocks(array: np.ndarray, right: np.ndarray, parts: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Start in the flat array, values and right values of each block as float64; complex ones as their ``parts``."""
    flat, wanted_flat = _flat(array), _flat(right)
    kind = np.complex128 if parts == 2 else np.float64
    for start in range(0, array.size, BLOCK):
        values = np.asarray(flat[start : start + BLOCK]).astype(kind, copy=False)
        wanted = np.asarray(wanted_flat[start : start + BLOCK]).astype(kind, copy=False)
        yield start * parts, values.view(np.float64), wanted.view(np.float64)


def root_mean_square(right: np.ndarray, dtype: str) -> float:
    """The root mean square of the finite values that the dtype can hold, 0 where there is none."""
    precision = precision_of(dtype)
    norm, count = 0.0, right.size
    flat = _flat(right)
    for start in range(0, right.size, BLOCK):
        block = np.asarray(flat[start : start + BLOCK])
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


def _count_true(wrong: np.ndarray, parts: int) -> int:
    """The number of values that are wrong; a complex one is when either of its parts is."""
    return int((wrong if parts == 1 else wrong.reshape(-1, parts).any(axis=1)).sum())
