"""Claims that cannot be told are measured again: what is added to what was measured, and what stays."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from measure.claims import along, known, verdicts
from measure.claims.along import FasterAlong
from measure.claims.figures import Missing, seen
from measure.claims.predicates import QuickerBy
from measure.claims.spec import Claim, Compare, Predicate, Said, Script, Seen
from measure.claims.tries import Tries
from measure.engine.bench import Settings
from measure.model.processes import AT_POINT
from measure.model.run import Evidence
from measure.statistics.intervals import Level
from tests.engine import QUICK, running
from tests.measure.claims.test_tries import ID, LINE, NO_WORKLOAD, PAIR, finished, needs
from tests.subjects import LOST, Subjects


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
def tested(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Claim]]:
    """``tested(test, …)`` makes one claim of each test, which are all that are known."""

    def make(*tests: Predicate) -> dict[str, Claim]:
        made = {
            f"c{number}": Claim(f"c{number}", "limits", "So.", (Said("seed 1"),), (test,))
            for number, test in enumerate(tests)
        }
        monkeypatch.setattr(known, "all_claims", lambda: tuple(made.values()))
        monkeypatch.setattr(known, "get", made.get)
        return made

    return make


def test_what_cannot_be_told_is_measured_for_longer_and_once_more(
    tested: Callable[..., dict[str, Claim]], tmp_path: Path
):
    small, first, other, third = (dataclasses.replace(PAIR, budget_s=budget_s) for budget_s in (9.0, 10.0, 11.0, 12.0))
    tests = (InTime(small, 1), InTime(first, 3), InTime(other, 6), InTime(third, 7), InTime(NO_WORKLOAD, 1))
    made = tested(*tests)
    with running(Subjects(), tmp_path) as own:
        run = finished(own, own.submit_claims())
    assert [verdicts.of_run(made[claim], run).sentence.split(".")[0] for claim in made][:4] == [
        "9 s",
        "30 s",
        "66 s",
        "72 s",
    ]
    assert run.verdict == "Of 5 claims 3 hold and 2 cannot be told."
    assert sorted(needs(run)) == sorted(test.need.key for test in tests)


def test_a_script_that_does_not_tell_is_run_again_and_its_samples_are_added(tested: Callable[..., dict[str, Claim]]):
    near = Script("report(a=[1.0] * 6, b=[0.9] * 3 + [1.1] * 3, at=1)")
    clear = Script("report(a=[2.0] * 5, b=[1.0] * 5)")
    made = tested(QuickerBy(near, "b", "a"), QuickerBy(clear, "b", "a"))
    run = Tries(ID, list(made), Subjects(), lambda view: None).run()
    figures = {item.need: item.script.figures for item in run.evidence}
    assert len(figures[near.key]["a"]) == len(figures[near.key]["b"]) == 18 and figures[near.key]["at"] == 1
    assert len(figures[clear.key]["a"]) == 5


def test_lines_of_a_sweep_that_do_not_tell_get_further_processes_beside_those_they_have(
    tested: Callable[..., dict[str, Claim]], monkeypatch: pytest.MonkeyPatch
):
    strategies = ("batched.eager", "batched.graph", "loop.graph")
    line = dataclasses.replace(LINE, strategies=strategies, budget_s=300.0)
    made = tested(FasterAlong(line, *strategies[1:]))
    alike = dict.fromkeys(strategies, Level(0.0, 1.0, 1.0, 1))
    monkeypatch.setattr(along, "levels_along", lambda run, axis: dict.fromkeys(line.values, alike))
    run = Tries(ID, list(made), Subjects(), lambda view: None, settings=Settings(rules=QUICK)).run()
    processes = {
        (point.at["batch"], item.strategy): len(item.replicas)
        for point in run.evidence[0].run.points
        for item in point.measurements
    }
    told = {slug: {processes[at, slug] for at in line.values} for slug in strategies}
    assert min(*told["batched.graph"], *told["loop.graph"]) >= 1 + 2 * AT_POINT > max(told["batched.eager"]), told
    assert (
        run.evidence[0].run.stop_reason == "every point is measured, and batched.graph and loop.graph in more processes"
    )


def test_where_measuring_again_is_refused_what_was_measured_stays(tested: Callable[..., dict[str, Claim]]):
    class Busy(Subjects):
        """Is ready for one comparison alone."""

        ready = 0

        def wait_ready(self, *arguments: Any) -> bool:
            self.ready += 1
            return self.ready == 1

    made = tested(InTime(dataclasses.replace(PAIR, budget_s=10.0), 3))
    run = Tries(ID, list(made), Busy(), lambda view: None).run()
    assert run.evidence[0].run is not None and run.evidence[0].run.request.budget_s == 10.0


def test_where_measuring_again_is_cut_short_what_was_measured_stays(tested: Callable[..., dict[str, Claim]]):
    made = tested(InTime(dataclasses.replace(PAIR, budget_s=10.0), 3))
    subjects = Subjects()
    first = len(PAIR.strategies)
    subjects.answers = {
        "memory": lambda spec: [LOST] if subjects.roles.count("memory") > first else Subjects()._usual(spec)
    }
    run = Tries(ID, list(made), subjects, lambda view: None).run()
    assert subjects.roles.count("memory") > first, "it was measured again"
    assert run.evidence[0].run.status == "complete" and run.evidence[0].run.request.budget_s == 10.0
