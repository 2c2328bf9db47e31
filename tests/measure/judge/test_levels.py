"""From samples to levels: turns, rounds, one variance, and what a run can tell."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from measure.judge import analysis, intervals, levels, ranking
from measure.judge.levels import levels_of, shown_levels
from measure.run.run import Analysis, Latency, Measurement, Replica
from tests.samples import FACTORS, constant, measurement, run_of

# --- of a turn, a process, and a strategy ----------------------------------------------------------------------------


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


def test_a_level_is_the_mean_of_processes_each_of_which_is_the_mean_of_the_lower_quartiles_of_its_turns() -> None:
    rng = np.random.default_rng(1)
    processes = [{turn: rng.lognormal(math.log(2e-3), 0.2, 4 + turn).tolist() for turn in (1, 2)} for _ in range(3)]
    evidence = levels_of([in_turns("a", *processes)])
    quartiles = [np.mean([math.log(np.quantile(turn, 0.25)) for turn in each.values()]) for each in processes]
    # What the rounds are taken to have done to one strategy alone is shared by its processes.
    assert evidence.logs["a"] - evidence.logs["a"][0] == pytest.approx(np.array(quartiles) - quartiles[0], abs=1e-12)
    assert evidence.by_slug["a"].log_mean == pytest.approx(np.mean(evidence.logs["a"]), rel=1e-12)
    medians = [math.log(np.median([*each[1], *each[2]])) for each in processes]
    shown = levels.latency(in_turns("a", *processes), evidence, 0.95)
    assert shown is not None and shown.typical_s == pytest.approx(math.exp(np.mean(medians)), rel=1e-12)


def test_what_a_round_does_to_all_is_taken_out_of_ratios_and_shown_as_the_pace() -> None:
    """The slower one has one process, which was there in the slow rounds alone."""
    pace = {1: 1.5, 2: 1.4, 3: 1.0, 4: 1.0, 5: 1.1, 6: 1.0}
    fast = [{turn: [1e-3 * times] for turn, times in pace.items()}] * 30
    slow = {turn: [2e-3 * pace[turn]] for turn in (1, 2)}
    evidence = levels_of([in_turns("fast", *fast), in_turns("slow", slow)])
    ratio = intervals.ratio(evidence.by_slug["slow"], evidence.by_slug["fast"], 0.95)
    assert ratio.ratio == pytest.approx(2.0, rel=0.02), "and not 2.9"
    assert evidence.pace == pytest.approx(np.std(np.log(list(pace.values()))), rel=0.1)
    shown = levels.latency(in_turns("fast", *fast), evidence, 0.95)
    assert shown is not None and shown.high_s / shown.median_s > 1.3 > ratio.high / ratio.ratio


def test_one_process_of_each_tells_nothing_but_the_largest_differences() -> None:
    items = [measurement(f"s{place}", [[1e-3 * times] * 5]) for place, times in enumerate((1.0, 2.79, 100.0))]
    order = ranking.Order(levels_of(items).by_slug, Analysis())
    assert order.groups() == [["s0", "s1"], ["s2"]]


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


# --- files of earlier methods ----------------------------------------------------------------------------------------


def test_a_run_of_an_earlier_method_has_the_levels_whose_intervals_it_shows() -> None:
    shown = Latency(median_s=3e-3, low_s=2.5e-3, high_s=3.6e-3)
    item = replace(measurement("a", constant(1e-3, FACTORS)), latency=shown)
    run = replace(run_of(item, measurement("untimed", [])), analysis=Analysis(version=2))
    by_slug = shown_levels(run)
    assert list(by_slug) == ["a"]
    assert math.exp(by_slug["a"].log_mean) == pytest.approx(3e-3, rel=1e-12)
    assert by_slug["a"].interval(0.95) == pytest.approx((2.5e-3, 3.6e-3), rel=1e-9)
    assert by_slug["a"].degrees == 4.0, "of five processes"
    now = replace(run, analysis=Analysis())
    assert shown_levels(now) == levels_of(now.measurements).by_slug
