"""Medians and deviations that a few disturbed samples do not move."""

import math

import numpy as np

# Makes a median absolute deviation the standard deviation of a normal.
NORMAL = 1.4826
# The standard error of a median is this much larger than that of a mean, for normal samples.
MEDIAN_ERROR = math.sqrt(math.pi / 2)


def median(values: np.ndarray) -> float:
    """Like `np.median`, which takes ten times as long for few values. ``values``: floats [n], n ≥ 1."""
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def deviation(values: np.ndarray) -> float:
    """A normal's standard deviation, estimated by the median absolute one. ``values``: floats [n], n ≥ 1."""
    return NORMAL * median(np.abs(values - median(values)))
