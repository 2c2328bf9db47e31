"""No folder of a person's is in a run: every text of a process comes in through one door, and is cleaned there."""

import queue
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.dialogue import Dialogue, Dialogues, SubjectFailed
from measure.engine.host_launcher import HostLauncher
from measure.engine.launcher import Event
from measure.engine.privacy import without_folders
from measure.model.place import StoreError
from measure.model.request import parse
from measure.model.run import Run
from measure.model.run_file import encode
from measure.store.store import Store
from measure.subject import messages, subject
from measure.subject.errors import describe
from measure.subject.messages import Measured, Reasons, Spec
from tests.engine import DEADLINE_S, running, small_request
from tests.grid import untimed
from tests.subjects import Subjects
from tests.workloads.test_workloads import CUBE
from workloads.discovery import DiscoveryError


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('File "/home/alice/venv/lib/python3.11/site-packages/numpy/core.py", line 1',
         'File "site-packages/numpy/core.py", line 1'),
        (f'File "{subject.__file__}", line 2', 'File "measure/subject/subject.py", line 2'),
        ('File "/srv/alice/mine.py", line 3', 'File "mine.py", line 3'),
        ('File "/srv/Alice Smith/mine", line 3', 'File "mine", line 3'),
        ('File "<map_fn.graph>", line 4', 'File "<map_fn.graph>", line 4'),
        ("cannot open /home/alice, file:///home/alice/x, -I/home/alice/x, /home/alice2",
         "cannot open ~, file://<path>, -I<path>, <path>"),
        ("[Errno 2] No such file or directory: '/home/alice/clients/data.csv'",
         "[Errno 2] No such file or directory: 'data.csv'"),
        ("[Errno 2] No such file: '/srv/Alice Smith/my data.csv'", "[Errno 2] No such file: 'my data.csv'"),
        ("in /srv/alice/mine.py:12: see ../alice/mine.py, ~alice/x.txt.", "in mine.py:12: see mine.py, x.txt."),
        ("WARNING:tensorflow:From /opt/alice/site-packages/tensorflow/python/x.py:3: foo (from y) is deprecated",
         "WARNING:tensorflow:From site-packages/tensorflow/python/x.py:3: foo (from y) is deprecated"),
        (r"no C:\Users\alice\mine.py nor 'C:\\Users\\Alice Smith\\data.csv' nor \\server\alice\x.csv",
         "no mine.py nor 'data.csv' nor x.csv"),
        ("libdevice not found in /srv/alice/cuda/nvvm/libdevice", "libdevice not found in <path>"),
        ("written to /tmp/mapbench-case-12-ab/why_0/trace.json.gz", "written to trace.json.gz"),
        # What only looks like a path stays.
        ("map/while/body/_1/map/while/mul_7 on /job:localhost/replica:0/task:0/device:CPU:0",
         "map/while/body/_1/map/while/mul_7 on /job:localhost/replica:0/task:0/device:CPU:0"),
        ("'/device:GPU:0' or '/' or 3 / 4 of GB/s, and/or f(x)/mul",
         "'/device:GPU:0' or '/' or 3 / 4 of GB/s, and/or f(x)/mul"),
        ("see https://www.tensorflow.org/guide/function#x.py", "see https://www.tensorflow.org/guide/function#x.py"),
        ("a <b>bold</b> \\d+ text", "a <b>bold</b> \\d+ text"),
    ],
)  # fmt: skip
def test_paths_become_names_of_files(monkeypatch: pytest.MonkeyPatch, text: str, told: str) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    assert without_folders(text) == told
    assert without_folders(told) == told


def test_a_home_that_is_no_folder_of_somebodys_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    assert without_folders("3 /s, map/x") == "3 /s, map/x"


# --- the door --------------------------------------------------------------------------------------------------------

SECRET = "/srv/alice/clients"


class Says:
    """A launcher whose subject says what it is told to, and ends."""

    start_method = "fork"

    def __init__(self, *fields: dict[str, Any], kind: Any = "message") -> None:
        self._fields, self._kind = fields, kind

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        for fields in self._fields:
            events.put(Event(1, self._kind, fields))
        return 1

    def kill(self, subject: int) -> None:
        pass


def heard(launcher: Says, wanted: type[messages.Said] = Measured) -> Any:
    """The message that a subject's words make, or else the error."""
    dialogues, outcome = Dialogues(launcher), []  # type: ignore[arg-type]

    def dialogue() -> Dialogue:
        started = dialogues.start(Spec(role="memory"))
        try:
            outcome.append((yield from dialogues.until(started, wanted, 60.0)))
        except SubjectFailed as failure:
            outcome.append(msgspec.to_builtins(failure.error))

    dialogues.hold([dialogue()])
    return outcome[0]


def raised() -> BaseException:
    try:
        open(f"{SECRET}/data.csv")  # noqa: SIM115
    except OSError as error:
        return error
    raise AssertionError("there is such a file")


MEMORY = {"peak_bytes": 8, "output_bytes": 8, "temporary_bytes": 0, "input_bytes": 0, "captured_bytes": 0,
          "method": "events", "at_peak": [{"op": "map/while/mul (3 ops)", "bytes": 8}]}  # fmt: skip
MEASURED = {"event": "memory", "memory": MEMORY, "warnings": ["careful"], "fallbacks": [], "retraces": 0}


@pytest.mark.parametrize(
    ("launcher", "wanted"),
    [
        (Says(msgspec.to_builtins(describe(raised()))), Measured),
        (Says(msgspec.to_builtins(messages.refused(f"the system refused {SECRET}/data.csv"))), Measured),
        (Says(msgspec.to_builtins(messages.disturbed(f"a line that is none: '{SECRET}/data.csv'"))), Measured),
        (Says({"event": "surprise", "said": f"{SECRET}/data.csv"}), Measured),
        (Says({"status": None, "signal": 6, "tail": f"abort in {SECRET}/data.csv"}, kind="exit"), Measured),
        (Says(MEASURED | {"warnings": [f"slow: {SECRET}/data.csv"]}), Measured),
        (Says({"event": "why", "why": {"note": f"{SECRET}/data.csv", "fallbacks": [f"{SECRET}/data.csv"]}}), Reasons),
    ],
)
def test_whatever_a_process_says_comes_in_without_folders(launcher: Says, wanted: type[messages.Said]) -> None:
    told = str(heard(launcher, wanted))
    assert "alice" not in told and "clients" not in told
    assert "data.csv" in told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("<function fn at 0x7f12ab34cd56> is no tensor", "<function fn> is no tensor"),
        ("a handle (0x7f12ab34cd56) of ptr=0x55d0c0ffee10", "a handle () of ptr="),
        ("free(): invalid pointer: 0x00007f12ab34cd56 ***", "free(): invalid pointer: ***"),
        ("colour 0xff, 0x1f and map/while_0x12345678", "colour 0xff, 0x1f and map/while_0x12345678"),
    ],
)
def test_an_address_in_memory_does_not_come_in(said: str, told: str) -> None:
    measured = heard(Says(MEASURED | {"warnings": [said]}))
    assert measured.warnings == [told]
    with pytest.raises(DiscoveryError) as caught:
        raise DiscoveryError(said)
    assert str(caught.value) == told


def test_what_is_no_path_comes_in_as_it_was_said() -> None:
    assert heard(Says(MEASURED)) == messages.read(MEASURED)


def test_a_long_error_is_cut_where_a_line_ends() -> None:
    """The rest of a path could not be told from other words."""
    lines = "\n".join(f"{SECRET}/{number:05}/data.csv" for number in range(2_000))
    detail = describe(ValueError(lines)).detail
    assert len(detail) <= 20_010
    _, _, last = detail.partition("\n[…]\n")
    assert all(line.startswith(SECRET) for line in last.splitlines())
    assert "alice" not in without_folders(detail)


# --- what is said of Mapbench's own errors ---------------------------------------------------------------------------


class Unwritable(Store):
    def save(self, run: Run, **more: Any) -> None:
        raise StoreError(f"unable to open '{SECRET}/runs.db'")


def test_errors_of_mapbench_itself_come_in_without_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Comparison) -> None:
        raise raised()

    monkeypatch.setattr(Comparison, "run", run)
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "lock"))
    with running(Subjects(), tmp_path, Unwritable(tmp_path)) as own:
        run_id = own.submit(small_request("batched.eager"))
        assert own.wait(run_id, DEADLINE_S)
        snapshot = own.snapshot(run_id)
    assert snapshot is not None and snapshot.fault
    assert snapshot.run.stop_reason.endswith("No such file or directory: 'data.csv'")
    (warning,) = snapshot.run.warnings
    assert "unable to open 'runs.db'" in warning.message
    assert "alice" not in encode(replace(snapshot.run, measurements=[])).decode()


# --- a file of one's own ---------------------------------------------------------------------------------------------

_ELEMENT = """
    import warnings
    warnings.warn("slow: {folder}/notes.txt says why")
    if not tf.executing_eagerly():
        return x * len(open("{folder}/data.csv").read())
    return x**3
"""


def test_of_a_file_of_ones_own_that_names_its_folder_only_names_of_files_are_told(
    host: HostLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "alice" / "clients"
    (folder / "workloads").mkdir(parents=True)
    text = CUBE.replace("    return x**3\n", _ELEMENT.format(folder=folder))
    (folder / "workloads" / "cube.py").write_text(text)
    monkeypatch.setenv("MAPBENCH_HOME", str(folder))
    asked = parse({"workload": "cube", "strategies": ["loop.eager", "loop.graph"]})
    run = untimed(asked, host, Settings(timeout_floor_s=60.0))
    good, bad = (run.measurement(slug) for slug in asked.strategies)
    assert good.correctness is not None and good.correctness.ok and good.memory is not None
    assert [warning.message for warning in good.warnings if warning.code == "tensorflow"] == [
        "slow: notes.txt says why"
    ]
    assert bad.outcome == "failed" and bad.error is not None
    assert bad.error.message == "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'"
    # The code is what was measured, and stays as it is.
    told = [replace(item, code=None) for item in run.measurements]
    document = encode(replace(run, measurements=told)).decode()
    assert "alice" not in document and "clients" not in document and str(tmp_path) not in document
