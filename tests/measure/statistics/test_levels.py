"""From samples to levels: quartiles, the machine's drift, the level of a strategy, and what a run can tell."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from measure.judge.analysis import analyse
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
    assert evidence.by_slug["a"].processes == len(counts)
    assert evidence.typical["a"] == pytest.approx(np.mean([math.log(np.median(each)) for each in processes]), rel=1e-12)


@pytest.mark.parametrize(
    ("samples", "level"),
    [([7.0], 7.0), ([1.0, 3.0], 2.0), ([1.0, 3.0, 4.0, 8.0], 3.5), ([1.0, 3.0, 4.0, 8.0, 9.0], 3.0)],
)
def test_with_fewer_than_five_samples_the_median_is_taken(samples: list[float], level: float) -> None:
    assert math.exp(levels_of([measurement("a", [samples])]).logs["a"][0]) == pytest.approx(level, rel=1e-12)


def test_a_disturbance_of_two_thirds_of_a_process_samples_does_not_move_its_level_but_its_typical_time() -> None:
    samples = [1e-3 * (1 + 0.001 * number) for number in range(30)]
    disturbed = samples[:10] + [1.8 * seconds for seconds in samples[10:]]
    quiet, busy = (levels_of([measurement("a", [each])]) for each in (samples, disturbed))
    assert busy.by_slug["a"].log_mean == pytest.approx(quiet.by_slug["a"].log_mean, abs=0.002)
    assert busy.typical["a"] - quiet.typical["a"] > 0.5


@pytest.mark.parametrize(("processes", "slow"), [(2, 1), (3, 1), (4, 2), (5, 2), (6, 3)])
def test_processes_that_are_slow_throughout_do_not_move_a_level_until_they_are_most_of_them(
    processes: int, slow: int
) -> None:
    paces = [0.98, 1.0, 1.02, 1.01, 0.99, 1.03][:processes]
    ordered = sorted(paces)

    def log_mean(slowed: int) -> float:
        disturbed = [*ordered[: processes - slowed], *(1.8 * pace for pace in ordered[processes - slowed :])]
        return levels_of([measurement("a", constant(1e-3, disturbed))]).by_slug["a"].log_mean

    assert log_mean(slow) == pytest.approx(log_mean(0), abs=1e-12)
    assert log_mean(slow + 1) > log_mean(0) + 0.15


def test_the_typical_time_of_a_call_stands_beside_the_headline() -> None:
    latency = analyse(run_of(measurement("a", [[1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]] * 3))).measurements[0].latency
    assert latency is not None
    assert (latency.median_s, latency.typical_s) == pytest.approx((1.0, 2.0))


def test_processes_without_samples_count_for_nothing() -> None:
    evidence = levels_of([measurement("a", [[1.0] * 5, [], [1.0] * 5]), measurement("failed", [[]])])
    assert list(evidence.by_slug) == ["a"] and evidence.by_slug["a"].processes == 2


# --- drift -----------------------------------------------------------------------------------------------------------


def drifting(slope: float, odd: float = 1.0) -> list[Measurement]:
    """Three strategies that are visited in turns while everything becomes slower by ``slope``, relative, a second; the
    last process of the second takes ``odd`` times as long."""
    rng = np.random.default_rng(2)
    times_s = np.arange(18) * 0.4
    pace = np.exp(slope * times_s + rng.normal(0.0, 0.002, 18))
    items = [visited(f"s{place}", (1e-3 * 2**place * pace)[place::3].tolist(), times_s[place::3]) for place in range(3)]
    last = items[1].replicas[-1]
    changed = replace(last, samples_s=[odd * seconds for seconds in last.samples_s])
    return [items[0], replace(items[1], replicas=[*items[1].replicas[:-1], changed]), items[2]]


def test_what_the_machine_drifts_is_taken_out_of_the_processes() -> None:
    items = drifting(0.04)
    evidence = levels_of(items)
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


def test_a_process_that_is_far_off_makes_no_drift_and_hides_none() -> None:
    still, changing = levels_of(drifting(0.0, odd=3.0)), levels_of(drifting(0.04, odd=0.3))
    assert abs(still.drift.change) < 0.01 and still.drift.p > 0.01
    assert changing.drift.change == pytest.approx(math.expm1(0.04 * 17 * 0.4), abs=0.02) and changing.drift.p < 0.01


def test_a_few_processes_tell_no_drift() -> None:
    # Six pairs of four processes, then ten of five.
    four, five = ([visited("a", [1.0, 1.1, 1.2, 1.3, 1.4][:count], range(count))] for count in (4, 5))
    assert levels_of(four).drift == levels.Drift(0.0, 1.0)
    assert levels_of(four).logs["a"] == pytest.approx(np.log([1.0, 1.1, 1.2, 1.3]), rel=1e-12)
    assert levels_of(five).drift.change > 0.3


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


def by_chance(deviation: float, processes: int) -> float:
    """How far two strategies of so many processes each differ by chance: t with the run's spread as four observations,
    and with half of the degrees of freedom that their own processes have. The mean of the faster half has a variance
    1.35 times as large as that of all."""
    return math.expm1(stats.t.ppf(0.975, 4 + (processes - 1)) * deviation * math.sqrt(2 * 1.35 / processes))


def test_of_two_twins_the_later_one_counts() -> None:
    """The strategy of the first one has failed."""
    items = [
        measurement(slug, constant(1e-3, FACTORS), twin_of=slug.removesuffix("#twin") if "#" in slug else None)
        for slug in ("a", "b", "a#twin", "b#twin")
    ]
    control = levels.control(items, levels_of(items), 0.95)
    assert control is not None and control.strategy == "b"


def test_twins_that_agree_by_chance_do_not_promise_more_than_the_spread_allows() -> None:
    items = [
        measurement("a", constant(1e-3, [0.9, 1.0, 1.1])),
        # As fast as the faster half of the others.
        measurement("a#twin", constant(math.sqrt(0.9) * 1e-3, [0.999, 1.001, 1.002]), twin_of="a"),
        measurement("b", constant(2e-3, [0.8, 0.9, 1.0, 1.1, 1.2])),
    ]
    evidence = levels_of(items)
    control = levels.control(items, evidence, 0.95)
    assert control is not None
    assert control.resolution == pytest.approx(by_chance(evidence.spread.deviation, 3), rel=1e-9)
    assert control.resolution > max(control.high - 1, 1 - control.low)


def test_a_twin_of_one_process_gives_no_resolution() -> None:
    original = measurement("a", constant(1e-3, FACTORS))
    for count in (1, 2):
        items = [original, measurement("a#twin", constant(1e-3, FACTORS[:count]), twin_of="a")]
        assert (levels.control(items, levels_of(items), 0.95) is None) == (count == 1)


def test_without_a_twin_the_resolution_is_what_the_spread_lets_the_two_fastest_differ_by() -> None:
    items = [measurement("a", constant(1e-3, FACTORS)), measurement("b", constant(2e-3, FACTORS[:2]))]
    evidence = levels_of([*items, measurement("slow", constant(3e-3, [1.0]))])
    assert levels.control(items, evidence, 0.95) is None
    expected = by_chance(evidence.spread.deviation, 2)
    assert levels.resolution(None, evidence, 0.95) == pytest.approx(expected, rel=1e-9)
    assert levels.resolution(None, levels_of([]), 0.95) == 0.0
