"""From samples to levels: turns, rounds, one variance, and what a run can tell."""

import math
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from measure.judge import analysis
from measure.model.run import Analysis, Latency, Measurement, Replica
from measure.model.run_file import decode
from measure.statistics import intervals, levels, ranking
from measure.statistics.levels import RERUN, Spread, levels_of, shown_levels
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


def test_one_variance_is_pooled_over_all_strategies_and_gives_a_lone_process_its_interval() -> None:
    rng = np.random.default_rng(4)
    logs = [rng.normal(place, 0.03, count) for place, count in enumerate((2, 3, 6, 1))]
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in logs)
    assert levels.spread_of(logs) == Spread(pytest.approx(math.sqrt(squares / 8)), 8.0)
    items = [measurement(f"s{place}", [[math.exp(value)] for value in values]) for place, values in enumerate(logs)]
    evidence = levels_of(items)
    for slug, count in (("s2", 6), ("s3", 1)):
        assert evidence.by_slug[slug].variance == pytest.approx(
            evidence.spread.deviation**2 / count + RERUN**2 / 2, rel=1e-9
        )
    assert evidence.by_slug["s3"].degrees >= 8.0


def test_one_process_of_each_tells_nothing_but_the_largest_differences() -> None:
    items = [measurement(f"s{place}", [[1e-3 * times] * 5]) for place, times in enumerate((1.0, 2.79, 100.0))]
    order = ranking.Order(levels_of(items).by_slug, Analysis())
    assert order.groups() == [["s0", "s1"], ["s2"]]


def lies_within(item: Measurement) -> bool:
    """True if what a run shows of a strategy's latency lies between its least and its greatest sample."""
    assert item.latency is not None
    samples_s = [seconds for replica in item.replicas for seconds in replica.samples_s]
    # What is shown has ten digits.
    least_s, greatest_s = min(samples_s) * (1 - 1e-9), max(samples_s) * (1 + 1e-9)
    return all(least_s <= seconds <= greatest_s for seconds in (item.latency.median_s, item.latency.typical_s))


def test_every_latency_lies_within_its_own_samples() -> None:
    """1,000 random runs: one to five strategies of one to seven processes each, in rounds of their own, whose pace
    changes over the run, and which are disturbed."""
    rng = np.random.default_rng(7)
    for _ in range(1000):
        items, pace = [], rng.normal(0.0, 0.3)
        for strategy in range(rng.integers(1, 6)):
            latency_s, replicas = math.exp(rng.uniform(-14.0, 1.0)), []
            for number in range(rng.integers(1, 8)):
                count, begun_s = rng.integers(1, 25), rng.uniform(0.0, 12.0)
                logs = pace * begun_s + rng.normal(0.0, 0.2) + rng.exponential(rng.uniform(0.0, 1.0), count)
                replicas.append(
                    Replica(
                        id=number,
                        calls_per_sample=1,
                        rounds=sorted(rng.integers(1, 12, count).tolist()),
                        at_s=(begun_s + 0.003 * np.arange(count)).tolist(),
                        samples_s=(latency_s * np.exp(logs)).tolist(),
                    )
                )
            items.append(replace(measurement(f"s{strategy}", []), replicas=replicas))
        assert all(map(lies_within, analysis.analyse(run_of(*items)).measurements)), items


def test_a_file_whose_latencies_no_call_ever_took_is_right_when_it_is_analysed_anew() -> None:
    """Version 3 extrapolated a drift of the machine: 67.3 ns where the least sample is 263 µs."""
    run = decode((Path(__file__).parents[2] / "data" / "square_3.json").read_bytes())
    assert not any(map(lies_within, run.measurements[:3]))
    assert all(map(lies_within, analysis.analyse(run).measurements))


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


def test_the_control_is_the_ratio_of_the_twins_and_what_is_told_between_the_two_fastest() -> None:
    items = [
        measurement("a", constant(1e-3, FACTORS)),
        measurement("b", constant(2e-3, FACTORS[:2])),
        measurement("c", constant(3e-3, [1.0])),
        measurement("a#twin", constant(1.05e-3, FACTORS), twin_of="a"),
    ]
    evidence = levels_of(items)
    control = levels.control(items, evidence, Analysis())
    assert control is not None
    twins = intervals.ratio(evidence.by_slug["a#twin"], evidence.by_slug["a"], 0.95)
    assert (control.ratio, control.low, control.high) == (twins.ratio, twins.low, twins.high)
    assert control.ratio == pytest.approx(1.05, rel=1e-3)
    a, b = evidence.by_slug["a"], evidence.by_slug["b"]
    # Two comparisons with the fastest, so that each has half of the error.
    quantile = stats.t.ppf(1 - 0.05 / 4, min(a.degrees, b.degrees))
    assert control.resolution == pytest.approx(math.expm1(quantile * math.sqrt(a.variance + b.variance)), rel=1e-9)


def test_without_a_twin_or_a_second_process_of_any_strategy_there_is_no_control() -> None:
    several = [measurement("a", constant(1e-3, FACTORS)), measurement("b", constant(2e-3, FACTORS[:2]))]
    assert levels.control(several, levels_of(several), Analysis()) is None
    single = [measurement("a", constant(1e-3, [1.0])), measurement("a#twin", constant(1e-3, [1.0]), twin_of="a")]
    assert levels.control(single, levels_of(single), Analysis()) is None
