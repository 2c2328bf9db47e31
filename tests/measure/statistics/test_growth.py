"""The exponent of a time in a size: exact of powers, and as uncertain as what it is made of."""

import math

import pytest

from measure.statistics.growth import Growth, growth
from measure.statistics.intervals import Level, difference


def levels(variance: float = 0.0, **seconds: float) -> dict[int, Level]:
    return {int(size.removeprefix("n")): Level(math.log(value), variance, 8.0, 3) for size, value in seconds.items()}


def found(along: dict[int, Level], confidence: float = 0.95) -> Growth:
    of = growth(along, confidence)
    assert of is not None
    return of


def test_of_three_sizes_the_least_may_be_none() -> None:
    of = found(levels(n0=5.0, n10=10.0, n1000=1000.0))
    assert of.exponent == pytest.approx(1.0)
    assert (of.smallest, of.largest) == (10, 1000)
    assert growth(levels(n10=10.0, n1000=1000.0), 0.95) is None


def test_its_interval_is_that_of_the_ratio_of_both_ends() -> None:
    along = levels(0.01, n1=1.0, n10=10.0, n100=100.0)
    of = found(along)
    low, high = (math.log(end) / math.log(10) for end in difference(along[100], along[10]).interval(0.95))
    assert (of.low, of.high) == (pytest.approx(low), pytest.approx(high))
    assert of.high - of.low > 0.2
    assert found(along, 0.5).half < of.half
    assert found(levels(n1=1.0, n10=10.0, n100=100.0)).half == 0.0
