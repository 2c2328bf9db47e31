"""From samples to levels, intervals and ranks: exact on hand-made samples, and right about how often they are right on
simulated runs."""

import math
from collections import Counter
from unittest import mock

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from measure.judge import analysis, levels
from measure.judge.levels import Level, Order, by_memory, levels_of, shown_levels
from measure.run.run import Analysis, Latency, Measurement, Replica
from tests.samples import FACTORS, constant, measurement, run_of
from tests.simulation import ROUNDS, Model, interfered, simulate


def in_turns(slug: str, *processes: dict[int, list[float]]) -> Measurement:
    """A strategy with these processes, each with the samples of a turn, in seconds, by the turn's round."""
    replicas = [
        Replica(
            id=place,
            calls_per_sample=1,
            rounds=[number for number, samples_s in turns.items() for _ in samples_s],
            samples_s=[sample_s for samples_s in turns.values() for sample_s in samples_s],
        )
        for place, turns in enumerate(processes)
    ]
    return replace(measurement(slug, []), replicas=replicas)


def test_what_a_round_does_to_all_is_taken_out_of_ratios_and_shown_as_the_pace() -> None:
    """The slower one has one process, which was there in the slow rounds alone."""
    pace = {1: 1.5, 2: 1.4, 3: 1.0, 4: 1.0, 5: 1.1, 6: 1.0}
    fast = [{turn: [1e-3 * times] for turn, times in pace.items()}] * 30
    slow = {turn: [2e-3 * pace[turn]] for turn in (1, 2)}
    evidence = levels_of([in_turns("fast", *fast), in_turns("slow", slow)])
    ratio = levels.ratio(evidence.by_slug["slow"], evidence.by_slug["fast"], 0.95)
    assert ratio.ratio == pytest.approx(2.0, rel=0.02), "and not 2.9"
    assert evidence.pace == pytest.approx(np.std(np.log(list(pace.values()))), rel=0.1)
    shown = levels.latency(in_turns("fast", *fast), evidence, 0.95)
    assert shown is not None and shown.high_s / shown.median_s > 1.3 > ratio.high / ratio.ratio


def test_every_latency_lies_within_its_own_samples() -> None:
    """Processes take their turns in rounds of their own, whose pace changes a great deal, and are disturbed."""
    rng = np.random.default_rng(7)

    def process(pace: float) -> dict[int, list[float]]:
        rounds = sorted(rng.choice(12, rng.integers(1, 6), replace=False).tolist())
        return {number: np.exp(pace * number + rng.exponential(0.5, rng.integers(1, 5))).tolist() for number in rounds}

    for _ in range(500):
        pace = rng.normal(0.0, 0.3)
        items = [in_turns(slug, *(process(pace) for _ in range(rng.integers(1, 6)))) for slug in "abc"]
        for item in analysis.analyse(run_of(*items)).measurements:
            samples_s = [seconds for replica in item.replicas for seconds in replica.samples_s]
            assert item.latency is not None
            for shown_s in (item.latency.median_s, item.latency.typical_s):  # which have ten digits
                assert min(samples_s) * (1 - 1e-9) <= shown_s <= max(samples_s) * (1 + 1e-9), items


def test_a_run_of_an_earlier_method_has_the_levels_whose_intervals_it_shows() -> None:
    shown = Latency(median_s=3e-3, low_s=2.5e-3, high_s=3.6e-3)
    item = replace(measurement("a", constant(1e-3, FACTORS)), latency=shown)
    run = replace(run_of(item, measurement("untimed", [])), analysis=Analysis(version=2))
    by_slug = shown_levels(run)
    assert list(by_slug) == ["a"]
    assert math.exp(by_slug["a"].log_mean) == pytest.approx(3e-3, rel=1e-12)
    assert by_slug["a"].interval(0.95) == pytest.approx((2.5e-3, 3.6e-3), rel=1e-9)
    assert by_slug["a"].degrees == 4.0, "of five processes"


def test_a_ratio_is_students_t_test_with_the_degrees_of_the_runs_one_variance() -> None:
    a, b = Level(math.log(1.0e-3), 4e-4, 9.0), Level(math.log(1.2e-3), 9e-4, 5.0)
    error = math.sqrt(4e-4 + 9e-4)
    half = stats.t.ppf(0.975, 5.0) * error
    ratio = levels.ratio(b, a, 0.95)
    assert ratio.ratio == pytest.approx(1.2, rel=1e-12)
    assert (ratio.low, ratio.high) == pytest.approx((1.2 * math.exp(-half), 1.2 * math.exp(half)), rel=1e-9)


def level(seconds: float, relative_error: float = 0.005) -> Level:
    return Level(math.log(seconds), relative_error**2, 8.0)


def test_the_more_strategies_are_compared_the_more_a_difference_has_to_show() -> None:
    # Two standard errors of the difference and a half: significant as the only comparison, not as one of eleven.
    a, b = level(1e-3), level(1e-3 * math.exp(2.5 * 0.005 * math.sqrt(2)))
    assert Order({"a": a, "b": b}, Analysis()).groups() == [["a"], ["b"]]
    others = {f"slow{index}": level(1.0 * 2**index) for index in range(9)}
    assert Order({"a": a, "b": b, **others}, Analysis()).groups()[0] == ["a", "b"]


def test_all_up_to_the_slowest_that_may_be_as_fast_tie_so_that_ranks_are_in_the_order_of_latencies() -> None:
    levels = {"a": level(1e-3, 1e-3), "b": level(1.1e-3, 1e-3), "noisy": level(1.2e-3, 0.12), "far": level(5e-3)}
    assert Order(levels, Analysis()).groups() == [["a", "b", "noisy"], ["far"]]


def test_ranks_of_very_many_take_no_comparison_of_each_pair_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = mock.Mock(side_effect=levels.student_quantile)
    monkeypatch.setattr(levels, "student_quantile", counting)
    many = {f"s{number}": level(1e-3 * 1.1**number) for number in range(300)}
    assert Order(many, Analysis()).groups() == [[name] for name in many] and counting.call_count == 1


def test_the_resolution_is_the_least_difference_that_is_told_between_the_two_fastest() -> None:
    fast, next_error, far = level(1e-3, 0.01), 0.03, level(1.0)
    told = Order({"a": fast, "b": level(1.1e-3, next_error), "far": far}, Analysis()).resolution
    for times, leaders in ((1.01, ["a"]), (0.99, ["a", "b"])):
        order = Order({"a": fast, "b": level(1e-3 * (1 + told * times), next_error), "far": far}, Analysis())
        assert order.groups()[0] == leaders
    assert Order({"a": fast}, Analysis()).resolution == 0.0
    assert Order({}, Analysis()).groups() == []


def test_memory_breaks_ties_beyond_a_hundredth() -> None:
    peaks = {"a": 1_000, "b": 500, "c": 1_009}
    assert by_memory(["c", "a", "b"], peaks) == ["b", "c", "a"]
    assert by_memory(["unknown", "a"], peaks) == ["a", "unknown"]


# A spread between processes of a third to three times the scatter of the samples, as real runs show it.
MODELS = [
    Model(process=process, sample=sample)
    for process, sample in ((0.02, 0.03), (0.03, 0.01), (0.01, 0.03), (0.02, 0.01), (0.06, 0.06))
]
# Some that are close to the leader, some that are not far, and some that are.
LATENCIES_S = {f"s{place}": 1e-3 * times for place, times in enumerate((1, 1.03, 1.15, 1.5, 2.2, 4, 10, 20))}


def test_of_two_equals_one_is_rarely_called_slower_and_of_twelve_one_rarely_no_leader() -> None:
    """No more often than in one of twenty, but for what one of twenty experiments exceeds."""
    for runs, count in ((120, 2), (60, 12)):
        latencies_s, missed = {f"s{place}": 1e-3 for place in range(count)}, 0
        for seed in range(runs):
            first, *others = simulate(latencies_s, MODELS[seed % len(MODELS)], seed).order.groups()
            missed += bool(others) if count == 2 else "s0" not in first
        assert missed <= stats.binom.ppf(0.95, runs, 0.05), (count, missed)


def test_intervals_of_ratios_hold_beside_programs_that_come_and_go_however_few_slices_there_are() -> None:
    """Nine of ten hold the true ratio."""
    latencies_s = {"a": 2.5e-4, "b": 4.5e-4, "base": 2e-3, "long": 0.04, "longest": 0.15}
    for factor, rounds in ((1.5, 0), (2.0, ROUNDS), (3.0, ROUNDS), (2.0, 3 * ROUNDS)):
        held = Counter[str]()
        for seed in range(40):
            by_slug = levels_of(interfered(latencies_s, seed, factor=factor, rounds=rounds)).by_slug
            for slug in by_slug.keys() - {"base"}:
                ratio = levels.ratio(by_slug[slug], by_slug["base"], 0.95)
                held[slug] += ratio.low <= latencies_s[slug] / latencies_s["base"] <= ratio.high
        assert min(held.values()) >= stats.binom.ppf(0.05, 40, 0.9), (factor, rounds, held)
        assert held.total() >= 0.9 * 4 * 40, (factor, rounds, held)


def test_intervals_cover_as_often_as_they_say_among_near_ones_and_those_far_behind_alike() -> None:
    """The intervals of ratios to the fastest hold the true ratio."""
    held, counted = Counter[bool](), Counter[bool]()
    for model in MODELS:
        for result in (simulate(LATENCIES_S, model, seed) for seed in range(28)):
            by_slug = levels_of(result.measurements).by_slug
            for slug, latency_s in list(LATENCIES_S.items())[1:]:
                is_near, ratio = latency_s < 3e-3, levels.ratio(by_slug[slug], by_slug["s0"], 0.95)
                held[is_near] += ratio.low <= latency_s / 1e-3 <= ratio.high
                counted[is_near] += 1
    assert all(held[is_near] / counted[is_near] >= 0.92 for is_near in (True, False)), (held, counted)
