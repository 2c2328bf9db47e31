"""Requests that wait: they outlive their server, and the next one measures them in their order."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from measure import attendant, runner
from measure.admission import Visitor
from measure.claims import known
from measure.engine.bench import Settings
from measure.model.asked import Asked
from measure.model.request import RequestError
from measure.store.store import Store
from measure.sweep.request import parse_sweep
from tests import synthetic
from tests.deadlines import RUN_S
from tests.engine import QUICK, eventually, small_request
from tests.subjects import Gated, leave_the_machine
from workloads.functions import Facts, Given, OwnFunction

ANN = Visitor("ann", "ann", "1")
SWEEP = {
    "workload": "square",
    "strategies": ["batched.eager", "loop.eager"],
    "axes": [{"kind": "size", "name": "batch", "values": [2, 4]}],
    "budget_s": 60,
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attendant, "_LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(attendant, "_FIRST_LOOK_S", 0.0)
    leave_the_machine(monkeypatch)


def server(home: Path, subjects: Gated) -> runner.Runner:
    settings = Settings(most_processes=QUICK, probes=False, process_peaks=False)
    return runner.Runner(store_=Store(home), launcher_=subjects, settings=settings, name="a test", serves=True)


@pytest.fixture
def held() -> Gated:
    return Gated()


@pytest.fixture
def before(tmp_path: Path, held: Gated) -> Iterator[runner.Runner]:
    own = server(tmp_path, held)
    yield own
    own.close()


def begun(own: runner.Runner, run_id: str) -> bool:
    return own.snapshot(run_id).state in ("starting", "running")


def test_what_waits_when_a_server_ends_is_measured_by_the_next_one_in_its_order(before: runner.Runner, tmp_path: Path):
    first = before.submit(small_request("batched.eager"), visitor=ANN)
    eventually(lambda: begun(before, first), "the first one has begun")
    waiting = [
        before.submit(small_request("loop.eager", seed=7), visitor=ANN, why=True),
        before.submit_sweep(parse_sweep(SWEEP), visitor=ANN),
        before.submit(small_request("map_fn.graph"), visitor=ANN, parent=first),
        before.submit_claims([known.all_claims()[0].id], visitor=ANN),
    ]
    asked = {run_id: before.snapshot(run_id).run for run_id in waiting}
    before.close()
    entries = {entry.id: entry for entry in Store(tmp_path).entries()}
    assert entries[first].status == "cancelled", "what had begun ends"
    assert [entries[run_id].status for run_id in waiting] == ["running"] * 4
    following = server(tmp_path, Gated())
    try:
        late = following.submit(small_request("batched.graph"), visitor=ANN)
        eventually(lambda: len(following.queue()) == 5, "they are queued again")
        assert following.queue() == (*waiting, late), "before all that was asked since"
        for run_id in waiting:
            run, owner = following.snapshot(run_id).run, following.snapshot(run_id).owner
            assert (run.id, run.kind, run.request, run.parent, run.claims, owner) == (
                *(run_id, asked[run_id].kind, asked[run_id].request, asked[run_id].parent, asked[run_id].claims),
                "ann",
            )
            assert [axis.values for axis in run.axes] == [axis.values for axis in asked[run_id].axes]
    finally:
        following.close()


def test_it_is_measured_to_its_end_and_then_waits_no_more(before: runner.Runner, tmp_path: Path):
    first, second, third = (before.submit(small_request("batched.eager", seed=seed)) for seed in range(3))
    before.cancel(third)
    before.close()
    subjects = Gated()
    following = server(tmp_path, subjects)
    subjects.gate.set()
    eventually(lambda: following.wait(second, 0.0) and following.snapshot(second).state == "finished", "it is measured")
    run = following.snapshot(second).run
    following.close()
    assert run.status == "complete" and Store(tmp_path).load(second) == run and first != second
    assert Store(tmp_path).load(third).status == "cancelled", "what is cancelled while it waits does not come back"
    assert Store(tmp_path).take_waiting() == []


OWN = OwnFunction(
    given=Given(code="", function="fn", elems="elems"),
    facts=Facts(size={"batch": 2}, element=["leaf", {}], result=["leaf", {}], dtype="float32", reference="own"),
)


def test_an_explanation_that_waits_when_a_server_ends_is_begun_by_the_next_one(
    before: runner.Runner, held: Gated, tmp_path: Path
):
    held.gate.set()
    explained, other = (before.submit(small_request("batched.eager", seed=seed), visitor=ANN) for seed in (0, 1))
    assert before.wait(explained, RUN_S) and before.wait(other, RUN_S)
    held.gate.clear()
    first = before.submit(small_request("loop.eager"), visitor=ANN)
    eventually(lambda: begun(before, first), "the first one has begun")
    before.explain(explained, ANN)
    before.cancel(before.explain(other, ANN), ANN)
    assert before.store.orders.to_explain() == [explained], "what is cancelled does not come back"
    before.close()
    following = server(tmp_path, subjects := Gated())
    try:
        eventually(lambda: following.explanation(explained) is not None, "it is queued again")
        assert following.explanation(other) is None and following.store.orders.to_explain() == [explained]
        subjects.gate.set()
        job_id, _ = following.explanation(explained)
        assert following.wait(job_id, RUN_S) and following.store.orders.to_explain() == []
    finally:
        following.close()


def test_what_can_no_longer_be_asked_ends_with_a_sentence_and_hinders_no_other(tmp_path: Path):
    before = Store(tmp_path)
    for run_id, more in (("a" * 24, {"own": OWN}), ("c" * 24, {"workload": "nosuch"}), ("b" * 24, {})):
        run = synthetic.partial(0, run_id)
        before.save(replace(run, request=replace(run.request, **more)), live=True, asked=Asked())
    before.close()
    following = server(tmp_path, Gated())
    try:
        eventually(lambda: following.queue() == ("b" * 24,), "the other one waits again")
        for run_id, why in (("a" * 24, "a function of a person's own"), ("c" * 24, "workload 'nosuch' is not known")):
            run = following.snapshot(run_id).run
            assert run.status == "interrupted" and f"cannot be queued again: {why}" in run.stop_reason
    finally:
        following.close()


def test_a_server_that_is_drained_takes_no_requests_ends_what_goes_on_and_keeps_what_waits(
    before: runner.Runner, tmp_path: Path, held: Gated
):
    first, second = (before.submit(small_request("batched.eager")) for _ in range(2))
    eventually(lambda: begun(before, first), "the first one has begun")
    Store(tmp_path).orders.drain()
    with pytest.raises(RequestError, match="takes no new runs"):
        before.submit(small_request("batched.eager"), visitor=ANN)
    looked = threading.Event()
    real = before.store.orders.to_cancel
    before.store.orders.to_cancel = lambda ids: (looked.set(), real(ids))[1]
    for _ in range(2):  # the second one begins when the first one has ended
        looked.clear()
        assert looked.wait(RUN_S), "it has seen the order"
    held.gate.set()
    assert before.wait(first, RUN_S) and before.snapshot(first).run.status == "complete"
    assert before.queue() == (second,) and before.snapshot(second).state == "queued"
    assert Store(tmp_path).orders.resume() and not Store(tmp_path).orders.resume()
    assert before.wait(second, RUN_S) and before.snapshot(second).run.status == "complete"
