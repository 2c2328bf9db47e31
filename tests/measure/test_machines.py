"""Other machines: one side and the other without a network between them, and then as processes on Dask."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import filelock
import pytest
from msgspec.structs import replace

from measure import agent, machines, making, worker
from measure.admission import Visitor
from measure.agent import Agent
from measure.client import Client
from measure.hosting import Limits
from measure.machines import Machine, NotConnected
from measure.run.request import ALL_MACHINES, Request, RequestError
from measure.run.run import Run
from measure.store.queue import WorkerState
from measure.store.store import Store
from tests.cluster import Cluster
from tests.deadlines import ANSWER_S, RUN_S
from tests.engine import Own, eventually, running, small_request
from tests.simulated_worker import SILENT
from tests.subjects import HELD_BATCH, HeldSubjects
from workloads import functions
from workloads.functions import Facts, Given, OwnFunction

STRATEGIES = ("batched.eager", "loop.eager")


def asked(machine: str, *, held: bool = False) -> Request:
    request = replace(small_request(*STRATEGIES), machine=machine)
    return replace(request, size={**request.size, "batch": HELD_BATCH}) if held else request


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "measure.lock"))
    for module, name, value in (
        (making, "LOOK_S", 0.01), (making, "_STAND_S", 0.0), (worker, "_LOOK_S", 0.01), (machines, "_LOOK_S", 0.01),
        (machines, "_NEW_S", 0.0), (agent, "_LOOK_S", 0.01),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


@dataclass
class Box:
    """A machine elsewhere: its own worker, its agent, and a dashboard's worker for it. ``network``: is called before
    each question, and may raise."""

    there: Own
    agent: Agent
    store: Store  # the dashboard's
    network: Callable[[str], None] = lambda what: None
    machine: Machine = field(init=False)

    def __post_init__(self) -> None:
        self.machine = Machine("box", self.store, self._call)
        self.client = Client(self.store)

    def _call(self, what: str, *arguments: Any) -> bytes:
        self.network(what)
        return self.agent.answer(what, *arguments)

    def submit(self, request: Request) -> str:
        self.machine.tell()
        return self.client.submit(request)

    def measure(self, request: Request) -> Run:
        run_id = self.submit(request)
        assert self.machine.work_one()
        return self.ended(run_id)

    def ended(self, run_id: str) -> Run:
        snapshot = self.client.snapshot(run_id)
        assert snapshot is not None and snapshot.state == "finished"
        return snapshot.run


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    with running(HeldSubjects(), tmp_path / "there") as there:
        there.begin()
        store = Store(tmp_path / "here")
        yield Box(there, Agent(there.client.store, there.client, own_code=False), store)
        store.close()


def is_timed(client: Client, run_id: str) -> bool:
    """True if all has arrived that comes before latencies are timed."""
    snapshot = client.snapshot(run_id)
    return snapshot is not None and all(item.memory for item in snapshot.run.measurements if not item.twin_of)


def test_another_machine_measures_by_its_own_worker_and_keeps_nothing(box: Box):
    run_id = box.submit(asked("box"))
    assert box.client.queue() == (run_id,) and not box.store.queue.waits(), "it is no work of this machine's worker"
    assert box.machine.work_one() and not box.machine.work_one()
    run = box.ended(run_id)
    assert (run.status, run.request.place) == ("complete", "box / CPU:0")
    assert {item.outcome for item in run.measurements} == {"ok"}
    assert box.there.store.entry(run_id) is None and box.store.entry(run_id).device == "box / CPU:0"
    assert box.client.places() == ("box / CPU:0",)


def test_a_cancel_reaches_it_and_a_network_that_is_silent_for_a_while_costs_nothing(box: Box):
    run_id, silent = box.submit(asked("box", held=True)), threading.Event()

    def network(what: str) -> None:
        if silent.is_set():
            raise OSError("no answer")

    box.network = network
    (thread := threading.Thread(target=box.machine.work_one)).start()
    eventually(lambda: is_timed(box.client, run_id), "it is timed")
    assert box.client.snapshot(run_id).run.measurements[0].memory is not None, "what is measured arrives at once"
    silent.set()
    assert box.client.snapshot(run_id).state == "running"
    silent.clear()
    box.client.cancel(run_id)
    thread.join(ANSWER_S)
    run = box.ended(run_id)
    assert run.status == "cancelled" and all(item.memory for item in run.measurements if not item.twin_of)


def test_one_that_is_lost_ends_its_run_with_what_had_arrived(box: Box, monkeypatch: pytest.MonkeyPatch):
    run_id = box.submit(asked("box", held=True))
    (thread := threading.Thread(target=box.machine.work_one)).start()
    eventually(lambda: is_timed(box.client, run_id), "it is timed")
    monkeypatch.setattr(machines, "LOST_S", 0.0)

    def gone(what: str) -> None:
        raise NotConnected("box")

    box.network = gone
    thread.join(ANSWER_S)
    run = box.ended(run_id)
    assert run.status == "interrupted" and all(item.memory for item in run.measurements if not item.twin_of)
    assert run.stop_reason.startswith("box was lost")
    # There nobody asks about it any more; a dashboard that was started again asks for other things.
    monkeypatch.setattr(agent, "SILENT_S", 0.1)
    threading.Thread(target=box.agent.watch, daemon=True).start()
    ended = lambda: box.agent.answer("hello") and box.there.store.look(run_id).state == "finished"  # noqa: E731
    eventually(ended, "it is ended there")


def test_what_arrives_and_is_not_the_run_ends_it_with_what_had_arrived_before(box: Box):
    look = box.agent.look

    def forged(*arguments: Any) -> Any:
        progress = look(*arguments)
        if progress is None or progress.run is None or not progress.run.measurements[0].memory:
            return progress
        box.agent.look = lambda *_: replace(progress, run=replace(progress.run, id="f" * 24))
        return progress

    box.agent.look = forged
    run_id = box.submit(asked("box", held=True))
    (thread := threading.Thread(target=box.machine.work_one, daemon=True)).start()
    thread.join(ANSWER_S)
    run = box.ended(run_id)
    assert run.status == "interrupted" and "not this run" in run.stop_reason and run.measurements[0].memory


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (replace(asked("box"), device="GPU:7"), "device 'GPU:7' is not on box: CPU:0 can be used"),
        (asked("other"), "machine 'other' is not there: box can be used"),
    ],
)
def test_what_cannot_be_measured_there_is_said_before_it_waits(box: Box, request_: Request, says: str):
    with pytest.raises(RequestError) as refused:
        box.submit(request_)
    assert says in str(refused.value)


def test_code_of_ones_own_is_executed_only_where_the_machine_allows_it(box: Box):
    leaf = ["leaf", {"shape": [8], "dtype": "float32"}]
    facts = Facts(size={"batch": 2}, element=leaf, result=leaf, dtype="float32", reference="float64")
    own = OwnFunction(given=Given(code="def f(x): return x", function="f", elems="rows"), facts=facts)
    functions.add(own)
    run = box.measure(
        replace(asked("box"), workload=own.given.slug, size={"batch": 2}, own=own, strategies=["loop.eager"])
    )
    assert run.status == "interrupted" and "executes no code of a person's own" in run.stop_reason
    loads = replace(own.given, code='f = load("elems", "x-0123456789ab.npy")')
    functions.add(loaded := replace(own, given=loads))
    with pytest.raises(RequestError, match="an array from a file is measured on this machine alone"):
        box.submit(replace(asked("box"), workload=loads.slug, size={"batch": 2}, own=loaded, strategies=["loop.eager"]))


def test_versions_that_would_not_agree_are_refused(box: Box, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(agent, "VERSION", "0.0.1")
    with pytest.raises(RequestError, match=r"box has Mapbench 0\.0\.1, and this dashboard .*: install the same"):
        box.submit(asked("box"))


def test_on_all_machines_it_is_measured_on_each_that_has_the_device(box: Box):
    box.store.queue.tell(WorkerState("ready", "", ("CPU:0",)))
    box.machine.tell()
    assert f"{ALL_MACHINES} / CPU:0" in box.client.places() and f"{ALL_MACHINES} / GPU:0" not in box.client.places()
    ids = box.client.submit_to_all(asked(ALL_MACHINES))
    assert [box.client.snapshot(run_id).run.request.place for run_id in ids] == ["CPU:0", "box / CPU:0"]
    assert [box.client.snapshot(run_id).position for run_id in ids] == [0, 0], "machines do not wait for each other"
    box.client.limits = Limits(queue_length=3)
    with pytest.raises(RequestError):
        box.client.submit_to_all(asked(ALL_MACHINES), Visitor(owner="a", session="b", address="c"))
    assert box.client.queue() == tuple(ids), "all of them wait, or none"


def test_a_name_is_one_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Two would have one store, and end each other's runs."""
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    (folder := tmp_path / "machines" / "box").mkdir(parents=True)
    with filelock.FileLock(folder / "agent.lock"), pytest.raises(RequestError, match="as box here: give this one"):
        agent.serve("tcp://127.0.0.1:1", "box", python=None, own_code=False)


# --- processes -------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path, live: None) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, simulated=True)
    try:
        yield cluster
    finally:
        cluster.end()


def timed(cluster: Cluster, *machines: str) -> list[str]:
    """A run that is held on each machine, once all are being timed; their ids."""
    ids = [cluster.client.submit(asked(machine, held=True)) for machine in machines]
    eventually(lambda: all(is_timed(cluster.client, run_id) for run_id in ids), f"{machines} measure")
    return ids


def test_three_machines_measure_are_cancelled_killed_stopped_and_lose_scheduler_and_dashboard(cluster: Cluster):
    for name in ("scheduler", "dashboard", "bob", "cid"):
        cluster.start(name)
    cluster.start("ann", **{SILENT: "4"})
    own = cluster.client
    eventually(lambda: len(own.places()) == 5, "all are there", RUN_S)
    # On each, and on all.
    for run in map(cluster.ended, own.submit_to_all(asked(ALL_MACHINES))):
        assert run.status == "complete" and run.environment["tensorflow"], run.stop_reason
    # One is cancelled, one killed, and one stopped for a while; then the scheduler is another one.
    cancelled, killed, stopped = timed(cluster, "ann", "bob", "cid")
    cluster.processes["cid"].send_signal(signal.SIGSTOP)
    begun_s = time.monotonic()
    cluster.kill("bob")
    own.cancel(cancelled)
    assert cluster.ended(cancelled).status == "cancelled"
    eventually(lambda: time.monotonic() - begun_s > 3, "it is stopped for long enough")
    cluster.processes["cid"].send_signal(signal.SIGCONT)
    cluster.kill("scheduler")
    cluster.start("scheduler")
    cluster.go_on("cid")
    assert cluster.ended(stopped).status == "complete", cluster.ended(stopped).stop_reason
    # Of the one that was killed there is what had arrived.
    lost = cluster.ended(killed)
    assert lost.status == "interrupted" and "bob was lost" in lost.stop_reason
    assert all(item.memory for item in lost.measurements if not item.twin_of)
    # The dashboard is killed: what it had measured elsewhere ends there.
    (left,) = timed(cluster, "ann")
    cluster.kill("dashboard")
    there = Store(cluster.folder / "ann" / "machines" / "ann")
    eventually(lambda: there.look(left).state == "finished", "it ends what nobody asks for", RUN_S)
    assert own.snapshot(left).run.status == "interrupted", "here it is closed by who looks at it"
