"""Break-even points: exact on hand-made costs, and said as what they are."""

import math

import pytest
from msgspec.structs import replace

from measure.judge import payoff
from measure.judge.analysis import analyse
from measure.model.run import Latency, Measurement, Run
from measure.statistics import break_even
from measure.statistics.break_even import Cost, Crossing
from tests.samples import FACTORS, constant, measurement, run_of


def figure(value_s: float, down: float = 1.0, up: float = 1.0) -> Latency:
    return Latency(median_s=value_s, low_s=value_s * down, high_s=value_s * up)


def cost(first_s: float, further_s: float, *, first: float = 1.0, further: float = 1.0) -> Cost:
    """With intervals from value / factor to value · factor."""
    return Cost(figure(first_s, 1 / first, first), figure(further_s, 1 / further, further))


EAGER = cost(0.002, 0.002)


def test_costs_that_are_known_exactly_are_equal_at_the_break_even_point_if_there_is_one() -> None:
    later = cost(0.101, 0.001)
    # 0.101 + (n − 1) · 0.001 = 0.002 + (n − 1) · 0.002 at n = 100.
    crossing = break_even.crossing(later, EAGER)
    assert crossing.pays_off == "calls"
    assert (crossing.calls, crossing.low, crossing.high) == pytest.approx((100.0, 100.0, 100.0))
    back = break_even.crossing(EAGER, later)
    assert (back.pays_off, back.calls) == ("until", pytest.approx(100.0))
    assert break_even.crossing(cost(0.1, 0.003, first=3.0, further=1.1), EAGER) == Crossing("never")
    assert break_even.crossing(cost(0.002, 0.001), EAGER) == Crossing("from_first")
    # Where the first calls' scatter leaves open which starts earlier, it may take a few calls.
    open_ = break_even.crossing(cost(0.001, 0.001, first=4.0), EAGER)
    assert (open_.pays_off, open_.calls, open_.low, open_.high) == ("calls", 1.0, 1.0, pytest.approx(3.0))


def test_latencies_that_overlap_decide_nothing_but_how_many_calls_it_takes_at_least() -> None:
    ours, theirs = cost(0.1, 0.0019, further=1.1), cost(0.002, 0.002, further=1.1)
    crossing = break_even.crossing(ours, theirs)
    assert (crossing.pays_off, crossing.calls, crossing.high) == ("undecided", None, None)
    # At the most, a call may save what the interval of the difference reaches to.
    saves = 0.0001 + math.hypot(0.0019 - 0.0019 / 1.1, 0.0002)
    assert crossing.low == pytest.approx(1 + 0.098 / saves)


def test_the_ends_are_where_the_interval_of_the_difference_begins_and_ceases_to_hold_zero() -> None:
    ours, theirs = cost(0.1, 0.001, first=1.3, further=1.1), cost(0.003, 0.0016, first=1.2, further=1.05)
    crossing = break_even.crossing(ours, theirs)
    assert crossing.calls is not None and crossing.low is not None and crossing.high is not None
    assert 1 < crossing.low < crossing.calls < crossing.high

    def ends(calls: float) -> tuple[float, float]:
        parts = [(1, ours.first), (calls - 1, ours.further), (-1, theirs.first), (1 - calls, theirs.further)]
        value = sum(factor * each.median_s for factor, each in parts)
        reach = [[(each.low_s - each.median_s) * f, (each.high_s - each.median_s) * f] for f, each in parts]
        down, up = (math.hypot(*(pick(each) for each in reach)) for pick in (min, max))
        return value - down, value + up

    assert ends(crossing.low)[0] == pytest.approx(0.0, abs=1e-12)
    assert ends(crossing.high)[1] == pytest.approx(0.0, abs=1e-12)


def test_ties_do_not_overtake_each_other() -> None:
    ours, theirs = cost(0.1, 0.00099), cost(0.002, 0.001)
    assert break_even.crossing(ours, theirs).pays_off == "calls"
    assert break_even.crossing(ours, theirs, tied=True).pays_off == "undecided"
    assert break_even.crossing(theirs, ours, tied=True).pays_off == "from_first"


def with_first_calls(item: Measurement, mode: str, first_s: list[float], **options: bool) -> Measurement:
    """``first_s``: one for each replica; the strategy reports its first process'."""
    replicas = [replace(replica, first_call_s=each) for replica, each in zip(item.replicas, first_s, strict=True)]
    return replace(item, mode=mode, options=dict(options), first_call_s=first_s[0], replicas=replicas)


def run_with(*items: Measurement) -> Run:
    return analyse(run_of(*items))


def test_a_run_compares_each_compiled_strategy_that_is_right_with_each_eager_one() -> None:
    first_s = [0.1, 0.18, 0.22, 0.2, 0.2]
    early_s = [each / 50 for each in first_s]
    items = [
        with_first_calls(measurement("fast.xla", constant(1e-3, FACTORS)), "xla", first_s),
        with_first_calls(measurement("slow.graph", constant(9e-3, FACTORS)), "graph", first_s),
        with_first_calls(measurement("jit.eager", constant(1.5e-3, FACTORS)), "eager", first_s, jit_compile=True),
        with_first_calls(measurement("one.eager", constant(2e-3, FACTORS)), "eager", early_s),
        with_first_calls(measurement("two.eager", constant(4e-3, FACTORS)), "eager", early_s),
        with_first_calls(measurement("wrong.xla", constant(1e-4, FACTORS), outcome="wrong"), "xla", first_s),
        with_first_calls(measurement("wrong.eager", constant(5e-3, FACTORS), outcome="wrong"), "eager", early_s),
        with_first_calls(measurement("late.eager", constant(5e-3, FACTORS), outcome="timeout"), "eager", early_s),
        with_first_calls(measurement("fast.xla#twin", constant(1e-3, FACTORS), twin_of="fast.xla"), "xla", first_s),
    ]
    run = run_with(*items)
    pairs = {item.strategy: [(each.against, each.pays_off) for each in item.break_even] for item in run.measurements}
    both = [("one.eager", "calls"), ("two.eager", "calls")]
    assert {slug: each for slug, each in pairs.items() if each} == {
        "fast.xla": both,
        "slow.graph": [("one.eager", "never"), ("two.eager", "never")],
        "jit.eager": both,
    }
    crossing = run.measurement("fast.xla").break_even[0]
    saves_s = 1e-3 * math.prod(FACTORS) ** (1 / len(FACTORS))
    assert crossing.calls == pytest.approx(1 + 0.098 / saves_s, rel=1e-3)
    assert crossing.low is not None and crossing.high is not None
    # The first call may be 1.18 times as long or as short (t with 18 degrees of freedom, deviation 0.08).
    assert 0.81 < crossing.low / crossing.calls < 0.86 and 1.17 < crossing.high / crossing.calls < 1.23
    assert payoff.table(run).compiled == ("fast.xla", "jit.eager", "slow.graph")
    assert analyse(run) == run
    tied = break_even.pairs(replace(run, ranking=[["fast.xla", "one.eager"], ["two.eager"]]))
    assert [each.pays_off for each in tied["fast.xla"]] == ["undecided", "calls"], "the run says that they tie"
