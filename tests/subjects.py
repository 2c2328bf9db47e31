"""Simulated subjects: a launcher that starts no process, and answers at once what those of a real one would."""

import itertools
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

import msgspec
import pytest

from measure.machine import load
from measure.pool.launcher import Event, Events, HostState, State
from measure.run import place, why
from measure.run.roofline import Rates
from measure.run.run import Correctness
from measure.subject.messages import Spec
from tests.samples import memory

Message = dict[str, Any]

RATES = Rates(bytes_per_s=4e12, flops_per_s=60e12, op_s=1e-5, call_s=1e-4)
# A turn has so many samples; a call of these takes so many page faults.
SAMPLES_A_TURN, FAULTS = 3, 7.0
# The samples of a batch of so many come only once there is this file in the folder of the runs.
HELD_BATCH = 400
GO_ON = "go_on"
# So far apart that a verdict is the same every time.
LATENCIES_S = {"batched.graph": 1e-3, "map_fn.graph": 2e-2, "map_fn.eager": 5e-2, "loop.eager": 0.1}
_LOOK_S = 0.05
# A message that stands for the end of the host, with all its subjects; who waits for another one does so in vain, once.
LOST = {"status": None}


def error(outcome: str = "failed", message: str = "said by a test") -> Message:
    """The message of a subject that cannot do its part."""
    return {"event": "error", "outcome": outcome, "type": "ValueError", "message": message, "detail": ""}


def measured(*, right: bool = True, call_s: float = 0.005, traces_anew: int = 0) -> list[Message]:
    """The messages of a memory subject."""
    check = msgspec.to_builtins(Correctness(ok=right))
    return [
        {"event": "checked", "correctness": check, "sentence": None if right else "other values"},
        {"event": "memory", "memory": msgspec.to_builtins(memory(2**20, 8)), "fallbacks": [], "retraces": 0},
        {"event": "rough", "seconds": call_s},
        {"event": "anew", "traces": traces_anew, "compilations": 0},
    ]


def leave_the_machine(patch: pytest.MonkeyPatch) -> None:
    """Nobody else uses the machine, and nobody waits to know that."""
    nobody = SimpleNamespace(cores_of_others=lambda least_s=0.0: 0.0, held=lambda: 0.0, age_s=0.0)
    patch.setattr(load, "Watch", lambda: nobody)


@dataclass
class Subjects:
    """A launcher. Calls of a strategy take what ``latencies_s`` says, or else ``call_s``; ``for_values`` ones trace a
    function anew in each call with new values. ``failing``: (slug, number of the turn from 1) that ends in an error.
    ``answers``: role → what a subject of it says instead of the usual. ``on_turn``: called before each turn with its
    number, from 1.

    It keeps what was started, ``numbered``; ``most_alive``, how many lived at once; and ``commands``, the number of a
    timing subject with what it was told, or ``start``, in that order.
    """

    call_s: float = 0.005
    latencies_s: Mapping[str, float] = field(default_factory=dict)
    room_bytes: int | None = None
    for_values: Collection[str] = ()
    failing: tuple[str, int] | None = None
    answers: Mapping[str, Callable[[Spec], list[Message]]] = field(default_factory=dict)
    on_turn: Callable[[int], object] = lambda number: None
    start_method: Literal["fork", "fresh"] = "fork"
    devices: tuple[str, ...] = ("CPU:0", "GPU:0", "GPU:1")
    numbered: dict[int, Spec] = field(default_factory=dict)
    most_alive: int = 0
    commands: list[tuple[int, str]] = field(default_factory=list)
    is_lost: bool = False
    facts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._alive: dict[int, Events] = {}

    @property
    def specs(self) -> list[Spec]:
        """What was started, in that order."""
        return [*self.numbered.values()]

    @property
    def roles(self) -> list[str]:
        """Roles of what was started, in that order."""
        return [spec.role for spec in self.specs]

    @property
    def living(self) -> list[str]:
        """Names of those that live."""
        return [self.numbered[subject].name for subject in self._alive]

    @property
    def turns(self) -> list[str]:
        """Names of those that took a turn, in that order."""
        return [self.numbered[subject].name for subject, told in self.commands if told == "turn"]

    # --- a launcher's side -------------------------------------------------------------------------------------------

    def state(self) -> HostState:
        state: State = "restarting" if self.is_lost else "ready"
        return HostState(state, "", self.devices, {"gpus": [], "cuda": None, "cudnn": None})

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        was_lost, self.is_lost = self.is_lost, False
        return not was_lost

    def start(self, spec: Spec, events: Events) -> int:
        number = next(self._numbers)
        self._alive[number], self.numbered[number] = events, spec
        self.most_alive = max(self.most_alive, len(self._alive))
        self._answer(number, spec.role, self.answers.get(spec.role, self._usual)(spec))
        if spec.role == "timing":
            self.commands.append((number, "start"))
        else:
            self._end(number)
        return number

    def send(self, subject: int, message: Message) -> None:
        if subject not in self._alive:
            return
        if message["op"] == "turn":
            self.on_turn(len(self.turns) + 1)
        self.commands.append((subject, message["op"]))
        if message["op"] == "stop":
            self.kill(subject)
        else:
            self._answer(subject, message["op"], self._answers(self.numbered[subject], message))

    def kill(self, subject: int) -> None:
        if (events := self._alive.pop(subject, None)) is not None:
            events.append(Event(subject, "exit", {"status": 0, "tail": ""}))

    def next(self, events: Events, timeout_s: float) -> Event | None:
        end_s = time.monotonic() + timeout_s
        while not events and time.monotonic() < end_s:
            time.sleep(0.001)  # another thread may have it answer
        return events.popleft() if events else None

    def close(self) -> None:
        pass

    # --- the subjects' side ------------------------------------------------------------------------------------------

    def _answer(self, subject: int, step: str, messages: list[Message]) -> None:
        """Say this of a step, which is a role or what a timing subject was told."""
        for message in messages:
            is_end = message == LOST
            self.is_lost = self.is_lost or is_end
            self._alive[subject].append(Event(subject, "exit" if is_end else "message", message))

    def _end(self, subject: int) -> None:
        """A subject has done its part."""
        self.kill(subject)

    def _call_s(self, spec: Spec) -> float:
        return self.latencies_s.get(spec.name, self.call_s)

    def _usual(self, spec: Spec) -> list[Message]:
        match spec.role:
            case "room":
                return [{"event": "room", "bytes": self.room_bytes}]
            case "reference":
                return [{"event": "saved"}]
            case "memory":
                return measured(call_s=2 * self._call_s(spec), traces_anew=int(spec.name in self.for_values))
            case "timing":
                return [{"event": "ready", "runtime_s": 0.1}]
            case "probes":
                return [{"event": "rates", "rates": msgspec.to_builtins(RATES), "flops": 0, "unknown": []}]
            case "process_peak":
                return [{"event": "process_peak", "bytes": 2**21}]
            case "why":
                return [{"event": "why", "why": msgspec.to_builtins(why.Explained(op_count=1, profiled_s=0.005))}]
        raise AssertionError(f"nothing is known of {spec.role}")

    def _answers(self, spec: Spec, message: Message) -> list[Message]:
        call_s = self._call_s(spec)
        if message["op"] == "first_call":
            return [{"event": "first_call", "seconds": 2 * call_s}]
        if self.failing == (spec.name, self.turns.count(spec.name)):
            return [error()]
        sampled = {"event": "sampled", "calls": 2, "seconds": [call_s] * SAMPLES_A_TURN}
        used = {"faults": FAULTS, "kernel_s": 0.0, "cpu_s": 0.0}
        return [sampled | {name: [value] * SAMPLES_A_TURN for name, value in used.items()}]


@dataclass
class HeldSubjects(Subjects):
    """Subjects of which some keep their runs waiting."""

    devices: tuple[str, ...] = ("CPU:0",)
    waiting: list[tuple[int, Message]] = field(default_factory=list)  # what they were told

    def send(self, subject: int, message: Message) -> None:
        if message["op"] == "turn" and re.search(rf"\bbatch={HELD_BATCH}\b", self.numbered[subject].script):
            self.waiting.append((subject, message))
        else:
            super().send(subject, message)

    def next(self, events: Events, timeout_s: float) -> Event | None:
        if self.waiting and (place.home() / GO_ON).exists():
            for subject, message in self.waiting:
                super().send(subject, message)
            self.waiting.clear()
        return super().next(events, min(timeout_s, _LOOK_S))
