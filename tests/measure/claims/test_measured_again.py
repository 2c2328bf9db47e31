"""Claims that cannot be told are measured again: what is added to what was measured, and what stays."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from measure.claims import along
from measure.claims.along import FasterAlong
from measure.claims.figures import Missing, seen
from measure.claims.predicates import QuickerBy
from measure.claims.spec import Compare, Predicate, Script, Seen
from measure.claims.tries import Tries
from measure.engine.bench import Settings
from measure.model.forecast import forecast_run
from measure.model.request import case_of, parse
from measure.model.run import Evidence, Run
from measure.statistics.intervals import Level
from measure.sweep.sites import AT_POINT
from tests.engine import QUICK
from tests.measure.claims.test_tries import ID, LINE, PAIR, claim_of, needs, try_all
from tests.subjects import LOST, Subjects, leave_the_machine


@dataclass(frozen=True)
class InTime:
    """It can be told where the run had ``least`` times the budget that the claim asks for."""

    need: Compare
    least: float
    when: str = ""

    def see(self, found: Evidence) -> Seen:
        if found.run is None:
            raise Missing(found.reason or "")
        budget_s = found.run.request.budget_s
        return seen("yes" if budget_s >= self.least * self.need.budget_s else "unknown", f"{budget_s:.0f} s", "1 ×")


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """``tried(test, …)`` tries one claim of each test on simulated subjects."""
    leave_the_machine(monkeypatch)

    def run(*tests: Predicate, on: Subjects | None = None) -> Run:
        ids = try_all(monkeypatch, [claim_of(f"c{number}", test) for number, test in enumerate(tests)])
        return Tries(ID, ids, on or Subjects(), lambda view: None, settings=Settings(most_processes=QUICK)).run()

    return run


def budgets(run: Run) -> list[float]:
    """Seconds for latencies, beside what is needed before."""
    asked = parse({"workload": PAIR.workload, "size": dict(PAIR.size), "strategies": list(PAIR.strategies)})
    needed_s = forecast_run(case_of(asked), asked.strategies).seconds
    return [round(item.run.request.budget_s - needed_s, 6) for item in run.evidence or [] if item.run]


def test_what_cannot_be_told_is_measured_for_longer_and_once_more(tried: Callable[..., Run]):
    small, first, other, third = (dataclasses.replace(PAIR, budget_s=budget_s) for budget_s in (9.0, 10.0, 11.0, 12.0))
    tests = (InTime(small, 1), InTime(first, 3), InTime(other, 6), InTime(third, 7))
    run = tried(*tests)
    assert budgets(run) == [9.0, 30.0, 66.0, 72.0]
    assert run.verdict == "Of 4 claims 3 hold and 1 cannot be told."
    assert sorted(needs(run)) == sorted(test.need.key for test in tests)


def test_a_script_that_does_not_tell_is_run_again_and_its_samples_are_added(tried: Callable[..., Run]):
    near = Script("report(a=[1.0] * 6, b=[0.9] * 3 + [1.1] * 3, at=1)")
    clear = Script("report(a=[2.0] * 5, b=[1.0] * 5)")
    run = tried(QuickerBy(near, "b", "a"), QuickerBy(clear, "b", "a"))
    figures = {item.need: item.script.figures for item in run.evidence}
    assert len(figures[near.key]["a"]) == len(figures[near.key]["b"]) == 18 and figures[near.key]["at"] == 1
    assert len(figures[clear.key]["a"]) == 5


def test_lines_of_a_sweep_that_do_not_tell_get_further_processes_beside_those_they_have(
    tried: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
):
    strategies = ("batched.eager", "batched.graph", "loop.graph")
    line = dataclasses.replace(LINE, strategies=strategies, budget_s=300.0)
    alike = dict.fromkeys(strategies, Level(0.0, 1.0, 1.0, 1))
    monkeypatch.setattr(along, "levels_along", lambda run, axis: dict.fromkeys(line.values, alike))
    run = tried(FasterAlong(line, *strategies[1:]))
    processes = {
        (point.at["batch"], item.strategy): len(item.replicas)
        for point in run.evidence[0].run.points
        for item in point.measurements
    }
    told = {slug: {processes[at, slug] for at in line.values} for slug in strategies}
    assert min(*told["batched.graph"], *told["loop.graph"]) >= 1 + 2 * AT_POINT > max(told["batched.eager"]), told


def test_where_measuring_again_is_cut_short_what_was_measured_stays(tried: Callable[..., Run]):
    subjects = Subjects()
    first = len(PAIR.strategies)
    subjects.answers = {
        "memory": lambda spec: [LOST] if subjects.roles.count("memory") > first else Subjects()._usual(spec)
    }
    run = tried(InTime(dataclasses.replace(PAIR, budget_s=10.0), 3), on=subjects)
    assert subjects.roles.count("memory") > first, "it was measured again"
    assert run.evidence[0].run.status == "complete" and budgets(run) == [10.0]
