"""Simulated subjects: a launcher that starts no process, and answers at once what those of a real one would."""

import itertools
import queue
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from measure.engine.launcher import Event, HostState
from measure.model import why
from measure.model.roofline import Rates
from measure.model.run import Correctness, Memory
from measure.subject.messages import Spec
from measure.subject.timing import SEVERAL_THREADS

Message = dict[str, Any]

RATES = Rates(copy_bytes_per_s=4e12, flops_per_s=60e12, op_s=1e-5, call_s=1e-4)
# A message that stands for the end of the host, with all its subjects.
LOST = {"event": "lost"}


def error(outcome: str = "failed", message: str = "said by a test") -> Message:
    """What a subject says that cannot do its part."""
    return {"event": "error", "outcome": outcome, "type": "ValueError", "message": message, "detail": ""}


def measured(peak_bytes: int = 2**20, *, right: bool = True) -> list[Message]:
    """What a memory subject says."""
    memory = Memory(
        peak_bytes=peak_bytes, output_bytes=8, temporary_bytes=0, input_bytes=0, captured_bytes=0, method="events"
    )
    check = msgspec.to_builtins(Correctness(ok=right))
    return [
        {"event": "checked", "correctness": check, "sentence": None if right else "other values"},
        {"event": "memory", "memory": msgspec.to_builtins(memory), "warnings": [], "fallbacks": [], "retraces": 0},
    ]


@dataclass
class Subjects:
    """A launcher. Calls take ``call_s``, those of ``threaded`` strategies keep more than one processor busy, and
    ``compiled`` ones are slow with other values than those that are timed. ``failing``: (slug, which sample of it) that
    ends in an error. ``answers``: role → what a subject of it says instead of the usual.

    It keeps ``specs``, what was started; ``warm_s``, slug → seconds that it was told to warm up, one for each sample;
    and ``most_alive``, how many lived at once.
    """

    call_s: float = 0.005
    room_bytes: int | None = None
    peak_bytes: int = 2**20
    threaded: Collection[str] = ()
    compiled: Collection[str] = ()
    failing: tuple[str, int] | None = None
    answers: Mapping[str, Callable[[Spec], list[Message]]] = field(default_factory=dict)
    start_method: Literal["fork", "fresh"] = "fork"
    specs: list[Spec] = field(default_factory=list)
    warm_s: dict[str, list[float]] = field(default_factory=dict)
    most_alive: int = 0

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._alive: dict[int, tuple[str, queue.Queue[Event]]] = {}

    @property
    def roles(self) -> list[str]:
        """Roles of what was started, in that order."""
        return [spec.role for spec in self.specs]

    @property
    def living(self) -> list[str]:
        """Names of those that live."""
        return [name for name, _ in self._alive.values()]

    # --- a launcher's side -------------------------------------------------------------------------------------------

    def state(self) -> HostState:
        return HostState("ready", "", ("CPU:0", "GPU:0", "GPU:1"), {"gpus": [], "cuda": None, "cudnn": None})

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        return True

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        number = next(self._numbers)
        self.specs.append(spec)
        self._alive[number] = spec.name, events
        self.most_alive = max(self.most_alive, len(self._alive))
        for message in self.answers.get(spec.role, self._usual)(spec):
            self._say(number, message)
        if spec.role != "timing":
            self.kill(number)
        return number

    def send(self, subject: int, message: Message) -> None:
        if subject not in self._alive:
            return
        if message["op"] == "stop":
            self.kill(subject)
        else:
            self._say(subject, self._answer(self._alive[subject][0], message))

    def kill(self, subject: int) -> None:
        if known := self._alive.pop(subject, None):
            known[1].put(Event(subject, "exit", {"status": 0, "signal": None, "tail": ""}))

    def close(self) -> None:
        pass

    # --- the subjects' side ------------------------------------------------------------------------------------------

    def _say(self, subject: int, message: Message) -> None:
        kind: Literal["lost", "message"] = "lost" if message == LOST else "message"
        self._alive[subject][1].put(Event(subject, kind, message))

    def _usual(self, spec: Spec) -> list[Message]:
        match spec.role:
            case "room":
                return [{"event": "room", "bytes": self.room_bytes}]
            case "reference":
                return [{"event": "saved"}]
            case "memory":
                return measured(self.peak_bytes)
            case "timing":
                return [{"event": "ready", "runtime_s": 0.1}]
            case "probes":
                return [{"event": "rates", "rates": msgspec.to_builtins(RATES)}]
            case "process_peak":
                return [{"event": "process_peak", "bytes": 2**21}]
            case "why":
                return [{"event": "why", "why": msgspec.to_builtins(why.Explained(op_count=1, profiled_s=0.005))}]
        raise AssertionError(f"nothing is known of {spec.role}")

    def _answer(self, slug: str, message: Message) -> Message:
        match message["op"]:
            case "first_call":
                return {"event": "first_call", "seconds": 2 * self.call_s}
            case "settle":
                return {"event": "settled", "seconds": self.call_s, "calls": 3}
            case "other_values":
                return {"event": "other_values", "seconds": (20 if slug in self.compiled else 1) * self.call_s}
        told = self.warm_s.setdefault(slug, [])
        told.append(message["warm_s"])
        if self.failing == (slug, len(told)):
            return error()
        # The second sample is disturbed, which does not make its calls ones of a single thread.
        busy_cores = SEVERAL_THREADS + (0.3 if slug in self.threaded and len(told) != 2 else -0.1)
        return {"event": "sample", "seconds": self.call_s, "busy_cores": busy_cores}
