"""Intervals and ratios: exact on hand-made samples, and right about how often they are right on simulated ones."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import views
from measure.model.run import Analysis
from measure.model.run_file import decode
from measure.statistics import intervals, ranking
from measure.statistics.intervals import Level
from measure.statistics.levels import levels_of
from tests.samples import FACTORS, constant, measurement
from tests.simulation import Model, simulate


def test_a_latency_is_the_geometric_mean_of_process_medians_with_a_student_interval() -> None:
    found = levels_of([measurement("a", constant(0.002, FACTORS))])
    level = found.by_slug["a"]
    logs = np.log(0.002 * np.array(FACTORS))
    half = stats.t.ppf(0.975, 4) * logs.std(ddof=1) / math.sqrt(5)
    assert level.processes == 5
    assert math.exp(level.log_mean) == pytest.approx(math.exp(logs.mean()), rel=1e-12)
    assert level.interval(0.95) == pytest.approx((math.exp(logs.mean() - half), math.exp(logs.mean() + half)), rel=1e-9)


def test_a_ratio_is_welchs_t_test_on_the_logarithms_of_process_medians() -> None:
    a, b = [1.0, 1.02, 0.97, 1.01], [1.1, 1.3, 1.2, 1.15, 1.25]
    levels = levels_of([measurement("a", constant(1e-3, a)), measurement("b", constant(1e-3, b))]).by_slug
    found = intervals.ratio(levels["b"], levels["a"], 0.95)
    right = stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
    interval = right.confidence_interval(0.95)
    assert found.p == pytest.approx(right.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx((math.exp(interval.low), math.exp(interval.high)), rel=1e-9)
    assert found.ratio == pytest.approx(math.exp(np.log(b).mean() - np.log(a).mean()), rel=1e-12)


def test_a_level_of_another_run_is_compared_with_the_uncertainty_of_its_rounds() -> None:
    level = Level(0.0, 4e-4, 8.0, 5, link=(0.01, -0.02))
    alone = level.alone()
    assert alone.variance == pytest.approx(4e-4 + 5e-4)
    assert alone.degrees == pytest.approx(8.0 * (9 / 4) ** 2)
    assert alone.link == ()
    assert level.interval(0.95) == alone.interval(0.95)
    # Of one run, what both have in common is none.
    assert intervals.difference(level, level).variance == pytest.approx(8e-4)


def test_the_width_between_two_points_is_that_of_a_ratio_at_each_place() -> None:
    a, b = Level(0.0, 4e-4, 8.0, 5), Level(0.1, 9e-4, 3.0, 4)
    low, high = intervals.difference(a, b).interval(0.95)
    terms = [(np.array([level.variance, 0.0]), level.degrees) for level in (a, b)]
    assert intervals.half_width(terms, 0.95) == pytest.approx([math.log(high / low) / 2, 0.0], rel=1e-12)


# A spread between processes of a third to three times the scatter of the samples, as real runs show it.
MODELS = [
    Model(process=process, sample=sample)
    for process, sample in ((0.02, 0.03), (0.03, 0.01), (0.01, 0.03), (0.02, 0.01), (0.08, 0.08))
]


def test_the_simulated_spreads_are_those_of_a_real_run() -> None:
    """The run that the app shows first: how far its samples scatter about their process, and its processes about their
    strategy, lies between what the models have."""
    found = levels_of(decode((Path(views.__file__).parent / "example_run.json").read_bytes()).measurements)
    rest = np.concatenate([each - np.median(each) for logs in found.samples.logs.values() for each in logs])
    scatter = 1.4826 * np.median(np.abs(rest))
    assert min(model.sample for model in MODELS) <= scatter <= max(model.sample for model in MODELS)
    assert min(model.process for model in MODELS) <= found.spread.deviation <= max(model.process for model in MODELS)


def _not_above(count: int, rate: float, trials: int) -> bool:
    """Whether a count is not significantly above a rate: what it exceeds in one of twenty experiments."""
    return count <= stats.binom.ppf(0.95, trials, rate)


@pytest.mark.slow
def test_a_strategy_against_itself_is_declared_different_rarely_and_intervals_cover_as_often_as_they_say() -> None:
    """800 comparisons of a strategy with itself, racing included."""
    pairs = 800
    declared, missed = dict.fromkeys(MODELS, 0), dict.fromkeys(MODELS, 0)
    for seed in range(pairs):
        model = MODELS[seed % len(MODELS)]
        found = simulate({"a": 1e-3, "b": 1e-3}, model, seed)
        ratio = intervals.ratio(found.levels["b"], found.levels["a"], 0.95)
        missed[model] += not ratio.low <= 1.0 <= ratio.high
        declared[model] += len(ranking.Order(found.levels, Analysis(), found.control_resolution).groups()) > 1
    assert 0.93 <= 1 - sum(missed.values()) / pairs <= 0.975
    # With none of the models more than 7 %, beyond what 160 pairs show by chance.
    assert all(_not_above(count, 0.07, pairs // len(MODELS)) for count in missed.values())
    assert _not_above(sum(declared.values()), 0.05, pairs)
    assert all(_not_above(count, 0.05, pairs // len(MODELS)) for count in declared.values())


@pytest.mark.slow
def test_however_many_strategies_are_equal_hardly_any_is_called_slower() -> None:
    """Who is compared with whom is chosen by the data: the fastest of twelve equal ones looks fast by chance."""
    runs = 200
    declared = 0
    for seed in range(runs):
        found = simulate({f"s{place}": 1e-3 for place in range(12)}, MODELS[seed % len(MODELS)], seed)
        declared += len(ranking.Order(found.levels, Analysis(), found.control_resolution).groups()) > 1
    assert _not_above(declared, 0.05, runs)


@pytest.mark.slow
@pytest.mark.parametrize("step", [0.0, 0.5])
def test_intervals_of_those_that_rest_early_cover_too_whether_or_not_the_machine_changes_after_they_did(step) -> None:
    latencies_s = {"a": 1.0e-3, "doubted": 1.5e-3, "behind": 2.5e-3, "far": 5e-3}
    runs, missed = 150, 0
    for seed in range(runs):
        found = simulate(latencies_s, replace(MODELS[seed % 4], step=step), seed)
        for slug in ("doubted", "behind", "far"):
            ratio = intervals.ratio(found.levels[slug], found.levels["a"], 0.95)
            missed += not ratio.low <= latencies_s[slug] / latencies_s["a"] <= ratio.high
    covered = 1 - missed / (3 * runs)
    assert covered >= 0.93
    assert step or covered <= 0.985


def test_a_drift_of_the_machine_does_not_turn_the_order_though_one_after_the_other_would() -> None:
    """The machine slows down by 30 % while strategies are measured, of which three differ by 8 %."""
    latencies_s = {"a": 1.0e-3, "b": 1.08e-3, "c": 1.17e-3, "behind": 1.9e-3, "far": 4.5e-3}
    covered = 0
    for seed in range(20):
        undisturbed = simulate(latencies_s, Model(), seed)
        model = Model(drift=0.3, rounds=undisturbed.rounds)
        found = simulate(latencies_s, model, seed)
        assert model.pace(found.rounds) >= 1.28, "so much it drifts over this very run"
        order = ranking.Order(found.levels, Analysis(), found.control_resolution)
        assert order.fastest_first[0] == "a"
        assert order.separated("behind", "a") and order.separated("far", "behind")
        far = intervals.ratio(found.levels["far"], found.levels["a"], 0.95)
        covered += far.low <= 4.5 <= far.high
        # One after the other, in as much time: "c" first, on the quick machine, and "a" last, on the slow one.
        each = found.rounds // 3
        one_after_the_other = {
            slug: np.median([latencies_s[slug] * model.pace(each * place + number) for number in range(1, each + 1)])
            for place, slug in enumerate(["c", "b", "a"])
        }
        assert min(one_after_the_other, key=lambda slug: one_after_the_other[slug]) == "c"
    assert covered >= 17
