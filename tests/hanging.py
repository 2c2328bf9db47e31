"""Simulated subjects that take their time, or never answer, on a clock that passes only while a run waits for them."""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from measure.pool import clock as clock_module
from measure.pool.launcher import Event, Events
from tests.subjects import Message, Subjects, leave_the_machine

# Seconds until a subject of a role, or one that is told a step, answers on an idle machine.
STEP_S = {"reference": 0.3, "memory": 0.4, "timing": 0.1, "first_call": 0.2, "turn": 0.03, "probes": 2.0,
          "process_peak": 0.3, "why": 1.0}  # fmt: skip


class Clock:
    """The time that the engine sees. Waiting for an event moves it on; so does whoever sets ``now_s``, or ``asleep_s``
    of a machine that has slept. ``pause_s``: what is taken for a pause."""

    def __init__(self, patch: pytest.MonkeyPatch, pause_s: float = math.inf) -> None:
        self.now_s = self.asleep_s = 0.0
        awake, always = lambda: self.now_s, lambda _: self.now_s + self.asleep_s
        patch.setattr(clock_module, "time", SimpleNamespace(monotonic=awake, clock_gettime=always, CLOCK_MONOTONIC=1))
        patch.setattr(clock_module, "PAUSE_S", pause_s)
        leave_the_machine(patch)


@dataclass
class Slow(Subjects):
    """Each step takes ``times`` as long as on an idle machine; one for which ``hangs(step, slug)`` is true is never
    answered."""

    clock: Any = None
    times: float = 1.0
    hangs: Callable[[str, str], bool] = lambda step, slug: False
    busy_until_s: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._hanging: set[int] = set()
        self._ending: set[int] = set()
        self._due: list[tuple[float, int, Event]] = []  # events, each of which comes when it is due

    @property
    def living(self) -> list[str]:
        """Names of those that do not end by themselves."""
        return [self.numbered[number].name for number in self._alive if number not in self._ending]

    def _answer(self, subject: int, step: str, messages: list[Message]) -> None:
        if self.hangs(step, self.numbered[subject].name):
            self._hanging.add(subject)
            return
        begun_s = max(self.clock.now_s, self.busy_until_s.get(subject, 0.0))
        self.busy_until_s[subject] = begun_s + self.times * STEP_S[step]
        for message in messages:
            self._put(Event(subject, "message", message))

    def _end(self, subject: int) -> None:
        if subject not in self._hanging:
            self._ending.add(subject)
            self._put(Event(subject, "exit", {"status": 0}))

    def _put(self, event: Event) -> None:
        heapq.heappush(self._due, (self.busy_until_s[event.subject], next(self._numbers), event))

    def next(self, events: Events, timeout_s: float) -> Event | None:
        if events:  # of one that was killed
            return events.popleft()
        if self._due and self._due[0][0] <= self.clock.now_s + timeout_s:
            self.clock.now_s = max(self.clock.now_s, self._due[0][0])
            return heapq.heappop(self._due)[2]
        self.clock.now_s += timeout_s
        return None
