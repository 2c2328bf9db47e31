"""Growth: the exponent of a time in a size. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from measure.statistics.intervals import Level, difference, student_quantile

# Of fewer values, the upper half is a single one.
_LEAST_VALUES = 3


@dataclass(frozen=True)
class Growth:
    """An exponent, 1 in proportion and 2 with the square, half of its interval, and the two sizes it is between."""

    exponent: float
    half: float
    smallest: int
    largest: int

    @property
    def low(self) -> float:
        return self.exponent - self.half

    @property
    def high(self) -> float:
        return self.exponent + self.half


def growth(along: Mapping[int, Level], confidence: float) -> Growth | None:
    """The slope of log time over log size between both ends of the upper half of the sizes, where fixed costs are paid
    for, with its Student-t interval from what differs between processes. ``along``: size → level. None of fewer than
    three sizes.

    That time is no power of the size, as where a cache ends, is not in the interval.
    """
    if len(along) < _LEAST_VALUES:
        return None
    # The least size is not among them: it may be 0, of which there is no logarithm.
    upper = sorted(along)[len(along) // 2 :]
    smallest, largest = upper[0], upper[-1]
    apart = difference(along[largest], along[smallest])
    half = student_quantile(confidence, apart.degrees) * math.sqrt(apart.variance)
    wide = math.log(largest / smallest)
    return Growth(apart.log_mean / wide, half / wide, smallest, largest)
