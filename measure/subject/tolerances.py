"""The tolerances: how far a value may be from the right one and still count as rounded."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


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

# Of complex types, the type of their parts.
COMPONENT = {"complex64": "float32", "complex128": "float64"}


def tolerance_for(dtype: str, depth: int, scale: float) -> dict[str, Any]:
    """The greatest error that counts as rounding: ``absolute`` + ``relative`` × |right value|.

    ``depth``: the longest chain of roundings between an input and the output. ``scale``: the root mean square of the
    leaf's right values; cancellation leaves errors of that order in values that are near zero. At least the least
    normal number is allowed, since kernels may flush smaller ones to zero. Integers and booleans must be exact.
    """
    precision = TOLERANCES.get(COMPONENT.get(dtype, dtype))
    if precision is None:
        return {"relative": 0.0, "absolute": 0.0}
    relative = min(MOST_RELATIVE, precision.factor * precision.epsilon * math.sqrt(max(1, depth)))
    return {"relative": relative, "absolute": max(relative * scale, precision.tiny)}


def precision_of(dtype: str) -> Precision:
    """The precision of a floating-point type, or of a complex type's parts. Raises KeyError for others."""
    return TOLERANCES[COMPONENT.get(dtype, dtype)]
