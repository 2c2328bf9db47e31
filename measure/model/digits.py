"""Derived figures, with as many digits as every machine agrees on.

The last bits of a sum depend on the processor: linear algebra and logarithms have a version for each family of them.
What is derived from samples is kept with fewer digits, so that whoever computes it anew elsewhere finds the same.
"""

from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

# The bits that differ, grown by sums and matrices of a large run, stay under 1e-12; clocks tell five digits at most.
DIGITS = 10

_Figures = TypeVar("_Figures")


def rounded(figures: _Figures) -> _Figures:
    """Return the same with its floats to ten significant digits: a number, a struct, or a list or dict of them."""
    return _rounded(figures)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list | tuple):
        return type(value)(_rounded(item) for item in value)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, Struct):
        return replace(value, **{name: _rounded(getattr(value, name)) for name in value.__struct_fields__})
    return value
