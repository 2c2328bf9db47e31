"""No folder of a person's is in a run: every text of a process comes in through one door, and is cleaned there."""

from typing import Any

import msgspec
import pytest

from measure.pool.dialogue import Dialogues, SubjectFailed
from measure.pool.launcher import Event
from measure.pool.privacy import without_folders
from measure.subject import messages, subject
from measure.subject.errors import describe
from measure.subject.messages import Measured, Reasons, Spec, encode
from tests.deadlines import RUN_S
from tests.subjects import Subjects
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


def heard(said: Any, wanted: type[messages.Said] = Measured) -> Any:
    """The message that a subject's words make, or else the error; an exit is an event of its own."""
    event = said if isinstance(said, Event) else Event(1, "message", encode(said))
    launcher = Subjects()
    launcher.start = lambda spec, events: events.append(event) or 1  # type: ignore[method-assign, func-returns-value]
    try:
        return Dialogues(launcher).ask(Spec(role="memory"), wanted, RUN_S)
    except SubjectFailed as failure:
        return msgspec.to_builtins(failure.error)


MEMORY = {"peak_bytes": 8, "output_bytes": 8, "temporary_bytes": 0, "input_bytes": 0, "captured_bytes": 0,
          "method": "events", "at_peak": [{"op": "map/while/mul (3 ops)", "bytes": 8}]}  # fmt: skip
MEASURED = {"event": "memory", "memory": MEMORY, "fallbacks": ["careful"], "retraces": 0}


def test_whatever_a_process_says_comes_in_without_folders_and_addresses() -> None:
    path = "/srv/alice/clients/data.csv"
    for said in (
        describe(FileNotFoundError(2, "No such file or directory", path)),
        {"event": "surprise", "said": path},
        Event(1, "exit", {"status": -6, "tail": f"abort in {path}"}),
        MEASURED | {"fallbacks": [f"slow: {path}"]},
        Event(1, "message", b'"\xff data.csv' + b"[" * 200_000),
    ):
        told = str(heard(said))
        assert "data.csv" in told and "alice" not in told and "clients" not in told
    reasons = {"event": "why", "why": {"note": path, "fallbacks": [path]}}
    assert heard(reasons, Reasons).why.note == "data.csv"
    for text, told in (
        ("<function fn at 0x7f12ab34cd56> is no tensor", "<function fn> is no tensor"),
        ("free(): invalid pointer: 0x00007f12ab34cd56 ***", "free(): invalid pointer: ***"),
        ("colour 0xff, 0x1f and map/while_0x12345678", "colour 0xff, 0x1f and map/while_0x12345678"),
    ):
        assert heard(MEASURED | {"fallbacks": [text]}).fallbacks == [told]
        assert str(DiscoveryError(text)) == told
