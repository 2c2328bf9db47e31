"""Simulated subjects of which one does not answer, until the time of the run is over."""

import math
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from measure.engine import clock as module
from measure.subject.messages import Spec
from tests.subjects import Message, Subjects, leave_the_machine

BOUND_S = 60.0
OVER = "the time of this run, 60 s, was over"


def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of runs, which a test puts on by its ``now_s``; that is no pause."""
    clock = SimpleNamespace(now_s=0.0)
    # Time passes on it too, so that a step that hangs ends by its own timeout at last.
    began_s = time.monotonic()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now_s + time.monotonic() - began_s))
    monkeypatch.setattr(module, "PAUSE_S", math.inf)
    leave_the_machine(monkeypatch)
    return clock


@dataclass
class Hanging(Subjects):
    """A subject of ``slug`` (of none: any) does not answer when it is started in the role ``at``, or told that, for the
    time of number ``which``; and the time of the run is over."""

    clock: Any = None
    at: str = ""
    slug: str = ""
    which: int = 1
    hung: list[int] = field(default_factory=list)

    def start(self, spec: Spec, events: Any) -> int:
        if spec.role != self.at or not self._is_due(spec.name):
            return super().start(spec, events)
        number = next(self._numbers)
        self.specs.append(spec)
        self._alive[number], self._names[number] = (spec.name, events), spec.name
        self.hung.append(len(self.specs))
        return number

    def send(self, subject: int, message: Message) -> None:
        if message["op"] == self.at and self._is_due(self._names[subject]):
            self.commands.append((subject, message["op"]))
            self.hung.append(len(self.specs))
        else:
            super().send(subject, message)

    def _is_due(self, name: str) -> bool:
        self.which -= self.slug in ("", name)
        is_due = self.which == 0
        if is_due:
            self.clock.now_s = BOUND_S
        return is_due
