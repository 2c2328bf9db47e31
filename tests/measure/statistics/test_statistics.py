"""Intervals and ratios: exact on hand-made samples, and right about how often they are right on simulated ones."""

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import views
from measure.judge import analysis
from measure.model.run import Analysis, Measurement, Replica, RequestRecord, Run, decode
from measure.statistics import intervals, levels, ranking
from measure.statistics.effects import detrend
from measure.statistics.intervals import Level
from measure.statistics.levels import ASSUMED_SPREAD, levels_of
from tests.simulation import Model, simulate


def measurement(
    slug: str, processes: list[list[float]], twin_of: str | None = None, outcome: str = "ok"
) -> Measurement:
    """A strategy whose processes all took part in rounds 1, 2, 3 …"""
    replicas = [
        Replica(id=index, calls_per_sample=1, rounds=list(range(1, len(samples) + 1)), samples_s=samples)
        for index, samples in enumerate(processes)
    ]
    return Measurement(strategy=slug, mapper=slug, mode="graph", twin_of=twin_of, outcome=outcome, replicas=replicas)


def run_of(*measurements: Measurement) -> Run:
    request = RequestRecord(
        workload="w", size={"batch": 1}, dtype="float32", device="CPU:0", strategies=["a"], budget_s=1.0
    )
    return Run(id="0" * 24, created="2026-01-01T00:00:00Z", request=request, measurements=list(measurements))


def constant(value_s: float, processes: list[float]) -> list[list[float]]:
    """Processes with these factors, five equal samples each."""
    return [[value_s * factor] * 5 for factor in processes]


FACTORS = [0.98, 0.99, 1.0, 1.01, 1.02]


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


def test_what_a_round_does_to_all_is_taken_out() -> None:
    # Round 2 was 3 times slower for everybody: no process' median may move, and none scatter.
    slow = [1.0, 3.0, 1.0, 1.0, 3.0, 1.0]
    items = [
        measurement(slug, [[level * factor for factor in slow]]) for slug, level in [("a", 1.0), ("b", 2.0), ("c", 5)]
    ]
    for slug, level in [("a", 1.0), ("b", 2.0), ("c", 5.0)]:
        assert detrend(items).logs[slug][0] == pytest.approx([math.log(level)] * 6, abs=1e-9)
    assert detrend(items).effects == pytest.approx(np.log(slow), abs=1e-9)


def test_a_strategy_that_was_sampled_only_while_the_machine_was_slow_is_compared_fairly() -> None:
    # "early" took part in the first two rounds alone, when everything took twice as long.
    pace = [2.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    items = [
        measurement(slug, [[level * factor for factor in pace]]) for slug, level in [("a", 1.0), ("b", 1.5), ("c", 3)]
    ]
    early = measurement("early", [[1.2 * factor for factor in pace[:2]]])
    levels = levels_of([*items, early]).by_slug
    assert math.exp(levels["early"].log_mean) == pytest.approx(1.2, rel=1e-9)


def test_rounds_with_fewer_than_three_subjects_have_one_effect_together() -> None:
    items = [measurement("a", [[1.0, 2.0, 1.0, 1.0]]), measurement("b", [[3.0, 3.0, 3.0, 6.0]])]
    assert list(detrend(items).effects) == [0.0] * 4
    assert [len(set(np.round(each, 9))) for logs in detrend(items).logs.values() for each in logs] == [2, 2]


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


def test_recomputing_from_the_stored_samples_gives_the_same_numbers_to_the_last_digit() -> None:
    from measure.model.run import decode, encode

    simulated = simulate({"a": 1e-3, "b": 1.02e-3, "c": 4e-3}, Model(), seed=5)
    first = analysis.analyse(run_of(*simulated.measurements))
    again = analysis.analyse(decode(encode(first)))
    assert encode(again) == encode(first)
    assert first.ranking


def test_another_processor_computes_the_same_numbers_to_the_last_digit() -> None:
    """The libraries have kernels for each family of processors, which differ in the last bits."""
    root = Path(views.__file__).parents[1]
    script = (
        "import sys; from measure.judge import analysis; from measure.model.run import decode, encode; "
        "sys.stdout.buffer.write(encode(analysis.analyse(decode(sys.stdin.buffer.read()))))"
    )
    here, elsewhere = (
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=root,
            env={**os.environ, **kernels},
            input=(root / "views/example_run.json").read_bytes(),
            capture_output=True,
            check=True,
        ).stdout
        for kernels in ({}, {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1"})
    )
    assert here == elsewhere
    latencies = [item.latency for item in decode(here).measurements if item.latency]
    assert latencies and all(each.low_s == float(f"{each.low_s:.10g}") for each in latencies)


def scouted_then_raced(early: float, late: float) -> list[Measurement]:
    """A leader whose first process took part in all of nine rounds, and others only in the last four; three that took
    part in the first five alone. Everything takes ``early`` times as long in these, and ``late`` times after them."""
    losers = [measurement(slug, [[level * early] * 5]) for slug, level in [("b", 2.0), ("c", 3.0), ("d", 4.0)]]
    first = Replica(id=0, calls_per_sample=1, rounds=[*range(1, 10)], samples_s=[early] * 5 + [late] * 4)
    more = [
        Replica(id=index, calls_per_sample=1, rounds=[*range(6, 10)], samples_s=[late] * 4) for index in range(1, 5)
    ]
    return [Measurement(strategy="a", mapper="a", mode="graph", outcome="ok", replicas=[first, *more]), *losers]


def test_a_change_between_scouting_and_racing_is_seen_through_a_process_that_lived_through_it_and_widens_the_interval():
    """It may be the machine's, and then concerns those that rested too, or come from more time to warm up."""
    samples = detrend(scouted_then_raced(1.5, 1.0))
    assert samples.steps == pytest.approx([math.log(1.5)] * 5 + [0.0] * 4, abs=1e-6)
    assert list(samples.phases) == [0] * 5 + [1] * 4
    levels = levels_of(scouted_then_raced(1.5, 1.0)).by_slug
    found = intervals.ratio(levels["b"], levels["a"], 0.95)
    assert found.ratio == pytest.approx(3.0, rel=1e-6), "nothing is taken out"
    assert found.low < 2.0, "all of it may have to be"
    apart = intervals.difference(levels["b"], levels["a"])
    assert apart.variance == pytest.approx(levels["b"].variance + math.log(1.5) ** 2 / 2, rel=1e-3)
    # Those that rested together are compared as if nothing had been.
    assert intervals.difference(levels["b"], levels["c"]).variance == pytest.approx(2 * levels["b"].variance)


def test_a_leaders_latency_rests_on_the_rounds_of_all_its_processes() -> None:
    levels = levels_of(scouted_then_raced(1.5, 1.0)).by_slug
    assert math.exp(levels["a"].log_mean) == pytest.approx(1.0, rel=1e-9)
    assert levels["a"].variance == pytest.approx(0.0, abs=1e-12), "its processes do not differ"
    assert levels["a"].interval(0.95) == pytest.approx((1.0, 1.0), rel=1e-9)
    assert levels["b"].interval(0.95)[0] < 2.0


def test_parts_of_a_run_that_no_process_links_are_taken_to_be_of_one_pace() -> None:
    def part(slug: str, first: int, pace: float) -> Measurement:
        samples = [pace * each for each in (1.0, 1.1, 1.0)]
        replica = Replica(id=0, calls_per_sample=1, rounds=[first, first + 1, first + 2], samples_s=samples)
        return Measurement(strategy=slug, mapper=slug, mode="graph", outcome="ok", replicas=[replica])

    found = detrend([part("abc"[each], 1, 1.0) for each in range(3)] + [part("def"[each], 4, 2.0) for each in range(3)])
    assert found.effects == pytest.approx(2 * [0.0, math.log(1.1), 0.0], abs=1e-9)


def test_a_level_of_another_run_is_compared_with_the_uncertainty_of_its_rounds() -> None:
    level = Level(0.0, 4e-4, 8.0, 5, link=(0.01, -0.02))
    alone = level.alone()
    assert alone.variance == pytest.approx(4e-4 + 5e-4)
    assert alone.degrees == pytest.approx(8.0 * (9 / 4) ** 2)
    assert alone.link == ()
    assert level.interval(0.95) == alone.interval(0.95)
    # Of one run, what both have in common is none.
    assert intervals.difference(level, level).variance == pytest.approx(8e-4)


def test_without_a_twin_the_resolution_is_what_the_spread_lets_the_two_fastest_differ_by() -> None:
    items = [measurement("a", constant(1e-3, FACTORS)), measurement("b", constant(2e-3, FACTORS[:2]))]
    found = levels_of([*items, measurement("slow", constant(3e-3, [1.0]))])
    spread = found.spread
    chance = stats.t.ppf(0.975, spread.degrees) * spread.deviation * math.sqrt(2 / 2)
    assert levels.resolution(None, found, 0.95) == pytest.approx(math.expm1(chance), rel=1e-9)
    assert levels.resolution(None, levels_of([]), 0.95) == 0.0


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
    """2 000 comparisons of a strategy with itself, racing included."""
    pairs = 2_000
    declared, missed = dict.fromkeys(MODELS, 0), dict.fromkeys(MODELS, 0)
    for seed in range(pairs):
        model = MODELS[seed % len(MODELS)]
        found = simulate({"a": 1e-3, "b": 1e-3}, model, seed)
        ratio = intervals.ratio(found.levels["b"], found.levels["a"], 0.95)
        missed[model] += not ratio.low <= 1.0 <= ratio.high
        declared[model] += len(ranking.Order(found.levels, Analysis(), found.control_resolution).groups()) > 1
    assert 0.93 <= 1 - sum(missed.values()) / pairs <= 0.975
    # With none of the models more than 7 %, beyond what 400 pairs show by chance.
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
