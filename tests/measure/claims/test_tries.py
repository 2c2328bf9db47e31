"""Trying claims: what they need is measured once, a piece that cannot be is a reason, and what there is stays."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from measure.claims import known, scripts, verdicts
from measure.claims.predicates import Ends, Faster, Figure
from measure.claims.spec import Claim, Compare, Need, Predicate, Script, Swept, claim
from measure.claims.tries import Tries, chosen
from measure.engine.bench import Settings
from measure.engine.record import View
from measure.run.request import RequestError
from measure.run.run import Run, ScriptEnd
from tests.engine import QUICK, Own, running
from tests.hanging import Clock
from tests.subjects import LOST, Subjects, leave_the_machine

ID = "0123456789abcdef01234567"
_SMALL = {"batch": 4, "features": 8}
PAIR = Compare("per_example_gradients", ("batched.eager", "loop.eager"), _SMALL, budget_s=300.0)
OTHER = dataclasses.replace(PAIR, strategies=("batched.graph", "loop.graph"))
LINE = Swept("per_example_gradients", ("batched.eager", "loop.eager"), "batch", (2, 4), size={"features": 8})
NO_WORKLOAD = Compare("nothing_like_it", ("batched.eager",))
TOO_LARGE = Compare("outer_product", ("batched.eager",), {"batch": 10**6, "side": 32})
SCRIPT = Script("report(x=1)")


def run_here(script: Script, *_: Any) -> ScriptEnd:
    """A script that is run in the tests' own process."""
    figures: dict[str, Any] = {}
    exec(script.source, {"report": lambda **more: figures.update(more)})
    return ScriptEnd(source=script.source, figures=figures)


def predicate_on(need: Need) -> Predicate:
    return Figure(need, "x", "{value}", 1) if isinstance(need, Script) else Ends(need, need.strategies[0])


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """``claims(need or predicate, …)`` makes one claim of each, which are all that there are; returns their ids."""
    leave_the_machine(monkeypatch)

    def make(*parts: Need | Predicate, run: Callable[..., ScriptEnd] = run_here) -> list[str]:
        tests = [part if isinstance(part, Predicate) else predicate_on(part) for part in parts]
        made: list[Claim] = [claim(f"c{number}", "limits", (), "So.", test) for number, test in enumerate(tests)]
        monkeypatch.setattr(known, "all_claims", lambda: tuple(made))
        monkeypatch.setattr(scripts, "run", run)
        return [one.id for one in made]

    return make


def finished(own: Own, run_id: str) -> Run:
    own.work()
    run = own.store.load(run_id)
    assert run is not None and own.queue() == ()
    return run


def needs(run: Run) -> list[str]:
    return [item.need for item in run.evidence or []]


def test_what_claims_need_is_measured_once_and_a_reason_where_it_cannot_be(
    claims: Callable[..., list[str]], tmp_path: Path
):
    slower = Faster(OTHER, "loop.graph", "batched.graph")
    claims(PAIR, SCRIPT, NO_WORKLOAD, PAIR, TOO_LARGE, LINE, slower)
    with running(Subjects(latencies_s={"loop.graph": 0.05}), tmp_path) as own:
        run = finished(own, own.submit(chosen(())))
    assert (run.kind, run.status, run.claims) == ("claims", "complete", [f"c{number}" for number in range(7)])
    assert needs(run) == [need.key for need in (PAIR, SCRIPT, NO_WORKLOAD, TOO_LARGE, LINE, OTHER)]
    pair, script, unknown, too_large, line, _ = run.evidence
    assert pair.run.kind == "compare" and all(item.latency is not None for item in pair.run.measurements)
    assert (line.run.kind, len(line.run.points)) == ("sweep", 2)
    assert script.script.figures == {"x": 1}
    assert unknown.reason.startswith("workload 'nothing_like_it' is not known")
    assert too_large.reason.startswith("This cannot fit: ") and too_large.run is None
    assert run.verdict == verdicts.summary(run) == "Of 7 claims 3 hold, 1 does not hold and 3 cannot tell."


def test_some_claims_alone_and_none_that_is_not_known(claims: Callable[..., list[str]], tmp_path: Path):
    claims(SCRIPT, PAIR, Script("report(x=2)"))
    with running(Subjects(), tmp_path) as own:
        run = finished(own, own.submit(chosen(["c2", "c0", "c2"]), parent="f" * 24))
        assert (run.claims, run.parent) == (["c2", "c0"], "f" * 24)
        assert [item.script.figures["x"] for item in run.evidence] == [2, 1]
        with pytest.raises(RequestError, match=r"^claim 'c9' is not known: "):
            own.submit(chosen(["c0", "c9"]))
        assert len(own.store.ids()) == 1


def test_a_run_of_claims_ends_where_its_time_is_over_and_keeps_what_there_is(
    claims: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
):
    def pass_time(view: View) -> None:
        clock.now_s += 30.0 if view.message.endswith("computing the reference") else 0.0

    clock = Clock(monkeypatch)
    settings = Settings(most_processes=QUICK, bound_s=60.0)
    run = Tries(ID, claims(PAIR, OTHER, SCRIPT), subjects := Subjects(), pass_time, settings=settings).run()
    assert run.status == "budget" and "60 s" in run.stop_reason and subjects.living == []
    assert [item.run.status for item in run.evidence] == ["complete", "budget"]


def test_a_host_that_ends_costs_one_piece(claims: Callable[..., list[str]], tmp_path: Path):
    subjects = Subjects()
    subjects.answers = {
        "memory": lambda spec: [LOST] if subjects.roles.count("memory") == 1 else Subjects()._usual(spec)
    }
    claims(PAIR, OTHER)
    with running(subjects, tmp_path) as own:
        run = finished(own, own.submit(chosen(())))
    lost, after = (item.run for item in run.evidence)
    assert lost.status == "interrupted" and after.status == run.status == "complete"
    assert run.verdict == "Of 2 claims 1 holds and 1 cannot tell."
