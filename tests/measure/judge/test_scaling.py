"""Fits of a + b·n, and exponents: exact without noise, and right about how often their intervals are right. A fit is
unmoved by an outlier."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from measure.judge.scaling import Growth, fits, growths, power
from measure.run.run import Fit, Point
from tests import costs, synthetic

GRID = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
AXIS = costs.axis(GRID)
SLUG = "map_fn.graph"
FIXED, EACH = 4e-4, 2e-6


def measured(latency_s: list[float], model: costs.Model = costs.QUIET, seed: int = 0) -> list[Point]:
    rng = np.random.default_rng(seed)
    return [costs.point(value, {SLUG: each}, rng, model) for value, each in zip(GRID, latency_s, strict=True)]


def straight() -> list[float]:
    return [FIXED + EACH * value for value in GRID]


def fit(points: list[Point]) -> Fit:
    [fitted] = fits(replace(synthetic.sweep(), axes=[AXIS], points=points))
    return fitted


def grown(power_: float, model: costs.Model = costs.QUIET, seed: int = 0) -> Growth:
    return grown_of([EACH * value**power_ for value in GRID], model, seed)


def grown_of(latency_s: list[float], model: costs.Model = costs.QUIET, seed: int = 0) -> Growth:
    run = replace(synthetic.sweep(), axes=[AXIS], points=measured(latency_s, model, seed))
    return growths(replace(run, fits=fits(run)))[SLUG]


def test_a_straight_line_is_found_exactly_and_one_point_that_is_far_off_does_not_move_it() -> None:
    fitted = fit(measured(straight()))
    assert (fitted.strategy, fitted.axis, fitted.note) == (SLUG, "batch", "")
    assert (fitted.fixed_s, fitted.per_element_s) == pytest.approx((FIXED, EACH), rel=1e-4)
    latency_s = straight()
    latency_s[5] *= 3
    fitted = fit(measured(latency_s))
    assert (fitted.fixed_s, fitted.per_element_s) == pytest.approx((FIXED, EACH), rel=0.06)
    assert fitted.note.startswith("poor fit: a call at batch 1,024 takes 2.99 ×")


def test_intervals_contain_the_truth_as_often_as_they_say() -> None:
    held = [0, 0, 0]
    for seed in range(60):
        model = costs.MODELS[seed % len(costs.MODELS)]
        fitted, growth = fit(measured(straight(), model, seed)), grown(1.5, model, seed)
        held[0] += fitted.fixed_low_s <= FIXED <= fitted.fixed_high_s
        held[1] += fitted.per_element_low_s <= EACH <= fitted.per_element_high_s
        held[2] += growth.low <= 1.5 <= growth.high
        assert fitted.per_element_high_s < 1.3 * fitted.per_element_low_s and growth.half < 0.1
    # Of 95 %, fewer are seen in one of two hundred cases.
    assert min(held) >= 52


def test_the_exponent_is_that_of_the_upper_half_and_never_said_to_be_certain() -> None:
    assert grown(1.0).exponent == pytest.approx(1.0) and grown(2.0).exponent == pytest.approx(2.0)
    upper = math.log((FIXED + EACH * 65536) / (FIXED + EACH * 256)) / math.log(65536 / 256)
    assert grown_of(straight()).exponent == pytest.approx(upper)
    assert power("batch", Growth(1.9449, 0.123, 2, 8)) == "batch^1.94 ± 0.12"
    assert power("side", Growth(1.0, 0.0, 2, 8)) == "side^1.00 ± 0.01"
