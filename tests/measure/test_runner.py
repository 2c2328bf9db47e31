"""The runner: a queue that never measures two things at once, cancelling, faults around it, and what it keeps."""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from measure import jobs, measurer, runner
from measure.engine.comparison import Comparison
from measure.job import Writer
from measure.jobs import Jobs
from measure.model.request import RequestError
from measure.model.run import Run
from measure.subject.messages import Spec
from tests.deadlines import RUN_S
from tests.engine import eventually, measure, running, small_request
from tests.subjects import Message, Subjects

HANGS = "loop.eager"


@dataclass
class Hanging(Subjects):
    """The subject of one strategy answers nothing where it is timed, until it is killed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.answers = {"timing": self._ready}

    def _ready(self, spec: Spec) -> list[Message]:
        return [] if spec.name == HANGS else [{"event": "ready", "runtime_s": 0.1}]


@pytest.fixture
def subjects() -> Hanging:
    return Hanging()


@pytest.fixture
def own(subjects: Hanging, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[runner.Runner]:
    """A runner whose strategies may hang for as long as they like."""
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "measure.lock"))
    with running(subjects, tmp_path, timeout_floor_s=10 * RUN_S) as running_:
        yield running_
    assert subjects.living == []


def state(own: runner.Runner, run_id: str) -> str:
    snapshot = own.snapshot(run_id)
    assert snapshot is not None
    return snapshot.state


def hangs(own: runner.Runner, run_id: str) -> bool:
    snapshot = own.snapshot(run_id)
    return snapshot is not None and snapshot.stages.get(HANGS) == "first call"


def finished(own: runner.Runner, run_id: str) -> Run:
    assert own.wait(run_id, RUN_S), own.snapshot(run_id)
    snapshot = own.snapshot(run_id)
    assert snapshot is not None and snapshot.state == "finished" and not snapshot.fault
    assert own.store.load(run_id) == snapshot.run, "what is stored is what is shown"
    return snapshot.run


def test_a_run_can_be_watched_and_one_that_is_cancelled_ends_with_what_it_had(own: runner.Runner):
    run_id = own.submit(small_request("batched.eager", HANGS))
    eventually(lambda: hangs(own, run_id), "it makes its first call")
    snapshot = own.snapshot(run_id)
    assert snapshot is not None and snapshot.state == "running" and snapshot.version >= 2
    assert snapshot.elapsed_s is not None and snapshot.remaining_s is not None
    assert all(item.memory is not None for item in snapshot.run.measurements), "results come as they arrive"
    own.cancel(run_id)
    run = finished(own, run_id)
    assert run.status == "cancelled" and all(item.memory is not None for item in run.measurements)
    hanging = run.measurement(HANGS)
    assert (hanging.outcome, hanging.latency) == ("cancelled", None)
    later = own.snapshot(run_id)
    assert later is not None and later.version > snapshot.version and later.elapsed_s is None
    assert measure(own, small_request("batched.eager")).status == "complete", "the next one runs"


def test_runs_wait_in_the_queue_in_their_order_and_one_that_is_cancelled_there_hinders_no_other(own: runner.Runner):
    first = own.submit(small_request(HANGS))
    second, third, fourth = (own.submit(small_request("batched.eager", seed=seed)) for seed in range(3))
    assert own.queue() == (first, second, third, fourth)
    assert [own.snapshot(run_id).position for run_id in own.queue()] == [0, 1, 2, 3]
    assert {entry.id: entry.status for entry in own.store.entries()} == dict.fromkeys(own.queue(), "running")
    own.cancel(second)
    run = finished(own, second)
    assert run.status == "cancelled" and run.measurements[0].outcome == "cancelled"
    assert own.queue() == (first, third, fourth)
    own.stop(third)
    own.cancel(first)
    runs = [finished(own, run_id) for run_id in (first, third, fourth)]
    assert [run.status for run in runs] == ["cancelled", "complete", "complete"]
    assert "stopped" not in runs[1].stop_reason, "what waits has nothing yet to end with"
    assert all(before.finished <= after.started for before, after in pairwise(runs)), "never two at once"
    own.cancel(third)
    assert finished(own, third).status == "complete", "what has finished cannot be cancelled"
    own.cancel("0" * 24)
    assert own.snapshot("0" * 24) is None and own.snapshot("../../etc/passwd") is None


def test_a_run_that_is_stopped_ends_with_what_it_knows_and_with_limit_and_peaks(tmp_path: Path):
    class Stopping(Subjects):
        """A person has had enough as soon as a strategy is timed."""

        def send(self, subject: int, message: Message) -> None:
            if message["op"] == "turn":
                own.stop(own.queue()[0])
            super().send(subject, message)

    subjects = Stopping()
    with running(subjects, tmp_path, probes=True, process_peaks=True, after_s=RUN_S) as own:
        run_id = own.submit(small_request("batched.eager", "batched.graph"))
        run = finished(own, run_id)
        own.stop(run_id)
    assert run.status == "complete" and run.stop_reason.startswith("a person has stopped it")
    assert len(subjects.turns) == 1 and run.verdict and run.limit is not None
    timed, other = sorted(
        (item for item in run.measurements if not item.twin_of), key=lambda item: item.latency is None
    )
    assert (timed.strategy, timed.outcome) == (subjects.turns[0], "ok") and timed.memory.process_peak_bytes
    assert (other.outcome, other.latency) == ("not_run", None)


def test_what_the_device_and_the_memory_do_not_allow_is_refused_before_it_is_queued(own: runner.Runner):
    with pytest.raises(RequestError, match=r"device 'GPU:7' is not on this machine: .*CPU:0"):
        own.submit(small_request("batched.eager", device="GPU:7"))
    with pytest.raises(RequestError, match=r"This cannot fit: .* batch=[0-9]+ is the largest that fits"):
        own.submit(small_request("batched.eager", workload="outer_product", size={"batch": 10**6, "side": 32}))
    assert own.queue() == () and own.store.ids() == []


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str
):
    monkeypatch.setattr(Comparison, "run", lambda self: replace(self.view().run, status="complete"))
    if step == "without_folders":  # which is needed when there is something to be said
        monkeypatch.setattr(Comparison, "run", lambda self: 1 / 0)
    working = getattr(owner, step)
    faults: list[str] = []

    def failing(*arguments: Any, **more: Any) -> Any:
        if not faults and threading.current_thread().name == "mapbench-runner":
            faults.append(step)
            raise SystemExit("injected")
        return working(*arguments, **more)

    with running(Subjects(), tmp_path) as own:
        assert own.wait(own.submit(small_request("batched.eager")), RUN_S)
        monkeypatch.setattr(owner, step, failing)
        assert own.wait(own.submit(small_request("batched.eager")), RUN_S)
        eventually(lambda: faults, f"{step} has failed")
        for _ in range(2):
            run_id = own.submit(small_request("batched.eager"))
            assert own.wait(run_id, RUN_S), own.snapshot(run_id)
        snapshot = own.snapshot(run_id)
        assert snapshot is not None and own.queue() == ()
        assert snapshot.run.status == ("interrupted" if step == "without_folders" else "complete")


def test_two_runners_on_one_machine_take_turns_and_say_for_whom_they_wait(own: runner.Runner, tmp_path: Path):
    first = own.submit(small_request(HANGS))
    eventually(lambda: hangs(own, first), "the first runner measures")
    with running(Subjects(), tmp_path / "other") as other:
        second, third = (other.submit(small_request("batched.eager", seed=seed)) for seed in range(2))
        eventually(lambda: state(other, second) == "locked", "the second one waits")
        assert f"a test (process {os.getpid()})" in other.snapshot(second).message
        other.cancel(second)
        assert finished(other, second).status == "cancelled"
        own.cancel(first)
        before, after = finished(own, first), finished(other, third)
        assert after.status == "complete" and before.finished <= after.started


def test_a_run_is_seen_live_by_another_server_on_its_store(own: runner.Runner, tmp_path: Path):
    run_id = own.submit(small_request("batched.eager", HANGS))
    with running(Subjects(), tmp_path) as other:
        eventually(lambda: all(item.memory for item in other.snapshot(run_id).run.measurements), "its results are seen")
        seen = other.snapshot(run_id)
        assert (seen.state, seen.here) == ("running", False)
        own.cancel(run_id)
        ended = finished(own, run_id)
        seen = other.snapshot(run_id)
        assert seen is not None and seen.state == "finished" and seen.run == ended


def test_closing_a_runner_ends_what_it_runs(subjects: Hanging, tmp_path: Path):
    with running(subjects, tmp_path, timeout_floor_s=10 * RUN_S) as own:
        first, second = (own.submit(small_request(HANGS, seed=seed)) for seed in range(2))
        eventually(lambda: hangs(own, first), "it runs")
    assert [own.store.load(run_id).status for run_id in (first, second)] == ["cancelled"] * 2
    assert subjects.living == []
