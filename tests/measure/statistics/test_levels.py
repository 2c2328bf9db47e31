"""Levels, the spread that they borrow, and the resolution of a run."""

import math

import numpy as np
import pytest
from scipy import stats

from measure.statistics import intervals, levels
from measure.statistics.intervals import ASSUMED_SPREAD
from measure.statistics.levels import levels_of
from tests.samples import FACTORS, constant, measurement


def test_a_single_process_borrows_the_spread_that_others_show() -> None:
    many = measurement("many", constant(1e-3, FACTORS))
    levels = levels_of([many, measurement("one", [[2e-3] * 5])])
    assert levels.spread.deviation == pytest.approx(np.log(FACTORS).std(ddof=1), rel=1e-12)
    assert levels.spread.degrees == 4
    assert levels.by_slug["one"].variance == pytest.approx(levels.spread.deviation**2, rel=1e-9)


def test_without_any_repeated_process_the_assumed_spread_is_used() -> None:
    found = levels_of([measurement("one", [[2e-3] * 5])])
    assert found.spread.deviation == ASSUMED_SPREAD
    low, high = found.by_slug["one"].interval(0.95)
    assert math.log(high / low) == pytest.approx(2 * stats.t.ppf(0.975, 4) * ASSUMED_SPREAD, rel=1e-9)


def test_two_processes_that_differ_do_not_make_everybodys_spread_alone() -> None:
    found = levels_of([measurement("two", constant(1e-3, [1.0, 4.0])), measurement("one", [[2e-3] * 5])])
    alone = math.log(4.0) ** 2 / 2  # the sum of squares, with one degree of freedom
    assumed = 4 * ASSUMED_SPREAD**2
    assert found.spread.degrees == 5
    assert found.spread.deviation == pytest.approx(math.sqrt((alone + assumed) / 5), rel=1e-9)


def test_resolution_is_the_farther_end_of_the_twins_interval() -> None:
    items = [measurement("a", constant(1e-3, FACTORS)), measurement("a#twin", constant(1.05e-3, FACTORS), twin_of="a")]
    found = levels_of(items)
    control = levels.control(items, found, 0.95)
    assert control is not None
    twins = intervals.ratio(found.by_slug["a#twin"], found.by_slug["a"], 0.95)
    assert (control.ratio, control.low, control.high) == (twins.ratio, twins.low, twins.high)
    assert control.ratio == pytest.approx(1.05, rel=1e-9)
    assert control.resolution == pytest.approx(twins.high - 1, rel=1e-9)


def test_twins_that_agree_by_chance_do_not_promise_more_than_the_spread_allows() -> None:
    items = [
        measurement("a", constant(1e-3, [1.0, 1.0 + 1e-9, 1.0 - 1e-9])),
        measurement("a#twin", constant(1e-3, [1.0, 1.0 + 1e-9, 1.0 - 1e-9]), twin_of="a"),
        measurement("b", constant(2e-3, [0.9, 1.0, 1.1, 0.95, 1.05])),
    ]
    found = levels_of(items)
    control = levels.control(items, found, 0.95)
    assert control is not None
    chance = stats.t.ppf(0.975, found.spread.degrees) * found.spread.deviation * math.sqrt(2 / 3)
    assert control.resolution == pytest.approx(math.expm1(chance), rel=1e-9)


def test_without_a_twin_the_resolution_is_what_the_spread_lets_the_two_fastest_differ_by() -> None:
    items = [measurement("a", constant(1e-3, FACTORS)), measurement("b", constant(2e-3, FACTORS[:2]))]
    found = levels_of([*items, measurement("slow", constant(3e-3, [1.0]))])
    spread = found.spread
    chance = stats.t.ppf(0.975, spread.degrees) * spread.deviation * math.sqrt(2 / 2)
    assert levels.resolution(None, found, 0.95) == pytest.approx(math.expm1(chance), rel=1e-9)
    assert levels.resolution(None, levels_of([]), 0.95) == 0.0
