"""From samples to levels: quartiles, the level of a strategy, and what a run can tell."""

import math
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from measure.judge import analysis
from measure.model.run import Analysis, Latency, Measurement, Replica
from measure.model.run_file import decode
from measure.statistics import intervals, levels
from measure.statistics.levels import levels_of, shown_levels
from tests.samples import FACTORS, constant, measurement, run_of

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


def lies_within(item: Measurement) -> bool:
    """True if what a run shows of a strategy's latency lies between its least and its greatest sample."""
    assert item.latency is not None
    samples_s = [seconds for replica in item.replicas for seconds in replica.samples_s]
    # What is shown has ten digits.
    least_s, greatest_s = min(samples_s) * (1 - 1e-9), max(samples_s) * (1 + 1e-9)
    return all(least_s <= seconds <= greatest_s for seconds in (item.latency.median_s, item.latency.typical_s))


def test_every_latency_lies_within_its_own_samples() -> None:
    """1,000 random runs: one to five strategies of one to seven processes each, at times of their own, whose pace
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
                        rounds=[1] * count,
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
