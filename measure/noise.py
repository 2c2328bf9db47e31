"""What the scatter of one strategy's samples says of it: pure functions of logarithms, one array per process."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from measure.statistics import _median_variance, _robust_deviation


def halves(logs: Sequence[np.ndarray]) -> tuple[float, float]:
    """How a strategy changed from the first half of its samples to the second (a difference of logarithms), and the
    two-sided p value of «it did not». ``logs``: one array per process.

    The mean over processes of the difference of medians, against its standard error from the samples' scatter.
    """
    differences, variances = [], []
    for each in logs:
        first, second = each[: len(each) // 2], each[len(each) // 2 :]
        differences.append(float(np.median(second) - np.median(first)))
        variances.append(_median_variance([first]) + _median_variance([second]))
    change, error = float(np.mean(differences)), math.sqrt(float(np.sum(variances))) / len(differences)
    if error == 0.0:
        return change, float(change == 0.0)
    return change, 2 * float(special.stdtr(min(map(len, logs)) - 2, -abs(change) / error))


def two_paces(logs: np.ndarray, separation: float) -> float:
    """The distance (of logarithms) between two groups that the samples fall into, 0 where they form one.

    The split at the widest gap that leaves a quarter of the samples on either side counts where the groups' medians
    are ``separation`` times as far apart as the groups scatter (Ashman's D, Ashman, Bird and Zepf 1994, with robust
    scale).
    """
    ordered = np.sort(logs)
    least = max(2, len(ordered) // 4)
    gaps = np.diff(ordered)[least - 1 : len(ordered) - least]
    if not len(gaps):
        return 0.0
    cut = int(np.argmax(gaps)) + least
    low, high = ordered[:cut], ordered[cut:]
    distance = float(np.median(high) - np.median(low))
    scatter = math.sqrt((_robust_deviation(low) ** 2 + _robust_deviation(high) ** 2) / 2)
    return distance if distance > separation * scatter else 0.0
