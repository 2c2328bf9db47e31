"""Requests that wait: they outlive their server, and the next one measures them in their order."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from tests.engine import DEADLINE_S, QUICK, eventually, small_request
from tests.subjects import Subjects
from workloads.functions import Facts, Given, OwnFunction

ANN = Visitor("ann", "ann", "1")
SWEEP = {
    "workload": "square",
    "strategies": ["batched.eager", "loop.eager"],
    "axes": [{"kind": "size", "name": "batch", "values": [2, 4]}],
    "budget_s": 60,
}


class Held(Subjects):
    """Subjects that start when a test says so."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.go = threading.Event()

    def wait_ready(self, timeout_s: float, cancelled: Any) -> bool:
        while not cancelled():
            if self.go.wait(0.01):
                return True
        return False

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attendant, "_LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(attendant, "_FIRST_LOOK_S", 0.0)


def server(home: Path, subjects: Held) -> runner.Runner:
    settings = Settings(rules=QUICK, probes=False, process_peaks_s=0.0)
    return runner.Runner(store_=Store(home), launcher_=subjects, settings=settings, name="a test", serves=True)


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def before(tmp_path: Path, held: Held) -> Iterator[runner.Runner]:
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
    following = server(tmp_path, Held())
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
    first = before.submit(small_request("batched.eager"))
    second = before.submit(small_request("loop.eager"))
    before.close()
    subjects = Held()
    following = server(tmp_path, subjects)
    subjects.go.set()
    eventually(lambda: following.wait(second, 0.0) and following.snapshot(second).state == "finished", "it is measured")
    run = following.snapshot(second).run
    following.close()
    assert run.status == "complete" and Store(tmp_path).load(second) == run and first != second
    third = server(tmp_path, Held())
    try:
        third.submit(small_request("batched.eager"))
        assert len(third.queue()) == 1, "nothing waits"
    finally:
        third.close()


OWN = OwnFunction(
    given=Given(code="", function="fn", elems="elems"),
    facts=Facts(size={"batch": 2}, element=["leaf", {}], result=["leaf", {}], dtype="float32", reference="own"),
)


def test_an_explanation_that_waits_when_a_server_ends_is_begun_by_the_next_one(
    before: runner.Runner, held: Held, tmp_path: Path
):
    held.go.set()
    explained, other = (before.submit(small_request("batched.eager", seed=seed), visitor=ANN) for seed in (0, 1))
    assert before.wait(explained, DEADLINE_S) and before.wait(other, DEADLINE_S)
    held.go.clear()
    first = before.submit(small_request("loop.eager"), visitor=ANN)
    eventually(lambda: begun(before, first), "the first one has begun")
    before.explain(explained, ANN)
    before.cancel(before.explain(other, ANN), ANN)
    assert before.store.orders.to_explain() == [explained], "what is cancelled does not come back"
    before.close()
    following = server(tmp_path, subjects := Held())
    try:
        eventually(lambda: following.explanation(explained) is not None, "it is queued again")
        assert following.explanation(other) is None and following.store.orders.to_explain() == [explained]
        subjects.go.set()
        job_id, _ = following.explanation(explained)
        assert following.wait(job_id, DEADLINE_S) and following.store.orders.to_explain() == []
    finally:
        following.close()


def test_an_explanation_that_waits_outlives_a_deployment_too_and_is_still_the_visitors(
    before: runner.Runner, held: Held, tmp_path: Path
):
    held.go.set()
    run_id = before.submit(small_request("batched.eager"), visitor=ANN)
    assert before.wait(run_id, DEADLINE_S)
    held.go.clear()
    other = before.submit(small_request("loop.eager"), visitor=ANN)
    eventually(lambda: begun(before, other), "another has begun")
    before.explain(run_id, ANN)
    before.store.orders.drain()
    before.close()
    following = server(tmp_path, subjects := Held())
    try:
        eventually(lambda: following.explanation(run_id) is not None, "it is queued again")
        job_id, _ = following.explanation(run_id)
        assert following.snapshot(job_id).owner == "ann" and following.store.orders.to_explain() == [run_id]
        following.store.orders.resume()
        subjects.go.set()
        assert following.wait(job_id, DEADLINE_S) and following.store.orders.to_explain() == []
    finally:
        following.close()


def test_a_run_that_can_no_longer_be_explained_waits_no_more(tmp_path: Path):
    store = Store(tmp_path)
    store.orders.explain("f" * 24)
    store.close()
    own = server(tmp_path, Held())
    try:
        eventually(lambda: own.store.orders.to_explain() == [], "there is no such run")
        assert own.queue() == ()
    finally:
        own.close()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"own": OWN}, "a function of a person's own is not kept longer than its server: give it again"),
        ({"workload": "nosuch"}, "workload 'nosuch' is not known"),
    ],
)
def test_what_can_no_longer_be_asked_ends_with_a_sentence_and_hinders_no_other(
    changes: dict[str, Any], why: str, tmp_path: Path
):
    before = Store(tmp_path)
    for run_id, more in (("a" * 24, changes), ("b" * 24, {})):
        run = synthetic.partial(0, run_id)
        before.save(replace(run, request=replace(run.request, **more)), live=True, asked=Asked())
    before.close()
    following = server(tmp_path, Held())
    try:
        eventually(lambda: following.queue() == ("b" * 24,), "the other one waits again")
        run = following.snapshot("a" * 24).run
        assert run.status == "interrupted"
        assert run.stop_reason.startswith("it waited when the server ended, and cannot be queued again: ")
        assert why in run.stop_reason
    finally:
        following.close()


def test_a_server_that_lives_keeps_what_waits_for_it(before: runner.Runner, tmp_path: Path):
    first, second = (before.submit(small_request("batched.eager")) for _ in range(2))
    eventually(lambda: begun(before, first), "the first one has begun")
    other = server(tmp_path, Held())
    try:
        third = other.submit(small_request("batched.eager"))
        eventually(lambda: begun(other, third) or other.snapshot(third).state == "locked", "it has looked")
        assert other.queue() == (third,) and before.queue() == (first, second)
        other.cancel(third)
    finally:
        other.close()


def test_what_is_cancelled_while_it_waits_does_not_come_back(before: runner.Runner, tmp_path: Path):
    first, second = (before.submit(small_request("batched.eager")) for _ in range(2))
    before.cancel(second)
    before.close()
    assert Store(tmp_path).load(second).status == "cancelled"
    assert second not in [waiting.run.id for waiting in Store(tmp_path).take_waiting()] and first != second


# --- orders ----------------------------------------------------------------------------------------------------------


def test_a_run_is_ended_from_another_process(before: runner.Runner, tmp_path: Path):
    first, second = (before.submit(small_request("batched.eager")) for _ in range(2))
    eventually(lambda: begun(before, first), "the first one has begun")
    for run_id in (second, first):
        Store(tmp_path).orders.cancel(run_id)
        assert before.wait(run_id, DEADLINE_S)
        assert before.snapshot(run_id).run.status == "cancelled"


def test_a_server_that_is_drained_takes_no_requests_ends_what_goes_on_and_keeps_what_waits(
    before: runner.Runner, tmp_path: Path, held: Held
):
    first, second = (before.submit(small_request("batched.eager")) for _ in range(2))
    eventually(lambda: begun(before, first), "the first one has begun")
    Store(tmp_path).orders.drain()
    with pytest.raises(RequestError, match="takes no new runs"):
        before.submit(small_request("batched.eager"), visitor=ANN)
    looked = threading.Event()
    real = before.store.orders.to_cancel
    before.store.orders.to_cancel = lambda ids: (looked.set(), real(ids))[1]
    assert looked.wait(DEADLINE_S)
    looked.clear()
    assert looked.wait(DEADLINE_S), "it has seen the order"
    held.go.set()
    assert before.wait(first, DEADLINE_S) and before.snapshot(first).run.status == "complete"
    assert before.queue() == (second,) and before.snapshot(second).state == "queued"
    assert Store(tmp_path).orders.resume() and not Store(tmp_path).orders.resume()
    assert before.wait(second, DEADLINE_S) and before.snapshot(second).run.status == "complete"
