"""Pauses: a machine that sleeps, and a command line that is stopped, cost no strategy its rank."""

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.model.run import Run
from measure.pool import clock as module
from measure.pool import dialogue
from measure.pool.clock import Clock
from measure.subject.messages import Spec
from tests.engine import QUICK, small_request
from tests.subjects import SAMPLES_A_TURN, Message, Subjects, leave_the_machine

SLUGS = ("batched.eager", "batched.graph", "loop.eager")
PAUSE_S = 20.0
TIMEOUT_S = 10.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The two clocks of the machine, which a test puts on."""
    clock = SimpleNamespace(now_s=0.0, asleep_s=0.0)
    began_s = time.monotonic()

    def now_s(which: int = 0) -> float:
        return time.monotonic() - began_s + clock.now_s + which * clock.asleep_s

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=now_s, CLOCK_BOOTTIME=1, clock_gettime=now_s))
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    monkeypatch.setattr(dialogue, "LOOK_S", 0.01)
    leave_the_machine(monkeypatch)
    return clock


@dataclass
class Paused(Subjects):
    """Meanwhile a subject of loop.eager is started in the role ``at``, or told that, for the first time, ``pause`` is
    called; what it says then is what it measured over a pause."""

    at: str = ""
    pause: Callable[[int], None] = lambda subject: None
    paused: list[int] = field(default_factory=list)

    def start(self, spec: Spec, events: Any) -> int:
        if spec.role == self.at and spec.name in ("loop.eager", "reference", "") and not self.paused:
            self.paused.append(next(self._numbers))
            self.pause(self.paused[0])
        return super().start(spec, events)

    def send(self, subject: int, message: Message) -> None:
        if message["op"] == self.at and self._names[subject] == "loop.eager" and not self.paused:
            self.paused.append(subject)
            self.pause(subject)
            self.latencies_s = {"loop.eager": PAUSE_S}
            super().send(subject, message)
            self.latencies_s = {}
        else:
            super().send(subject, message)


def compare(subjects: Subjects, **changes: Any) -> Run:
    settings = Settings(most_processes=QUICK, timeout_floor_s=TIMEOUT_S, bound_s=600.0)
    return Comparison(
        "0" * 24, small_request(*SLUGS, **changes), subjects, lambda view: None, settings=settings, keep=lambda *_: True
    ).run()


def stood_still(run: Run) -> list[str]:
    return [warning.message for warning in run.warnings if warning.code == "stood_still"]


@pytest.mark.parametrize(("at", "sleeps"), [("first_call", False), ("turn", True)])
def test_what_was_measured_over_a_pause_is_taken_again(clock: SimpleNamespace, at: str, sleeps: bool) -> None:
    def pause(subject: int) -> None:
        if sleeps:
            clock.asleep_s += PAUSE_S
        else:
            clock.now_s += PAUSE_S

    run = compare(Paused(at=at, pause=pause))
    assert run.status == "complete" and {item.outcome for item in run.measurements} == {"ok"}
    item = run.measurement("loop.eager")
    assert item.first_call_s == 0.01, "and not as long as the pause"
    assert {sample for replica in item.replicas for sample in replica.samples_s} == {0.005}
    assert {each for replica in item.replicas for each in Counter(replica.rounds).values()} == {SAMPLES_A_TURN}
    assert len({replica.id for replica in item.replicas}) == len(item.replicas)
    assert sorted(slug for group in run.ranking for slug in group) == sorted(SLUGS)
    (said,) = stood_still(run)
    assert re.match(r"measuring stood still for about 2\d\.\d s, since the machine slept or a process", said)


def test_whatever_else_a_pause_fell_into_is_done_once_more(clock: SimpleNamespace) -> None:
    def pause(subject: int) -> None:
        clock.now_s += PAUSE_S

    undisturbed = compare(usual := Subjects())
    assert not stood_still(undisturbed)
    for at in ("reference", "memory", "why"):
        run = compare(subjects := Paused(at=at, pause=pause))
        assert run.status == "complete" and {item.outcome for item in run.measurements} == {"ok"} and stood_still(run)
        assert subjects.roles.count(at) == usual.roles.count(at) + 1


def test_no_deadline_and_no_budget_passes_while_this_process_stands_still(clock: SimpleNamespace) -> None:
    clock_of_run = Clock(bound_s=60.0)
    with clock_of_run.running():
        clock.now_s += 0.5
        assert clock_of_run.left_s <= 59.5 and clock_of_run.pauses == 0, "a busy machine"
        clock.now_s += 3_600.0
        assert 0.0 < clock_of_run.left_s <= 59.5 and clock_of_run.pauses == 1
        clock.asleep_s += 3_600.0
        assert clock_of_run.left_s > 0.0 and clock_of_run.pauses == 2 and clock_of_run.still_s >= 7_200.0
