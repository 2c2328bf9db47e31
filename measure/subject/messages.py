"""The messages between processes, declared once: one JSON object a line, UTF-8.

Whoever starts a subject sends it a `Spec`, and a timing subject a `Command` for each step; a subject answers with what
is derived from `Said`. A strategy can write into its subject's channel: what comes from there has to pass `read`.
"""

import os
from collections.abc import Mapping
from typing import Any, Literal, Union

import msgspec

from measure.run.roofline import Rates, Work
from measure.run.run import Correctness, Memory, OutcomeName, Struct
from measure.run.why import Explained
from workloads.functions import Facts, Given

Role = Literal["reference", "memory", "timing", "process_peak", "probes", "room", "why", "devices", "derive"]
MemoryMethod = Literal["events", "events_with_numpy", "allocator", "tracemalloc"]


class Spec(Struct, frozen=True, kw_only=True):
    """The order for a subject. ``case_dir`` holds what all subjects of a case read: the reference, and in
    ``expected.pickle`` how `measure.subject.correctness.check` compares with it. ``artifacts`` is the folder for what a
    why subject leaves beside its figures. ``given``, ``size``, ``seed``: for who derives facts of a person's own
    function."""

    role: Role
    script: str = ""
    name: str = ""
    mode: str = "eager"
    device: str = "CPU:0"
    case_dir: str = ""
    artifacts: str = ""
    memory_limit_mib: int | None = None
    memory_method: MemoryMethod = "events"
    work: Work | None = None
    given: Given | None = None
    size: dict[str, int] = {}
    seed: int = 0


class Command(msgspec.Struct, frozen=True):
    """Tells a timing subject to make its first call, answered by `FirstCall`, to take samples, answered by `Sampled`,
    or to end."""

    op: Literal["first_call", "turn", "stop"]


class Said(msgspec.Struct, frozen=True, tag_field="event"):
    """Base of what a subject says; each message is known by its ``event``."""


class Ready(Said, frozen=True, tag="ready"):
    """TensorFlow's runtime has started, which took so long, and the strategy can be called."""

    runtime_s: float


class FirstCall(Said, frozen=True, tag="first_call"):
    seconds: float


class Sampled(Said, frozen=True, tag="sampled"):
    """The samples of a turn, ``seconds`` per call of ``calls`` in a row each, with the minor page ``faults`` of a call,
    its seconds in the kernel and those of processors."""

    calls: int
    seconds: list[float]
    faults: list[float]
    kernel_s: list[float]
    cpu_s: list[float]


class Checked(Said, frozen=True, tag="checked"):
    """``sentence`` says what is wrong with the values, if anything is."""

    correctness: Correctness
    sentence: str | None


class Measured(Said, frozen=True, tag="memory"):
    """``fallbacks``: ops for which `tf.vectorized_map` fell back to a while loop; ``retraces``: functions that one
    steady call traced."""

    memory: Memory
    fallbacks: list[str]
    retraces: int


class Rough(Said, frozen=True, tag="rough"):
    """Seconds of a call, roughly: beside another subject, and with another allocator. Of a long call there are none."""

    seconds: float


class Anew(Said, frozen=True, tag="anew"):
    """How many functions each call with new values traces, and how many programs XLA compiles in it; none where calls
    with the timed values trace too, where the strategy does not take other values, or where a call is long."""

    traces: int = 0
    compilations: int = 0


class ProcessPeak(Said, frozen=True, tag="process_peak"):
    bytes: int


class Probed(Said, frozen=True, tag="rates"):
    """``flops``: of a call of the script, and ``unknown`` the types of its ops whose work is not known."""

    rates: Rates
    flops: int
    unknown: list[str]


class Room(Said, frozen=True, tag="room"):
    """Bytes that a GPU has left for tensors; None where there is no such GPU."""

    bytes: int | None


class Reasons(Said, frozen=True, tag="why"):
    why: Explained


class Saved(Said, frozen=True, tag="saved"):
    """The reference lies in the folder of the case."""


class Derived(Said, frozen=True, tag="derived"):
    facts: Facts


class Devices(Said, frozen=True, kw_only=True, tag="devices"):
    """The devices by their names, such as ``CPU:0``, and facts of `measure.machine.environment` under its keys. What is
    about GPUs is None where there is none."""

    names: list[str]
    gpus: list[str]
    cuda: str | None
    cudnn: str | None
    onednn: bool
    tensorflow_allocator: str


class Failed(Said, frozen=True, tag="error"):
    """``message`` is the line that a person can act on, ``detail`` the full text."""

    outcome: OutcomeName
    type: str
    message: str
    detail: str = ""


def refused(reason: str) -> Failed:
    """The failure of a subject that could not be started."""
    message = f"the process could not be started: the system refused another process ({reason})"
    return Failed("failed", "NotStarted", message)


def disturbed(reason: str) -> Failed:
    """The failure of a subject whose strategy has written into its channel, so that nothing there can be trusted."""
    message = "the strategy wrote into the channel between its process and Mapbench, so the process was ended"
    return Failed("failed", "ProtocolError", message, reason)


_ANY_OF_SAID: Any = Union[tuple(Said.__subclasses__())]  # noqa: UP007
_DECODER: msgspec.json.Decoder[Said] = msgspec.json.Decoder(_ANY_OF_SAID)


def read(line: bytes | Mapping[str, Any]) -> Said:
    """The message that a subject has sent: of a line, or of the object that it holds. Raises ``msgspec.DecodeError``
    where it is none."""
    return _DECODER.decode(line) if isinstance(line, bytes) else msgspec.convert(line, _ANY_OF_SAID)


def encode(message: msgspec.Struct | Mapping[str, Any]) -> bytes:
    """One line. Numbers that are not finite become null."""
    return msgspec.json.encode(message) + b"\n"


class Channel:
    """The subject's end of its socket."""

    def __init__(self, fd: int) -> None:
        self._fd, self._lines, self._process = fd, os.fdopen(fd, "rb"), os.getpid()

    def send(self, message: Said) -> None:
        if os.getpid() != self._process:  # a fork made by a strategy must not speak for the subject
            os._exit(0)
        data = memoryview(encode(message))
        while data:
            data = data[os.write(self._fd, data) :]

    def receive(self, kind: Any) -> Any:
        """The next message, which is to be a ``kind``, or None when the other side has closed."""
        line = self._lines.readline()
        return msgspec.json.decode(line, type=kind) if line else None
