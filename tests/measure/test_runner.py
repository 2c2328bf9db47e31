"""The runner: a queue that never measures two things at once, cancelling, faults around it, and what it keeps."""

import importlib.util
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from measure import jobs, measurer, runner
from measure.engine import fresh_launcher, host_launcher
from measure.engine.comparison import Comparison
from measure.engine.fresh_launcher import FreshLauncher
from measure.engine.host_launcher import HostLauncher
from measure.job import Writer
from measure.jobs import Jobs
from measure.model.place import StoreError
from measure.model.request import RequestError
from measure.model.run import Run
from measure.store import store
from tests import forked
from tests.engine import (
    DEADLINE_S,
    ROOT,
    descendants,
    environment,
    eventually,
    is_alive,
    measure,
    running,
    running_host,
    small_request,
    write_mapper,
)
from tests.subjects import Message, Subjects
from tests.warm import WARM

HANGING = {
    "hangs_at_once": "import time\nwhile True:\n    time.sleep(1000)",
    "hangs_when_timed": "while is_timed():\n    pass\nreturn map_rightly(fn, elems)",
    "hangs_when_sampled": "while is_timed() and count_calls() > 7:\n    pass\nreturn map_rightly(fn, elems)",
}
STAGES = {
    "hangs_at_once.eager": "memory",
    "hangs_when_timed.eager": "first call",
    "hangs_when_sampled.eager": "sampling",
}


@pytest.fixture(scope="module", autouse=True)
def _mappers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Strategies that hang until they are killed, with a process of their own beside them."""
    folder = tmp_path_factory.mktemp("mappers")
    for slug, body in HANGING.items():
        write_mapper(folder, slug, body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAPBENCH_MAPPERS", str(folder))
        yield folder


@pytest.fixture
def own(host: HostLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[runner.Runner]:
    """A runner whose strategies may hang for as long as they like."""
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "measure.lock"))
    with running(host, tmp_path, timeout_floor_s=10 * DEADLINE_S) as running_:
        yield running_
    eventually(lambda: not descendants(host.pid), "no subject is left")


def state(own: runner.Runner, run_id: str) -> str:
    snapshot = own.snapshot(run_id)
    assert snapshot is not None
    return snapshot.state


def stage(own: runner.Runner, run_id: str, slug: str) -> str | None:
    snapshot = own.snapshot(run_id)
    assert snapshot is not None
    return snapshot.stages.get(slug)


def finished(own: runner.Runner, run_id: str) -> Run:
    assert own.wait(run_id, DEADLINE_S), own.snapshot(run_id)
    snapshot = own.snapshot(run_id)
    assert snapshot is not None and snapshot.state == "finished" and not snapshot.fault
    assert own.store.load(run_id) == snapshot.run, "what is stored is what is shown"
    return snapshot.run


# --- cancelling ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", STAGES)
def test_a_cancelled_run_ends_with_what_it_had_and_the_next_one_runs(own: runner.Runner, slug: str):
    run_id = own.submit(small_request("batched.eager", "batched.graph", slug))
    eventually(lambda: stage(own, run_id, slug) == STAGES[slug], f"{slug} is at {STAGES[slug]}")
    if slug == "hangs_at_once.eager":
        eventually(
            lambda: [m for m in own.snapshot(run_id).run.measurements if m.memory is not None],
            "the memory of another is known",
        )
    own.cancel(run_id)
    run = finished(own, run_id)
    assert (run.status, run.stop_reason) == ("cancelled", "cancelled by a person")
    hanging = run.measurement(slug)
    known = [item for item in run.measurements if item.memory is not None]
    assert known, "memory that was measured is kept"
    if slug == "hangs_when_sampled.eager":
        (replica,) = hanging.replicas
        assert hanging.memory is not None and hanging.first_call_s == replica.first_call_s is not None
        assert replica.ended == "interrupted"
    else:
        assert hanging.outcome == "cancelled"
        assert hanging.latency is None
    assert all(item.outcome in ("ok", "cancelled") for item in run.measurements)
    assert measure(own, small_request("batched.eager")).status == "complete"


def test_a_run_that_waits_in_the_queue_can_be_cancelled_and_the_others_go_on(own: runner.Runner):
    first = own.submit(small_request("hangs_at_once.eager"))
    second, third = (own.submit(small_request("batched.eager")) for _ in range(2))
    assert own.queue() == (first, second, third)
    positions = [own.snapshot(run_id).position for run_id in (first, second, third)]
    assert positions == [0, 1, 2]
    own.cancel(second)
    run = finished(own, second)
    assert (run.status, run.stop_reason) == ("cancelled", "cancelled before it began")
    assert run.measurements[0].outcome == "cancelled" and own.queue() == (first, third)
    own.stop(third)
    own.cancel(first)
    assert finished(own, first).status == "cancelled"
    assert finished(own, third).status == "complete"
    assert "stopped" not in finished(own, third).stop_reason, "what waits has nothing yet to end with"
    own.cancel(third)
    assert finished(own, third).status == "complete", "what has finished cannot be cancelled"
    own.cancel("0" * 24)


def test_a_run_that_is_stopped_ends_with_what_it_knows_and_with_limit_and_peaks(tmp_path: Path):
    class Stopping(Subjects):
        """A person has had enough as soon as a strategy is timed."""

        def send(self, subject: int, message: Message) -> None:
            if message["op"] == "samples":
                own.stop(own.queue()[0])
            super().send(subject, message)

    subjects = Stopping()
    with running(subjects, tmp_path, probes=True, process_peaks_s=DEADLINE_S) as own:
        own.stop("0" * 24)
        run_id = own.submit(small_request("batched.eager", "batched.graph"))
        run = finished(own, run_id)
        own.stop(run_id)
    assert run.status == "complete" and run.stop_reason.startswith("a person has stopped it")
    assert len(subjects.visited) == 1 and run.verdict and run.limit is not None
    timed, other = sorted(
        (item for item in run.measurements if not item.twin_of), key=lambda item: item.latency is None
    )
    assert (timed.strategy, timed.outcome) == (subjects.visited[0], "ok") and timed.memory.process_peak_bytes
    assert (other.outcome, other.latency) == ("not_run", None)


def test_runs_are_measured_in_the_order_in_which_they_were_asked_for_and_never_overlap(own: runner.Runner):
    ids = [own.submit(small_request(slug)) for slug in ("batched.eager", "batched.graph", "loop.eager")]
    runs = [finished(own, run_id) for run_id in ids]
    for before, after in pairwise(runs):
        assert before.status == after.status == "complete"
        assert before.created <= after.created and before.finished <= after.started
    assert own.queue() == ()


def test_the_stages_of_a_run_can_be_watched(own: runner.Runner):
    run_id = own.submit(small_request("batched.eager", "hangs_when_timed.eager"))
    eventually(lambda: state(own, run_id) == "running", "it runs")
    eventually(lambda: stage(own, run_id, "hangs_when_timed.eager") == "first call", "it makes its first call")
    snapshot = own.snapshot(run_id)
    assert snapshot is not None and snapshot.message == "timing every strategy once"
    assert snapshot.elapsed_s is not None and snapshot.remaining_s is not None and snapshot.version >= 2
    assert all(item.memory is not None for item in snapshot.run.measurements), "results come as they arrive"
    own.cancel(run_id)
    later = eventually(lambda: own.wait(run_id, 1.0) and own.snapshot(run_id), "it has ended")
    assert later.version > snapshot.version and later.elapsed_s is None


def test_what_the_device_and_the_memory_do_not_allow_is_refused_before_it_is_queued(own: runner.Runner):
    with pytest.raises(RequestError, match=r"device 'GPU:7' is not on this machine: .*CPU:0"):
        own.submit(small_request("batched.eager", device="GPU:7"))
    with pytest.raises(RequestError, match=r"This cannot fit: .* batch=[0-9]+ is the largest that fits"):
        own.submit(small_request("batched.eager", workload="outer_product", size={"batch": 10**6, "side": 32}))
    assert own.queue() == () and own.store.ids() == []


# --- faults around a run ---------------------------------------------------------------------------------------------


def test_when_the_host_is_killed_the_run_keeps_what_it_had_and_the_next_one_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(host_launcher, "subprocess", WARM)
    with running_host(tmp_path, warm=True) as host, running(host, tmp_path, timeout_floor_s=DEADLINE_S) as own:
        run_id = own.submit(small_request("batched.eager", "batched.graph", "hangs_when_timed.eager"))
        eventually(lambda: stage(own, run_id, "hangs_when_timed.eager") == "first call", "first calls are made")
        os.kill(host.pid, signal.SIGKILL)
        run = finished(own, run_id)
        assert run.status == "interrupted" and "ended unexpectedly" in run.stop_reason
        assert all(item.memory is not None and item.correctness is not None for item in run.measurements)
        assert run.measurement("hangs_when_timed.eager").outcome == "not_run"
        assert measure(own, small_request("batched.eager")).status == "complete"


def codes(run: Run) -> list[str]:
    return [warning.code for warning in run.warnings]


class _FullDisk(store.Store):
    """A store on a disk that is full until somebody makes room."""

    full = True
    refused = 0

    def save(self, run: Run, **more: Any) -> None:
        if self.full:
            self.refused += 1
            raise StoreError("database or disk is full")
        super().save(run, **more)


def test_a_full_disk_is_said_and_measuring_goes_on(host: HostLauncher, tmp_path: Path):
    disk = _FullDisk(tmp_path)
    with running(host, tmp_path, disk) as own:
        run_id = own.submit(small_request("batched.eager", "loop.eager"))
        assert own.wait(run_id, DEADLINE_S)
        snapshot = own.snapshot(run_id)
    assert snapshot is not None and snapshot.run.status == "complete" and disk.refused >= 2
    (warning,) = [warning for warning in snapshot.run.warnings if warning.code == "not_saved"]
    assert "database or disk is full" in warning.message
    assert all(item.latency is not None for item in snapshot.run.measurements), "all of it was measured"


def test_a_disk_that_had_room_again_for_the_finished_run_is_no_longer_spoken_of(host: HostLauncher, tmp_path: Path):
    disk = _FullDisk(tmp_path)
    with running(host, tmp_path, disk, timeout_floor_s=DEADLINE_S) as own:
        run_id = own.submit(small_request("batched.eager", "hangs_when_timed.eager"))
        eventually(
            lambda: "not_saved" in codes(own.snapshot(run_id).run), "the full disk is spoken of while it is full"
        )
        disk.full = False
        own.cancel(run_id)
        run = finished(own, run_id)
    assert "not_saved" not in codes(run)


def test_a_fault_of_our_own_ends_one_run_and_not_the_runner(own: runner.Runner, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr("measure.engine.comparison.Comparison.run", lambda self: 1 / 0)
        run_id = own.submit(small_request("batched.eager"))
        assert own.wait(run_id, DEADLINE_S)
    snapshot = own.snapshot(run_id)
    assert snapshot is not None and snapshot.fault and snapshot.run.status == "interrupted"
    assert "ZeroDivisionError: division by zero" in snapshot.run.stop_reason
    assert measure(own, small_request("batched.eager")).status == "complete"


@pytest.mark.parametrize("fault", [MemoryError, SystemExit])
@pytest.mark.parametrize(
    ("owner", "step"),
    [
        (Jobs, "next"),
        (measurer, "machine_lock"),
        (Subjects, "wait_ready"),
        (measurer, "missing"),
        (Comparison, "run"),
        (measurer, "without_folders"),
        (Writer, "finish"),
        (jobs, "weight"),
    ],
)
def test_no_fault_at_any_step_ends_the_thread_that_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, fault: type[BaseException]
):
    monkeypatch.setattr(Comparison, "run", lambda self: replace(self.view().run, status="complete"))
    if step == "without_folders":  # which is needed when there is something to be said
        monkeypatch.setattr(Comparison, "run", lambda self: 1 / 0)
    working = getattr(owner, step)
    faults: list[str] = []

    def failing(*arguments: Any, **more: Any) -> Any:
        if not faults and threading.current_thread().name == "mapbench-runner":
            faults.append(step)
            raise fault("injected")
        return working(*arguments, **more)

    with running(Subjects(), tmp_path) as own:
        assert own.wait(own.submit(small_request("batched.eager")), DEADLINE_S)
        monkeypatch.setattr(owner, step, failing)
        assert own.wait(own.submit(small_request("batched.eager")), DEADLINE_S)
        eventually(lambda: faults, f"{step} has failed")
        for _ in range(2):
            run_id = own.submit(small_request("batched.eager"))
            assert own.wait(run_id, DEADLINE_S), own.snapshot(run_id)
        snapshot = own.snapshot(run_id)
        assert snapshot is not None and own.queue() == ()
        assert snapshot.run.status == ("interrupted" if step == "without_folders" else "complete")


# --- one measurement at a time on a machine --------------------------------------------------------------------------


def _locked(own: runner.Runner, run_id: str, who: str) -> bool:
    snapshot = own.snapshot(run_id)
    return snapshot is not None and snapshot.state == "locked" and who in snapshot.message


def test_two_runners_on_one_machine_take_turns_and_say_for_whom_they_wait(
    own: runner.Runner, host: HostLauncher, tmp_path: Path
):
    first = own.submit(small_request("hangs_at_once.eager"))
    eventually(lambda: state(own, first) == "running", "the first runner measures")
    with running(host, tmp_path / "other") as other:
        second = other.submit(small_request("batched.eager"))
        said = f"waiting for a test (process {os.getpid()})"
        eventually(lambda: _locked(other, second, said), "the second one waits")
        third = other.submit(small_request("batched.eager"))
        own.cancel(first)
        before, after = finished(own, first), finished(other, second)
        assert after.status == "complete" and before.finished <= after.started
        assert finished(other, third).status == "complete"


def test_a_run_is_seen_live_by_another_server_on_its_store(own: runner.Runner, host: HostLauncher, tmp_path: Path):
    run_id = own.submit(small_request("batched.eager", "hangs_at_once.eager"))
    with running(host, tmp_path) as other:
        seen = other.snapshot(run_id)
        assert seen is not None and (seen.state, seen.here) == ("running", False)
        known = eventually(
            lambda: [m.strategy for m in other.snapshot(run_id).run.measurements if m.memory is not None],
            "its first result is seen",
        )
        assert known == ["batched.eager"] and other.snapshot(run_id).version > seen.version
        own.cancel(run_id)
        ended = finished(own, run_id)
        seen = other.snapshot(run_id)
        assert seen is not None and seen.state == "finished" and seen.run == ended


def test_a_run_is_kept_from_the_moment_it_is_queued(own: runner.Runner):
    first, second = own.submit(small_request("hangs_at_once.eager")), own.submit(small_request("batched.eager"))
    assert {entry.id: entry.status for entry in own.store.entries()} == dict.fromkeys((first, second), "running")
    own.cancel(first)
    assert finished(own, second).status == "complete"


def test_a_run_that_waits_for_another_process_can_be_cancelled(own: runner.Runner, host: HostLauncher, tmp_path: Path):
    first = own.submit(small_request("hangs_at_once.eager"))
    eventually(lambda: state(own, first) == "running", "the first runner measures")
    with running(host, tmp_path / "other") as other:
        second = other.submit(small_request("batched.eager"))
        eventually(lambda: _locked(other, second, "a test"), "the second one waits")
        other.cancel(second)
        assert finished(other, second).stop_reason == "cancelled before it began"
    own.cancel(first)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_the_machine_is_free_again_when_the_process_that_measured_is_gone(
    own: runner.Runner, tmp_path: Path, end: signal.Signals
):
    command = forked.start(
        *("compare", "outer_product", "--strategies", "hangs_at_once"),
        cwd=ROOT,
        env=environment(MAPBENCH_HOME=str(tmp_path / "home")),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        lock = tmp_path / "measure.holder"
        eventually(lock.exists, "the command measures")
        run_id = own.submit(small_request("batched.eager"))
        said = f"waiting for a command line, compare outer_product (process {command.pid})"
        eventually(lambda: _locked(own, run_id, said), "the runner waits for the command")
        pids = [command.pid, *descendants(command.pid)]
        command.send_signal(end)
        assert finished(own, run_id).status == "complete"
        command.wait(DEADLINE_S)
        eventually(lambda: not [pid for pid in pids if is_alive(pid)], "nothing of the command is left")
    finally:
        command.kill()


# --- fresh interpreters ----------------------------------------------------------------------------------------------


def test_a_comparison_without_fork_has_the_same_outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fresh_launcher, "subprocess", WARM)
    launcher = FreshLauncher()
    try:
        with running(launcher, tmp_path, timeout_floor_s=2.0, fresh_start_s=4.0) as own:
            run = measure(own, small_request("batched.eager", "hangs_at_once.eager"))
    finally:
        launcher.close()
    good, hanging = run.measurements[:2]
    assert run.status == "complete"
    assert (good.outcome, hanging.outcome, hanging.stage) == ("ok", "timeout", "memory")
    assert good.latency is not None and good.memory is not None and good.memory.peak_bytes > 0
    assert run.environment["start_method"] == "fresh"


# --- the end ---------------------------------------------------------------------------------------------------------


def test_closing_a_runner_ends_what_it_runs(host: HostLauncher, tmp_path: Path):
    with running(host, tmp_path, timeout_floor_s=DEADLINE_S) as own:
        first, second = (own.submit(small_request("hangs_at_once.eager")) for _ in range(2))
        eventually(lambda: state(own, first) == "running", "it runs")
    for run_id in (first, second):
        run = own.store.load(run_id)
        assert run is not None and run.status == "cancelled"
    eventually(lambda: not descendants(host.pid), "no subject is left")


def test_the_runner_of_a_process_is_made_once(monkeypatch: pytest.MonkeyPatch):
    made: list[object] = []

    def make(**_: object) -> object:
        made.append(object())
        return made[-1]

    spec = importlib.util.find_spec("measure.runner")
    assert spec is not None and spec.loader is not None
    of_a_new_process = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(of_a_new_process)
    monkeypatch.setattr(of_a_new_process, "Runner", make)
    assert of_a_new_process.shared() is of_a_new_process.shared() and len(made) == 1


def test_a_run_of_an_unknown_id_is_none(own: runner.Runner):
    assert own.snapshot("0" * 24) is None and own.snapshot("../../etc/passwd") is None
