"""Pauses: a machine that sleeps, and a command line that is stopped, cost no strategy its rank."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.pool import clock as module
from measure.pool.launcher import Event, Events
from measure.run.run import Run
from tests.engine import QUICK, small_request
from tests.hanging import Clock
from tests.subjects import LOST, SAMPLES_A_TURN, Message, Subjects, measured

SLUGS = ("batched.eager", "batched.graph", "loop.eager")
PAUSE_S = 20.0
TIMEOUT_S = 10.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch, module.PAUSE_S)


@dataclass
class Paused(Subjects):
    """When a subject of loop.eager is told ``at`` for the first time, this process stands still while it waits, or the
    machine sleeps; what that subject says then is what it measured over a pause."""

    clock: Any = None
    at: str = ""
    sleeps: bool = False
    is_due: bool = False
    is_over: bool = False

    def send(self, subject: int, message: Message) -> None:
        self.latencies_s = {}
        if (message["op"], self.numbered[subject].name) == (self.at, "loop.eager") and not self.is_over:
            self.is_due, self.is_over, self.latencies_s = True, True, {"loop.eager": PAUSE_S}
        super().send(subject, message)

    def next(self, events: Events, timeout_s: float) -> Event | None:
        if self.is_due:
            self.is_due = False
            setattr(self.clock, "asleep_s" if self.sleeps else "now_s", PAUSE_S)
        return super().next(events, timeout_s)


def compare(subjects: Subjects, bound_s: float = 600.0) -> Run:
    settings = Settings(most_processes=QUICK, timeout_floor_s=TIMEOUT_S, bound_s=bound_s)
    return Comparison(
        "0" * 24, small_request(*SLUGS), subjects, lambda view: None, settings=settings, keep=lambda *_: True
    ).run()


@pytest.mark.parametrize("sleeps", [False, True])
@pytest.mark.parametrize("at", ["first_call", "turn"])
def test_what_was_measured_over_a_pause_is_taken_again(clock: Clock, at: str, sleeps: bool) -> None:
    """One clock tells of a process that was stopped, another one of a machine that has slept."""
    run = compare(Paused(clock=clock, at=at, sleeps=sleeps))
    assert run.status == "complete" and {item.outcome for item in run.measurements} == {"ok"}
    item = run.measurement("loop.eager")
    assert item.first_call_s == 0.01, "and not as long as the pause"
    assert {sample for replica in item.replicas for sample in replica.samples_s} == {0.005}
    assert {each for replica in item.replicas for each in Counter(replica.rounds).values()} == {SAMPLES_A_TURN}
    assert len({replica.id for replica in item.replicas}) == len(item.replicas)
    assert sorted(slug for group in run.ranking for slug in group) == sorted(SLUGS)
    (said,) = [warning.message for warning in run.warnings if warning.code == "stood_still"]
    assert re.match(r"measuring stood still for about 2\d\.\d s, since the machine slept or a process", said)


@dataclass
class Replaced(Subjects):
    """The host is lost with the first memory subject, and another one takes a minute to load TensorFlow."""

    clock: Any = None

    def wait_ready(self, timeout_s: float, cancelled: Any) -> bool:
        if self.is_lost:
            self.clock.now_s += min(60.0, timeout_s)
            self.is_lost = timeout_s < 60.0
        return not self.is_lost


def test_a_run_goes_on_with_another_host_where_one_is_lost_and_its_time_does_not_count(clock: Clock) -> None:
    # That of the run counts all the same, and where it is over it is not waited for.
    for bound_s, status in ((100.0, "complete"), (50.0, "budget")):
        clock.now_s, subjects = 0.0, Replaced(clock=clock)
        once = iter([[LOST]])
        subjects.answers = {"memory": lambda spec, once=once: next(once, measured())}
        run = compare(subjects, bound_s=bound_s)
        assert run.status == status and not run.warnings
        assert clock.now_s == pytest.approx(min(60.0, bound_s), abs=1.0)
        assert {item.outcome for item in run.measurements} == {"ok" if status == "complete" else "not_run"}


def test_no_deadline_and_no_budget_passes_while_this_process_stands_still(clock: Clock) -> None:
    run, part = module.Clock(bound_s=60.0), module.Clock(bound_s=30.0)
    with run.running(), part.running():
        for passed_s, expected_s, still_s in ((1.0, 0.5, 0.0), (3_600.0, 0.5, 3_600.0), (10.0, 10.0, 3_600.0)):
            begun_s = part.now_s
            clock.now_s += passed_s
            part.leave_out(begun_s, expected_s)
            assert part.still_s == pytest.approx(still_s, abs=1.0)
        assert part.left_s == pytest.approx(19.0, abs=1.0) and run.left_s == pytest.approx(49.0, abs=1.0)
