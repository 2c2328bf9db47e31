"""Intervals and ratios: exact on hand-made samples, and right about how often they are right on simulated ones."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import views
from measure.model.run import Analysis
from measure.model.run_file import decode
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


def test_the_spread_of_normal_processes_is_their_standard_deviation() -> None:
    """With numbers of processes as a race gives them: three behind the leaders, and four to twelve to these."""
    rng = np.random.default_rng(6)
    logs = [rng.normal(0.0, 0.05, count) for count in (2, 3, 4, 6, 6, 8, 12) for _ in range(200)]
    assert intervals.spread_of(logs).deviation == pytest.approx(0.05, rel=0.1)


def test_odd_processes_make_everybodys_spread_less_than_their_squares_would() -> None:
    """What disturbs some processes of a run may disturb others in the next one, so it widens all intervals."""
    rng = np.random.default_rng(5)
    logs = [rng.normal(place, 0.03, 4) for place in range(10)]
    before = intervals.spread_of(logs)
    logs[0][0], logs[1][1] = logs[0][0] + 0.7, logs[1][1] + 0.7
    after = intervals.spread_of(logs)
    squares = math.sqrt(sum(float(np.sum((values - values.mean()) ** 2)) for values in logs) / 30)
    assert 1.5 * before.deviation < after.deviation < 0.7 * squares
    assert after.most > 0.6, "how far two are apart at the most is about the odd ones"


@pytest.mark.parametrize("logs", [[], [np.zeros(1), np.ones(1)]])
def test_without_any_repeated_process_the_assumed_spread_is_used(logs: list[np.ndarray]) -> None:
    assert intervals.spread_of(logs) == Spread(pytest.approx(ASSUMED_SPREAD), pytest.approx(math.log(1.3)))


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


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 5, 6, 8, 12])
def test_the_standard_error_of_a_level_of_normal_processes_is_what_such_levels_scatter_by(processes: int) -> None:
    """Of three, it is a tenth more: two of them are more than a half."""
    rng = np.random.default_rng(8)
    levels = [intervals.level(rng.normal(0.0, 0.05, processes), Spread(0.05, 0.3)) for _ in range(2_000)]
    scatter = np.std([level.log_mean for level in levels])
    assert math.sqrt(np.mean([level.variance for level in levels])) == pytest.approx(scatter, rel=0.12)


def test_the_interval_of_one_process_is_as_wide_as_any_two_are_apart() -> None:
    low, high = intervals.lone_level(math.log(2.0), Spread(0.05, math.log(1.3))).interval(0.95)
    assert (low, high) == pytest.approx((2.0 / 1.3, 2.0 * 1.3), rel=1e-3)


def test_two_processes_that_differ_twofold_leave_a_wide_interval() -> None:
    """It is not known which of them is the odd one."""
    low, high = intervals.level(np.log([1.0, 2.0]), Spread(0.01, math.log(1.3))).interval(0.95)
    assert low < 1.0 < high and high / low > 2.0


def test_processes_that_agree_by_chance_have_no_interval_of_no_width() -> None:
    evidence = levels_of([measurement("agree", constant(1e-3, [1.0, 1.0])), measurement("b", constant(1.0, FACTORS))])
    low, high = evidence.by_slug["agree"].interval(0.95)
    assert high / low > 1.02


@pytest.mark.parametrize(("others", "factor"), [([0.98, 1.0, 1.02], 1.3), ([0.8, 1.0, 1.2], 1.5)])
def test_a_lone_process_is_as_uncertain_as_any_two_of_the_run_are_apart(others: list[float], factor: float) -> None:
    evidence = levels_of([measurement("others", constant(1e-3, others)), measurement("one", [[2e-3] * 5])])
    low, high = evidence.by_slug["one"].interval(0.95)
    assert (low, high) == pytest.approx((2e-3 / factor, 2e-3 * factor), rel=1e-6)


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


def test_levels_without_any_uncertainty_have_a_ratio_without_any() -> None:
    a, b = Level(0.0, 0.0, 4.0, 5), Level(math.log(2.0), 0.0, 4.0, 5)
    assert intervals.ratio(b, a, 0.95) == intervals.Ratio(*[pytest.approx(2.0)] * 3, p=0.0)
    assert intervals.ratio(a, a, 0.95).p == 1.0


def test_the_width_between_two_points_is_that_of_a_ratio_at_each_place() -> None:
    a, b = Level(0.0, 4e-4, 8.0, 5), Level(0.1, 9e-4, 3.0, 4)
    low, high = intervals.difference(a, b).interval(0.95)
    terms = [(np.array([level.variance, 0.0]), level.degrees) for level in (a, b)]
    assert intervals.half_width(terms, 0.95) == pytest.approx([math.log(high / low) / 2, 0.0], rel=1e-12)


# --- on simulated runs -----------------------------------------------------------------------------------------------

# A spread between processes of a third to three times the scatter of the samples, as real runs show it.
MODELS = [
    Model(process=process, sample=sample)
    for process, sample in ((0.02, 0.03), (0.03, 0.01), (0.01, 0.03), (0.02, 0.01), (0.06, 0.06))
]
# Twelve strategies, as a default comparison has them: two that are close, some that are not far, and many that are.
LATENCIES_S = {
    f"s{place:02}": 1e-3 * times for place, times in enumerate((1, 1.03, 1.15, 1.2, 1.5, 1.6, 2.2, 2.5, 4, 6, 10, 20))
}


def order_of(result: Result) -> ranking.Order:
    return ranking.Order(result.levels, Analysis(), result.control_resolution)


def test_the_simulated_spreads_are_those_of_a_real_run() -> None:
    """The run that the app shows first: how far its samples scatter about their process, and its processes about their
    strategy, lies between what the models show."""
    measurements = decode((Path(views.__file__).parent / "example_run.json").read_bytes()).measurements
    logs = [np.log(replica.samples_s) for item in measurements for replica in item.replicas if replica.samples_s]
    scatter = stats.norm.ppf(0.75) ** -1 * np.median(np.abs(np.concatenate([each - np.median(each) for each in logs])))
    assert min(model.sample for model in MODELS) <= scatter <= max(model.sample for model in MODELS)
    results = [simulate(LATENCIES_S, model, seed) for model in MODELS for seed in range(4)]
    simulated = [levels_of(result.measurements).spread.deviation for result in results]
    assert min(simulated) <= levels_of(measurements).spread.deviation <= max(simulated)


def _not_above(count: int, rate: float, trials: int) -> bool:
    """Whether a count is not significantly above a rate: what it exceeds in one of twenty experiments."""
    return count <= stats.binom.ppf(0.95, trials, rate)


def test_a_strategy_against_itself_is_declared_different_rarely_and_intervals_cover_as_often_as_they_say() -> None:
    """400 comparisons of a strategy with itself, racing included."""
    pairs = 400
    declared, missed = dict.fromkeys(MODELS, 0), dict.fromkeys(MODELS, 0)
    for seed in range(pairs):
        model = MODELS[seed % len(MODELS)]
        result = simulate({"a": 1e-3, "b": 1e-3}, model, seed)
        ratio = intervals.ratio(result.levels["b"], result.levels["a"], 0.95)
        missed[model] += not ratio.low <= 1.0 <= ratio.high
        declared[model] += len(order_of(result).groups()) > 1
    assert 0.93 <= 1 - sum(missed.values()) / pairs <= 0.99
    # With none of the models more than 7 %, beyond what 80 pairs show by chance.
    assert all(_not_above(count, 0.07, pairs // len(MODELS)) for count in missed.values())
    assert _not_above(sum(declared.values()), 0.05, pairs)
    assert all(_not_above(count, 0.05, pairs // len(MODELS)) for count in declared.values())


def test_however_many_strategies_are_equal_hardly_any_is_called_slower() -> None:
    """Who is compared with whom is chosen by the data: the fastest of twelve equal ones looks fast by chance."""
    runs = 120
    declared = 0
    for seed in range(runs):
        result = simulate({f"s{place}": 1e-3 for place in range(12)}, MODELS[seed % len(MODELS)], seed)
        declared += len(order_of(result).groups()) > 1
    assert _not_above(declared, 0.05, runs)


@pytest.mark.parametrize(
    "changes", [{}, {"drift": 0.3}, {"load": 0.15}], ids=["quiet", "while it drifts", "under a load"]
)
def test_intervals_cover_as_often_as_they_say_among_leaders_and_others_alike(changes: dict[str, float]) -> None:
    """The intervals of ratios to the leader hold the true ratio, and on a quiet machine those of latencies what reruns
    say. A load makes them wider than need be, since those that are compared take turns, and share it. Strategies with
    a single process have no interval of their own, and are left out."""
    held, held_alone, counted = Counter[bool](), Counter[bool](), Counter[bool]()
    for model in MODELS:
        results = [simulate(LATENCIES_S, replace(model, **changes), seed) for seed in range(16)]
        middle = {slug: np.median([result.levels[slug].log_mean for result in results]) for slug in LATENCIES_S}
        for result in results:
            for slug, latency_s in list(LATENCIES_S.items())[1:]:
                level = result.levels[slug]
                if level.processes == 1:
                    continue
                leads = level.processes >= 6
                ratio = intervals.ratio(level, result.levels["s00"], 0.95)
                low, high = level.interval(0.95)
                held[leads] += ratio.low <= latency_s / 1e-3 <= ratio.high
                held_alone[leads] += low <= math.exp(middle[slug]) <= high
                counted[leads] += 1
    assert counted[True] > 60 and counted[False] > 450
    for leads in (True, False):
        assert held[leads] / counted[leads] >= 0.93, (held, counted)
        if not changes:
            assert held[leads] <= 0.99 * counted[leads], (held, counted)
            assert 0.93 <= held_alone[leads] / counted[leads] <= 0.99, (held_alone, counted)


@pytest.mark.parametrize("changes", [{"drift": 0.3}, {"drift": -0.25}, {"load": 0.3}], ids=str)
@pytest.mark.parametrize("others", [0, 10])
def test_what_differs_by_15_percent_stays_in_its_order_whatever_the_machine_does(
    changes: dict[str, float], others: int
) -> None:
    """The machine becomes slower or faster by so much from the first visit to the last, or has a load in stretches of
    0.3 to 5 s."""
    latencies_s = {"slower": 1.15e-3, "a": 1e-3, **{f"other{place}": 2e-3 * 1.3**place for place in range(others)}}
    right = 0
    for seed in range(40):
        seconds = simulate(latencies_s, MODELS[0], seed).seconds
        result = simulate(latencies_s, replace(MODELS[0], **changes, drift_s=seconds), seed)
        right += order_of(result).fastest_first[:2] == ["a", "slower"]
    assert right >= 38


def test_one_after_the_other_a_drift_would_turn_the_order() -> None:
    """The simulated drift is one that matters: each strategy's visits in a row, the slower one first, on the quick
    machine, and the faster one last, on the slow one."""
    seconds = simulate({"slower": 1.12e-3, "a": 1e-3}, MODELS[0], 0).seconds
    model = replace(MODELS[0], drift=0.3, drift_s=seconds)
    slower_s = 1.12e-3 * np.mean([model.pace(at_s) for at_s in np.linspace(0, seconds / 2)])
    a_s = 1e-3 * np.mean([model.pace(at_s) for at_s in np.linspace(seconds / 2, seconds)])
    assert slower_s < a_s
