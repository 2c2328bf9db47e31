"""From samples to levels: quartiles, the machine's drift, the level of a strategy, and what a run can tell."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from measure.model.run import Analysis, Latency, Measurement, Replica
from measure.statistics import intervals, levels
from measure.statistics.levels import levels_of, shown_levels
from tests.samples import FACTORS, constant, measurement, run_of


def visited(slug: str, level_s: Sequence[float], at_s: Sequence[float]) -> Measurement:
    """A strategy whose processes take these times for a call, each visited at a time of its own."""
    replicas = [
        Replica(id=number, calls_per_sample=1, rounds=[number + 1] * 9, at_s=[moment_s] * 9, samples_s=[seconds] * 9)
        for number, (seconds, moment_s) in enumerate(zip(level_s, at_s, strict=True))
    ]
    return Measurement(strategy=slug, mapper=slug, mode="graph", outcome="ok", replicas=replicas)


# --- of a process, and of a strategy ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("counts", "faster"), [((5, 9, 30, 31), 2), ((9, 5, 31, 30, 9), 3), ((9, 9), 1)])
def test_a_level_is_the_geometric_mean_of_the_lower_quartiles_of_the_faster_half_of_the_processes(
    counts: tuple[int, ...], faster: int
) -> None:
    rng = np.random.default_rng(1)
    processes = [rng.lognormal(math.log(2e-3), 0.2, count) for count in counts]
    evidence = levels_of([measurement("a", [samples.tolist() for samples in processes])])
    quartiles = [math.log(np.quantile(samples, 0.25)) for samples in processes]
    assert evidence.logs["a"] == pytest.approx(quartiles, rel=1e-12)
    assert evidence.by_slug["a"].log_mean == pytest.approx(np.mean(sorted(quartiles)[:faster]), rel=1e-12)
    few = levels_of([measurement("a", [[1.0, 3.0, 4.0, 8.0]])])
    assert math.exp(few.logs["a"][0]) == pytest.approx(3.5), "of fewer than five samples it is the median"
    assert evidence.typical["a"] == pytest.approx(np.mean([math.log(np.median(each)) for each in processes]), rel=1e-12)


# --- drift -----------------------------------------------------------------------------------------------------------


def test_what_the_machine_drifts_is_taken_out_of_the_processes() -> None:
    """Three strategies are visited in turns while everything becomes slower by 4 % a second."""
    times_s = np.arange(18) * 0.4
    pace = np.exp(0.04 * times_s + np.random.default_rng(2).normal(0.0, 0.002, 18))
    evidence = levels_of(
        [visited(f"s{place}", (1e-3 * 2**place * pace)[place::3].tolist(), times_s[place::3]) for place in range(3)]
    )
    assert evidence.drift.change == pytest.approx(math.expm1(0.04 * 17 * 0.4), abs=0.02)
    assert evidence.drift.p < 1e-5
    assert all(np.ptp(logs) < 0.02 for logs in evidence.logs.values())
    # At the pace of the time in which the first of those with the most processes was visited: 0 to 6 s, in the mean.
    assert math.exp(evidence.by_slug["s0"].log_mean) == pytest.approx(1e-3 * math.exp(0.04 * 3.0), rel=0.01)
    assert math.exp(evidence.by_slug["s2"].log_mean) == pytest.approx(4e-3 * math.exp(0.04 * 3.0), rel=0.01)
    for slug, logs in evidence.logs.items():
        assert evidence.typical[slug] == pytest.approx(logs.mean(), abs=1e-9), "the samples of a process are equal"


def test_the_drift_is_the_slope_of_theil_and_sen_and_its_p_value_that_of_mann_and_kendall() -> None:
    rng = np.random.default_rng(3)
    at_s, level_s = np.arange(12) * 0.5, np.exp(rng.normal(0.0, 0.05, 12))
    drift = levels_of([visited("a", level_s.tolist(), at_s.tolist())]).drift
    slope = stats.theilslopes(np.log(level_s), at_s).slope
    assert drift.change == pytest.approx(math.expm1(slope * 5.5), rel=1e-9)
    assert drift.p == pytest.approx(stats.kendalltau(at_s, level_s, method="asymptotic").pvalue, rel=1e-9)


# --- files of earlier methods ----------------------------------------------------------------------------------------


def test_a_run_of_an_earlier_method_has_the_levels_whose_intervals_it_shows() -> None:
    shown = Latency(median_s=3e-3, low_s=2.5e-3, high_s=3.6e-3)
    item = replace(measurement("a", constant(1e-3, FACTORS)), latency=shown)
    run = replace(run_of(item, measurement("untimed", [])), analysis=Analysis(version=2))
    by_slug = shown_levels(run)
    assert list(by_slug) == ["a"]
    assert math.exp(by_slug["a"].log_mean) == pytest.approx(3e-3, rel=1e-12)
    assert by_slug["a"].interval(0.95) == pytest.approx((2.5e-3, 3.6e-3), rel=1e-9)
    assert (by_slug["a"].processes, by_slug["a"].degrees) == (5, 4.0)
    now = replace(run, analysis=Analysis())
    assert shown_levels(now) == levels_of(now.measurements).by_slug


# --- what a run can tell ---------------------------------------------------------------------------------------------


def test_resolution_is_the_farther_end_of_the_twins_interval() -> None:
    items = [measurement("a", constant(1e-3, FACTORS)), measurement("a#twin", constant(1.05e-3, FACTORS), twin_of="a")]
    evidence = levels_of(items)
    control = levels.control(items, evidence, 0.95)
    assert control is not None
    twins = intervals.ratio(evidence.by_slug["a#twin"], evidence.by_slug["a"], 0.95)
    assert (control.ratio, control.low, control.high) == (twins.ratio, twins.low, twins.high)
    assert control.ratio == pytest.approx(1.05, rel=1e-9)
    assert control.resolution == pytest.approx(twins.high - 1, rel=1e-9)
    assert levels.resolution(control, evidence, 0.95) == control.resolution
    # Twins that agree by chance do not promise more than the spread allows.
    items = [
        measurement("a", constant(1e-3, [0.9, 1.0, 1.1])),
        measurement("a#twin", constant(0.9487e-3, [0.999, 1.001, 1.002]), twin_of="a"),
        measurement("b", constant(2e-3, [0.8, 0.9, 1.0, 1.1, 1.2])),
    ]
    control = levels.control(items, levels_of(items), 0.95)
    assert control is not None and control.resolution > max(control.high - 1, 1 - control.low)


def test_without_a_twin_the_resolution_is_what_the_spread_lets_the_two_fastest_differ_by() -> None:
    items = [measurement("a", constant(1e-3, FACTORS)), measurement("b", constant(2e-3, FACTORS[:2]))]
    evidence = levels_of([*items, measurement("slow", constant(3e-3, [1.0]))])
    assert levels.control(items, evidence, 0.95) is None
    # t with the spread as four observations, and half of what their own two processes each have; the mean of the
    # faster half has a variance 1.35 times as large as that of all.
    expected = math.expm1(stats.t.ppf(0.975, 4 + 1) * evidence.spread.deviation * math.sqrt(2 * 1.35 / 2))
    assert levels.resolution(None, evidence, 0.95) == pytest.approx(expected, rel=1e-9)
    assert levels.resolution(None, levels_of([]), 0.95) == 0.0
