"""Taking turns, with simulated subjects: who lives, in which order turns are taken, what is kept, and how it ends."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from measure.engine import stages, turns
from measure.engine.bench import Bench
from measure.engine.record import View
from measure.engine.turns import FIRST_ROUNDS, ROUNDS, Turns
from measure.model.request import parse, script_of
from measure.model.run import Memory, Status
from measure.pool import clock as module
from tests.subjects import FAULTS, SAMPLES_A_TURN, Message, Subjects

SLUGS = ("batched.graph", "batched.xla", "loop.eager")
BUDGET_S = 9.0
# Two that tie, and one that is clearly slower.
LATENCIES_S = {"batched.graph": 0.001, "batched.xla": 0.001, "loop.eager": 0.008}
TWIN = "batched.graph#twin"

# Opens a bench of a launcher's subjects.
Open = Callable[..., Bench]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    benches: list[Bench] = []

    def open_bench(
        subjects: Subjects,
        slugs: tuple[str, ...] = SLUGS,
        run_id: str = "0" * 24,
        publish: Callable[[View], None] = lambda view: None,
        allocator: str = "pool",
    ) -> Bench:
        asked = {"workload": "square", "strategies": list(slugs), "allocator": allocator}
        bench = Bench(run_id, parse(asked), subjects, publish)
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
    """Each turn takes ``turn_s`` on a ``clock``; at the turn of number ``at``, from 1, ``then`` is called."""

    clock: Any = None
    turn_s: float = 0.0
    at: int = 0
    then: Callable[[], object] = lambda: None

    def send(self, subject: int, message: Message) -> None:
        if message["op"] == "turn":
            if self.clock is not None:
                self.clock.now_s += self.turn_s
            if len(self.turns) + 1 == self.at:
                self.then()
        super().send(subject, message)


def race(bench: Bench, budget_s: float = BUDGET_S) -> tuple[Status, str]:
    with stages.taking_turns(bench, budget_s) as taken:
        return taken.race(SLUGS)


def processes(bench: Bench) -> dict[str, int]:
    return {item.strategy: len(item.replicas) for item in bench.record.items()}


def test_all_live_while_one_takes_its_turn_and_the_order_of_a_round_is_the_runs_own(opened: Open) -> None:
    taken = []
    for run_id in ("0" * 24, "0" * 24, "1" * 24):
        subjects = Subjects(latencies_s=LATENCIES_S)
        race(opened(subjects, run_id=run_id))
        assert subjects.living == []
        taken.append(subjects.turns)
    assert taken[0] == taken[1] != taken[2]
    first_rounds = [sorted(taken[0][3 * number : 3 * number + 3]) for number in range(FIRST_ROUNDS)]
    assert first_rounds == [sorted(SLUGS)] * FIRST_ROUNDS, "everybody takes one turn in each of the first rounds"
    told = [command for _, command in subjects.commands]
    first = told.index("turn")
    assert {*told[first : first + 3 * FIRST_ROUNDS]} == {"turn"}, "and nobody starts or ends meanwhile"


def test_who_is_far_behind_has_one_process_and_who_may_lead_as_many_as_the_leader(
    opened: Open,
) -> None:
    bench = opened(Subjects(latencies_s=LATENCIES_S))
    assert race(bench) == ("complete", turns.EXHAUSTED)
    most = bench.settings.most_processes
    assert processes(bench) == {"loop.eager": 1, "batched.graph": most, "batched.xla": most, TWIN: most}
    rounds = FIRST_ROUNDS + ROUNDS * (most - 1)
    assert set(bench.record["batched.xla"].replicas[0].rounds) == set(range(1, rounds + 1))
    assert set(bench.record["loop.eager"].replicas[0].rounds) == set(range(1, rounds + 1))


def test_a_leader_that_is_told_from_all_others_ends_the_run_and_those_near_it_have_two_processes(opened: Open) -> None:
    bench = opened(Subjects(latencies_s={**LATENCIES_S, "batched.xla": 0.0015}))
    assert race(bench) == ("complete", turns.DECIDED)
    assert processes(bench) == {"loop.eager": 1, "batched.graph": 2, "batched.xla": 2, TWIN: 2}


def test_who_is_far_behind_and_takes_longer_than_a_turn_ends_and_of_long_calls_one_round_is_enough(
    opened: Open,
) -> None:
    for call_s, rounds in ((0.02, FIRST_ROUNDS), (0.5, 1)):
        bench = opened(Subjects(latencies_s={**LATENCIES_S, "loop.eager": call_s}))
        race(bench)
        assert set(bench.record["loop.eager"].replicas[0].rounds) == set(range(1, rounds + 1))


def test_samples_carry_their_round_and_their_page_faults(opened: Open) -> None:
    bench = opened(Subjects(latencies_s=LATENCIES_S))
    race(bench)
    (replica,) = bench.record["loop.eager"].replicas
    count = len({*replica.rounds}) * SAMPLES_A_TURN
    assert replica.rounds == [number for number in sorted({*replica.rounds}) for _ in range(SAMPLES_A_TURN)]
    assert replica.samples_s == [LATENCIES_S["loop.eager"]] * count and len(replica.at_s) == count
    assert (replica.calls_per_sample, replica.first_call_s, replica.ended) == (2, 0.016, "done")
    assert (replica.faults, replica.kernel_s) == ([FAULTS] * count, [0.0] * count)


@pytest.mark.parametrize(
    ("allocator", "known", "entered"),
    [
        # Two that lead, and the baseline, which is far behind.
        ("pool", "C library", {*SLUGS}),
        ("pool", "oneDNN's pool", set()),
        ("pool", "BFC", set()),
        ("default", "C library", set()),
    ],
)
def test_those_near_the_fastest_and_the_baseline_are_timed_with_the_default_allocator_where_it_is_the_c_librarys(
    opened: Open, allocator: str, known: str, entered: set[str]
) -> None:
    subjects = Subjects(latencies_s=LATENCIES_S)
    bench = opened(subjects, allocator=allocator)
    bench.record.set_run(environment={"tensorflow_allocator": known})
    race(bench)
    items = {item.twin_of: item for item in bench.record.items() if item.has_default_memory}
    assert set(items) == entered
    assert {slug for group in bench.record.run.ranking for slug in group} == {*SLUGS}
    for slug, item in items.items():
        (replica,) = item.replicas
        assert item.strategy == f"{slug}#default" and len({*replica.rounds}) == FIRST_ROUNDS and item.latency
        assert item.code is not None and item.code.source == script_of(bench.request, slug, allocator="default")
        assert item.code.source in [spec.script for spec in subjects.specs if spec.name == slug]
    assert bench.record.run.control is not None and subjects.living == []


def test_a_baseline_of_long_calls_is_not_timed_with_the_default_allocator(opened: Open) -> None:
    bench = opened(Subjects(latencies_s={**LATENCIES_S, "loop.eager": 0.5}))
    bench.record.set_run(environment={"tensorflow_allocator": "C library"})
    race(bench)
    assert {item.twin_of for item in bench.record.items() if item.has_default_memory} == {*SLUGS[:2]}


def test_strategies_that_do_not_fit_into_memory_together_take_turns_in_groups_with_one_in_common(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bench, "live_bytes", lambda self, slug: 10)
    monkeypatch.setattr(Bench, "room_bytes", lambda self: 20)
    subjects = Subjects(call_s=0.001)
    bench = opened(subjects)
    Turns(bench, BUDGET_S).time_first(SLUGS)
    assert subjects.most_alive == 2
    rounds = {slug: set(bench.record[slug].replicas[0].rounds) for slug in SLUGS}
    assert rounds["batched.xla"] < rounds["batched.graph"] and rounds["loop.eager"] < rounds["batched.graph"]
    assert not rounds["batched.xla"] & rounds["loop.eager"]


def test_a_strategy_that_fails_keeps_its_samples_and_takes_no_turn_any_more(opened: Open) -> None:
    subjects = Subjects(latencies_s=LATENCIES_S, failing=("batched.xla", 3))
    bench = opened(subjects)
    status, _ = race(bench)
    item = bench.record["batched.xla"]
    assert (item.outcome, item.stage, status) == ("failed", "sampling", "complete") and item.error is not None
    assert [(len(replica.samples_s), replica.ended) for replica in item.replicas] == [(2 * SAMPLES_A_TURN, "failed")]
    assert subjects.turns.count("batched.xla") == 3
    assert processes(bench)["batched.graph"] > 1, "the others go on"


def test_a_process_that_dies_while_another_takes_its_turn_fails_its_own_strategy_alone(opened: Open) -> None:
    subjects = Slow(latencies_s=LATENCIES_S, at=3 * FIRST_ROUNDS - 1)
    bench = opened(subjects)

    def kill() -> None:
        subjects.kill(next(number for number, told in subjects.commands if told == "start"))

    subjects.then = kill
    race(bench)
    assert [item.outcome for item in bench.record.items()].count("failed") == 1
    assert bench.record.run.ranking and processes(bench)[bench.record.run.ranking[0][0]] > 1


def test_a_budget_that_ends_before_the_lead_is_decided_is_why_the_run_stopped(
    opened: Open, clock: SimpleNamespace
) -> None:
    subjects = Slow(latencies_s=LATENCIES_S, clock=clock, turn_s=0.1)
    bench = opened(subjects)
    assert race(bench, 3.0) == ("budget", "the time budget was spent before the fastest was told from all others")
    assert clock.now_s <= 3.0 and bench.record.run.control is not None


def test_a_run_that_a_person_stops_ends_with_what_is_known_after_the_turn_that_goes_on(opened: Open) -> None:
    for turn in (1, 11):
        subjects = Slow(latencies_s=LATENCIES_S, at=turn)
        bench = opened(subjects)
        subjects.then = partial(setattr, bench, "stopped", True)
        status, reason = race(bench)
        assert status == "complete" and reason.startswith("a person has stopped it")
        assert len(subjects.turns) == turn and subjects.living == [] and bench.record.run.ranking
