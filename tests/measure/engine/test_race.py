"""The rules of racing: who is visited next, and when it is enough."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from measure.engine import race
from measure.engine.race import Race, Rules, Standing
from measure.model.request import DEFAULT_BUDGET_S
from measure.model.run import Analysis
from measure.statistics.intervals import Level

RULES = Rules()
# No race of a few strategies has as many rounds: one that does would go on for ever.
ENDLESS = 200


def standing(
    latencies_s: Mapping[str, float], error: float = 0.005, resolution: float = 0.02, errors: Mapping[str, float] = {}
) -> Standing:
    """``error``: the standard error of each level, relative, but for those in ``errors``."""
    levels = {
        slug: Level(math.log(latency_s), errors.get(slug, error) ** 2, 8.0, 5)
        for slug, latency_s in latencies_s.items()
    }
    return Standing(levels, resolution, Analysis())


class Course:
    """A race over levels that a test changes at will. It keeps the ``rounds`` so far, and how often each slug was
    visited, the first visit of every strategy included."""

    def __init__(
        self,
        latencies_s: Mapping[str, float],
        error: float = 0.001,
        errors: Mapping[str, float] | None = None,
        rules: Rules = RULES,
        affordable: Callable[[str], bool] = lambda slug: True,
    ) -> None:
        self.latencies_s, self.errors = dict(latencies_s), dict(errors or {})
        self.error, self.resolution = error, 0.0
        self.rounds: list[list[str]] = []
        self.visits = Counter(latencies_s.keys())
        self.race = Race(rules, self.standing, lambda slug: slug + "#twin", affordable)

    def standing(self) -> Standing:
        return standing(self.latencies_s, self.error, self.resolution, self.errors)

    def __iter__(self) -> Iterator[list[str]]:
        """Each round, once it has been visited."""
        for slugs in itertools.islice(self.race.rounds(), ENDLESS):
            self.rounds.append(slugs)
            self.visits.update(slugs)
            yield slugs

    def run(self) -> str:
        """Race to the end; its reason."""
        for _ in self:
            pass
        return self.race.reason


def test_neighbours_that_are_separated_or_equivalent_are_not_open() -> None:
    settled = standing({"a": 1.0, "b": 1.0005, "c": 1.2, "d": 1.25}, error=0.003)
    assert settled.undecided("abcd") == []
    assert standing({"a": 1.0, "b": 1.03}, error=0.01).undecided("ab") == ["a", "b"]
    assert standing({"a": 1.0, "b": 1.03}, error=0.01).undecided("b") == [], "only these are looked at"


def test_contenders_are_those_that_may_still_tie_with_the_leader() -> None:
    latencies_s = {"far": 2.0, "a": 1.0, "near": 1.06, "next": 1.09}
    assert standing(latencies_s, error=0.02).contenders() == ["a", "near"]
    assert standing(latencies_s, error=0.02, resolution=0.1).contenders() == ["a", "near", "next"]
    assert standing({}).contenders() == standing({}).within(3.0) == []


def test_what_one_process_says_is_doubted_unless_it_is_far_behind() -> None:
    course = Course({"a": 1.0, "near": 2.9, "far": 3.1})
    assert course.run() == race.DECIDED
    assert course.rounds[0] == ["a", "near", "a#twin", "a#twin"], "two processes of the twin make a control"
    assert (course.visits["near"], course.visits["far"]) == (RULES.doubted, 1)


def test_a_race_ends_as_soon_as_the_leader_is_alone_and_has_the_processes_of_a_contender() -> None:
    course = Course({"a": 1.0, "b": 4.0, "c": 16.0})
    assert course.run() == race.DECIDED
    assert course.visits == {"a": RULES.contender, "a#twin": RULES.contender, "b": 1, "c": 1}


def test_leaders_that_stay_open_get_the_most_processes_and_then_tie() -> None:
    course = Course({"a": 1.0, "b": 1.04, "c": 9.0}, error=0.03)
    assert course.run() == race.EXHAUSTED
    assert course.visits == {"a": RULES.most, "b": RULES.most, "a#twin": RULES.most, "c": 1}


def test_racing_goes_on_until_the_leaders_are_separated() -> None:
    course = Course({"a": 1.0, "b": 1.04}, error=0.03)
    for _ in course:
        if course.visits["a"] == RULES.contender + 2:
            course.error = 0.001
    assert course.race.reason == race.DECIDED
    assert course.visits["a"] == course.visits["b"] == RULES.contender + 2


def test_the_twin_of_the_leader_catches_up_and_races_along() -> None:
    course = Course({"b": 1.04, "a": 1.0}, error=0.03)
    behind: list[int] = []
    for slugs in course:
        if "a#twin" in slugs:
            behind.append(course.visits["a"] - course.visits["a#twin"])
            assert {"a", "b"} <= set(slugs), "it is visited at the same times as they are"
    assert behind == sorted(behind, reverse=True) and min(behind) == 0
    assert behind.count(0) > RULES.most - RULES.contender, "long before they have all their processes"


def test_open_ranks_behind_the_leaders_get_a_few_more_processes() -> None:
    course = Course({"a": 1.0, "b": 5.0, "c": 5.1, "d": 20.0}, errors={"b": 0.05, "c": 0.05})
    assert course.run() == race.DECIDED
    assert (course.visits["b"], course.visits["c"], course.visits["d"]) == (RULES.behind, RULES.behind, 1)


def test_a_strategy_that_fails_while_it_races_leaves_the_race_to_the_others() -> None:
    course = Course({"a": 1.0, "b": 1.04, "c": 1.02}, error=0.03)
    for _ in course:
        if course.visits["c"] == 3:
            course.latencies_s.pop("a", None)
    assert course.race.reason == race.EXHAUSTED
    assert course.visits["a"] == 3 and course.visits["c"] == RULES.most


@settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_whatever_the_levels_become_a_race_ends_and_nobody_has_more_than_the_most_processes(
    seed: int, strategies: int
) -> None:
    chance = random.Random(seed)
    course = Course({str(number): 1.0 for number in range(strategies)})
    for _ in course:
        for slug in list(course.latencies_s):
            course.latencies_s[slug] = chance.choice([1.0, 1.03, 1.2, 2.5, 9.0])
            course.errors[slug] = chance.choice([0.0, 0.001, 0.03, 0.3])
            if chance.random() < 0.02:
                del course.latencies_s[slug]
        course.resolution = chance.choice([0.0, 0.02, 0.1, 0.5])
    assert course.race.reason in (race.DECIDED, race.EXHAUSTED, race.NOBODY)
    assert len(course.rounds) < ENDLESS and max(course.visits.values()) <= RULES.most


def test_fresh_interpreters_shrink_the_plan() -> None:
    rules = RULES.with_fresh_interpreters()
    course = Course({"a": 1.0, "b": 1.04, "c": 2.0, "d": 2.05}, error=0.03, rules=rules)
    assert course.run() == race.EXHAUSTED
    assert course.visits == {"a": 3, "b": 3, "a#twin": 3, "c": 1, "d": 1}
    assert Rules(contender=2, most=4).with_fresh_interpreters().most == 2, "never more than was asked for"


def test_a_longer_budget_allows_as_many_more_processes_and_a_shorter_one_no_fewer() -> None:
    assert RULES.with_budget(2 * DEFAULT_BUDGET_S).most == 2 * RULES.most
    assert RULES.with_budget(DEFAULT_BUDGET_S) == RULES.with_budget(DEFAULT_BUDGET_S / 2) == RULES
    fresh, longer = RULES.with_fresh_interpreters(), RULES.with_budget(8 * DEFAULT_BUDGET_S).with_fresh_interpreters()
    assert longer.most >= 4 * fresh.most and longer.contender == fresh.contender


def test_every_round_has_an_order_of_its_own_that_the_seed_alone_decides() -> None:
    orders = [tuple(race.shuffled("abcdefgh", 0, number)) for number in range(20)]
    assert len(set(orders)) > 15
    assert all(sorted(order) == list("abcdefgh") for order in orders)
    assert orders == [tuple(race.shuffled("hgfedcba", 0, number)) for number in range(20)]
