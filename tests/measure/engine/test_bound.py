"""A run ends when it was said to end, whatever its subjects do; and what there was no time for is no failure."""

from typing import Any

import pytest

from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.run import deadline
from measure.run.request import parse
from measure.run.run import Run
from tests.hanging import Clock, Slow
from tests.subjects import Message

SLUGS = ("batched.eager", "batched.graph", "loop.eager", "map_fn.graph", "vectorized_map.graph")
HANGS = "map_fn.graph"
ID = "0" * 24
BUDGET_S = 12.0
# How late it may be noticed that a step has lasted too long.
LOOK_S = 0.5


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def compare(subjects: Slow, *slugs: str, keep: Any = None, **settings: Any) -> Run:
    request = parse({"workload": "square", "strategies": list(slugs or SLUGS), "budget_s": BUDGET_S})
    run = Comparison(ID, request, subjects, lambda view: None, settings=Settings(**settings), keep=keep).run()
    assert subjects.clock.now_s <= deadline.of_comparison(request) + LOOK_S == 1.5 * BUDGET_S + LOOK_S
    for item in run.measurements:
        if not item.twin_of and item.latency is None and item.outcome == "not_run":
            assert item.error is not None and ("time" in item.error.message), "it is said why"
    return run


def outcomes(run: Run) -> dict[str, str]:
    return {item.strategy: item.outcome for item in run.measurements if not item.twin_of}


@pytest.mark.parametrize(("times", "least"), [(1, 5), (5, 2), (20, 0)])
def test_on_a_machine_that_is_slower_than_forecast_nothing_that_works_is_failed(
    clock: Clock, times: float, least: int
) -> None:
    run = compare(Slow(clock=clock, times=times))
    assert {*outcomes(run).values()} <= {"ok", "not_run"}
    timed = [item.strategy for item in run.measurements if item.latency and not item.twin_of]
    assert len(timed) >= least and sorted(slug for group in run.ranking for slug in group) == sorted(timed)


@pytest.mark.parametrize(("times", "words"), [(1, {"timeout"}), (3, {"timeout", "not_run"})])
@pytest.mark.parametrize("step", ["memory", "first_call", "turn"])
def test_one_that_hangs_where_the_others_do_not_costs_them_nothing(
    clock: Clock, step: str, times: float, words: set[str]
) -> None:
    run = compare(Slow(clock=clock, times=times, hangs=lambda at, slug: (at, slug) == (step, HANGS)))
    others = outcomes(run)
    assert others.pop(HANGS) in words and {*others.values()} == {"ok"}
    assert sorted(slug for group in run.ranking for slug in group) == sorted(others)


def test_one_that_goes_on_when_others_are_done_has_the_time_that_these_show_to_be_usual(clock: Clock) -> None:
    class Slower(Slow):
        def _answer(self, subject: int, step: str, messages: list[Message]) -> None:
            if step == "memory" and self._names[subject] == SLUGS[1]:
                self.busy_until_s[subject] = clock.now_s + 2.0
            super()._answer(subject, step, messages)

    item = compare(Slower(clock=clock, times=8)).measurement(SLUGS[1])
    assert item.memory is not None, item.error


@pytest.mark.parametrize("step", ["reference", "memory", "first_call", "turn"])
def test_where_everything_hangs_nothing_is_a_timeout(clock: Clock, step: str) -> None:
    run = compare(subjects := Slow(clock=clock, hangs=lambda at, slug: at == step))
    assert {*outcomes(run).values()} == {"not_run"} and not run.ranking and subjects.living == []


def test_one_by_itself_is_waited_for_until_the_end_of_the_run(clock: Clock) -> None:
    run = compare(Slow(clock=clock, hangs=lambda at, slug: at == "memory"), HANGS)
    assert outcomes(run) == {HANGS: "not_run"} and clock.now_s > 1.5 * BUDGET_S - LOOK_S


@pytest.mark.parametrize(("at", "words"), [("probes", "cut_short"), ("process_peak", "no_time"), ("why", "cut_short")])
def test_after_the_verdict_it_costs_what_is_shown_beside_it_alone_and_is_said(
    clock: Clock, at: str, words: str
) -> None:
    run = compare(Slow(clock=clock, hangs=lambda step, slug: step == at), keep=lambda *_: True)
    assert run.status in ("complete", "budget") and run.ranking and {*outcomes(run).values()} == {"ok"}
    assert words in str([warning.code for warning in run.warnings])
    assert (run.limit is None) == (at == "probes")
