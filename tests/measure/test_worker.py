"""The worker and the pages' side of it: a queue that never measures two things at once, faults around it, and that
nothing that was measured or asked for is lost."""

import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from measure import client, making, worker
from measure.admission import NOBODY, Visitor
from measure.claims import known
from measure.claims.tries import chosen
from measure.client import Busy, Client
from measure.engine import deriving, machine_lock
from measure.engine.comparison import Comparison
from measure.hosting import Limits
from measure.local import Local
from measure.pool.launcher import HostState
from measure.run import place
from measure.run.request import RequestError
from measure.run.run import Run
from measure.run.sweep_request import parse_sweep
from measure.store import database
from measure.store.store import Snapshot, Store
from tests.deadlines import RUN_S
from tests.engine import Own, eventually, measure_here, running, small_request
from tests.keeping import ids
from tests.subjects import Message, Subjects
from workloads.functions import Facts, Given, OwnFunction

HANGS = "loop.eager"
ANN, BOB = Visitor("ann", "ann", "here"), Visitor("bob", "bob", "there")
SWEEP = {
    "workload": "square",
    "strategies": ["batched.eager", "loop.eager"],
    "axes": [{"kind": "size", "name": "batch", "values": [2, 4]}],
    "budget_s": 60,
}


def hanging() -> Subjects:
    """The subject of one strategy answers nothing where it is timed, until it is killed."""
    ready: Message = {"event": "ready", "runtime_s": 0.1}
    return Subjects(answers={"timing": lambda spec: [] if spec.name == HANGS else [ready]})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "measure.lock"))
    monkeypatch.setattr(making, "LOOK_S", 0.01)
    monkeypatch.setattr(making, "_STAND_S", 0.0)
    monkeypatch.setattr(worker, "_LOOK_S", 0.01)
    monkeypatch.setattr(machine_lock, "_WAIT_S", 0.01)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Own]:
    """A worker that is a thread, whose strategies may hang for as long as they like."""
    with running(subjects := hanging(), tmp_path, timeout_floor_s=10 * RUN_S) as own:
        own.begin()
        yield own
    assert subjects.living == []


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Own]:
    """A worker that does what waits when the test says so."""
    with running(Subjects(), tmp_path) as own:
        yield own


def hanging_run(own: Own, *slugs: str, **more: Any) -> str:
    """A run that is timed, and goes on until it is cancelled."""
    run_id = own.submit(small_request(*slugs, HANGS), **more)
    eventually(lambda: own.snapshot(run_id).stages.get(HANGS) == "first call", "it makes its first call")
    return run_id


def finished(own: Own, run_id: str) -> Run:
    assert own.wait(run_id, RUN_S), own.snapshot(run_id)
    snapshot = own.snapshot(run_id)
    assert snapshot.state == "finished"
    return snapshot.run


# --- the queue -------------------------------------------------------------------------------------------------------


def test_a_run_can_be_watched_and_one_that_is_cancelled_ends_with_what_it_had(own: Own):
    run_id = hanging_run(own, "batched.eager")
    snapshot = own.snapshot(run_id)
    assert snapshot.state == "running" and snapshot.elapsed_s is not None and snapshot.remaining_s is not None
    assert own.going_on().run.id == run_id
    eventually(lambda: all(item.memory for item in own.snapshot(run_id).run.measurements), "results come at once")
    own.cancel(run_id)
    run = finished(own, run_id)
    assert run.status == "cancelled" and all(item.memory is not None for item in run.measurements)
    assert (run.measurement(HANGS).outcome, run.measurement(HANGS).latency) == ("cancelled", None)
    assert own.snapshot(run_id).version > snapshot.version and own.snapshot(run_id).elapsed_s is None
    assert finished(own, own.submit(small_request("batched.eager"))).status == "complete", "the next one runs"


def test_runs_wait_in_their_order_and_one_that_is_cancelled_there_hinders_no_other(
    own: Own, monkeypatch: pytest.MonkeyPatch
):
    first = hanging_run(own)
    second, third, fourth = (own.submit(small_request("batched.eager", seed=seed)) for seed in range(3))
    assert own.queue() == (first, second, third, fourth)
    assert [own.snapshot(run_id).position for run_id in own.queue()] == [0, 1, 2, 3]
    assert {entry.id: entry.status for entry in own.store.entries()} == dict.fromkeys(own.queue(), "running")
    assert own.delete([first, second]) == [], "neither has ended"
    own.cancel(second)
    run = finished(own, second)
    assert run.status == "cancelled" and run.measurements[0].outcome == "cancelled"
    assert own.queue() == (first, third, fourth)
    stopped = threading.Event()
    stop = Comparison.stop
    monkeypatch.setattr(Comparison, "stop", lambda self: (stop(self), stopped.set()))
    own.stop(third)
    own.stop(first)
    assert stopped.wait(RUN_S), "an order to stop reaches what is measured"
    own.cancel(first)
    runs = [finished(own, run_id) for run_id in (first, third, fourth)]
    assert [run.status for run in runs] == ["cancelled", "complete", "complete"]
    assert "stopped" not in runs[1].stop_reason, "what waits has nothing yet to end with"
    assert all(before.finished <= after.started for before, after in pairwise(runs)), "never two at once"
    own.cancel(third)
    assert finished(own, third).status == "complete", "what has finished cannot be cancelled"
    own.cancel("0" * 24)
    assert own.snapshot("0" * 24) is None and own.snapshot("../../etc/passwd") is None


def test_two_on_one_machine_take_turns_and_say_for_whom_they_wait(own: Own, tmp_path: Path):
    first = hanging_run(own)
    with running(Subjects(), tmp_path / "other") as other:
        other.begin()
        second, third = (other.submit(small_request("batched.eager", seed=seed)) for seed in range(2))
        waits = f"waiting for a test (process {os.getpid()} on "
        eventually(lambda: waits in other.snapshot(second).message, "the second one says for whom it waits")
        other.cancel(second)
        assert finished(other, second).status == "cancelled"
        own.cancel(first)
        assert finished(other, third).started >= finished(own, first).finished


# --- ends of processes -----------------------------------------------------------------------------------------------


def test_what_waits_when_a_worker_ends_is_measured_by_the_next_one_in_its_order(own: Own, tmp_path: Path):
    explained = finished(own, own.submit(small_request("batched.eager"), visitor=ANN)).id
    first = hanging_run(own, "batched.eager", visitor=ANN)
    waiting = [
        own.submit(small_request("map_fn.eager", seed=7), visitor=ANN),
        own.submit(parse_sweep(SWEEP), visitor=ANN),
        own.submit(small_request("map_fn.graph"), visitor=ANN, parent=first),
        own.submit(chosen([known.all_claims()[0].id]), visitor=ANN),
        own.explain(explained, ANN),
    ]
    asked = {run_id: own.snapshot(run_id).run for run_id in waiting[:-1]}
    own.end()
    run = own.store.load(first)
    assert (run.status, run.measurement("batched.eager").memory is not None) == ("interrupted", True)
    assert "the server ended" in run.stop_reason and own.queue() == tuple(waiting)
    begun: list[str] = []
    with running(Subjects(), tmp_path) as following:
        real = following.worker.store.queue.next
        following.worker.store.queue.next = lambda *_: begun.append(real()) or begun[-1]
        following.work()
        assert [work.id for work in begun] == waiting and {work.owner for work in begun} == {"ann"}
        for run_id, before in asked.items():
            run = following.store.load(run_id)
            for name in ("kind", "request", "parent", "claims"):
                assert getattr(run, name) == getattr(before, name)
            assert run.kind == "claims" or run.status == "complete", run.stop_reason
        assert all(item.why for item in following.store.load(explained).measurements if not item.twin_of)
        assert following.queue() == ()


def test_the_app_starts_its_worker_again_a_few_times_and_then_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    started: list[Any] = []

    class Ended:
        status = 1

        def __init__(self, *arguments: Any, **_: Any) -> None:
            started.append(arguments)

    monkeypatch.setattr(client, "Python", Ended)
    own = Client(Store(tmp_path), starts_worker=True)
    states = [own.host() for _ in range(8)]
    assert len(started) == client._MOST_STARTS and states[0].state == "starting"
    assert states[-1].state == "failed" and "has ended again and again" in states[-1].message
    assert "mapbench worker" in Client(Store(tmp_path)).host().message, "it has none to start"


def test_a_host_that_cannot_start_is_told_and_ends_what_waits_with_its_reason(tmp_path: Path):
    subjects, reason = Subjects(), "the measuring process ended: ImportError: no tensorflow"
    subjects.state = lambda: HostState("failed", reason)
    subjects.wait_ready = lambda *_: False
    with running(subjects, tmp_path) as own:
        assert (own.host().state, "no tensorflow" in own.host().message) == ("failed", True)
        run_id = own.submit(small_request("batched.eager"))
        own.work()
        run = own.store.load(run_id)
        assert run.status == "interrupted" and "no tensorflow" in run.stop_reason and own.queue() == ()


STEPS = {
    Subjects: "wait_ready",
    worker: "machine_lock",
    worker.Worker: "_made",
    Comparison: "run",
    making.Recording: "end",
}


@pytest.mark.parametrize(("owner", "step"), STEPS.items())
def test_no_fault_at_any_step_ends_the_worker(own: Own, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str):
    working = getattr(owner, step)
    faults: list[str] = []

    def failing(*arguments: Any, **more: Any) -> Any:
        if not faults:
            faults.append(step)
            raise RuntimeError("injected")
        return working(*arguments, **more)

    monkeypatch.setattr(owner, step, failing)
    first = own.submit(small_request("batched.eager"))
    eventually(lambda: faults, f"{step} has failed")
    assert finished(own, first).finished, "it does not go on for ever"
    assert finished(own, own.submit(small_request("batched.eager", seed=1))).status == "complete"


# --- stores that cannot be written -----------------------------------------------------------------------------------


def test_while_another_holds_the_store_it_is_measured_and_written_when_that_is_over(
    own: Own, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(database, "READING_S", 0.01)
    monkeypatch.setattr(database, "WRITING_S", 0.01)
    monkeypatch.setattr(making, "_FIRST_PAUSE_S", 0.01)
    measured = threading.Event()
    real = Comparison.run

    def run(self: Comparison) -> Run:
        held.execute("BEGIN IMMEDIATE")
        ended = real(self)
        measured.set()
        return ended

    with sqlite3.connect(tmp_path / "runs.db", isolation_level=None, check_same_thread=False) as held:
        monkeypatch.setattr(Comparison, "run", run)
        run_id = own.submit(small_request("batched.eager"))
        assert measured.wait(RUN_S), "nothing that is timed waits for it"
        assert own.snapshot(run_id).state == "running"
        held.execute("ROLLBACK")
    assert finished(own, run_id).status == "complete"


def test_a_run_that_is_deleted_while_it_is_measured_ends_and_is_not_written_again(own: Own, tmp_path: Path):
    run_id = hanging_run(own, "batched.eager")
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))
    assert finished(own, own.submit(small_request("batched.eager"))).status == "complete", "the next one is measured"
    assert own.snapshot(run_id) is None


@pytest.mark.parametrize(("step", "status"), [("measure", "cancelled"), ("end", "complete")])
def test_an_interrupt_just_before_it_is_measured_ends_it_and_while_it_is_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, status: str
):
    measure_here(Subjects(), monkeypatch)
    real = getattr(making.Recording, step)

    def interrupted(self: making.Recording, *arguments: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return real(self, *arguments)

    monkeypatch.setattr(making.Recording, step, interrupted)
    with Local("a test", store=Store(tmp_path)) as local:
        run, _ = local.measure(small_request("batched.eager"), lambda view: None)
        assert run.status == status and local.store.load(run.id) == run


# --- functions of a person's own -------------------------------------------------------------------------------------

GIVEN = Given(code="def f(x):\n    return x\n\n\nelems = [1.0, 2.0]\n", function="f", elems="elems")


def test_a_function_is_looked_at_before_all_that_waits_and_is_a_workload_then(
    own: Own, monkeypatch: pytest.MonkeyPatch
):
    facts = Facts(size={"batch": 2}, element=["leaf", {}], result=["leaf", {}], dtype="float32", reference="own")
    monkeypatch.setattr(deriving, "derive", lambda given, *_: OwnFunction(given=given, facts=facts))
    assert own.give(GIVEN) == GIVEN.slug and own.queue() == ()

    def refuse(*_: Any) -> OwnFunction:
        raise RequestError("line 1: nothing is mapped")

    monkeypatch.setattr(deriving, "derive", refuse)
    with pytest.raises(RequestError, match="line 1: nothing is mapped"):
        own.give(GIVEN)
    first = hanging_run(own)
    with pytest.raises(Busy):
        own.give(GIVEN)
    queued = own.submit(small_request("batched.graph"))
    waited_for = []

    def waiting(snapshot: Snapshot) -> None:
        waited_for.append(snapshot.run.id)
        if len(waited_for) == 1:
            raise KeyboardInterrupt  # whoever asked has gone
        own.cancel(first)

    with pytest.raises(KeyboardInterrupt):
        own.give(GIVEN, waiting=waiting)
    assert [work.id for work in own.store.queue.all()] == [first, queued], "a check that nobody waits for is gone"
    with pytest.raises(RequestError, match="line 1: nothing is mapped"):
        own.give(GIVEN, waiting=waiting)
    assert set(waited_for) == {first}, "it goes before all that is queued"
    finished(own, queued)
    monkeypatch.setenv("MAPBENCH_HOSTED", "1")
    with pytest.raises(RequestError, match="no code of a person's own is executed"):
        own.give(GIVEN)


# --- who may have what -----------------------------------------------------------------------------------------------


def test_every_way_in_is_refused_to_who_has_a_run_already_and_to_all_where_it_is_drained(idle: Own):
    run_id = idle.submit(small_request("batched.eager"), None, ANN)
    idle.work()
    idle.client.limits = Limits(session_runs=1)
    going = idle.submit(small_request("batched.graph"), None, ANN)
    ways_in = [lambda visitor: idle.explain(run_id, visitor)]
    for asked in (small_request("loop.eager"), parse_sweep(SWEEP), chosen(())):
        ways_in.append(lambda visitor, asked=asked: idle.submit(asked, None, visitor))
    for ask in ways_in:
        with pytest.raises(RequestError, match="1 run of yours is going or waiting, and this server allows 1"):
            ask(ANN)
    idle.store.queue.drain()
    for ask in ways_in:
        with pytest.raises(RequestError, match="takes no new runs"):
            ask(NOBODY)
    assert idle.queue() == (going,) and len(ids(idle.store)) == 2, "what is refused leaves nothing"
    idle.work()
    assert idle.queue() == (going,), "and nothing new is begun"
    idle.store.queue.resume()
    idle.work()
    assert idle.store.load(going).status == "complete"
    assert idle.client.refusals == {"session": 4, "drained": 4}


def test_what_is_measured_is_counted_for_who_asked_also_where_it_is_explained(idle: Own):
    idle.client.limits = Limits(address_day_s=10_000)
    run_id = idle.submit(small_request("batched.eager"), None, ANN)
    idle.work()
    day = idle.store.load(run_id).created[:10]
    spent_s = partial(idle.store.queue.spent_s, day=day)
    measured_s = spent_s("here") - client._ASKING_S
    idle.explain(run_id, ANN)
    idle.work()
    assert spent_s("here") - 2 * client._ASKING_S > measured_s > 0 == spent_s("there")
    idle.submit(small_request("loop.eager"), None, Visitor("eve", "eve"))
    idle.work()
    assert spent_s("eve") > client._ASKING_S, "without an address sessions are counted"
    for times in (1, 2):
        idle.cancel(idle.submit(small_request("batched.eager"), None, BOB), BOB)
        assert spent_s("there") == times * client._ASKING_S, "who asks and cancels all day fills no store"
    idle.client.limits = Limits(address_day_s=1)
    with pytest.raises(RequestError, match="come again after midnight UTC"):
        idle.submit(small_request("loop.eager"), None, ANN)


def test_who_waits_is_told_how_long_those_before_take_by_forecast(idle: Own):
    ids = [idle.submit(request) for request in (small_request("batched.eager"), parse_sweep(SWEEP))]
    first, second = (idle.snapshot(run_id) for run_id in ids)
    assert (first.position, first.wait_s, second.position) == (0, 0.0, 1) and second.wait_s > 2.0
    assert first.wait_most_s == 0.0 and second.wait_most_s == making.bound_s(small_request("batched.eager"))


def test_only_who_started_a_run_ends_explains_or_deletes_it(idle: Own):
    run_id = idle.submit(small_request("batched.eager"), None, ANN)
    for end in (idle.cancel, idle.stop):
        with pytest.raises(RequestError, match="only who started a run can"):
            end(run_id, BOB)
    idle.work()
    with pytest.raises(RequestError, match="only who started a run can have it explained"):
        idle.explain(run_id, BOB)
    assert idle.delete([run_id], BOB) == [] and ids(idle.store) == [run_id]
    explaining = idle.explain(run_id, ANN)
    assert idle.explanation(run_id)[0] == explaining == idle.explain(run_id, ANN)
    with pytest.raises(RequestError, match="only who started a run can cancel it"):
        idle.cancel(explaining, BOB)
    idle.cancel(explaining, ANN)
    assert idle.explanation(run_id) is None and idle.delete([run_id], ANN) == [run_id]


def test_only_a_run_that_was_measured_here_of_late_and_to_its_end_answers_an_equal_request(idle: Own):
    idle.client.limits = Limits(recent_s=3_600)
    run_id = idle.submit(small_request("batched.eager"), None, ANN)
    idle.work()
    assert idle.submit(small_request("batched.eager"), None, BOB) == run_id and idle.queue() == ()
    assert idle.submit(small_request("batched.eager"), run_id, BOB) != run_id, "it repeats one"
    assert idle.submit(small_request("batched.eager", seed=2)) != run_id
    run = idle.store.load(run_id)
    assert idle.delete([run_id]) == [run_id]
    for changes, answers in (
        ({}, True),
        ({"status": "budget"}, True),  # it was measured for as long as was asked for
        ({"status": "budget", "ranking": []}, False),
        *(({"status": status}, False) for status in ("interrupted", "cancelled")),
        ({"finished": place.utc(0)}, False),
        ({"environment": {**run.environment, "python": "2.7"}}, False),
    ):
        other = replace(run, id=place.new_id(), **changes)
        idle.store.begin(other)
        idle.store.save(other, ended=True)
        following = Client(idle.store)  # of another process
        following.limits = idle.client.limits
        assert (following.submit(small_request("batched.eager")) == other.id) is answers, changes
        assert idle.delete([other.id]) == [other.id]
    idle.store.add(run)
    assert idle.submit(small_request("batched.eager")) != run_id, "what comes from elsewhere answers nothing"
