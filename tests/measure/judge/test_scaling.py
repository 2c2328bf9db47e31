"""Fits of a + b·n, and exponents: exact without noise, and right about how often their intervals are right. A fit is
unmoved by an outlier."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from measure.judge import sweep_analysis
from measure.judge.scaling import Growth, power
from measure.judge.sweep_findings import SweepFindings, findings
from measure.run.run import Fit
from tests import costs, synthetic

GRID = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
SLUG = "map_fn.graph"
FIXED, EACH = 4e-4, 2e-6
STRAIGHT = [FIXED + EACH * value for value in GRID]


def measured(latency_s: list[float], model: costs.Model = costs.QUIET, seed: int = 0) -> SweepFindings:
    rng = np.random.default_rng(seed)
    points = [costs.point(value, {SLUG: seconds}, rng, model) for value, seconds in zip(GRID, latency_s, strict=True)]
    return findings(sweep_analysis.analyse(replace(synthetic.sweep(), axes=[costs.axis(GRID)], points=points)))


def fitted(sweep: SweepFindings) -> tuple[Fit, Growth]:
    [(fit, growth)] = sweep.fits
    assert growth is not None
    return fit, growth


def test_a_straight_line_is_fitted_exactly_and_one_point_that_is_far_off_does_not_move_it() -> None:
    fit, growth = fitted(measured(STRAIGHT))
    assert (fit.strategy, fit.axis, fit.note) == (SLUG, "batch", "")
    assert (fit.fixed_s, fit.per_element_s) == pytest.approx((FIXED, EACH), rel=1e-4)
    assert growth.exponent == pytest.approx(math.log(STRAIGHT[-1] / STRAIGHT[4]) / math.log(GRID[-1] / GRID[4]))
    off = measured([latency_s * (3 if place == 5 else 1) for place, latency_s in enumerate(STRAIGHT)])
    [fit] = off.run.fits
    assert (fit.fixed_s, fit.per_element_s) == pytest.approx((FIXED, EACH), rel=0.06)
    assert fit.note.startswith("poor fit: a call at batch 1,024 takes 2.99 ×") and off.fits == [], "and is not shown"


def test_intervals_contain_the_truth_as_often_as_they_say() -> None:
    held = [0, 0, 0]
    for seed in range(60):
        model = costs.MODELS[seed % len(costs.MODELS)]
        fit, growth = fitted(measured(STRAIGHT, model, seed))
        true = math.log(STRAIGHT[-1] / STRAIGHT[4]) / math.log(GRID[-1] / GRID[4])
        held[0] += fit.fixed_low_s <= FIXED <= fit.fixed_high_s
        held[1] += fit.per_element_low_s <= EACH <= fit.per_element_high_s
        held[2] += abs(growth.exponent - true) <= growth.half
        assert fit.per_element_high_s < 1.3 * fit.per_element_low_s and growth.half < 0.1
    # Of 95 %, fewer are seen in one of two hundred cases.
    assert min(held) >= 52


def test_an_exponent_is_never_said_to_be_certain() -> None:
    assert power("batch", Growth(1.9449, 0.123)) == "batch^1.94 ± 0.12"
    assert power("side", Growth(1.0, 0.0)) == "side^1.00 ± 0.01"
