"""Fits of a + b·n, and exponents: exact without noise, and right about how often their intervals are right. A fit is
unmoved by an outlier."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from measure.judge import analysis
from measure.model.run import Axis, Fit, Point, RequestRecord, Run
from measure.model.run_file import decode, encode
from measure.statistics.growth import Growth
from measure.sweep import findings
from measure.sweep.evidence import evidence
from measure.sweep.scaling import fits, growths, is_fast, power
from tests import costs

GRID = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
QUIET = costs.QUIET
SLUG = "map_fn.graph"
FIXED, EACH = 4e-4, 2e-6


def measured(latency_s: list[float], model: costs.Model = QUIET, seed: int = 0) -> list[Point]:
    rng = np.random.default_rng(seed)
    return [costs.point(value, {SLUG: each}, rng, model) for value, each in zip(GRID, latency_s, strict=True)]


def straight() -> list[float]:
    return [FIXED + EACH * value for value in GRID]


def fit(points: list[Point]) -> Fit:
    [fitted] = fits(evidence(points, [costs.axis(GRID)]), 0.95)
    return fitted


def test_a_straight_line_is_found_exactly() -> None:
    fitted = fit(measured(straight()))
    assert (fitted.strategy, fitted.axis, fitted.note) == (SLUG, "batch", "")
    assert fitted.fixed_s == pytest.approx(FIXED, rel=1e-4)
    assert fitted.per_element_s == pytest.approx(EACH, rel=1e-4)


def test_one_point_that_is_far_off_does_not_move_the_line_and_is_named() -> None:
    latency_s = straight()
    latency_s[5] *= 3
    fitted = fit(measured(latency_s))
    assert fitted.fixed_s == pytest.approx(FIXED, rel=0.06)
    assert fitted.per_element_s == pytest.approx(EACH, rel=0.06)
    assert fitted.note == "poor fit: a call at batch 1,024 takes 2.99 × what a + b·n says"


def test_costs_that_are_no_line_have_a_note_and_wide_intervals() -> None:
    fitted = fit(measured([1e-6 * value**1.5 + 1e-4 for value in GRID]))
    assert fitted.note.startswith("poor fit: a call at batch")
    assert fitted.per_element_high_s > 1.2 * fitted.per_element_low_s


def test_intervals_contain_the_true_costs_as_often_as_they_say() -> None:
    fixed_held = each_held = 0
    for seed in range(60):
        fitted = fit(measured(straight(), costs.MODELS[seed % len(costs.MODELS)], seed))
        fixed_held += fitted.fixed_low_s <= FIXED <= fitted.fixed_high_s
        each_held += fitted.per_element_low_s <= EACH <= fitted.per_element_high_s
        assert fitted.per_element_high_s < 1.3 * fitted.per_element_low_s
    # Of 95 %, fewer are seen in one of two hundred cases.
    assert fixed_held >= 52
    assert each_held >= 52


def test_far_from_a_crossing_with_one_process_a_point_borrows_the_spread_of_the_whole_sweep() -> None:
    """Of one process by itself it is not known whether it is an odd one."""
    rng = np.random.default_rng(0)
    steady = costs.Model(process=0.005, sample=0.005, disturbed_share=0.0)
    points = [
        costs.point(value, {SLUG: seconds}, rng, steady, processes=3 if value in (64, 256, 1024) else 1)
        for value, seconds in zip(GRID, straight(), strict=True)
    ]
    fitted = fit(points)
    assert fitted.per_element_high_s < 1.07 * fitted.per_element_low_s
    request = RequestRecord(
        workload="w", size={"batch": 1}, dtype="float32", device="CPU:0", strategies=[SLUG], budget_s=1.0
    )
    run = Run(id="0" * 24, kind="sweep", created="", request=request, axes=[costs.axis(GRID)], points=points)
    run = findings.analyse(run)
    bands = [item.latency.high_s / item.latency.low_s for point in run.points for item in point.measurements]
    assert max(bands) < 1.2, "the band of one process is that of the sweep too"
    alone = analysis.analyse(findings.comparison(run, points[0])).measurements[0].latency
    assert alone is not None and alone.high_s / alone.low_s > 1.5
    stored = decode(encode(run))
    blank = [
        replace(point, measurements=[replace(item, latency=None) for item in point.measurements])
        for point in stored.points
    ]
    assert findings.analyse(replace(stored, points=blank, fits=[])) == run, "the samples alone are enough"


def test_a_cost_that_does_not_show_has_an_interval_from_zero() -> None:
    fitted = fit(measured([EACH * value for value in GRID], costs.Model(disturbed_share=0.0)))
    assert fitted.fixed_low_s == 0.0
    assert fitted.fixed_s < 0.2 * EACH


def test_two_points_are_no_fit_and_neither_are_options_nor_what_failed() -> None:
    points = measured(straight())
    assert fits(evidence(points[:2], [costs.axis(GRID)]), 0.95) == []
    option = Axis(kind="option", name="batch", values=list(GRID), scale="log")
    assert fits(evidence(points, [option]), 0.95) == []
    wrong = [
        replace(each, measurements=[replace(item, outcome="wrong") for item in each.measurements]) for each in points
    ]
    assert fits(evidence(wrong, [costs.axis(GRID)]), 0.95) == []


def grown(latency_s: list[float], model: costs.Model = QUIET, seed: int = 0) -> Growth:
    return growths(evidence(measured(latency_s, model, seed), [costs.axis(GRID)]), 0.95)[SLUG]


def test_the_exponent_is_that_of_the_upper_half() -> None:
    assert grown([EACH * value for value in GRID]).exponent == pytest.approx(1.0)
    assert grown([EACH * value**2 for value in GRID]).exponent == pytest.approx(2.0)
    assert grown(straight()).exponent == pytest.approx(
        math.log((FIXED + EACH * 65536) / (FIXED + EACH * 256)) / math.log(65536 / 256)
    )


def test_only_what_is_clearly_faster_than_in_proportion_is_fast() -> None:
    assert is_fast(grown([EACH * value**2 for value in GRID]))
    assert not is_fast(grown([EACH * value for value in GRID]))
    assert not is_fast(grown([EACH * value**1.15 for value in GRID]))
    assert is_fast(Growth(1.3, 0.05, 2, 8)) and not is_fast(Growth(1.3, 0.15, 2, 8))


def test_intervals_of_exponents_contain_the_true_one_as_often_as_they_say() -> None:
    held = 0
    for seed in range(60):
        found = grown([EACH * value**1.5 for value in GRID], costs.MODELS[seed % len(costs.MODELS)], seed)
        held += found.low <= 1.5 <= found.high
        assert found.half < 0.1
    # Of 95 %, fewer are seen in one of two hundred cases.
    assert held >= 52


def test_two_points_have_no_exponent_and_neither_have_options_maps_and_what_failed() -> None:
    points = measured(straight())
    axis = costs.axis(GRID)
    assert growths(evidence(points[:3], [axis]), 0.95)
    assert growths(evidence(points[:2], [axis]), 0.95) == {}
    chosen = [
        replace(
            each, measurements=[replace(item, options={"batch": str(each.at["batch"])}) for item in each.measurements]
        )
        for each in points
    ]
    assert growths(evidence(chosen, [replace(axis, kind="option")]), 0.95) == {}
    two = [replace(point, at={**point.at, "side": 2}) for point in points]
    assert growths(evidence(two, [axis, costs.axis([2], "side")]), 0.95) == {}
    failed = [
        replace(each, measurements=[replace(item, outcome="wrong") for item in each.measurements]) for each in points
    ]
    assert growths(evidence([*points[:2], *failed[2:]], [axis]), 0.95) == {}


def test_an_exponent_is_written_with_two_digits_and_never_as_certain() -> None:
    assert power("batch", Growth(1.9449, 0.123, 2, 8)) == "batch^1.94 ± 0.12"
    assert power("side", Growth(1.0, 0.0, 2, 8)) == "side^1.00 ± 0.01"
