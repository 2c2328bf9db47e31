"""Trying claims: what they need is measured once, a piece that cannot be is a reason, and what there is stays."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from measure import runner
from measure.claims import known, scripts, tries
from measure.claims.predicates import Ends, Faster, Runs
from measure.claims.spec import Claim, Compare, Need, Predicate, Said, Script, Swept
from measure.claims.tries import Tries
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.engine.record import View
from measure.model.request import RequestError
from measure.model.run import Run
from measure.store.store import Store
from tests.engine import DEADLINE_S, QUICK, descendants, eventually, running, write_mapper
from tests.hanging import stopped_clock
from tests.subjects import LOST, Message, Subjects

ID = "0123456789abcdef01234567"
_SMALL = {"batch": 4, "features": 8}
PAIR = Compare("per_example_gradients", ("batched.eager", "loop.eager"), _SMALL, budget_s=300.0)
OTHER = Compare("per_example_gradients", ("batched.graph", "loop.graph"), _SMALL, budget_s=300.0)
LINE = Swept("per_example_gradients", ("batched.eager", "loop.eager"), "batch", (2, 4), size={"features": 8})
NO_WORKLOAD = Compare("nothing_like_it", ("batched.eager",))
NO_STRATEGY = Compare("per_example_gradients", ("nobody.eager",))
TOO_LARGE = Compare("outer_product", ("batched.eager",), {"batch": 10**6, "side": 32})
SCRIPT = Script("report(x=1)")
NOT_MEASURED = {
    NO_WORKLOAD.key: "workload 'nothing_like_it' is not known",
    NO_STRATEGY.key: "mapper 'nobody' is not known: ",
    TOO_LARGE.key: "This cannot fit: ",
}


def claim_of(claim_id: str, *needs: Need) -> Claim:
    tests: list[Predicate] = [
        Runs(need) if isinstance(need, Script) else Ends(need, need.strategies[0]) for need in needs
    ]
    return Claim(id=claim_id, question="limits", sentence="So.", said=(Said("seed 1"),), tests=tuple(tests))


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """``claims(need, …)`` makes one claim of each need, which are all that are known; returns their ids."""

    def make(*needs: Need) -> list[str]:
        made = {f"c{number}": claim_of(f"c{number}", need) for number, need in enumerate(needs)}
        monkeypatch.setattr(known, "all_claims", lambda: tuple(made.values()))
        monkeypatch.setattr(known, "get", made.get)
        return list(made)

    return make


class Watched(Store):
    """A store that notes the number of pieces of evidence at each save."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.pieces: list[int] = []

    def save(self, run: Run, **more: Any) -> None:
        super().save(run, **more)
        self.pieces.append(len(run.evidence or []))


def finished(own: runner.Runner, run_id: str) -> Run:
    assert own.wait(run_id, DEADLINE_S), own.snapshot(run_id)
    snapshot = own.snapshot(run_id)
    assert snapshot is not None and snapshot.state == "finished"
    assert own.store.load(run_id) == snapshot.run, "what is stored is what is shown"
    return snapshot.run


def needs(run: Run) -> list[str]:
    return [item.need for item in run.evidence or []]


def test_what_claims_need_is_measured_once_and_a_reason_where_it_cannot_be(
    claims: Callable[..., list[str]], tmp_path: Path
):
    """Each piece is stored as it arrives."""
    claims(PAIR, SCRIPT, NO_WORKLOAD, PAIR, NO_STRATEGY, TOO_LARGE, LINE)
    kept = Watched(tmp_path)
    with running(Subjects(), tmp_path, kept) as own:
        run = finished(own, own.submit_claims())
    assert (run.kind, run.status, run.claims) == ("claims", "complete", [f"c{number}" for number in range(7)])
    assert needs(run) == [need.key for need in (PAIR, SCRIPT, NO_WORKLOAD, NO_STRATEGY, TOO_LARGE, LINE)]
    pair, script, *reasons, line = run.evidence
    assert pair.run.kind == "compare" and all(item.latency is not None for item in pair.run.measurements)
    assert (line.run.kind, len(line.run.points)) == ("sweep", 2)
    assert script.script.figures == {"x": 1}
    for item in reasons:
        assert (item.run, item.script) == (None, None) and item.reason.startswith(NOT_MEASURED[item.need]), item
    assert set(range(7)) <= set(kept.pieces), "a piece that arrives is stored at once"
    assert run.verdict == tries.summary(run) == "Of 7 claims 3 hold and 4 cannot be told."
    assert run.environment["start_method"] == "fork" and run.started <= run.finished


def test_some_claims_alone_and_none_that_is_not_known(claims: Callable[..., list[str]], tmp_path: Path):
    claims(SCRIPT, PAIR, Script("report(x=2)"))
    with running(Subjects(), tmp_path) as own:
        run = finished(own, own.submit_claims(["c2", "c0", "c2"], parent="f" * 24))
        assert (run.claims, run.parent) == (["c2", "c0"], "f" * 24)
        assert [item.script.figures["x"] for item in run.evidence] == [2, 1]
        with pytest.raises(RequestError, match=r"^claim 'c9' is not known: 'claims' without a name lists them$"):
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

    clock = stopped_clock(monkeypatch)
    ids = claims(PAIR, OTHER, SCRIPT)
    settings = Settings(rules=QUICK, bound_s=60.0)
    run = Tries(ID, ids, subjects := Late(), lambda view: None, settings=settings).run()
    assert run.status == "budget"
    assert run.stop_reason.startswith("the time of this run, 60 s, was over before everything that the claims need")
    first, second = run.evidence
    assert first.run.status == "complete" and second.run.status == "budget"
    assert second.run.stop_reason.startswith("the time of this run, 30 s, was over")
    assert subjects.living == []


def tried(ids: Sequence[str], launcher: Any, publish: Callable[[View], None]) -> Tries:
    return Tries(ID, ids, launcher, publish)


def test_what_goes_on_is_said_and_only_a_piece_of_evidence_is_a_new_version(claims: Callable[..., list[str]]):
    views: list[View] = []
    tried(claims(PAIR, SCRIPT), Subjects(), views.append).run()
    first = "1 of 2: per_example_gradients, batch 4, features 8, batched.eager and loop.eager"
    messages = list(dict.fromkeys(view.message for view in views))
    assert messages[0] == first and f"{first}: timing every strategy once" in messages
    assert messages[-1] == "2 of 2: a script of its own"
    assert sorted({(len(view.run.evidence), view.version) for view in views}) == [(0, 0), (1, 1), (2, 2)]
    assert views[-1].forecast_s == PAIR.seconds + SCRIPT.seconds


def test_cancelled_before_a_part_is_known_it_measures_none(claims: Callable[..., list[str]]):
    subjects, going = Subjects(), list[Tries]()

    def publish(view: View) -> None:
        if view.message.startswith("2 of 3") and not going[0].cancelled:
            going[0].cancel()

    going.append(tried(claims(SCRIPT, PAIR, OTHER), subjects, publish))
    run = going[0].run()
    assert (run.status, run.stop_reason) == ("cancelled", "cancelled by a person")
    assert needs(run) == [SCRIPT.key] and "timing" not in subjects.roles
    assert run.verdict == "Of 3 claims 1 holds and 2 cannot be told."


def test_stopped_it_ends_the_measurement_that_goes_on_and_keeps_it(claims: Callable[..., list[str]], tmp_path: Path):
    class Stopping(Subjects):
        """A person has had enough as soon as a strategy is timed."""

        def send(self, subject: int, message: Message) -> None:
            if message["op"] == "samples":
                own.stop(own.queue()[0])
            super().send(subject, message)

    claims(SCRIPT, PAIR, OTHER)
    subjects = Stopping()
    with running(subjects, tmp_path) as own:
        run = finished(own, own.submit_claims())
    assert (run.status, run.stop_reason) == ("budget", "a person stopped it")
    assert needs(run) == [SCRIPT.key, PAIR.key] and len(subjects.visited) == 1
    assert run.evidence[1].run.stop_reason.startswith("a person has stopped it")


def test_a_host_that_ends_costs_one_piece(claims: Callable[..., list[str]], tmp_path: Path):
    class Mortal(Subjects):
        """Its host ends at the first memory subject, and is back when somebody waits for it."""

        waited = 0

        def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
            self.waited += 1
            return True

    subjects = Mortal()
    subjects.answers = {
        "memory": lambda spec: [LOST] if subjects.roles.count("memory") == 1 else Subjects()._usual(spec)
    }
    claims(PAIR, OTHER)
    with running(subjects, tmp_path) as own:
        run = finished(own, own.submit_claims())
    lost, after = (item.run for item in run.evidence)
    assert lost.status == "interrupted" and "ended unexpectedly" in lost.stop_reason
    assert after.status == "complete" and run.status == "complete"
    assert subjects.waited == 3, "before the run, and before each part"
    assert run.verdict == "Of 2 claims 1 holds and 1 cannot be told."


def test_without_a_host_there_is_a_reason(claims: Callable[..., list[str]]):
    class Gone(Subjects):
        def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
            return False

    run = tried(claims(PAIR, SCRIPT), Gone(), lambda view: None).run()
    assert run.evidence[0].reason.startswith("nothing can be measured now")
    assert run.evidence[1].script.figures == {"x": 1}


def test_a_fault_of_our_own_keeps_the_evidence_so_far(
    claims: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    claims(PAIR, SCRIPT)
    monkeypatch.setattr(scripts, "run", lambda *_: 1 / 0)
    with running(Subjects(), tmp_path) as own:
        run_id = own.submit_claims()
        run = finished(own, run_id)
        assert own.snapshot(run_id).fault
    assert run.status == "interrupted" and "ZeroDivisionError" in run.stop_reason and needs(run) == [PAIR.key]
    assert run.verdict == "Of 2 claims 1 holds and 1 cannot be told."


def test_one_that_waits_in_the_queue_can_be_cancelled(claims: Callable[..., list[str]], tmp_path: Path):
    claims(Script("while True:\n    pass"))
    with running(Subjects(), tmp_path) as own:
        first, second = own.submit_claims(), own.submit_claims()
        own.cancel(second)
        run = finished(own, second)
        assert (run.status, run.stop_reason) == ("cancelled", "cancelled before it began")
        assert run.evidence == [] and run.verdict == "Of 1 claim 1 cannot be told."
        own.cancel(first)
        assert finished(own, first).status == "cancelled"


# --- with real processes ---------------------------------------------------------------------------------------------


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A strategy that never ends, and the file that is there when it has begun."""
    begun = tmp_path / "begun"
    write_mapper(
        tmp_path, "hangs", f"import time\nopen({str(begun)!r}, 'w').close()\nwhile True:\n    time.sleep(1000)"
    )
    monkeypatch.setenv("MAPBENCH_MAPPERS", str(tmp_path / "hangs.py"))
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "measure.lock"))
    return begun


@pytest.mark.parametrize("kind", ["comparison", "sweep", "script"])
def test_cancelled_in_the_middle_it_ends_with_the_evidence_so_far(
    kind: str, claims: Callable[..., list[str]], hanging: Path, host: HostLauncher, tmp_path: Path
):
    need = {
        "comparison": Compare("per_example_gradients", ("hangs.eager",), _SMALL, budget_s=300.0),
        "sweep": Swept("per_example_gradients", ("hangs.eager",), "batch", (2, 4), size={"features": 8}),
        "script": Script(f"open({str(hanging)!r}, 'w').close()\nwhile True:\n    pass"),
    }[kind]
    claims(SCRIPT, need, PAIR)
    with running(host, tmp_path, timeout_floor_s=10 * DEADLINE_S) as own:
        run_id = own.submit_claims()
        eventually(hanging.exists, f"the {kind} goes on")
        assert own.snapshot(run_id).message.startswith("2 of 3: ")
        own.cancel(run_id)
        run = finished(own, run_id)
    assert (run.status, needs(run)) == ("cancelled", [SCRIPT.key])
    assert run.verdict == "Of 3 claims 1 holds and 2 cannot be told."
    eventually(lambda: not descendants(host.pid), "no subject is left")


def test_a_claim_is_tried_to_a_verdict(
    host: HostLauncher, claims: Callable[..., list[str]], tmp_path: Path, monkeypatch
):
    """A loop that waits is slower than one that does not."""
    write_mapper(tmp_path, "waits", "import time\ntime.sleep(0.02)\nreturn map_rightly(fn, elems)")
    write_mapper(tmp_path, "goes", "return map_rightly(fn, elems)")
    monkeypatch.setenv("MAPBENCH_MAPPERS", str(tmp_path))
    need = Compare("per_example_gradients", ("waits.eager", "goes.eager"), _SMALL, budget_s=20.0)
    test = Faster(need, "goes.eager", "waits.eager", when="without waiting")
    claim = Claim(id="waiting", question="speed", sentence="Waiting takes time.", said=(Said("seed 1"),), tests=(test,))
    monkeypatch.setattr(known, "all_claims", lambda: (claim,))
    monkeypatch.setattr(known, "get", {"waiting": claim}.get)
    with running(host, tmp_path) as own:
        run = finished(own, own.submit_claims(["waiting"]))
    # On a machine that is very busy it may not be told, however clear it is.
    assert run.verdict in ("Of 1 claim 1 holds.", "Of 1 claim 1 cannot be told.")
