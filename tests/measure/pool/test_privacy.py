"""No folder of a person's is in a run: every text of a process comes in through one door, and is cleaned there."""

import queue
from typing import Any

import msgspec
import pytest

from measure.pool.dialogue import Dialogue, Dialogues, SubjectFailed
from measure.pool.launcher import Event, HostState
from measure.pool.privacy import without_folders
from measure.subject import messages, subject
from measure.subject.errors import describe
from measure.subject.messages import Measured, Reasons, Spec, encode
from tests.deadlines import RUN_S
from workloads.discovery import DiscoveryError

PATHS = {
    'File "/home/alice/venv/lib/python3.11/site-packages/numpy/core.py", line 1':
        'File "site-packages/numpy/core.py", line 1',
    f'File "{subject.__file__}", line 2': 'File "measure/subject/subject.py", line 2',
    'File "/srv/Alice Smith/mine.py", line 3': 'File "mine.py", line 3',
    "cannot open /home/alice, file:///home/alice/x, nor /home/alice2": "cannot open ~, file://<path>, nor <path>",
    "[Errno 2] No such file: '/srv/Alice Smith/my data.csv'": "[Errno 2] No such file: 'my data.csv'",
    "in /srv/alice/mine.py:12: see /srv/alice/x.txt.": "in mine.py:12: see x.txt.",
    "in '/home/alice/clients/' or /home/alice/clients/x.csv": "in '<path>' or x.csv",
    "libdevice not found in /srv/alice/cuda/nvvm/libdevice": "libdevice not found in <path>",
    # What only looks like a path stays.
    "map/while/body/_1/map/while/mul_7 on /job:localhost/replica:0/task:0/device:CPU:0": "",
    "'/device:GPU:0' or '/' or 3 / 4 of GB/s, and/or f(x)/mul": "",
    "see https://www.tensorflow.org/guide/function#x.py": "",
}  # fmt: skip


def test_paths_become_names_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    for text, told in PATHS.items():
        assert without_folders(text) == without_folders(told or text) == (told or text)


SECRET = "/srv/alice/clients"


class Says:
    """A launcher whose subject says what it is told to, and ends."""

    start_method = "fork"

    def __init__(self, *fields: dict[str, Any], kind: Any = "message") -> None:
        self._fields, self._kind = fields, kind

    def state(self) -> HostState:
        return HostState("ready", "")

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        for fields in self._fields:
            events.put(Event(1, self._kind, encode(fields) if self._kind == "message" else fields))
        return 1

    def next(self, events: "queue.Queue[Event]", timeout_s: float) -> Event:
        return events.get(timeout=timeout_s)

    def kill(self, subject: int) -> None:
        pass


def heard(launcher: Says, wanted: type[messages.Said] = Measured) -> Any:
    """The message that a subject's words make, or else the error."""
    dialogues, outcome = Dialogues(launcher), []  # type: ignore[arg-type]

    def dialogue() -> Dialogue:
        started = dialogues.start(Spec(role="memory"))
        try:
            outcome.append((yield from dialogues.until(started, wanted, RUN_S)))
        except SubjectFailed as failure:
            outcome.append(msgspec.to_builtins(failure.error))

    dialogues.hold([dialogue()])
    return outcome[0]


MEMORY = {"peak_bytes": 8, "output_bytes": 8, "temporary_bytes": 0, "input_bytes": 0, "captured_bytes": 0,
          "method": "events", "at_peak": [{"op": "map/while/mul (3 ops)", "bytes": 8}]}  # fmt: skip
MEASURED = {"event": "memory", "memory": MEMORY, "warnings": ["careful"], "fallbacks": [], "retraces": 0}


def test_whatever_a_process_says_comes_in_without_folders() -> None:
    path = f"{SECRET}/data.csv"
    for launcher in (
        Says(msgspec.to_builtins(describe(FileNotFoundError(2, "No such file or directory", path)))),
        Says(msgspec.to_builtins(messages.disturbed(f"a line that is none: '{path}'"))),
        Says({"event": "surprise", "said": path}),
        Says({"status": None, "signal": 6, "tail": f"abort in {path}"}, kind="exit"),
        Says(MEASURED | {"warnings": [f"slow: {path}"]}),
    ):
        told = str(heard(launcher))
        assert "data.csv" in told and "alice" not in told and "clients" not in told
    reasons = {"event": "why", "why": {"note": path, "fallbacks": [path]}}
    assert heard(Says(reasons), Reasons).why.note == "data.csv"


def test_an_address_in_memory_does_not_come_in() -> None:
    for said, told in (
        ("<function fn at 0x7f12ab34cd56> is no tensor", "<function fn> is no tensor"),
        ("free(): invalid pointer: 0x00007f12ab34cd56 ***", "free(): invalid pointer: ***"),
        ("colour 0xff, 0x1f and map/while_0x12345678", "colour 0xff, 0x1f and map/while_0x12345678"),
    ):
        assert heard(Says(MEASURED | {"warnings": [said]})).warnings == [told]
        assert str(DiscoveryError(said)) == told
