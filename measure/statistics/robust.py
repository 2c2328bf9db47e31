"""The median, which a few disturbed processes do not move."""

import numpy as np


def median(values: np.ndarray) -> float:
    """Like `np.median`, which takes ten times as long for few values. ``values``: floats [n], n ≥ 1."""
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
