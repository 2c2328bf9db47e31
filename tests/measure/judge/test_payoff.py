"""The cheapest strategy in total, as the number of calls grows."""

from measure.judge import payoff
from measure.judge.break_even import Cost
from measure.judge.payoff import Stretch
from measure.run.run import Latency


def cost(first_s: float, further_s: float, spread: float = 1.0) -> Cost:
    first = Latency(median_s=first_s, low_s=first_s / spread, high_s=first_s * spread)
    return Cost(first, Latency(median_s=further_s, low_s=further_s, high_s=further_s))


def test_the_cheapest_after_n_calls_and_how_sure_the_places_are() -> None:
    costs = {"a": cost(1.0, 1.0), "b": cost(10.0, 0.1), "c": cost(50.0, 0.05), "never": cost(60.0, 0.2)}
    ties: dict[str, int | None] = dict.fromkeys(costs)
    # a: n; b: 10 + 0.1 (n − 1); they meet at n = 11. c: 50 + 0.05 (n − 1); it meets b at n = 801.
    exact = [Stretch("a", 1), Stretch("b", 12, 11, 12), Stretch("c", 802, 801, 802)]
    assert payoff.cheapest(costs, ties) == exact and payoff.cheapest({}, {}) == []
    # c starts with 40 to 62.5 s, b still with exactly 10: they meet after 601 to 1 051 calls.
    uncertain = payoff.cheapest(costs | {"c": cost(50.0, 0.05, spread=1.25)}, ties)
    assert uncertain[2] == Stretch("c", 802, 601, 1051)
    assert "b from 12 [11, 12] calls on, c from 802 [601, 1 051] calls on" in payoff.sentence(uncertain)
    assert payoff.cheapest(costs, ties | {"b": 0, "c": 0}) == exact[:2], "who ties does not overtake"
