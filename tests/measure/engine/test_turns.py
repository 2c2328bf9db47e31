"""Taking turns, with simulated subjects: who lives, in which order turns are taken, what stays, and how it ends."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from measure.engine import turns
from measure.engine.bench import Bench
from measure.engine.turns import FIRST_ROUNDS, ROUNDS, Turns
from measure.pool import clock as module
from measure.run.request import parse, script_of
from measure.run.run import Status
from tests.samples import memory
from tests.subjects import FAULTS, SAMPLES_A_TURN, Subjects

SLUGS = ("batched.graph", "batched.xla", "loop.eager")
# Two that tie, and one that is clearly slower.
LATENCIES_S = {"batched.graph": 0.001, "batched.xla": 0.001, "loop.eager": 0.008}
TWIN = "batched.graph#twin"

# Opens a bench of a launcher's subjects.
Open = Callable[..., Bench]


@pytest.fixture
def opened() -> Iterator[Open]:
    def open_bench(subjects: Subjects, run_id: str = "0" * 24, **more: str) -> Bench:
        asked = {"workload": "square", "strategies": list(SLUGS), **more}
        bench = Bench(run_id, parse(asked), subjects, lambda view: None)
        for slug in SLUGS:
            bench.update(slug, outcome="ok", memory=memory(64))
        stack.enter_context(bench.opened())
        return bench

    with contextlib.ExitStack() as stack:
        yield open_bench


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of the budget, which stands still unless a test sets its ``now_s``; samples come at even times."""
    clock, looks = SimpleNamespace(now_s=0.0), itertools.count()
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: 0.1 * next(looks)))
    monkeypatch.setattr(module.Clock, "now_s", property(lambda self: clock.now_s))
    return clock


def race(bench: Bench, end_s: float = 9.0) -> tuple[Status, str]:
    processes = Turns(bench, end_s)
    ended = processes.race(SLUGS)
    processes.end()
    return ended


def stopping(bench: Bench, turn: int) -> Callable[[int], object]:
    """A person who stops the run at the turn of this number."""
    return lambda number: number == turn and bench.stop()


def processes(bench: Bench) -> dict[str, int]:
    return {item.strategy: len(item.replicas) for item in bench.record.measurements}


def rounds(bench: Bench, slug: str) -> set[int]:
    """The rounds in which the first process of a strategy took its turn."""
    return set(bench[slug].replicas[0].rounds)


def test_all_live_while_one_takes_its_turn_and_the_order_of_a_round_is_the_runs_own(opened: Open) -> None:
    orders = []
    for run_id in ("0" * 24, "0" * 24, "1" * 24):
        subjects = Subjects(latencies_s=LATENCIES_S)
        race(opened(subjects, run_id=run_id))
        assert subjects.living == []
        orders.append(subjects.turns)
    assert orders[0] == orders[1] != orders[2]
    first_rounds = [sorted(orders[0][3 * number : 3 * number + 3]) for number in range(FIRST_ROUNDS)]
    assert first_rounds == [sorted(SLUGS)] * FIRST_ROUNDS, "everybody takes one turn in each of the first rounds"
    commands = [command for _, command in subjects.commands]
    first = commands.index("turn")
    assert {*commands[first : first + 3 * FIRST_ROUNDS]} == {"turn"}, "and nobody starts or ends meanwhile"


def test_who_is_far_behind_has_one_process_and_who_may_lead_as_many_as_the_leader(opened: Open) -> None:
    bench = opened(Subjects(latencies_s=LATENCIES_S))
    assert race(bench) == ("complete", "more processes would hardly tell the fastest from others")
    most = bench.settings.most_processes
    assert processes(bench) == {"loop.eager": 1, "batched.graph": most, "batched.xla": most, TWIN: most}
    last = FIRST_ROUNDS + ROUNDS * (most - 1)
    assert rounds(bench, "batched.xla") == rounds(bench, "loop.eager") == set(range(1, last + 1))


def test_a_leader_that_is_told_from_all_others_ends_the_run_and_those_near_it_have_two_processes(opened: Open) -> None:
    bench = opened(Subjects(latencies_s={**LATENCIES_S, "batched.xla": 0.0015}))
    assert race(bench) == ("complete", "the fastest is told from all others")
    assert processes(bench) == {"loop.eager": 1, "batched.graph": 2, "batched.xla": 2, TWIN: 2}


def test_samples_carry_their_round_and_their_page_faults(opened: Open) -> None:
    bench = opened(Subjects(latencies_s=LATENCIES_S))
    race(bench)
    (replica,) = bench["loop.eager"].replicas
    count = len({*replica.rounds}) * SAMPLES_A_TURN
    assert replica.rounds == [number for number in sorted({*replica.rounds}) for _ in range(SAMPLES_A_TURN)]
    assert replica.samples_s == [LATENCIES_S["loop.eager"]] * count
    assert len(replica.at_s) == count and replica.at_s == sorted(replica.at_s)
    assert (replica.calls_per_sample, replica.first_call_s, replica.ended) == (2, 0.016, "done")
    assert (replica.faults, replica.kernel_s) == ([FAULTS] * count, [0.0] * count)


@pytest.mark.parametrize(
    ("allocator", "default", "loop_s", "entered"),
    [
        # Two that lead, and the baseline, which is far behind, but not where its calls are long.
        ("pool", "C library", 0.008, {*SLUGS}),
        ("pool", "C library", 0.5, {*SLUGS[:2]}),
        ("pool", "oneDNN's pool", 0.008, set()),
        ("default", "C library", 0.008, set()),
    ],
)
def test_those_near_the_fastest_and_the_baseline_are_timed_with_the_default_allocator_where_it_is_the_c_librarys(
    opened: Open, allocator: str, default: str, loop_s: float, entered: set[str]
) -> None:
    subjects = Subjects(latencies_s={**LATENCIES_S, "loop.eager": loop_s})
    bench = opened(subjects, allocator=allocator)
    bench.record = replace(bench.record, environment={"tensorflow_allocator": default})
    race(bench)
    items = {item.twin_of: item for item in bench.record.measurements if item.has_default_memory}
    assert set(items) == entered
    assert {slug for group in bench.record.ranking for slug in group} == {*SLUGS}
    for slug, item in items.items():
        (replica,) = item.replicas
        assert item.strategy == f"{slug}#default" and len({*replica.rounds}) == FIRST_ROUNDS and item.latency
        assert item.code is not None and item.code.source == script_of(bench.request, slug, allocator="default")
        assert item.code.source in [spec.script for spec in subjects.specs if spec.name == slug]
    assert bench.record.control is not None and subjects.living == []


def test_strategies_that_do_not_fit_into_memory_together_take_turns_in_groups_with_one_in_common(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bench, "live_bytes", lambda self, slug: 10)
    monkeypatch.setattr(Bench, "room_bytes", lambda self: 20)
    bench = opened(subjects := Subjects(call_s=0.001))
    subjects.on_turn = stopping(bench, 2 * 2 * FIRST_ROUNDS)  # the last one of the first rounds
    race(bench)
    assert subjects.most_alive == 2
    own = {slug: rounds(bench, slug) for slug in SLUGS}
    assert own["batched.graph"] == own["batched.xla"] | own["loop.eager"] and not own["batched.xla"] & own["loop.eager"]


def test_a_strategy_that_fails_keeps_its_samples_and_takes_no_turn_any_more(opened: Open) -> None:
    subjects = Subjects(latencies_s=LATENCIES_S, failing=("batched.xla", 3))
    bench = opened(subjects)
    status, _ = race(bench)
    item = bench["batched.xla"]
    assert (item.outcome, item.stage, status) == ("failed", "sampling", "complete") and item.error is not None
    assert [(len(replica.samples_s), replica.ended) for replica in item.replicas] == [(2 * SAMPLES_A_TURN, "failed")]
    assert subjects.turns.count("batched.xla") == 3
    assert processes(bench)["batched.graph"] > 1, "the others go on"


def test_a_budget_that_ends_before_the_lead_is_decided_is_why_the_run_stopped(
    opened: Open, clock: SimpleNamespace
) -> None:
    def pass_time(_: int) -> None:
        clock.now_s += 0.1

    bench = opened(Subjects(latencies_s=LATENCIES_S, on_turn=pass_time))
    assert race(bench, 3.0) == ("budget", "the time budget was spent before the fastest was told from all others")
    assert clock.now_s <= 3.0 and bench.record.control is not None


@pytest.mark.parametrize("turn", [1, 11])
def test_a_run_that_a_person_stops_ends_with_what_there_is_after_the_turn_that_goes_on(opened: Open, turn: int) -> None:
    bench = opened(subjects := Subjects(latencies_s=LATENCIES_S))
    subjects.on_turn = stopping(bench, turn)
    status, reason = race(bench)
    assert status == "complete" and reason.startswith("a person has stopped it")
    assert len(subjects.turns) == turn and subjects.living == [] and bench.record.ranking
