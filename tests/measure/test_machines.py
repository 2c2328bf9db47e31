"""Other machines: one side and the other without a network between them, and then as processes on Dask."""

import contextlib
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace

from measure import agent, machines, making, worker
from measure.agent import Agent
from measure.client import Client
from measure.machines import Machine, NotThere
from measure.run.request import ALL_MACHINES, Request, RequestError
from measure.run.run import Run
from measure.store.queue import WorkerState
from measure.store.store import Store
from tests.browser import ROOT, free_port
from tests.deadlines import ANSWER_S, GONE_S, RUN_S
from tests.engine import Own, environment, eventually, running, small_request
from tests.subjects import GO_ON, HELD_BATCH, HeldSubjects
from tests.test_docs import blocks
from workloads import functions
from workloads.functions import Facts, Given, OwnFunction

COMMANDS = [line for block in blocks(ROOT / "docs/machines.md", "sh") for line in block.splitlines()]
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
        raise NotThere("box")

    box.network = gone
    thread.join(ANSWER_S)
    run = box.ended(run_id)
    assert run.status == "interrupted" and all(item.memory for item in run.measurements if not item.twin_of)
    assert run.stop_reason.startswith("box was lost")
    # There nobody asks any more.
    monkeypatch.setattr(agent, "SILENT_S", 0.0)
    threading.Thread(target=box.agent.watch, daemon=True).start()
    eventually(lambda: box.there.store.look(run_id).state == "finished", "it is ended there")


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


# --- processes -------------------------------------------------------------------------------------------------------


class Cluster:
    """A scheduler, a dashboard's worker and machines, as processes on simulated subjects."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.address = folder, f"tcp://127.0.0.1:{free_port()}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.client = Client(Store(folder / "dashboard"))

    def start(self, name: str) -> None:
        """Start a process by the command of the docs, with names and an address of the test's own."""
        own = {"tcp://dashboard:8786": self.address, "8786": self.address.rpartition(":")[2], "gpu-box": name}
        head = {"scheduler": "dask scheduler", "dashboard": "mapbench worker"}.get(name, "mapbench worker tcp:")
        (line,) = (line for line in COMMANDS if line.startswith(head)) if name != "dashboard" else (head,)
        words = [own.get(word, word) for word in shlex.split(line)][1:]
        module = ["dask", *words, "--host", "127.0.0.1", "--no-dashboard"]
        if name != "scheduler":
            module = ["tests.simulated_worker", *words[1:]]
        more = {"MAPBENCH_HOME": str(self._folder / name), "MAPBENCH_LOCK": str(self._folder / f"{name}.lock")}
        if name == "dashboard":
            more["MAPBENCH_SCHEDULER"] = self.address
        with (self._folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", *module], env=environment(**more), cwd=ROOT, stdout=log, stderr=log
            )

    def signal(self, name: str, number: signal.Signals) -> None:
        self.processes[name].send_signal(number)
        if number == signal.SIGKILL:
            self.processes[name].wait(GONE_S)

    def go_on(self, name: str) -> None:
        (self._folder / name / GO_ON).touch()

    def timed(self, machine: str) -> str:
        """A run that is held on a machine, once it is being timed; its id."""
        run_id = self.client.submit(asked(machine, held=True))
        eventually(lambda: is_timed(self.client, run_id), f"{machine} measures")
        return run_id

    def ended(self, run_id: str) -> Run:
        assert self.client.wait(run_id, RUN_S), self.client.snapshot(run_id)
        return self.client.snapshot(run_id).run

    def left(self) -> list[str]:
        """The commands of all that still runs."""
        commands = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("MAPBENCH_HOME", "").startswith(str(self._folder)):
                    commands.append(" ".join(process.cmdline()))
        return commands


@pytest.fixture
def cluster(tmp_path: Path, live: None) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    try:
        yield cluster
    finally:
        for process in cluster.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in cluster.processes.values():
            process.wait(GONE_S)
    eventually(lambda: cluster.left() == [], "nothing is left running")


def test_three_machines_measure_are_cancelled_killed_stopped_and_lose_scheduler_and_dashboard(cluster: Cluster):
    for name in ("scheduler", "dashboard", "ann", "bob", "cid"):
        cluster.start(name)
    own = cluster.client
    eventually(lambda: len(own.places()) == 5, "all are there", RUN_S)
    # On each, and on all.
    for run in map(cluster.ended, own.submit_to_all(asked(ALL_MACHINES))):
        assert run.status == "complete" and run.environment["tensorflow"], run.stop_reason
    # One is stopped for a while, and goes on; another one measures meanwhile, and is cancelled.
    stopped, cancelled = cluster.timed("cid"), cluster.timed("ann")
    cluster.signal("cid", signal.SIGSTOP)
    begun_s = time.monotonic()
    own.cancel(cancelled)
    assert cluster.ended(cancelled).status == "cancelled"
    # One is killed: its run ends with what had arrived.
    killed = cluster.timed("bob")
    cluster.signal("bob", signal.SIGKILL)
    # The scheduler is another one in the middle of a run.
    through = cluster.timed("ann")
    cluster.signal("scheduler", signal.SIGKILL)
    cluster.start("scheduler")
    eventually(lambda: time.monotonic() - begun_s > 3, "it is stopped for long enough")
    cluster.signal("cid", signal.SIGCONT)
    for name, run_id in (("cid", stopped), ("ann", through)):
        cluster.go_on(name)
        assert cluster.ended(run_id).status == "complete", cluster.ended(run_id).stop_reason
        (cluster._folder / name / GO_ON).unlink()
    lost = cluster.ended(killed)
    assert lost.status == "interrupted" and "bob was lost" in lost.stop_reason
    assert all(item.memory for item in lost.measurements if not item.twin_of)
    # The dashboard is killed: what it had measured elsewhere ends there.
    left = cluster.timed("ann")
    cluster.signal("dashboard", signal.SIGKILL)
    there = Store(cluster._folder / "ann" / "machines" / "ann")
    eventually(lambda: there.look(left).state == "finished", "it ends what nobody asks for", RUN_S)
    assert own.snapshot(left).run.status == "interrupted", "here it is closed by who looks at it"
