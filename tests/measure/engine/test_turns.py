"""Taking turns, with simulated subjects: who lives, in which order turns are taken, what stays, and how it ends."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from measure.engine import turns
from measure.engine.bench import Bench
from measure.engine.record import View
from measure.engine.turns import FIRST_ROUNDS, ROUNDS, SECOND_ROUNDS, Turns
from measure.judge.analysis import analyse
from measure.judge.findings import findings
from measure.judge.levels import LEAST_SLICES, has_samples, slices_of
from measure.pool import clock as module
from measure.run.request import parse, script_of
from measure.run.run import Status
from measure.subject.messages import Spec
from tests.samples import memory
from tests.subjects import FAULTS, SAMPLES_A_TURN, Subjects, leave_the_machine

SLUGS = ("batched.graph", "batched.xla", "loop.eager")
# Two that tie, and one that is clearly slower.
LATENCIES_S = {"batched.graph": 0.001, "batched.xla": 0.001, "loop.eager": 0.008}
TWIN = "batched.graph#twin"

# Opens a bench of a launcher's subjects.
Open = Callable[..., Bench]


@pytest.fixture
def opened() -> Iterator[Open]:
    def open_bench(
        subjects: Subjects, slugs: Sequence[str] = SLUGS, run_id: str = "0" * 24, publish: Any = lambda view: None,
        **more: str,
    ) -> Bench:  # fmt: skip
        asked = {"workload": "square", "strategies": list(slugs), **more}
        bench = Bench(run_id, parse(asked), subjects, publish)
        for slug in slugs:
            bench.update(slug, outcome="ok", memory=memory(64))
        stack.enter_context(bench.opened())
        return bench

    with contextlib.ExitStack() as stack:
        yield open_bench


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of the budget, which stands still unless a test sets its ``now_s``; samples come at even times."""
    leave_the_machine(monkeypatch)
    clock, looks = SimpleNamespace(now_s=0.0), itertools.count()
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: 0.1 * next(looks)))
    monkeypatch.setattr(module.Clock, "now_s", property(lambda self: clock.now_s))
    return clock


def race(bench: Bench, end_s: float = 9.0, planned_s: float | None = None) -> tuple[Status, str]:
    processes = Turns(bench, end_s if planned_s is None else planned_s, end_s)
    ended = processes.race(bench.fastest_first(bench.request.strategies))
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


class Uneven(Subjects):
    """Every other process is slower by 8%."""

    def _call_s(self, spec: Spec) -> float:
        number = next(number for number, one in self.numbered.items() if one is spec)
        return super()._call_s(spec) * (1.08 if number % 2 else 1.0)


def test_those_that_may_be_the_fastest_have_further_processes_where_processes_differ(opened: Open) -> None:
    bench = opened(Subjects(latencies_s=LATENCIES_S))
    assert race(bench) == ("complete", "more samples would hardly tell the fastest from others")
    assert set(processes(bench).values()) == {2}
    assert rounds(bench, "batched.xla") == set(range(1, FIRST_ROUNDS + SECOND_ROUNDS + ROUNDS + 1))
    assert len(rounds(bench, "loop.eager")) < FIRST_ROUNDS + SECOND_ROUNDS, "a slow one has what a ratio needs"
    race(bench := opened(Uneven(latencies_s=LATENCIES_S)))
    most = bench.settings.most_processes
    assert sorted(processes(bench).values()) == [2, most, most, most], "and so has the twin of the fastest"


def test_a_fastest_strategy_that_is_told_from_all_others_ends_the_run(opened: Open) -> None:
    bench = opened(Subjects(latencies_s={**LATENCIES_S, "batched.xla": 0.0015}))
    assert race(bench) == ("complete", "the fastest is told from all others")
    assert processes(bench) == {"loop.eager": 2, "batched.graph": 2, "batched.xla": 2, TWIN: 2}


def test_slow_calls_are_timed_in_two_processes_until_there_are_enough_slices_for_a_ratio(opened: Open) -> None:
    bench = opened(Subjects(latencies_s={**LATENCIES_S, "loop.eager": 0.2}))
    race(bench)
    assert slices_of(bench["loop.eager"]) == (2, LEAST_SLICES)
    bench = opened(Subjects(latencies_s={"batched.graph": 0.001, "loop.eager": 2.0, "batched.xla": 0.4}))
    race(bench, 60.0, 9.0)
    assert slices_of(bench["batched.xla"]) == (1, 1), "a call that takes a good part of the time is timed once"
    assert slices_of(bench["loop.eager"]) == (2, LEAST_SLICES), "but for the baseline, on which all ratios rest"


def test_the_usual_choices_and_then_the_fastest_are_timed_first(opened: Open) -> None:
    latencies_s = {"loop.eager": 0.05, "batched.eager": 5e-4, "map_fn.graph": 0.02, "batched.xla": 6e-4}
    bench = opened(subjects := Subjects(latencies_s=latencies_s), list(latencies_s))
    for slug, latency_s in latencies_s.items():
        bench.update(slug, rough_s=2 * latency_s)
    race(bench)
    in_order = ["map_fn.graph", "batched.eager", "batched.xla", "loop.eager"]
    started = [spec.name for spec in subjects.specs if spec.role == "timing"]
    assert started[:4] == subjects.turns[:4] == in_order, "and one round of all comes before a second one of any"
    assert sorted(subjects.turns[4:8]) == sorted(in_order)


def test_while_the_answer_is_not_usable_sampling_goes_on_after_its_planned_end(
    opened: Open, clock: SimpleNamespace
) -> None:
    def pass_time(number: int) -> None:
        clock.now_s += 0.1

    for planned_s, end_s, usable in ((1.2, 1.2, False), (1.2, 30.0, True)):
        clock.now_s, views = 0.0, list[View]()
        bench = opened(Subjects(latencies_s=LATENCIES_S, on_turn=pass_time), publish=views.append)
        status, reason = race(bench, end_s, planned_s)
        assert findings(analyse(bench.record)).is_usable == usable
        if usable:
            assert (status, reason) == ("complete", "the answer is usable") and planned_s < clock.now_s < 8.0
            assert bench.extended_s == bench.forecast.max_seconds
            assert any(view.message.endswith(": measuring longer") for view in views)
        else:
            assert status == "budget" and clock.now_s <= planned_s and bench.extended_s is None


def test_samples_carry_their_round_and_their_page_faults(opened: Open) -> None:
    bench = opened(Subjects(latencies_s=LATENCIES_S))
    race(bench)
    replica = bench["loop.eager"].replicas[0]
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
        ("pool", "C library", 0.2, {*SLUGS[:2]}),
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
        assert has_samples(item)
        assert item.strategy == f"{slug}#default" and item.latency
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
    subjects = Subjects(latencies_s=LATENCIES_S, failing=("batched.xla", 2))
    bench = opened(subjects)
    status, _ = race(bench)
    item = bench["batched.xla"]
    assert (item.outcome, item.stage, status) == ("failed", "sampling", "complete") and item.error is not None
    assert [(len(replica.samples_s), replica.ended) for replica in item.replicas] == [(SAMPLES_A_TURN, "failed")]
    assert subjects.turns.count("batched.xla") == 2
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
