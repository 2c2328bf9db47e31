"""Intervals and ratios: exact on hand-made levels, and right about how often they are right on simulated runs."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from scipy import stats

from measure.judge import intervals
from measure.judge.intervals import Level
from measure.judge.levels import levels_of
from tests.simulation import Model, simulate


def test_a_ratio_is_students_t_test_with_the_degrees_of_the_runs_one_variance() -> None:
    a, b = Level(math.log(1.0e-3), 4e-4, 9.0), Level(math.log(1.2e-3), 9e-4, 5.0)
    error = math.sqrt(4e-4 + 9e-4)
    half = stats.t.ppf(0.975, 5.0) * error
    ratio = intervals.ratio(b, a, 0.95)
    assert ratio.p == pytest.approx(2 * stats.t.sf(math.log(1.2) / error, 5.0), rel=1e-9)
    assert ratio.ratio == pytest.approx(1.2, rel=1e-12)
    assert (ratio.low, ratio.high) == pytest.approx((1.2 * math.exp(-half), 1.2 * math.exp(half)), rel=1e-9)


# --- on simulated runs -----------------------------------------------------------------------------------------------

# A spread between processes of a third to three times the scatter of the samples, as real runs show it.
MODELS = [
    Model(process=process, sample=sample)
    for process, sample in ((0.02, 0.03), (0.03, 0.01), (0.01, 0.03), (0.02, 0.01), (0.06, 0.06))
]
# Some that are close to the leader, some that are not far, and some that are.
LATENCIES_S = {f"s{place}": 1e-3 * times for place, times in enumerate((1, 1.03, 1.15, 1.5, 2.2, 4, 10, 20))}


def _not_above(count: int, rate: float, trials: int) -> bool:
    """Whether a count is not significantly above a rate: what it exceeds in one of twenty experiments."""
    return count <= stats.binom.ppf(0.95, trials, rate)


def test_a_strategy_against_itself_is_called_different_rarely() -> None:
    runs, declared = 120, 0
    for seed in range(runs):
        declared += len(simulate({"a": 1e-3, "b": 1e-3}, MODELS[seed % len(MODELS)], seed).order.groups()) > 1
    assert _not_above(declared, 0.05, runs), declared


def test_the_fastest_is_among_the_leaders_though_twelve_are_equal() -> None:
    runs, missed = 60, 0
    for seed in range(runs):
        order = simulate({f"s{place}": 1e-3 for place in range(12)}, MODELS[seed % len(MODELS)], seed).order
        missed += "s0" not in order.groups()[0]
    assert _not_above(missed, 0.05, runs), missed


def test_intervals_cover_as_often_as_they_say_among_near_ones_and_those_far_behind_alike() -> None:
    """The intervals of ratios to the fastest hold the true ratio."""
    held, counted = Counter[bool](), Counter[bool]()
    for model in MODELS:
        for result in (simulate(LATENCIES_S, model, seed) for seed in range(28)):
            levels = levels_of(result.measurements).by_slug
            for slug, latency_s in list(LATENCIES_S.items())[1:]:
                is_near, ratio = latency_s < 3e-3, intervals.ratio(levels[slug], levels["s0"], 0.95)
                held[is_near] += ratio.low <= latency_s / 1e-3 <= ratio.high
                counted[is_near] += 1
    assert all(held[is_near] / counted[is_near] >= 0.92 for is_near in (True, False)), (held, counted)


def test_what_the_machine_does_to_all_changes_no_order() -> None:
    """It becomes slower by a third while it is measured, and rounds differ by a tenth."""
    latencies_s = {"slower": 1.2e-3, "a": 1e-3, **{f"other{place}": 2e-3 * 1.3**place for place in range(4)}}
    right = 0
    for seed in range(20):
        result = simulate(latencies_s, replace(MODELS[0], drift=0.33, round=0.1), seed)
        right += result.order.groups()[0] == ["a"]
    assert right >= 19
