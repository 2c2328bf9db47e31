"""What a round does to all, and what a change between rounds leaves open."""

import math

import numpy as np
import pytest

from measure.model.run import Measurement, Replica
from measure.statistics import intervals
from measure.statistics.effects import detrend
from measure.statistics.levels import levels_of
from tests.samples import measurement


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
