"""The messages between processes, declared once: one JSON object a line, UTF-8.

Whoever starts a subject tells it with a `Spec`, its first line, what it is to be, and a timing subject what to do with
each `Command`; a subject answers with what is derived from `Said`. A message is encoded once and read once. A strategy
runs inside its subject and can write into its channel, so that what comes from there is taken in only once `read` has
made a message of it.
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


class ProtocolError(ValueError):
    """The other side sent what is not a line of this protocol."""


class Spec(Struct, frozen=True, kw_only=True):
    """The order for a subject. ``case_dir`` holds what all subjects of a case read: the reference and the expected
    structure of the whole output. ``mode`` selects which parts of the runtime are started before the first call is
    timed. ``artifacts`` is the folder for what a why subject leaves beside its figures. ``shapes_only``: values cannot
    be compared, since they are random or depend on state. ``times``: the case is as many elements as the script has,
    times so many. ``given``, ``size``, ``seed``: for who derives what is known of a person's own function."""

    role: Role
    script: str = ""
    name: str = ""
    mode: str = "eager"
    device: str = "CPU:0"
    case_dir: str = ""
    artifacts: str = ""
    depth: int = 1
    memory_limit_mib: int | None = None
    memory_method: Literal["events", "events_with_numpy", "allocator", "tracemalloc"] = "events"
    captured_bytes: int = 0
    input_bytes: int = 0
    work: Work | None = None
    times: float = 1.0
    shapes_only: bool = False
    given: Given | None = None
    size: dict[str, int] = {}
    seed: int = 0


class CallFirst(msgspec.Struct, frozen=True, tag_field="op", tag="first_call"):
    """Tells a timing subject to make its first call; answered by `FirstCall`."""


class TakeTurn(msgspec.Struct, frozen=True, tag_field="op", tag="turn"):
    """Tells a timing subject to take samples; answered by `Sampled`."""


class Stop(msgspec.Struct, frozen=True, tag_field="op", tag="stop"):
    """Tells a timing subject to end."""


Command = CallFirst | TakeTurn | Stop


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
    """``fallbacks``: ops for which `tf.vectorized_map` fell back to a while loop;
    ``retraces``: functions that one steady call traced."""

    memory: Memory
    fallbacks: list[str]
    retraces: int


class Rough(Said, frozen=True, tag="rough"):
    """Seconds of a call, roughly: beside another subject, and with another allocator. None where a call is long."""

    seconds: float | None


class Anew(Said, frozen=True, tag="anew"):
    """How many functions each call with new values traces, and how many programs XLA compiles in it; none where calls
    with the timed values trace too, where the strategy does not take other values, or where its first call is long."""

    traces: int
    compilations: int


class ProcessPeak(Said, frozen=True, tag="process_peak"):
    """None where the system does not tell."""

    bytes: int | None


class Probed(Said, frozen=True, tag="rates"):
    rates: Rates
    work: Work


class Room(Said, frozen=True, tag="room"):
    """Bytes that a GPU has left for tensors; None where there is no such GPU."""

    bytes: int | None


class Reasons(Said, frozen=True, tag="why"):
    why: Explained


class Saved(Said, frozen=True, tag="saved"):
    """The reference lies in the folder of the case."""


class Derived(Said, frozen=True, tag="derived"):
    facts: Facts


class Gpu(Struct, frozen=True, kw_only=True):
    name: str | None
    compute_capability: str


class Devices(Said, frozen=True, kw_only=True, tag="devices"):
    """The devices by their names, such as ``CPU:0``, and what `measure.machine.environment` asks of TensorFlow. What
    is about GPUs is None where there is none."""

    names: list[str]
    gpus: list[Gpu]
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
    """The message that a subject has sent, with all of its fields: of a line, or of the object that it holds. Raises
    `ProtocolError` where it is none."""
    try:
        if isinstance(line, bytes):
            return _DECODER.decode(line)
        message: Said = msgspec.convert(line, _ANY_OF_SAID)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"not a message: {line!r:.200} ({error})") from None
    return message


def encode(message: msgspec.Struct | Mapping[str, Any]) -> bytes:
    """One line. Numbers that are not finite become null."""
    return msgspec.json.encode(message) + b"\n"


class Channel:
    """The subject's end of its socket."""

    def __init__(self, fd: int) -> None:
        self._fd, self._lines = fd, os.fdopen(fd, "rb")

    def send(self, message: Said) -> None:
        data = memoryview(encode(message))
        while data:
            data = data[os.write(self._fd, data) :]

    def receive(self, kind: Any) -> Any:
        """The next message, which is to be a ``kind``, or None when the other side has closed."""
        line = self._lines.readline()
        return msgspec.json.decode(line, type=kind) if line else None
