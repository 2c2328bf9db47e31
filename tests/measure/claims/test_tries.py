"""Trying claims: what they need is measured once, a piece that cannot be is a reason, and what there is stays."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from measure.claims import known, scripts, verdicts
from measure.claims.spec import Claim, Compare, Ends, Faster, Figure, Need, Predicate, Script, claim
from measure.claims.tries import Tries, chosen, still_tried
from measure.engine.bench import Settings
from measure.engine.record import View
from measure.run.request import RequestError
from measure.run.run import Run, ScriptEnd
from tests.engine import QUICK, Own, running
from tests.hanging import Clock
from tests.subjects import LOST, Subjects, leave_the_machine

ID = "0123456789abcdef01234567"
_SMALL = {"batch": 4, "features": 8}
PAIR = Compare("per_example_gradients", ("batched.eager", "loop.eager"), _SMALL, seconds=150.0)
OTHER = dataclasses.replace(PAIR, strategies=("batched.graph", "loop.graph"))
SCRIPT = Script("report(x=1)")


def run_here(script: Script, *_: Any) -> ScriptEnd:
    """A script that is run in the tests' own process."""
    figures: dict[str, Any] = {}
    exec(script.source, {"report": lambda **more: figures.update(more)})
    return ScriptEnd(source=script.source, figures=figures)


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Claim, ...]]:
    """``claims(need or predicate, …)`` makes one claim of each, which are all that there are, c0, c1, …."""
    leave_the_machine(monkeypatch)

    def test_of(part: Need | Predicate) -> Predicate:
        if isinstance(part, Predicate):
            return part
        return Figure(part, "x", "{value}", 1) if isinstance(part, Script) else Ends(part, part.strategies[0])

    def make(*parts: Need | Predicate) -> tuple[Claim, ...]:
        made = tuple(claim(f"c{number}", "limits", (), "So.", test_of(part)) for number, part in enumerate(parts))
        monkeypatch.setattr(known, "all_claims", lambda: made)
        monkeypatch.setattr(scripts, "run", run_here)
        return made

    return make


def finished(own: Own, ids: Sequence[str] = (), **more: Any) -> Run:
    run_id = own.submit(chosen(ids), **more)
    own.work()
    return own.store.load(run_id)


def test_what_claims_need_is_measured_once(claims: Callable[..., tuple[Claim, ...]], tmp_path: Path):
    claims(PAIR, SCRIPT, PAIR, Faster(OTHER, "loop.graph", "batched.graph"))
    with running(Subjects(latencies_s={"loop.graph": 0.05}), tmp_path) as own:
        run = finished(own)
    assert (run.kind, run.status, run.claims) == ("claims", "complete", ["c0", "c1", "c2", "c3"])
    assert [item.need for item in run.evidence] == [need.key for need in (PAIR, SCRIPT, OTHER)]
    pair, script, _ = run.evidence
    assert pair.run.kind == "compare" and all(item.latency is not None for item in pair.run.measurements)
    assert script.script.figures == {"x": 1}
    assert run.verdict == verdicts.summary(run) == "Of 4 claims 3 hold and 1 does not hold."


def test_some_claims_alone_and_none_that_is_not_known(claims: Callable[..., tuple[Claim, ...]], tmp_path: Path):
    claims(SCRIPT, PAIR, Script("report(x=2)"))
    with running(Subjects(), tmp_path) as own:
        run = finished(own, ["c2", "c0", "c2"], parent="f" * 24)
        assert (run.claims, run.parent) == (["c0", "c2"], "f" * 24)
        assert [item.script.figures["x"] for item in run.evidence] == [1, 2]
    with pytest.raises(RequestError, match=r"^claim 'c9' is not known: "):
        chosen(["c0", "c9"])
    assert [one.id for one in still_tried(replace(run, claims=["c9", "c0"]))] == ["c0"], "a run of before, once more"
    with pytest.raises(RequestError, match="no longer tried"):
        still_tried(replace(run, claims=["c9"]))


def test_a_run_of_claims_ends_where_its_time_is_over_and_keeps_what_there_is(
    claims: Callable[..., tuple[Claim, ...]], monkeypatch: pytest.MonkeyPatch
):
    def pass_time(view: View) -> None:
        clock.now_s += 30.0 if view.message.endswith("computing the reference") else 0.0

    clock = Clock(monkeypatch)
    settings = Settings(most_processes=QUICK, bound_s=60.0)
    run = Tries(ID, claims(PAIR, OTHER, SCRIPT), subjects := Subjects(), pass_time, settings=settings).run()
    assert run.status == "budget" and "60 s" in run.stop_reason and subjects.living == []
    assert [item.run.status for item in run.evidence] == ["complete", "budget"]


def test_a_host_that_ends_costs_one_piece_and_one_that_does_not_start_is_a_reason(
    claims: Callable[..., tuple[Claim, ...]], tmp_path: Path
):
    subjects = Subjects()
    subjects.answers = {
        "memory": lambda spec: [LOST] if subjects.roles.count("memory") == 1 else Subjects()._usual(spec)
    }
    asked = claims(PAIR, OTHER)
    with running(subjects, tmp_path) as own:
        run = finished(own)
    lost, after = (item.run for item in run.evidence)
    assert lost.status == "interrupted" and after.status == run.status == "complete"
    assert run.verdict == "Of 2 claims 1 holds and 1 cannot tell."
    subjects.is_lost = True
    run = Tries(ID, asked, subjects, lambda view: None, settings=Settings(most_processes=QUICK, bound_s=60.0)).run()
    assert [item.reason[:31] for item in run.evidence] == ["nothing can be measured now: ", ""]
