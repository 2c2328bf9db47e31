"""A host whose subjects only play their roles, in milliseconds and without TensorFlow, and one of whom fails as it is
told. All else is the project's own: the host's loop, its forks, the channel, and what becomes of processes.

Every message of a role is a stage with three moments: before it is said, when half of it is said, and after it. Which
of them fails, and how, stands in the file that ``MAPBENCH_TEST_FAULT`` names.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import time
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from measure.engine import host
from measure.subject import messages
from measure.subject.errors import describe
from measure.subject.messages import Channel, Spec, encode
from tests.engine import LEAVE_A_PROCESS
from tests.subjects import RATES, measured

VARIABLE = "MAPBENCH_TEST_FAULT"
# Seconds of a call, far enough apart that a few processes tell them apart; the victim leads, so that it has the twin.
VICTIM = "batched.eager"
LATENCIES_S = {VICTIM: 1e-3, "loop.eager": 1e-2, "map_fn.eager": 2e-2}
_OTHER_S = 5e-3
_FLOOD = b"x" * 65_536


@dataclass(frozen=True)
class Fault:
    """``event``: the message about which it happens, of a subject of this ``role``; ``name``: the strategy, or twin;
    ``text``: what its script holds. Empty ones are anyone's. ``folder``: where signs of it are left."""

    kind: str
    moment: str
    role: str
    event: str
    folder: str
    name: str = ""
    text: str = ""


def _plays(fault: Fault, spec: Spec) -> bool:
    # The harness tells a timing subject whether it is a twin where other roles are told a folder.
    name = spec.artifacts if spec.role == "timing" and spec.artifacts else spec.name
    return spec.role == fault.role and fault.name in ("", name) and fault.text in spec.script


def _raise(channel: Channel) -> None:
    channel.send(describe(ValueError("said by a test")))
    os._exit(0)


def _out_of_memory(channel: Channel) -> None:
    channel.send(describe(MemoryError("Unable to allocate 8 EiB")))
    os._exit(0)


def _hang(channel: Channel) -> None:
    while True:
        signal.pause()


def _print(channel: Channel) -> None:
    while True:
        os.write(1, _FLOOD)


def _flood(channel: Channel) -> None:
    with contextlib.suppress(OSError):
        while True:
            os.write(3, _FLOOD)


_KINDS = {
    "raises": _raise,
    "runs out of memory": _out_of_memory,
    "hangs": _hang,
    "stops itself": lambda channel: os.kill(os.getpid(), signal.SIGSTOP),
    "prints without end": _print,
    "exits": lambda channel: os._exit(3),
    "aborts": lambda channel: os.abort(),
    "is killed": lambda channel: os.kill(os.getpid(), signal.SIGKILL),
    "writes into the channel": lambda channel: os.write(3, b"this is not a message\n"),
    "floods the channel": _flood,
}


class Player:
    """A subject that says what is expected of its role, until its fault's moment has come."""

    def __init__(self, spec: Spec, channel: Channel, fault: Fault | None) -> None:
        self._spec, self._channel = spec, channel
        self._fault = fault if fault is not None and _plays(fault, spec) else None

    def play(self) -> None:
        if self._spec.role == "timing":
            self._be_timed()
            return
        for message in _words(self._spec):
            self._say(message)

    def _be_timed(self) -> None:
        name = self._spec.name
        call_s = LATENCIES_S.get(name, _OTHER_S)
        self._say({"event": "ready", "runtime_s": 0.01})
        half = {"event": "sampled", "calls": 2, "seconds": [call_s * (1 + 0.01 * n) for n in range(3)], "disturbed": []}
        while (command := self._channel.receive(messages.Command)) is not None:
            match command:
                case messages.CallFirst():
                    self._say({"event": "first_call", "seconds": 2 * call_s})
                case messages.CallWithOtherValues():
                    self._say({"event": "other_values", "seconds": call_s})
                case messages.TakeSamples():
                    # Nobody else is sampled meanwhile: the first half is said without a fault.
                    self._write(encode(half | {"last": False}))
                    self._say(half | {"last": True})
                case messages.Stop():
                    return

    def _say(self, message: dict[str, Any]) -> None:
        line = encode(message)
        fault = self._fault
        if fault is None or fault.event != message["event"]:
            self._write(line)
            return
        said = {"begin": 0, "middle": len(line) // 2, "end": len(line)}[fault.moment]
        self._write(line[:said])
        self._fault = None
        _happen(fault, self._channel)
        self._write(line[said:])

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(3, data) :]


def _happen(fault: Fault, channel: Channel) -> None:
    Path(fault.folder, "happened").touch()
    if act := _KINDS.get(fault.kind):
        act(channel)
    elif fault.kind == "leaves processes":
        left = Path(fault.folder, "left")
        exec(LEAVE_A_PROCESS.format(path=str(left)), {})
        while not left.exists() or len(left.read_text().split()) < 2:
            time.sleep(0.001)
    else:
        # Somebody else's part: it is done when the harness answers.
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(Path(fault.folder, "now")))
            asking.recv(1)


def _words(spec: Spec) -> list[dict[str, Any]]:
    """What a subject of a role says that is told nothing more."""
    said: dict[str, list[dict[str, Any]]] = {
        "devices": [
            {"event": "devices", "names": ["CPU:0"], "gpus": [], "gpu_driver": None, "gpu_allocator": None,
             "gpu_memory_growth": None, "cuda": None, "cudnn": None, "onednn": False, "openblas_threads": 1,
             "tensorflow_allocator": "played"},
        ],
        "reference": [{"event": "saved"}],
        "memory": measured(call_s=LATENCIES_S.get(spec.name, _OTHER_S)),
        "process_peak": [{"event": "process_peak", "bytes": 2**21}],
        "probes": [{"event": "rates", "rates": msgspec.to_builtins(RATES)}],
        "room": [{"event": "room", "bytes": None}],
        "why": [{"event": "why", "why": {"op_count": 1, "profiled_s": 0.005}}],
    }  # fmt: skip
    return said[spec.role]


def play(spec: Spec, channel: Channel) -> None:
    """In place of `measure.subject.subject.serve`."""
    path = Path(os.environ[VARIABLE])
    fault = Fault(**json.loads(path.read_text())) if path.exists() else None
    Player(spec, channel, fault).play()


def main() -> None:
    # The host imports it for its subjects, and these do without.
    for name in ("tensorflow", "tensorflow.tsl.profiler.protobuf.xplane_pb2"):
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            module = types.ModuleType(".".join(parts[:count]))
            module.__dict__.update(__path__=[], __version__="played")
            sys.modules.setdefault(module.__name__, module)
    host.serve = play
    host.main()
