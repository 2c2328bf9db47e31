"""Sampling with simulated subjects: who is visited in which order, what is kept of a visit, and how it ends."""

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from measure.engine import clock as module
from measure.engine import race, stages
from measure.engine.bench import Bench, Settings
from measure.engine.record import Record, View
from measure.engine.sampling import Sampling
from measure.model.request import DEFAULT_BUDGET_S, parse
from measure.model.run import Memory
from tests.subjects import FAULTS, SAMPLES_A_MESSAGE, Message, Subjects

SLUGS = ("loop.eager", "batched.graph", "batched.xla")
RULES = race.Rules()
BUDGET_S = DEFAULT_BUDGET_S
# Two that tie, and one that is clearly slower.
LATENCIES_S = {"batched.graph": 0.001, "batched.xla": 0.001, "loop.eager": 0.02}

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


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of the budget, which stands still unless a test sets its ``now_s``; samples come at even times."""
    clock, looks = SimpleNamespace(now_s=0.0), itertools.count()
    monkeypatch.setattr(Bench, "passed_s", property(lambda self: 0.1 * next(looks)))
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


def test_who_ties_with_the_leader_is_visited_as_often_as_it_and_its_twin_and_others_once(opened: Open) -> None:
    bench = opened(Subjects(latencies_s=LATENCIES_S))
    status, reason = Sampling(bench, BUDGET_S).race(SLUGS)
    visits = processes(bench.record)
    assert visits.pop("loop.eager") == 1
    assert visits.keys() == {"batched.graph", "batched.xla", "batched.graph#twin"} and len(set(visits.values())) == 1
    assert status == "complete" and reason in (race.DECIDED, race.EXHAUSTED)


def test_a_tie_is_raced_in_as_many_processes_as_the_budget_allows(opened: Open, clock: SimpleNamespace) -> None:
    class Scattered(Subjects):
        """Processes differ by up to a fifth."""

        def send(self, subject: int, message: Message) -> None:
            self.latencies_s = {slug: chance.uniform(0.9, 1.1) * latency_s for slug, latency_s in LATENCIES_S.items()}
            super().send(subject, message)

    chance = random.Random(0)
    bench = opened(Scattered())
    assert Sampling(bench, 2 * BUDGET_S).race(SLUGS) == ("complete", race.EXHAUSTED)
    assert processes(bench.record)["batched.graph"] == processes(bench.record)["batched.xla"] == 2 * RULES.most


def test_samples_carry_their_round_and_their_page_faults(opened: Open) -> None:
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
        assert (replica.faults, replica.kernel_s) == ([FAULTS] * count, [0.0] * count)


def test_a_strategy_that_fails_keeps_its_samples_and_is_not_visited_again(opened: Open) -> None:
    visit = 3
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


def test_first_visits_go_on_beyond_the_budget_but_not_without_end(opened: Open, clock: SimpleNamespace) -> None:
    slugs = (*SLUGS, "loop.graph", "batched.eager")
    for visit_s, visits in ((1.9, 5), (3.0, 3), (20.0, 1)):
        subjects, clock.now_s = Slow(clock=clock, visit_s=visit_s), 0.0
        status, _ = Sampling(opened(subjects, slugs), 3.0).race(slugs)
        assert status == "budget" and subjects.visited == list(slugs[:visits])


def test_a_run_that_a_person_stops_ends_with_what_is_known_after_the_visits_that_go_on(opened: Open) -> None:
    for visit in (1, 6):
        subjects = Slow(latencies_s=LATENCIES_S, at=visit)
        bench = opened(subjects)
        subjects.then = partial(setattr, bench, "stopped", True)
        status, reason = stages.time_latencies(bench, SLUGS, BUDGET_S, Sampling.race)
        assert status == "complete" and reason.startswith("a person has stopped it")
        assert len(subjects.visited) == visit and subjects.living == []
        timed = [item for item in bench.record.items() if item.latency]
        assert len(timed) >= min(visit, len(SLUGS)) and bench.record.run.ranking
        ends = {(bool(replica.samples_s), replica.ended) for item in timed for replica in item.replicas}
        assert ends <= {(True, "done"), (False, "interrupted")}, "who waited is not sampled any more"
