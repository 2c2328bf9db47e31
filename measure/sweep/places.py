"""The place of a point of a sweep, its values on the axes, in words."""

from collections.abc import Mapping


def written(at: Mapping[str, object]) -> str:
    """Return a place as it would be asked for: «batch=1000, side=3»."""
    return ", ".join(f"{name}={value}" for name, value in at.items())


def readable(at: Mapping[str, int]) -> str:
    """Return a place as it is read: «batch 1,000, side 3»."""
    return ", ".join(f"{name} {value:,}" for name, value in at.items())
