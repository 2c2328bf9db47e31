"""Break-even points: exact on hand-made costs, and said as what they are; who is the cheapest."""

import math

import pytest

from measure.judge import break_even
from measure.judge.break_even import Cost, Stretch
from measure.run.run import Latency


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
    assert break_even.crossing(cost(0.1, 0.003, first=3.0, further=1.1), EAGER).pays_off == "never"
    assert break_even.crossing(cost(0.002, 0.001), EAGER).pays_off == "from_first"
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


def test_ties_do_not_overtake_each_other() -> None:
    ours, theirs = cost(0.1, 0.00099), cost(0.002, 0.001)
    assert break_even.crossing(ours, theirs).pays_off == "calls"
    assert break_even.crossing(ours, theirs, tied=True).pays_off == "undecided"
    assert break_even.crossing(theirs, ours, tied=True).pays_off == "from_first"


def test_the_cheapest_after_n_calls_and_how_sure_the_places_are() -> None:
    costs = {"a": cost(1.0, 1.0), "b": cost(10.0, 0.1), "c": cost(50.0, 0.05), "never": cost(60.0, 0.2)}
    ties: dict[str, int | None] = dict.fromkeys(costs)
    # a: n; b: 10 + 0.1 (n − 1); they meet at n = 11. c: 50 + 0.05 (n − 1); it meets b at n = 801.
    exact = [Stretch("a", 1), Stretch("b", 12, 11, 12), Stretch("c", 802, 801, 802)]
    assert break_even.cheapest(costs, ties) == exact and break_even.cheapest({}, {}) == []
    # c starts with 40 to 62.5 s, b still with exactly 10: they meet after 601 to 1 051 calls.
    uncertain = break_even.cheapest(costs | {"c": cost(50.0, 0.05, first=1.25)}, ties)
    assert uncertain[2] == Stretch("c", 802, 601, 1051)
    places = "a at first, b from 12 calls (11–12), c from 802 calls (601–1,051)."
    assert break_even.sentence(uncertain) == f"Cheapest in total, first call included: {places}"
    missing = break_even.sentence(uncertain[:1], ["d"])
    assert missing.startswith("Cheapest in total of the strategies that were timed, "), "another one may be cheaper"
    assert break_even.cheapest(costs, ties | {"b": 0, "c": 0}) == exact[:2], "who ties does not overtake"
