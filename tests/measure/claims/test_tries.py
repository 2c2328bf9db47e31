"""Trying claims: what they need is measured once, a piece that cannot be is a reason, and what there is stays."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from measure.claims import known, scripts, tries
from measure.claims.predicates import Ends, Faster, Figure
from measure.claims.spec import Claim, Compare, Need, Predicate, Script, Swept
from measure.claims.tries import Tries
from measure.engine.bench import Settings
from measure.model.request import RequestError
from measure.model.run import Run
from measure.model.script_end import ScriptEnd
from tests.deadlines import RUN_S
from tests.engine import QUICK, Own, eventually, running
from tests.hanging import Clock
from tests.subjects import LOST, Message, Subjects, leave_the_machine

ID = "0123456789abcdef01234567"
_SMALL = {"batch": 4, "features": 8}
PAIR = Compare("per_example_gradients", ("batched.eager", "loop.eager"), _SMALL, budget_s=300.0)
OTHER = dataclasses.replace(PAIR, strategies=("batched.graph", "loop.graph"))
LINE = Swept("per_example_gradients", ("batched.eager", "loop.eager"), "batch", (2, 4), size={"features": 8})
NO_WORKLOAD = Compare("nothing_like_it", ("batched.eager",))
TOO_LARGE = Compare("outer_product", ("batched.eager",), {"batch": 10**6, "side": 32})
SCRIPT = Script("report(x=1)")
NOT_MEASURED = {NO_WORKLOAD.key: "workload 'nothing_like_it' is not known", TOO_LARGE.key: "This cannot fit: "}


def run_here(script: Script, *_: Any) -> ScriptEnd:
    """A script that is run in the tests' own process."""
    figures: dict[str, Any] = {}
    exec(script.source, {"report": lambda **more: figures.update(more)})
    return ScriptEnd(source=script.source, figures=figures)


def try_all(
    monkeypatch: pytest.MonkeyPatch, made: Sequence[Claim], run: Callable[..., ScriptEnd] = run_here
) -> list[str]:
    """Let these claims be all that are known, and return their ids."""
    monkeypatch.setattr(known, "all_claims", lambda: tuple(made))
    monkeypatch.setattr(known, "get", {claim.id: claim for claim in made}.get)
    monkeypatch.setattr(scripts, "run", run)
    return [claim.id for claim in made]


def claim_of(claim_id: str, test: Predicate) -> Claim:
    return Claim(claim_id, "limits", "So.", ("seed 1",), (test,))


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """``claims(need, …)`` makes one claim of each need, which are all that are known; returns their ids."""
    leave_the_machine(monkeypatch)

    def make(*needs: Need, run: Callable[..., ScriptEnd] = run_here) -> list[str]:
        tests = [
            Figure(need, "x", "{value}", 1) if isinstance(need, Script) else Ends(need, need.strategies[0])
            for need in needs
        ]
        return try_all(monkeypatch, [claim_of(f"c{number}", test) for number, test in enumerate(tests)], run)

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
    claims(PAIR, SCRIPT, NO_WORKLOAD, PAIR, TOO_LARGE, LINE)
    with running(Subjects(), tmp_path) as own:
        run = finished(own, own.submit_claims())
    assert (run.kind, run.status, run.claims) == ("claims", "complete", [f"c{number}" for number in range(6)])
    assert needs(run) == [need.key for need in (PAIR, SCRIPT, NO_WORKLOAD, TOO_LARGE, LINE)]
    pair, script, *reasons, line = run.evidence
    assert pair.run.kind == "compare" and all(item.latency is not None for item in pair.run.measurements)
    assert (line.run.kind, len(line.run.points)) == ("sweep", 2)
    assert script.script.figures == {"x": 1}
    for item in reasons:
        assert (item.run, item.script) == (None, None) and item.reason.startswith(NOT_MEASURED[item.need]), item
    assert run.verdict == tries.summary(run) == "Of 6 claims 3 hold and 3 cannot be told."


def test_a_claim_is_tried_to_a_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for slower, verdict in (("loop.eager", "Of 1 claim 1 holds."), ("batched.eager", "Of 1 claim 1 does not.")):
        ids = try_all(monkeypatch, [claim_of("quick", Faster(PAIR, "batched.eager", "loop.eager"))])
        with running(Subjects(latencies_s={slower: 0.05}), tmp_path) as own:
            assert finished(own, own.submit_claims(ids)).verdict == verdict


def test_some_claims_alone_and_none_that_is_not_known(claims: Callable[..., list[str]], tmp_path: Path):
    claims(SCRIPT, PAIR, Script("report(x=2)"))
    with running(Subjects(), tmp_path) as own:
        run = finished(own, own.submit_claims(["c2", "c0", "c2"], parent="f" * 24))
        assert (run.claims, run.parent) == (["c2", "c0"], "f" * 24)
        assert [item.script.figures["x"] for item in run.evidence] == [2, 1]
        with pytest.raises(RequestError, match=r"^claim 'c9' is not known: "):
            own.submit_claims(["c0", "c9"])
        assert len(own.store.ids()) == 1


def test_a_run_of_claims_ends_where_its_time_is_over_and_its_parts_have_what_is_left(
    claims: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
):
    class Late(Subjects):
        """With each reference 30 s pass."""

        def start(self, spec: Any, events: Any) -> int:
            clock.now_s += 30.0 if spec.role == "reference" else 0.0
            return super().start(spec, events)

    clock = Clock(monkeypatch)
    ids = claims(PAIR, OTHER, SCRIPT)
    settings = Settings(most_processes=QUICK, bound_s=60.0)
    run = Tries(ID, ids, subjects := Late(), lambda view: None, settings=settings).run()
    assert run.status == "budget" and "60 s" in run.stop_reason
    first, second = run.evidence
    assert first.run.status == "complete" and second.run.status == "budget"
    # Of 60 s, 30 have been used up, and what the tests' own process took.
    assert re.search(r"\b[123]\d s\b", second.run.stop_reason) and subjects.living == []


def test_stopped_it_ends_the_measurement_that_goes_on_and_keeps_it(claims: Callable[..., list[str]]):
    class Stopping(Subjects):
        """A person has had enough as soon as a strategy is timed."""

        def send(self, subject: int, message: Message) -> None:
            if message["op"] == "turn":
                tried.stop()
            super().send(subject, message)

    ids = claims(SCRIPT, PAIR, OTHER)
    settings = Settings(most_processes=QUICK, timeout_floor_s=RUN_S)
    tried = Tries(ID, ids, subjects := Stopping(), lambda view: None, settings=settings)
    run = tried.run()
    assert run.status == "budget"
    assert needs(run) == [SCRIPT.key, PAIR.key] and len(subjects.turns) == 1


def test_a_host_that_ends_costs_one_piece(claims: Callable[..., list[str]], tmp_path: Path):
    class Mortal(Subjects):
        """Its host ends at the first memory subject, and is back for the next piece."""

        waited = 0

        def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
            self.waited += 1
            return super().wait_ready(timeout_s, cancelled)

    subjects = Mortal()
    subjects.answers = {
        "memory": lambda spec: [LOST] if subjects.roles.count("memory") == 1 else Subjects()._usual(spec)
    }
    claims(PAIR, OTHER)
    with running(subjects, tmp_path) as own:
        run = finished(own, own.submit_claims())
    lost, after = (item.run for item in run.evidence)
    assert lost.status == "interrupted" and after.status == run.status == "complete"
    assert subjects.waited == 4, "before the run, before each part, and for another host"
    assert run.verdict == "Of 2 claims 1 holds and 1 cannot be told."


@pytest.mark.usefixtures("live")
def test_cancelled_in_the_middle_it_ends_with_the_evidence_so_far(claims: Callable[..., list[str]], tmp_path: Path):
    begun = tmp_path / "begun"
    claims(SCRIPT, Script(f"open({str(begun)!r}, 'w').close()\nwhile True:\n    pass"), PAIR, run=scripts.run)
    with running(Subjects(), tmp_path) as own:
        own.begin()
        run_id = own.submit_claims()
        eventually(begun.exists, "the script goes on")
        own.cancel(run_id)
        assert own.wait(run_id, RUN_S)
        run = own.store.load(run_id)
    assert (run.status, needs(run)) == ("cancelled", [SCRIPT.key])
    assert run.verdict == "Of 3 claims 1 holds and 2 cannot be told."
