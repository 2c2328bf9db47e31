"""Intervals and ratios: exact on hand-made samples, and right about how often they are right on simulated ones."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from measure.model.run import Analysis
from measure.statistics import intervals, ranking
from measure.statistics.intervals import ASSUMED_SPREAD, Level, Spread
from measure.statistics.levels import levels_of
from tests.samples import FACTORS, constant, measurement
from tests.simulation import Model, Result, simulate

# The run's spread counts for a strategy as four observations of its own.
PRIOR = 4


# --- spread, levels and ratios ---------------------------------------------------------------------------------------


def test_the_spread_of_a_run_is_the_mean_distance_of_its_processes_from_their_strategys_median() -> None:
    rng = np.random.default_rng(4)
    logs = [rng.normal(place, 0.03, count) for place, count in enumerate((2, 3, 6, 6, 1))]
    distances = [abs(value - np.median(values)) for values in logs for value in values]
    degrees = 1 + 2 + 5 + 5
    # Of normal values, the standard deviation is 1.25 times the mean distance.
    seen = math.sqrt(math.pi / 2) * sum(distances) / degrees
    expected = math.sqrt((degrees * seen**2 + 4 * ASSUMED_SPREAD**2) / (degrees + 4))
    assert intervals.spread_of(logs).deviation == pytest.approx(expected, rel=1e-9)
    for unknown in ([], [np.zeros(1), np.ones(1)]):
        assert intervals.spread_of(unknown) == Spread(pytest.approx(ASSUMED_SPREAD), pytest.approx(math.log(1.3)))


@pytest.mark.parametrize("factors", [[1.0, 1.4], [0.97, 1.0, 1.02], [0.98, 0.99, 1.0, 1.01, 1.02, 1.05]])
def test_a_strategys_variance_is_moderated_by_the_runs_spread(factors: list[float]) -> None:
    """As if the spread had been seen in so many processes more: Smyth's posterior variance."""
    logs, spread = np.log(factors), Spread(0.03, math.log(1.3))
    level = intervals.level(logs, spread)
    # The faster half's squares about the median are worth half of what all squares are.
    degrees = PRIOR + (len(factors) - 1) / 2
    squares = PRIOR * 0.03**2 + sum(min(0.0, value - np.median(logs)) ** 2 for value in logs)
    # The mean of the faster half has a variance 1.35 times as large as that of all.
    variance = 1.35 * squares / degrees / len(factors)
    assert level.variance == pytest.approx(variance, rel=1e-12)
    assert (level.degrees, level.processes) == (degrees, len(factors))
    half = stats.t.ppf(0.975, degrees) * math.sqrt(variance)
    mean = math.log(stats.gmean([factor for factor in factors if factor <= np.median(factors)]))
    assert level.interval(0.95) == pytest.approx((math.exp(mean - half), math.exp(mean + half)), rel=1e-9)


@pytest.mark.parametrize(("seconds", "ranked_apart"), [(1.25e-3, False), (1.5e-3, True)])
def test_a_lone_process_has_a_rank_where_the_gap_is_beyond_what_processes_differ_by(
    seconds: float, ranked_apart: bool
) -> None:
    evidence = levels_of([measurement("lead", constant(1e-3, FACTORS)), measurement("one", [[seconds] * 5])])
    order = ranking.Order(evidence.by_slug, Analysis(), 0.0)
    assert order.separated("one", "lead") == ranked_apart
    # As tight a gap decides where both have processes enough.
    several = levels_of([measurement("lead", constant(1e-3, FACTORS)), measurement("b", constant(seconds, FACTORS))])
    assert ranking.Order(several.by_slug, Analysis(), 0.0).separated("b", "lead")


def test_a_ratio_is_welchs_t_test_on_the_logarithms() -> None:
    a, b = Level(math.log(1.0e-3), 4e-4, 9.0, 6), Level(math.log(1.2e-3), 9e-4, 5.0, 2)
    # SciPy takes standard deviations and counts: those of a mean with this variance and these degrees.
    counts = [level.degrees + 1 for level in (b, a)]
    deviations = [math.sqrt(level.variance * count) for level, count in zip((b, a), counts, strict=True)]
    welch = stats.ttest_ind_from_stats(
        b.log_mean, deviations[0], counts[0], a.log_mean, deviations[1], counts[1], equal_var=False
    )
    variance = a.variance + b.variance
    degrees = variance**2 / (a.variance**2 / a.degrees + b.variance**2 / b.degrees)
    half = stats.t.ppf(0.975, degrees) * math.sqrt(variance)
    ratio = intervals.ratio(b, a, 0.95)
    assert ratio.p == pytest.approx(welch.pvalue, rel=1e-9)
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


def order_of(result: Result) -> ranking.Order:
    return ranking.Order(result.levels, Analysis(), result.control_resolution)


def _not_above(count: int, rate: float, trials: int) -> bool:
    """Whether a count is not significantly above a rate: what it exceeds in one of twenty experiments."""
    return count <= stats.binom.ppf(0.95, trials, rate)


def test_a_strategy_against_itself_is_declared_different_rarely() -> None:
    """Comparisons of a strategy with itself, racing included, and with eleven of itself, of which the fastest looks
    fast by chance."""
    for strategies, runs in ((2, 120), (12, 40)):
        missed = declared = 0
        for seed in range(runs):
            same = {f"s{place}": 1e-3 for place in range(strategies)}
            result = simulate(same, MODELS[seed % len(MODELS)], seed)
            ratio = intervals.ratio(result.levels["s1"], result.levels["s0"], 0.95)
            missed += not ratio.low <= 1.0 <= ratio.high
            declared += len(order_of(result).groups()) > 1
        assert _not_above(missed, 0.07, runs) and _not_above(declared, 0.05, runs), (missed, declared)


def test_intervals_cover_as_often_as_they_say_among_leaders_and_others_alike() -> None:
    """The intervals of ratios to the leader hold the true ratio. Strategies with a single process have no interval of
    their own, and are left out."""
    held, counted = Counter[bool](), Counter[bool]()
    for model in MODELS:
        for result in (simulate(LATENCIES_S, model, seed) for seed in range(28)):
            for slug, latency_s in list(LATENCIES_S.items())[1:]:
                level = result.levels[slug]
                if level.processes == 1:
                    continue
                leads = level.processes >= 6
                ratio = intervals.ratio(level, result.levels["s0"], 0.95)
                held[leads] += ratio.low <= latency_s / 1e-3 <= ratio.high
                counted[leads] += 1
    assert counted[True] > 30 and counted[False] > 100
    assert all(0.92 <= held[leads] / counted[leads] <= 0.995 for leads in (True, False)), (held, counted)


@pytest.mark.parametrize("changes", [{"drift": 0.3}, {"load": 0.3}], ids=str)
def test_what_differs_by_15_percent_stays_in_its_order_whatever_the_machine_does(changes: dict[str, float]) -> None:
    """The machine becomes slower by so much from the first visit to the last, or has a load in stretches of 0.3 to
    5 s."""
    latencies_s = {"slower": 1.15e-3, "a": 1e-3, **{f"other{place}": 2e-3 * 1.3**place for place in range(4)}}
    right = 0
    for seed in range(20):
        seconds = simulate(latencies_s, MODELS[0], seed).seconds
        result = simulate(latencies_s, replace(MODELS[0], **changes, drift_s=seconds), seed)
        right += order_of(result).fastest_first[:2] == ["a", "slower"]
    assert right >= 19
