"""Pauses: a machine that sleeps, and a command line that is stopped, cost no strategy its rank."""

import re
import time
from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.pool import clock as module
from measure.pool import dialogue
from measure.pool.clock import Clock
from measure.run.run import Run
from tests.engine import QUICK, small_request
from tests.subjects import SAMPLES_A_TURN, Message, Subjects, leave_the_machine

SLUGS = ("batched.eager", "batched.graph", "loop.eager")
PAUSE_S = 20.0
TIMEOUT_S = 10.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of the machine, which a test puts on."""
    clock = SimpleNamespace(now_s=0.0)
    began_s = time.monotonic()
    moved = SimpleNamespace(monotonic=lambda: time.monotonic() - began_s + clock.now_s)
    monkeypatch.setattr(module, "time", moved)
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    monkeypatch.setattr(dialogue, "LOOK_S", 0.01)
    leave_the_machine(monkeypatch)
    return clock


@dataclass
class Paused(Subjects):
    """When a subject of loop.eager is told ``at`` for the first time, this process stands still; what that subject says
    then is what it measured over a pause."""

    clock: Any = None
    at: str = ""

    def send(self, subject: int, message: Message) -> None:
        self.latencies_s = {}
        if (message["op"], self._names[subject]) == (self.at, "loop.eager") and self.clock.now_s == 0.0:
            self.clock.now_s, self.latencies_s = PAUSE_S, {"loop.eager": PAUSE_S}
        super().send(subject, message)


def compare(subjects: Subjects, **changes: Any) -> Run:
    settings = Settings(most_processes=QUICK, timeout_floor_s=TIMEOUT_S, bound_s=600.0)
    return Comparison(
        "0" * 24, small_request(*SLUGS, **changes), subjects, lambda view: None, settings=settings, keep=lambda *_: True
    ).run()


@pytest.mark.parametrize("at", ["first_call", "turn"])
def test_what_was_measured_over_a_pause_is_taken_again(clock: SimpleNamespace, at: str) -> None:
    run = compare(Paused(clock=clock, at=at))
    assert run.status == "complete" and {item.outcome for item in run.measurements} == {"ok"}
    item = run.measurement("loop.eager")
    assert item.first_call_s == 0.01, "and not as long as the pause"
    assert {sample for replica in item.replicas for sample in replica.samples_s} == {0.005}
    assert {each for replica in item.replicas for each in Counter(replica.rounds).values()} == {SAMPLES_A_TURN}
    assert len({replica.id for replica in item.replicas}) == len(item.replicas)
    assert sorted(slug for group in run.ranking for slug in group) == sorted(SLUGS)
    (said,) = [warning.message for warning in run.warnings if warning.code == "stood_still"]
    assert re.match(r"measuring stood still for about 2\d\.\d s, since the machine slept or a process", said)


def test_no_deadline_and_no_budget_passes_while_this_process_stands_still(clock: SimpleNamespace) -> None:
    clock_of_run = Clock(bound_s=60.0)
    with clock_of_run.running():
        clock.now_s += 0.5
        assert clock_of_run.left_s <= 59.5 and clock_of_run.still_s == 0.0, "a busy machine"
        clock.now_s += 3_600.0
        assert 0.0 < clock_of_run.left_s <= 59.5 and clock_of_run.still_s >= 3_600.0
