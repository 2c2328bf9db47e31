"""Who is sampled next, who gets more processes, and when it is enough."""

import itertools
import math
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from measure.engine import rounds
from measure.model.run import Analysis
from measure.statistics.intervals import Level
from measure.subject import timing
from measure.subject.timing import (
    LEAST_WARM_S,
    MOST_CALLS,
    MOST_WARM_S,
    MOST_WARM_THREADED_S,
    SAMPLE_S,
    Clock,
    calls_per_sample,
    warm_up_s,
)
from tests.simulation import Model, simulate


def standing(latencies_s: dict[str, float], error: float = 0.005, resolution: float = 0.02) -> rounds.Standing:
    levels = {slug: Level(math.log(value), error**2, 8.0, 5) for slug, value in latencies_s.items()}
    return rounds.Standing(levels, resolution, Analysis())


def test_neighbours_that_are_separated_or_equivalent_are_not_open() -> None:
    found = standing({"a": 1.0, "b": 1.0005, "c": 1.2, "d": 1.25}, error=0.003)
    assert found.undecided() == []
    assert standing({"a": 1.0, "b": 1.03}, error=0.01).undecided() == ["a", "b"]


def test_a_significant_difference_under_the_resolution_stays_open() -> None:
    assert standing({"a": 1.0, "b": 1.05}, error=0.001, resolution=0.08).undecided() == ["a", "b"]
    assert standing({"a": 1.0, "b": 1.05}, error=0.001, resolution=0.04).undecided() == []


def test_contenders_are_those_that_may_still_tie_with_the_leader() -> None:
    latencies_s = {"far": 2.0, "a": 1.0, "near": 1.06, "next": 1.09}
    assert standing(latencies_s, error=0.02).near() == ["a", "near", "next"]
    assert standing(latencies_s, error=0.02).contenders() == ["a", "near"]
    assert standing(latencies_s, error=0.02, resolution=0.1).contenders() == ["a", "near", "next"]
    assert rounds.Standing({}, 0.1, Analysis()).contenders() == []


def test_what_ties_with_the_leader_at_the_resolution_that_the_twin_shows_races_too() -> None:
    started: list[str] = []
    levels = {slug: Level(math.log(value), 1e-6, 8.0, 5) for slug, value in {"a": 1.0, "b": 1.3, "c": 4.0}.items()}
    race = rounds.Race(
        rounds.Rules(),
        lambda: rounds.Standing(levels, 0.35 if "a#twin" in started else 0.0, Analysis()),
        lambda slug: slug + "#twin",
    )
    for action in race.actions():
        if isinstance(action, rounds.Start):
            started += action.slugs
    assert started.count("b") >= 4, "one process of it has scouted"
    assert "c" not in started
    assert race.reason.startswith("more processes would hardly separate"), "the stop reason calls the tie a tie"


class Race:
    """A race over levels that a test changes at will; what was started, and which processes live, by slug."""

    def __init__(self, latencies_s: dict[str, float], errors: dict[str, float]) -> None:
        self.latencies_s, self.errors = latencies_s, errors
        self.started: list[str] = []
        self.living: dict[str, int] = {}
        self.race = rounds.Race(rounds.Rules(), self.standing, lambda slug: slug + "#twin")

    def standing(self) -> rounds.Standing:
        levels = {slug: Level(math.log(s), self.errors[slug] ** 2, 8.0, 5) for slug, s in self.latencies_s.items()}
        return rounds.Standing(levels, 0.0, Analysis())

    def actions(self):
        self.living = dict.fromkeys(self.latencies_s, 1)
        for action in self.race.actions():
            match action:
                case rounds.Start(slugs):
                    self.started += slugs
                    for slug in slugs:
                        self.living[slug] = self.living.get(slug, 0) + 1
                case rounds.Rest(slugs, anchor):
                    for slug in slugs:
                        self.living[slug] = 1 if slug == anchor and self.living.get(slug) else 0
            yield action


def test_a_process_of_the_leader_lives_to_the_end_and_links_all_rounds() -> None:
    race = Race({"a": 1.0, "far": 5.0, "farther": 5.1}, {"a": 0.001, "far": 0.05, "farther": 0.05})
    samplings = [dict(race.living) for action in race.actions() if isinstance(action, rounds.Sample)]
    assert race.started.count("far") >= 2, "ranks behind the leader were sampled too"
    assert all(living["a"] for living in samplings)
    assert samplings[-1] == {"a": 1, "far": 2, "farther": 2, "a#twin": 0}


def test_where_another_turns_out_to_tie_with_the_leaders_the_run_is_not_decided_until_that_is() -> None:
    race = Race({"a": 1.0, "b": 1.3, "far": 9.0}, dict.fromkeys(["a", "b", "far"], 0.001))
    settled: list[bool] = []
    for action in race.actions():
        settled.append(race.race.settled())
        if isinstance(action, rounds.Sample) and race.started.count("a") >= 4 and race.latencies_s["b"] == 1.3:
            looks = settled.count(False)
            if looks > 8:
                race.latencies_s["b"], race.errors["b"] = 1.02, 0.02
    assert race.started.count("b") >= 4, "it became a contender"
    assert not any(settled), "a budget that ends before is what ended the run"
    assert race.race.settled()
    assert race.race.reason == rounds.Exhausted.reason


def test_what_joins_the_lead_from_behind_gets_the_processes_of_a_contender() -> None:
    race = Race({"a": 1.0, "b": 4.0, "c": 4.1}, {"a": 0.001, "b": 0.05, "c": 0.05})
    for action in race.actions():
        if isinstance(action, rounds.Sample) and race.started.count("b") == 2:
            race.latencies_s["b"], race.errors["b"] = 1.01, 0.02
    assert 1 + race.started.count("b") >= rounds.Rules().replicas


def test_a_lead_is_not_decided_by_contenders_that_could_not_have_the_processes_of_one() -> None:
    """As where the budget ends while they are started: then that is why the run stopped."""
    sampled: list[int] = []
    levels = {slug: Level(math.log(value), 1e-6, 8.0, 4) for slug, value in {"a": 1.0, "b": 1.02, "c": 5.0}.items()}
    found = rounds.Standing(levels, 0.0, Analysis())
    assert not found.undecided()
    race = rounds.Race(rounds.Rules(), lambda: found, lambda slug: slug + "#twin")
    resting: set[str] = set()
    for action in race.actions():
        sampled.append(isinstance(action, rounds.Sample))
        resting |= set(action.slugs) if isinstance(action, rounds.Rest) and sum(sampled) else set()
        if sum(sampled) == rounds.Rules().most_rounds + 1:
            break
    assert not race.settled() and race.reason == ""
    assert not resting & {"a", "b"}, "who leads is sampled on"


def test_a_race_whose_strategies_all_fail_says_that_nobody_is_left() -> None:
    race = Race({"a": 1.0, "b": 2.0}, {"a": 0.001, "b": 0.001})
    for action in race.actions():
        if isinstance(action, rounds.Start):
            race.latencies_s = {}
    assert race.race.reason == rounds.NOBODY
    assert not any(slug.endswith("#twin") for slug in race.started)


def test_every_round_has_an_order_of_its_own_that_the_seed_alone_decides() -> None:
    orders = [tuple(rounds.shuffled(range(8), 0, number)) for number in range(20)]
    assert len(set(orders)) > 15
    assert all(sorted(order) == list(range(8)) for order in orders)
    assert orders == [tuple(rounds.shuffled(reversed(range(8)), 0, number)) for number in range(20)]


def test_slow_strategies_are_scouted_in_fewer_rounds_but_at_least_one() -> None:
    rules = rounds.Rules()
    assert rounds.scout_rounds(rules, 0.01, 20.0) == rules.scout_rounds
    assert rounds.scout_rounds(rules, 1.0, 20.0) == 3
    assert rounds.scout_rounds(rules, 60.0, 20.0) == 1


def test_contenders_and_the_twin_get_at_least_five_processes_and_clear_losers_only_one() -> None:
    found = simulate({"a": 1.0e-3, "b": 1.01e-3, "slow": 5e-3, "slower": 20e-3}, Model(), seed=1)
    processes = {item.strategy: len(item.replicas) for item in found.measurements}
    assert processes["a"] >= 5
    assert processes["b"] >= 5
    assert max(count for slug, count in processes.items() if slug.endswith("#twin")) >= 5
    assert processes["slow"] == processes["slower"] == 1
    assert all(len(item.replicas[0].samples_s) == 5 for item in found.measurements if item.strategy == "slower")


def test_what_one_process_says_is_doubted_unless_it_is_far_behind() -> None:
    found = simulate({"a": 1.0e-3, "behind": 1.9e-3, "far": 5e-3}, Model(process=0.01), seed=3)
    processes = {item.strategy: len(item.replicas) for item in found.measurements}
    assert (processes["behind"], processes["far"]) == (2, 1)
    assert all(count >= 5 for slug, count in processes.items() if slug.startswith("a"))


@pytest.mark.slow
def test_a_process_that_is_slow_as_a_whole_does_not_put_its_strategy_behind() -> None:
    """Of a strategy and itself, the one whose first process was slow is called slower no more often than 1 in 20."""
    model, pairs = Model(slow_share=0.1), 300
    declared = 0
    for seed in range(pairs):
        found = simulate({"a": 1.0e-3, "b": 1.0e-3}, model, seed)
        slower, faster = sorted(("a", "b"), key=lambda slug: -found.levels[slug].log_mean)
        standing = rounds.Standing({s: found.levels[s] for s in "ab"}, found.control_resolution, Analysis())
        declared += standing.order.separated(slower, faster)
    assert declared <= 0.05 * pairs


def test_sampling_goes_on_where_the_ranking_is_open_and_ends_early_where_it_is_clear() -> None:
    clear = simulate({"a": 1.0e-3, "b": 4.0e-3}, Model(process=0.01, sample=0.01), seed=2)
    open_ = simulate({"a": 1.0e-3, "b": 1.04e-3}, Model(process=0.04, sample=0.01), seed=2)
    assert clear.rounds == rounds.Rules().scout_rounds + rounds.Rules().least_rounds
    assert clear.reason == rounds.Decided.reason
    assert open_.rounds > clear.rounds
    rules = rounds.Rules()
    most = {item.strategy: len(item.replicas) for item in open_.measurements}
    assert max(most.values()) > rules.replicas
    assert max(most.values()) <= rules.most_replicas


def test_ranks_behind_the_leaders_that_would_cost_too_much_are_left_as_ties() -> None:
    started: list[str] = []
    levels = standing({"a": 1.0, "b": 5.0, "c": 5.1}, error=0.05)
    race = rounds.Race(rounds.Rules(), lambda: levels, lambda slug: slug + "#twin", affordable=lambda slug: False)
    for action in race.actions():
        if isinstance(action, rounds.Start):
            started += action.slugs
    assert set(started) == {"a", "a#twin"}


def test_fresh_interpreters_shrink_the_plan() -> None:
    rules = rounds.Rules().with_fresh_interpreters()
    assert (rules.replicas, rules.most_replicas) == (3, 3)


def test_cohorts_fit_into_memory_and_share_an_anchor() -> None:
    bytes_by_slug = {"a": 5, "b": 1, "c": 4, "d": 3, "e": 9}
    found = rounds.cohorts(bytes_by_slug, 10)
    assert all(sum(bytes_by_slug[slug] for slug in cohort) <= 10 for cohort in found)
    assert all(cohort[0] == "b" for cohort in found)
    assert set().union(*found) == set(bytes_by_slug)
    assert rounds.cohorts(bytes_by_slug, 22) == [list(bytes_by_slug)]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(-5, 20), st.integers(10, 40))
def test_batches_keep_the_order_and_fit(sizes: list[int], free: int, room: int) -> None:
    slugs = [str(index) for index in range(len(sizes))]
    free = min(free, room)
    found = rounds.batches(slugs, lambda slug: sizes[int(slug)], free, room)
    assert [slug for batch in found for slug in batch] == slugs
    assert sum(sizes[int(slug)] for slug in found[0]) <= max(free, 0)
    assert all(sum(sizes[int(slug)] for slug in batch) <= room for batch in found[1:])


@given(st.floats(1e-7, 10.0))
def test_a_sample_lasts_long_enough_for_the_clock_and_no_longer_than_needed(call_s: float) -> None:
    calls = calls_per_sample(call_s)
    assert calls == MOST_CALLS or calls * call_s >= SAMPLE_S
    assert calls == 1 or (calls - 1) * call_s <= SAMPLE_S


def test_the_fewer_take_turns_the_longer_each_warms_up() -> None:
    single_s = [warm_up_s(0.3, subjects, 0)[0] for subjects in (1, 10, 12, 20, 1_000)]
    threaded_s = [warm_up_s(0.3, subjects, subjects)[1] for subjects in (1, 10, 12, 20, 1_000)]
    assert single_s[1] == threaded_s[1] == pytest.approx(0.03 - SAMPLE_S)
    for told, most in ((single_s, MOST_WARM_S), (threaded_s, MOST_WARM_THREADED_S)):
        assert told == sorted(told, reverse=True) and len(set(told)) == len(told)
        assert told[0] == most and told[-1] == LEAST_WARM_S
    assert warm_up_s(0.6, 12, 12)[1] > warm_up_s(0.3, 12, 12)[1]


def test_rounds_of_few_strategies_may_take_longer() -> None:
    rules = rounds.Rules()
    lengths_s = [rules.among(strategies).round_s for strategies in (1, 2, 3, 12)]
    assert lengths_s == sorted(lengths_s, reverse=True) and lengths_s[0] > 3 * rules.round_s
    assert lengths_s[-1] == rules.round_s


@given(st.integers(1, 40), st.integers(0, 40))
def test_a_round_lasts_as_long_as_it_may_and_what_runs_in_several_threads_warms_up_first(
    single: int, threaded: int
) -> None:
    subjects = single + threaded
    single_s, threaded_s = warm_up_s(0.6, subjects, threaded)
    lasts_s = subjects * SAMPLE_S + single * single_s + threaded * threaded_s
    least_s = LEAST_WARM_S - 1e-9
    assert least_s <= single_s <= MOST_WARM_S and least_s <= threaded_s <= MOST_WARM_THREADED_S
    assert lasts_s <= 0.6 + 1e-9 or max(single_s, threaded_s) == pytest.approx(LEAST_WARM_S)
    # The others get something only where the threaded have all that they need.
    assert single_s == pytest.approx(LEAST_WARM_S) or threaded == 0 or threaded_s == MOST_WARM_THREADED_S


def test_no_two_outputs_live_at_once_while_a_strategy_is_timed() -> None:
    class Output:
        pass

    alive: weakref.WeakSet[Output] = weakref.WeakSet()
    found: list[int] = []

    def strategy(elems: int) -> Output:
        found.append(len(alive))
        output = Output()
        alive.add(output)
        return output

    clock = Clock(strategy, 0, lambda: None)
    clock.settle()
    clock.warm(0.0)
    clock.sample(5)
    assert len(found) > 6 and set(found) == {0}


class Paced:
    """A clock, and a strategy that takes by that clock as long as it is told, call by call; the last for ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, took_s: list[float]) -> None:
        self.now_s, self.calls, self._took_s = 0.0, 0, took_s
        monkeypatch.setattr(timing.time, "perf_counter", lambda: self.now_s)

    def __call__(self, _: object) -> None:
        self.now_s += self._took_s[min(self.calls, len(self._took_s) - 1)]
        self.calls += 1


@pytest.mark.parametrize(
    ("took_ms", "calls"),
    [
        ([1.0], 6),  # steady from the start
        ([100.0, 1.0], 6),  # only the first is long
        ([1.0, 1.0, 9.0, 1.0], 6),  # one is disturbed
        # It falls by 4 % with each call, until the 20th: no two neighbours differ by a tenth.
        ([0.96**call for call in range(20)], 22),
        ([90.0], 3),  # there is no time for more
    ],
)
def test_a_process_settles_until_its_pace_is_steady(
    monkeypatch: pytest.MonkeyPatch, took_ms: list[float], calls: int
) -> None:
    paced = Paced(monkeypatch, [each / 1e3 for each in took_ms])
    seconds, made = Clock(paced, 0, lambda: None).settle()
    assert made == paced.calls == calls
    assert seconds == pytest.approx(min(took_ms) / 1e3)


def test_the_order_within_rounds_is_another_in_each_run() -> None:
    assert rounds.seed("0" * 24) == rounds.seed("0" * 24) != rounds.seed("1" * 24)
    orders = [tuple(rounds.shuffled(range(12), rounds.seed(f"{run:024x}"), 1)) for run in range(20)]
    assert len(set(orders)) == 20


def test_warming_up_goes_on_until_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(ticks) * 0.001)
    calls: list[int] = []
    Clock(calls.append, 0, lambda: None).warm(0.010)
    assert len(calls) == 4  # the clock is read twice within a call, and once after it
