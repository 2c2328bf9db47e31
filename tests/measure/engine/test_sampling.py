"""Sampling with simulated subjects: who is visited in which order, what is kept of a visit, and how it ends."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from measure.engine import clock as module
from measure.engine import race, stages
from measure.engine.bench import Bench, Settings
from measure.engine.dialogue import Cancelled, HostLost
from measure.engine.record import Record, View
from measure.engine.sampling import Sampling
from measure.judge.advice import COMPILED_VALUES
from measure.model.request import DEFAULT_BUDGET_S, parse
from measure.model.run import Memory
from measure.subject.messages import Sampled, Spec
from tests.subjects import LOST, SAMPLES_A_MESSAGE, Message, Subjects, error

SLUGS = ("loop.eager", "batched.graph", "batched.xla")
RULES = race.Rules()
BUDGET_S = DEFAULT_BUDGET_S
# Two that tie, and one that is clearly slower.
LATENCIES_S = {"batched.graph": 0.001, "batched.xla": 0.001, "loop.eager": 0.02}
# One that leads, with two behind it that tie; and which visit is the first one for their ranks.
LEADS_S = {"batched.graph": 0.001, "batched.xla": 0.02, "loop.eager": 0.02}
OF_RANKS_BEHIND = 2 * RULES.contender + 2 + 1

# Opens a bench of a launcher's subjects.
Open = Callable[..., Bench]


@pytest.fixture
def opened() -> Iterator[Open]:
    benches: list[Bench] = []

    def open_bench(
        subjects: Subjects,
        slugs: tuple[str, ...] = SLUGS,
        run_id: str = "0" * 24,
        publish: Callable[[View], None] = lambda view: None,
    ) -> Bench:
        asked = parse({"workload": "square", "strategies": list(slugs)})
        bench = Bench(run_id, asked, subjects, publish, settings=Settings(rules=RULES))
        memory = Memory(
            peak_bytes=64, output_bytes=8, temporary_bytes=0, input_bytes=0, captured_bytes=0, method="events"
        )
        for slug in slugs:
            bench.record.update(slug, outcome="ok", memory=memory)
        bench.open(0.0)
        benches.append(bench)
        return bench

    yield open_bench
    for bench in benches:
        bench.remove_files()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of the budget, which stands still unless a test sets its ``now_s``."""
    clock = SimpleNamespace(now_s=0.0)
    monkeypatch.setattr(module.Clock, "now_s", property(lambda self: clock.now_s))
    return clock


@dataclass
class Slow(Subjects):
    """Each visit takes ``visit_s`` on a ``clock``; in the visit of number ``at``, from 1, ``then`` is called."""

    clock: Any = None
    visit_s: float = 0.0
    at: int = 0
    then: Callable[[], None] = lambda: None

    def send(self, subject: int, message: Message) -> None:
        if message["op"] == "samples":
            if self.clock is not None:
                self.clock.now_s += self.visit_s
            if len(self.visited) + 1 == self.at:
                self.then()
        super().send(subject, message)


def processes(record: Record) -> dict[str, int]:
    return {item.strategy: len(item.replicas) for item in record.items()}


# --- the order -------------------------------------------------------------------------------------------------------


def test_first_visits_begin_with_what_is_forecast_to_be_the_quickest(opened: Open) -> None:
    subjects = Subjects()
    bench = opened(subjects)
    stages.time_latencies(bench, SLUGS, BUDGET_S, Sampling.race)
    estimates = bench.forecast.per_strategy
    taking_s = [estimates[slug].first_call_s + estimates[slug].latency_s for slug in subjects.visited[: len(SLUGS)]]
    assert sorted(subjects.visited[: len(SLUGS)]) == sorted(SLUGS) and taking_s == sorted(taking_s)
    assert subjects.visited[: len(SLUGS)] != list(SLUGS), "in whatever order they were asked for"


def test_rounds_are_in_an_order_that_the_run_alone_decides(opened: Open) -> None:
    def visited(run_id: str) -> list[str]:
        subjects = Subjects()
        Sampling(opened(subjects, run_id=run_id), BUDGET_S).race(SLUGS)
        return subjects.visited

    assert visited("0" * 24) == visited("0" * 24) != visited("1" * 24)
    assert visited("0" * 24)[: len(SLUGS)] == visited("1" * 24)[: len(SLUGS)] == list(SLUGS), "first visits are not"


def test_while_a_process_is_sampled_the_others_wait_that_have_made_their_first_call(opened: Open) -> None:
    subjects = Subjects(latencies_s=LATENCIES_S)
    Sampling(opened(subjects), BUDGET_S).race(SLUGS)
    assert subjects.most_alive > 2 and subjects.living == []
    sampled = [place for place, (_, told) in enumerate(subjects.commands) if told == "samples"]
    assert len(sampled) == len(subjects.visited) > 2 * len(SLUGS)
    for place in sampled:
        subject = subjects.commands[place][0]
        following = subjects.commands[place + 1 : subjects.commands.index((subject, "stop"))]
        assert following == [], "nothing else starts, and nobody else makes a call"


def test_two_first_calls_are_made_at_a_time_the_longest_ones_first(opened: Open) -> None:
    class Calling(Subjects):
        """Notes who makes a first call while another one does."""

        def send(self, subject: int, message: Message) -> None:
            if message["op"] == "first_call":
                together.append(len(self.living))
            super().send(subject, message)

    together: list[int] = []
    slugs = (*SLUGS, "batched.eager", "vectorized_map.graph")
    bench = opened(subjects := Calling(), slugs)
    Sampling(bench, BUDGET_S).visit_all(slugs)
    started = [spec.name for spec in subjects.specs]
    assert started == sorted(slugs, key=lambda slug: -bench.forecast.per_strategy[slug].first_call_s)
    assert together[:2] == [2, 2] and subjects.visited == list(slugs), "sampled in the order that was asked for"


def test_a_long_first_call_is_by_itself(opened: Open) -> None:
    subjects = Subjects(latencies_s={"batched.xla": 2.0})
    bench = opened(subjects)
    sampling = Sampling(bench, 10 * BUDGET_S)
    sampling.visit_all(SLUGS)
    subjects.most_alive = 0
    sampling.visit(SLUGS)
    assert subjects.most_alive == 2, "the two short ones alone"


def test_processes_that_do_not_fit_into_memory_together_are_prepared_one_after_the_other(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    subjects = Subjects(latencies_s=LATENCIES_S)
    bench = opened(subjects)
    room_bytes = int(1.9 * bench.live_bytes("loop.eager") / bench.settings.memory_share)
    monkeypatch.setattr("measure.machine.environment.available_memory", lambda: room_bytes)
    assert Sampling(bench, BUDGET_S).race(SLUGS)[0] == "complete" and subjects.most_alive == 1


def test_who_ties_with_the_leader_is_visited_as_often_as_it_and_its_twin_and_others_once(opened: Open) -> None:
    bench = opened(Subjects(latencies_s=LATENCIES_S))
    status, reason = Sampling(bench, BUDGET_S).race(SLUGS)
    visits = processes(bench.record)
    assert visits.pop("loop.eager") == 1
    assert visits.keys() == {"batched.graph", "batched.xla", "batched.graph#twin"} and len(set(visits.values())) == 1
    assert status == "complete" and reason in (race.DECIDED, race.EXHAUSTED)


@pytest.mark.parametrize("times", [1, 2])
def test_a_tie_is_raced_in_as_many_processes_as_the_budget_allows(
    opened: Open, clock: SimpleNamespace, times: int
) -> None:
    class Scattered(Subjects):
        """Processes differ by up to a fifth."""

        def send(self, subject: int, message: Message) -> None:
            self.latencies_s = {slug: chance.uniform(0.9, 1.1) * latency_s for slug, latency_s in LATENCIES_S.items()}
            super().send(subject, message)

    chance = random.Random(0)
    bench = opened(Scattered())
    assert Sampling(bench, times * BUDGET_S).race(SLUGS) == ("complete", race.EXHAUSTED)
    assert processes(bench.record)["batched.graph"] == processes(bench.record)["batched.xla"] == times * RULES.most


def test_fresh_interpreters_are_fewer(opened: Open) -> None:
    bench = opened(Subjects(latencies_s=LATENCIES_S, start_method="fresh"))
    Sampling(bench, BUDGET_S).race(SLUGS)
    assert max(processes(bench.record).values()) == RULES.with_fresh_interpreters().contender < RULES.contender


def test_a_watcher_is_told_the_round_and_who_is_timed_and_sees_the_order_come_about(opened: Open) -> None:
    views: list[View] = []
    bench = opened(Subjects(latencies_s=LATENCIES_S), publish=views.append)
    Sampling(bench, BUDGET_S).race(SLUGS)
    of_rounds = [view.round_number for view in views if view.message.startswith("timing ")]
    assert of_rounds == sorted(of_rounds) and set(of_rounds) == set(range(1, bench.record.last_round() + 1))
    assert not any("#" in view.message for view in views), "a twin goes by its strategy's name"
    assert {"timing every strategy once", "timing those whose rank is open"} == {view.message for view in views} - {""}
    first = next(view for view in views if view.version)
    assert first.round_number == 1 and first.run.measurement(SLUGS[0]).latency is not None
    after_first_visits = next(view for view in views if view.round_number == 2)
    assert sorted(slug for group in after_first_visits.run.ranking for slug in group) == sorted(SLUGS)


# --- a visit ---------------------------------------------------------------------------------------------------------


def test_samples_carry_their_round_and_the_places_of_those_that_were_disturbed(opened: Open) -> None:
    bench = opened(Subjects(latencies_s=LATENCIES_S))
    sampling = Sampling(bench, BUDGET_S)
    sampling.visit_all(SLUGS)
    sampling.visit(["loop.eager"])
    first, second = bench.record["loop.eager"].replicas
    count = 2 * SAMPLES_A_MESSAGE
    assert first.rounds == [1] * count and second.rounds == [2] * count
    for replica in (first, second):
        assert replica.samples_s == [LATENCIES_S["loop.eager"]] * count and len(replica.at_s) == count
        assert (replica.calls_per_sample, replica.first_call_s, replica.ended) == (2, 0.04, "done")
        assert replica.disturbed == [SAMPLES_A_MESSAGE + 1], "the second one of the second message"


def test_rounds_go_on_from_those_that_the_record_knows(opened: Open) -> None:
    bench = opened(Subjects())
    Sampling(bench, BUDGET_S).visit_all(SLUGS)
    Sampling(bench, BUDGET_S).visit_all(SLUGS)
    assert [replica.rounds[0] for replica in bench.record["loop.eager"].replicas] == [1, 2]


def test_samples_that_come_together_were_taken_one_after_the_other(opened: Open) -> None:
    record = opened(Subjects()).record
    record.add_replica("loop.eager", 0.1)
    record.add_samples("loop.eager", 0, 1, 2.0, Sampled(2, [0.1, 0.2, 0.3], [], False))
    record.add_samples("loop.eager", 0, 1, 3.0, Sampled(2, [0.1], [0], True))
    (replica,) = record["loop.eager"].replicas
    assert replica.at_s == pytest.approx([1.0, 1.4, 2.0, 3.0]) and replica.disturbed == [3]
    # The first message was heard of late: its last sample is not after those of the second.
    record.add_samples("loop.eager", 0, 1, 3.05, Sampled(2, [0.1, 0.1], [], True))
    assert record["loop.eager"].replicas[0].at_s[-2:] == [3.0, 3.05]


def test_a_clock_that_has_not_moved_leaves_a_sample_that_has_a_logarithm(opened: Open) -> None:
    bench = opened(Subjects(latencies_s={"loop.eager": 0.0}))
    Sampling(bench, BUDGET_S).visit_all(SLUGS)
    latency = bench.record["loop.eager"].latency
    assert latency is not None and latency.median_s > 0


def test_a_strategy_that_is_slow_with_other_values_is_said_to_be_once(opened: Open) -> None:
    bench = opened(Subjects(compiled=["batched.xla"]))
    sampling = Sampling(bench, BUDGET_S)
    sampling.visit_all(SLUGS)
    sampling.visit(["batched.xla"])
    codes = {item.strategy: [warning.code for warning in item.warnings] for item in bench.record.items()}
    assert [slug for slug in codes if COMPILED_VALUES in codes[slug]] == ["batched.xla"]
    assert len(bench.record["batched.xla"].replicas) > 1 and codes["batched.xla"].count(COMPILED_VALUES) == 1


def test_a_strategy_that_is_slow_with_other_values_does_not_race_for_the_lead(opened: Open) -> None:
    bench = opened(Subjects(compiled=["batched.xla"], latencies_s={"batched.xla": 0.004}))
    Sampling(bench, BUDGET_S).race(SLUGS)
    processes = {item.strategy: len(item.replicas) for item in bench.record.items()}
    assert processes["batched.xla"] == 1 and min(processes[slug] for slug in SLUGS if slug != "batched.xla") > 1


def test_calls_that_are_forecast_to_be_long_are_not_made_with_other_values(opened: Open) -> None:
    bench = opened(Subjects(compiled=SLUGS, call_s=0.1))
    estimates = bench.forecast.per_strategy
    assert estimates["loop.eager"].latency_s > 0.02 > estimates["batched.xla"].latency_s
    Sampling(bench, BUDGET_S).visit_all(SLUGS)
    assert bench.record["batched.xla"].warnings and not bench.record["loop.eager"].warnings


@pytest.mark.parametrize("visit", [1, 3])
def test_a_strategy_that_fails_keeps_its_samples_and_is_not_visited_again(opened: Open, visit: int) -> None:
    subjects = Subjects(latencies_s=LATENCIES_S, failing=("batched.xla", visit))
    bench = opened(subjects)
    status, _ = Sampling(bench, BUDGET_S).race(SLUGS)
    item = bench.record["batched.xla"]
    assert (item.outcome, item.stage, status) == ("failed", "sampling", "complete") and item.error is not None
    assert [len(replica.samples_s) for replica in item.replicas] == [2 * SAMPLES_A_MESSAGE] * (visit - 1) + [
        SAMPLES_A_MESSAGE
    ]
    assert [replica.ended for replica in item.replicas] == ["done"] * (visit - 1) + ["failed"]
    assert subjects.visited.count("batched.xla") == visit
    assert processes(bench.record)["batched.graph"] >= RULES.contender, "the others go on"


def test_a_strategy_that_fails_in_its_first_call_has_no_process(opened: Open) -> None:
    def timing(spec: Spec) -> list[Message]:
        return [error()] if spec.name == "batched.xla" else [{"event": "ready", "runtime_s": 0.1}]

    bench = opened(Subjects(latencies_s=LATENCIES_S, answers={"timing": timing}))
    assert Sampling(bench, BUDGET_S).race(SLUGS)[0] == "complete"
    item = bench.record["batched.xla"]
    assert (item.outcome, item.stage, item.replicas) == ("failed", "first_call", [])


def test_a_strategy_that_ends_in_a_call_with_other_values_keeps_its_first_call(opened: Open) -> None:
    class Ending(Subjects):
        def send(self, subject: int, message: Message) -> None:
            if message["op"] == "other_values" and self._names[subject] == "batched.xla":
                self.kill(subject)
            super().send(subject, message)

    bench = opened(subjects := Ending())
    Sampling(bench, BUDGET_S).visit_all(SLUGS)
    item = bench.record["batched.xla"]
    assert (item.outcome, item.stage, item.first_call_s) == ("failed", "first_call", 0.01)
    assert [replica.ended for replica in item.replicas] == ["failed"] and "batched.xla" not in subjects.visited


def test_a_process_that_ends_while_another_is_sampled_fails_its_own_strategy_alone(opened: Open) -> None:
    class Fragile(Subjects):
        """Whoever waits in the second round dies as soon as another is sampled."""

        def send(self, subject: int, message: Message) -> None:
            if message["op"] == "samples" and len(self.visited) >= len(SLUGS):
                started = {number for number, told in self.commands if told == "start"}
                for number in started - {subject}:
                    self.kill(number)
            super().send(subject, message)

    bench = opened(Fragile())
    sampling = Sampling(bench, BUDGET_S)
    sampling.visit_all(SLUGS)
    sampling.visit(SLUGS[:2])
    good, bad = sorted((bench.record[slug] for slug in SLUGS[:2]), key=lambda item: item.outcome != "ok")
    assert good.outcome == "ok" and [replica.ended for replica in good.replicas] == ["done", "done"]
    assert (bad.outcome, bad.stage) == ("failed", "sampling") and bad.error is not None
    assert [len(replica.samples_s) for replica in bad.replicas] == [2 * SAMPLES_A_MESSAGE, 0]


# --- how it ends -----------------------------------------------------------------------------------------------------


def test_a_budget_that_ends_before_the_lead_is_decided_is_why_the_run_stopped(
    opened: Open, clock: SimpleNamespace
) -> None:
    subjects = Slow(latencies_s=LATENCIES_S, clock=clock, visit_s=2.0)
    bench = opened(subjects)
    status, reason = Sampling(bench, BUDGET_S).race(SLUGS)
    assert (status, reason) == ("budget", "the time budget was spent before the ranking of the leaders was decided")
    assert len(subjects.visited) == len(SLUGS) + 4, "what was prepared before it was spent is sampled, and nothing more"
    twin = bench.record["batched.graph#twin"]
    assert [bool(each.samples_s) for each in twin.replicas] == [True, True], "so that there is a control"


def test_a_budget_that_ends_after_the_lead_was_decided_leaves_a_complete_run(
    opened: Open, clock: SimpleNamespace
) -> None:
    subjects = Slow(latencies_s=LEADS_S, clock=clock, at=OF_RANKS_BEHIND)
    bench = opened(subjects)
    subjects.then = lambda: setattr(clock, "now_s", BUDGET_S)
    assert Sampling(bench, BUDGET_S).race(SLUGS) == ("complete", race.DECIDED)
    visits = processes(bench.record)
    assert visits["batched.xla"] == visits["loop.eager"] == 2 < RULES.behind, "both were on their way"


@pytest.mark.parametrize(("visit_s", "visits"), [(1.9, 5), (3.0, 3), (20.0, 1)])
def test_first_visits_go_on_beyond_the_budget_but_not_without_end(
    opened: Open, clock: SimpleNamespace, visit_s: float, visits: int
) -> None:
    subjects = Slow(clock=clock, visit_s=visit_s)
    slugs = (*SLUGS, "loop.graph", "batched.eager")
    status, _ = Sampling(opened(subjects, slugs), 3.0).race(slugs)
    assert status == "budget" and subjects.visited == list(slugs[:visits])


@pytest.mark.parametrize("slugs", [SLUGS[:1], SLUGS])
def test_what_was_slow_to_start_is_sampled_all_the_same(
    opened: Open, clock: SimpleNamespace, slugs: tuple[str, ...]
) -> None:
    class SlowToStart(Subjects):
        def send(self, subject: int, message: Message) -> None:
            if message["op"] == "first_call":
                clock.now_s += 10 * BUDGET_S
            super().send(subject, message)

    bench = opened(subjects := SlowToStart(), slugs)
    status, _ = Sampling(bench, BUDGET_S).race(slugs)
    assert status == "budget" and subjects.visited == list(slugs), "once, and nothing more"
    assert sorted(slug for group in bench.record.run.ranking for slug in group) == sorted(slugs)


def test_the_ranking_gets_a_third_of_the_budget_where_first_visits_have_spent_it(
    opened: Open, clock: SimpleNamespace
) -> None:
    subjects = Slow(latencies_s=LATENCIES_S, clock=clock, visit_s=0.3 * BUDGET_S)
    slugs = (*SLUGS, "loop.graph", "map_fn.xla")
    bench = opened(subjects, slugs)
    assert Sampling(bench, BUDGET_S).race(slugs)[0] == "budget"
    # The second one begins before the third is spent; for the last of those that are prepared it is too late.
    assert subjects.visited[: len(slugs)] == list(slugs) and len(subjects.visited) == len(slugs) + 3


@pytest.mark.parametrize("visit", [1, 2, 6])
def test_a_run_that_a_person_stops_ends_with_what_is_known_after_the_visits_that_go_on(
    opened: Open, visit: int
) -> None:
    subjects = Slow(latencies_s=LATENCIES_S, at=visit)
    bench = opened(subjects)
    subjects.then = lambda: setattr(bench, "stopped", True)
    status, reason = stages.time_latencies(bench, SLUGS, BUDGET_S, Sampling.race)
    assert (status, reason) == ("complete", "a person has stopped it before the ranking of the leaders was decided")
    assert len(subjects.visited) == visit and subjects.living == []
    timed = [item for item in bench.record.items() if item.latency]
    assert len(timed) >= min(visit, len(SLUGS)) and bench.record.run.ranking
    ends = {(bool(replica.samples_s), replica.ended) for item in timed for replica in item.replicas}
    assert ends <= {(True, "done"), (False, "interrupted")}, "who waited is not sampled any more"


def test_a_run_that_is_stopped_before_anything_was_sampled_says_so(opened: Open) -> None:
    class Stopping(Subjects):
        def send(self, subject: int, message: Message) -> None:
            bench.stopped = True
            super().send(subject, message)

    bench = opened(subjects := Stopping())
    status, reason = Sampling(bench, BUDGET_S).race(SLUGS)
    assert (status, reason) == ("complete", "a person has stopped it before the ranking of the leaders was decided")
    assert subjects.visited == [] and subjects.living == []


def test_a_race_that_has_been_decided_says_so_although_a_person_stops_it_then(opened: Open) -> None:
    subjects = Slow(latencies_s=LEADS_S, at=OF_RANKS_BEHIND)
    bench = opened(subjects)
    subjects.then = lambda: setattr(bench, "stopped", True)
    assert Sampling(bench, BUDGET_S).race(SLUGS) == ("complete", race.DECIDED)
    assert subjects.at <= len(subjects.visited) <= subjects.at + 1


def test_where_every_strategy_fails_nobody_is_left(opened: Open) -> None:
    bench = opened(Subjects(answers={"timing": lambda spec: [error()]}))
    assert Sampling(bench, BUDGET_S).race(SLUGS) == ("complete", race.NOBODY)


def test_the_loss_of_the_host_ends_sampling_and_keeps_what_was_said_by_then(opened: Open) -> None:
    bench = opened(Subjects(failing=("batched.graph", 1), failure=LOST))
    with pytest.raises(HostLost):
        Sampling(bench, BUDGET_S).race(SLUGS)
    (replica,) = bench.record["batched.graph"].replicas
    assert len(replica.samples_s) == SAMPLES_A_MESSAGE and replica.ended == "interrupted"
    assert bench.record["loop.eager"].replicas[0].ended == "done"
    assert bench.record["batched.xla"].replicas[0].samples_s == []


def test_a_cancel_ends_sampling_and_keeps_what_was_measured(opened: Open) -> None:
    subjects = Slow(at=3)
    bench = opened(subjects)
    subjects.then = bench.cancel
    with pytest.raises(Cancelled):
        Sampling(bench, BUDGET_S).race(SLUGS)
    assert len(subjects.visited) == 3
    assert [bool(bench.record[slug].replicas[0].samples_s) for slug in SLUGS] == [True, True, False]
    bench.dialogues.end()
    assert subjects.living == []
