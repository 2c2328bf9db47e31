"""Simulated subjects that take their time, or never answer, on a clock that passes only while a run waits for them."""

import heapq
import itertools
import math
import queue
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from measure.pool import clock as clock_module
from measure.pool import dialogue
from measure.pool.launcher import Event
from measure.subject.messages import Spec
from tests.subjects import Message, Subjects, leave_the_machine

# Seconds until a subject of a role, or one that is told a step, answers on an idle machine.
STEP_S = {"reference": 0.3, "memory": 0.4, "timing": 0.1, "first_call": 0.2, "turn": 0.03, "probes": 2.0,
          "process_peak": 0.3, "why": 1.0}  # fmt: skip


class Clock:
    """The time that the engine sees. Waiting for an event moves it on; so does whoever sets ``now_s``."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        patch.setattr(clock_module, "time", SimpleNamespace(monotonic=lambda: self.now_s))
        patch.setattr(clock_module, "PAUSE_S", math.inf)
        patch.setattr(dialogue, "queue", SimpleNamespace(Queue=lambda: _Events(self), Empty=queue.Empty))
        leave_the_machine(patch)


class _Events:
    """A queue of events, each of which comes when it is due."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._numbers = clock, itertools.count()
        self._due: list[tuple[float, int, Event]] = []

    def put(self, event: Event, at_s: float = 0.0) -> None:
        heapq.heappush(self._due, (max(at_s, self._clock.now_s), next(self._numbers), event))

    def get(self, timeout: float) -> Event:
        if self._due and self._due[0][0] <= self._clock.now_s + timeout:
            self._clock.now_s = max(self._clock.now_s, self._due[0][0])
            return heapq.heappop(self._due)[2]
        self._clock.now_s += timeout
        raise queue.Empty


@dataclass
class Slow(Subjects):
    """Each step takes ``times`` as long as on an idle machine; one for which ``hangs(step, slug)`` is true is never
    answered."""

    clock: Any = None
    times: float = 1.0
    hangs: Callable[[str, str], bool] = lambda step, slug: False
    busy_until_s: dict[int, float] = field(default_factory=dict)

    @property
    def living(self) -> list[str]:
        """Names of those that do not end by themselves."""
        return [self._names[number] for number in self._alive if number not in self._ending]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ending: set[int] = set()

    def start(self, spec: Spec, events: Any) -> int:
        number = next(self._numbers)
        self.specs.append(spec)
        self._alive[number], self._names[number] = (spec.name, events), spec.name
        if not self.hangs(spec.role, spec.name):
            self._answer(number, spec.role, self.answers.get(spec.role, self._usual)(spec))
            if spec.role != "timing":
                self._ending.add(number)
                events.put(Event(number, "exit", {"status": 0, "signal": None}), self.busy_until_s[number])
        return number

    def send(self, subject: int, message: Message) -> None:
        step, name = message["op"], self._names[subject]
        if subject not in self._alive:
            return
        self.commands.append((subject, step))
        if step == "stop":
            self.kill(subject)
        elif not self.hangs(step, name):
            self._answer(subject, step, self._answers(name, message))

    def _answer(self, subject: int, step: str, messages: list[Message]) -> None:
        begun_s = max(self.clock.now_s, self.busy_until_s.get(subject, 0.0))
        self.busy_until_s[subject] = begun_s + self.times * STEP_S[step]
        for message in messages:
            self._alive[subject][1].put(Event(subject, "message", message), self.busy_until_s[subject])
