"""Hosts that stand still, do not start, cannot write or are left with what does not end: measuring goes on, or says why
it cannot. Most hosts here are stand-ins that speak like one."""

import errno
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from measure.engine import dialogue, fresh_launcher, host_launcher, host_process
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.fresh_launcher import FreshLauncher
from measure.engine.host_launcher import HostLauncher
from measure.engine.host_process import last_words
from measure.engine.launcher import Event
from measure.subject.messages import Spec
from measure.sweep.request import parse_sweep
from measure.sweep.sweep import Sweep
from tests.engine import (
    DEADLINE_S,
    LEAVE_A_PROCESS,
    QUICK,
    ROOT,
    WAIT_UNTIL_LEFT,
    eventually,
    left_behind,
    running_host,
    small_request,
    talk,
)
from tests.subjects import Message, Subjects

# Its subjects say all that they are told, and end when they are told to.
STAND_IN = """
import json, sys

def say(**message):
    print(json.dumps(message), flush=True)

say(event="ready", pid=0)
pings = 0
for line in sys.stdin:
    message = json.loads(line)
    if message["op"] == "ping":
        pings += 1
        if pings == {most_pings}:
            sys.exit(7)
        say(event="pong")
    elif message["op"] == "fork":
        say(event="started", id=message["id"], pid=0)
        if message["spec"]["role"] == "devices":
            say(event="message", id=message["id"], message=dict(event="devices", names=["CPU:0"]))
            say(event="exit", id=message["id"], status=0, signal=None, tail="")
    elif message["op"] == "send":
        say(event="message", id=message["id"], message=message["message"])
    else:
        say(event="exit", id=message["id"], status=None, signal=9, tail="")
"""
Start = Callable[..., HostLauncher]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """``start(code)`` is a launcher whose hosts run this code, without waits before they are started again."""
    launchers = []

    def begin(code: str = STAND_IN.format(most_pings=None), log: Path = tmp_path / "host.log") -> HostLauncher:
        monkeypatch.setattr(host_launcher, "command", lambda _: [sys.executable, "-c", code, str(os.getpid())])
        monkeypatch.setattr(host_launcher, "_BACK_OFF_S", (0.0,) * 5)
        launchers.append(HostLauncher(log))
        return launchers[-1]

    yield begin
    for launcher in launchers:
        launcher.close()


def ready(launcher: HostLauncher) -> int:
    """The number of the host's process, as soon as that is ready."""
    assert launcher.wait_ready(DEADLINE_S, lambda: False), launcher.state()
    assert launcher.pid is not None
    return launcher.pid


# --- standing still --------------------------------------------------------------------------------------------------


def test_nobody_waits_for_a_host_that_stands_still_and_it_goes_on_where_it_was(start: Start):
    launcher, events = start(), queue.Queue[Event]()
    pid = ready(launcher)
    os.kill(pid, signal.SIGSTOP)
    numbers = range(100)

    def ask() -> None:
        subject = launcher.start(Spec(role="timing", script="x" * 2**20), events)  # more than its pipe holds
        for number in numbers:
            launcher.send(subject, {"number": number})
        launcher.kill(subject)
        assert launcher.state().state == "ready"

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    eventually(lambda: not asking.is_alive(), "whoever asks is answered while the host stands still")
    os.kill(pid, signal.SIGCONT)
    got = [events.get(timeout=DEADLINE_S) for _ in range(len(numbers) + 2)]
    assert [event.kind for event in got] == ["started", *["message"] * len(numbers), "exit"]
    assert [event.fields["number"] for event in got[1:-1]] == list(numbers)
    assert launcher.pid == pid


def test_of_a_host_that_takes_nothing_in_no_more_than_so_much_is_asked(start: Start, monkeypatch: pytest.MonkeyPatch):
    launcher, events = start(), queue.Queue[Event]()
    pid = ready(launcher)
    monkeypatch.setattr(host_process, "_MOST_WAITING", 0)
    subject = launcher.start(Spec(role="timing"), events)
    assert events.get(timeout=DEADLINE_S) == Event(subject, "lost", {})
    assert launcher.pid == pid


def test_a_host_that_stands_still_for_long_is_killed_and_another_one_started(start: Start):
    launcher, events = start(), queue.Queue[Event]()
    pid = ready(launcher)
    os.kill(pid, signal.SIGSTOP)
    subject = launcher.start(Spec(role="timing"), events)
    launcher.silent_s = 0.0
    lost = events.get(timeout=DEADLINE_S)
    launcher.silent_s = DEADLINE_S
    assert lost == Event(subject, "lost", {})
    eventually(lambda: launcher.pid not in (None, pid), "another host is there")
    eventually(lambda: launcher.state().state == "ready", "it is ready")
    launcher.kill(launcher.start(Spec(role="timing"), events))
    assert [events.get(timeout=DEADLINE_S).kind for _ in range(2)] == ["started", "exit"]


def test_a_host_that_stood_still_is_named_as_the_reason(start: Start, monkeypatch: pytest.MonkeyPatch):
    launcher = start()
    monkeypatch.setattr(host_launcher, "_BACK_OFF_S", (DEADLINE_S,) * 5)
    os.kill(ready(launcher), signal.SIGSTOP)
    launcher.silent_s = 0.0
    eventually(lambda: launcher.state().state == "restarting", "the host is given up")
    assert "was killed, since it did not answer for 0 s; it is started again in 120 s" in launcher.state().message


def test_time_in_which_the_server_itself_stood_still_is_no_silence_of_the_host(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    passed = iter(range(0, 10**12, 1_000))
    monkeypatch.setattr(host_process, "time", SimpleNamespace(monotonic=lambda: float(next(passed))))
    monkeypatch.setattr(host_process, "_STEP_S", 0.01)
    monkeypatch.setattr(host_process, "_ASKED_AFTER_S", 0.02)
    launcher = start(STAND_IN.format(most_pings=5))
    ready(launcher)
    monkeypatch.setattr(host_launcher, "_BACK_OFF_S", (DEADLINE_S,) * 5)
    eventually(lambda: launcher.state().state == "restarting", "the host has ended")
    assert "exit status 7" in launcher.state().message, "it answered each time, and ended by itself"


# --- hosts that cannot start -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("refusal", [OSError(errno.EAGAIN, "no more processes"), RuntimeError("no more threads")])
def test_a_system_that_refuses_to_start_a_host_is_asked_again(
    start: Start, monkeypatch: pytest.MonkeyPatch, refusal: Exception
):
    refusals = [refusal] * (3 if isinstance(refusal, OSError) else 1)

    def popen(*arguments: Any, **more: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return subprocess.Popen(*arguments, **more)

    monkeypatch.setattr(host_launcher, "subprocess", SimpleNamespace(Popen=popen, PIPE=subprocess.PIPE))
    launcher = start()
    ready(launcher)
    assert not refusals


def test_a_host_whose_reader_fails_is_ended_and_another_one_started(start: Start, monkeypatch: pytest.MonkeyPatch):
    take = HostLauncher._take
    faults = [RuntimeError("no more threads")]

    def taking(launcher: HostLauncher, message: dict[str, Any]) -> None:
        if faults:
            raise faults.pop()
        take(launcher, message)

    monkeypatch.setattr(HostLauncher, "_take", taking)
    ready(start())
    assert not faults


BROKEN = """
import sys
print('''Traceback (most recent call last):
  File "/home/somebody/lib/python3.12/site-packages/tensorflow/python/pywrap_tensorflow.py", line 73, in <module>
    from tensorflow.python._pywrap_tensorflow_internal import *
ImportError: /home/somebody/lib/libtensorflow.so: failed to map segment from shared object

Failed to load the native TensorFlow runtime.
See https://www.tensorflow.org/install/errors for some common causes and solutions.
If you need help, create an issue.''', file=sys.stderr)
sys.exit(1)
"""


def test_the_reason_for_which_a_host_does_not_start_is_said_when_that_has_failed_twice(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    launcher = start(BROKEN)
    monkeypatch.setattr(host_launcher, "_BACK_OFF_S", (0.0, 0.0, DEADLINE_S, DEADLINE_S, DEADLINE_S))
    assert not launcher.wait_ready(DEADLINE_S, lambda: False)
    state = launcher.state()
    reason = "ImportError: libtensorflow.so: failed to map segment from shared object"
    assert (state.state, state.message) == ("failed", f"the measuring process ended with exit status 1: {reason}")


def test_a_missing_interpreter_is_said(start: Start, monkeypatch: pytest.MonkeyPatch):
    launcher = start(BROKEN)
    monkeypatch.setattr(host_launcher, "command", lambda _: ["/no/such/python"])
    assert not launcher.wait_ready(DEADLINE_S, lambda: False)
    eventually(lambda: "could not be started" in launcher.state().message, "the system's refusal is said")
    assert "No such file or directory" in launcher.state().message


def test_a_host_that_starts_after_all_is_used(start: Start, tmp_path: Path):
    works = tmp_path / "works"
    launcher = start(
        f"import os\nif not os.path.exists({str(works)!r}):\n    os._exit(1)\n" + STAND_IN.format(most_pings=None)
    )
    assert not launcher.wait_ready(DEADLINE_S, lambda: False)
    works.touch()
    eventually(lambda: launcher.state().state == "ready", "the host is ready")


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("", ""),
        ("a warning\n\n", "a warning"),
        ("MemoryError\n", "MemoryError"),
        ("ValueError: one\n\nDuring …\n\nnumpy.AnError: /a/b/c is bad\nadvice\n", "numpy.AnError: <path> is bad"),
        ("x" * 1_000, "x" * 299 + "…"),
    ],
)  # fmt: skip
def test_last_words_are_the_exception_or_else_the_last_line_and_hold_no_folder(printed: str, said: str):
    assert last_words(printed) == said


# --- logs that cannot be written -------------------------------------------------------------------------------------


def test_measuring_does_not_depend_on_a_log(start: Start, tmp_path: Path):
    """One that is full, that is in no folder, and that is one."""
    (tmp_path / "file").touch()
    for log in (Path("/dev/full"), tmp_path / "file" / "host.log", tmp_path):
        ready(start("import sys\nprint('x' * 2**20, file=sys.stderr)\n" + STAND_IN.format(most_pings=None), log))


def test_a_full_disk_under_its_log_does_not_end_a_host(tmp_path: Path):
    (tmp_path / "host.log").symlink_to("/dev/full")
    with running_host(tmp_path, warm=True) as launcher:
        pid = launcher.pid
        one, _ = talk(launcher, [Spec(role="timing", script="import os\nos.write(2, b'words')\nos._exit(3)")] * 2)
        assert one.exit is not None and (one.exit["status"], one.exit["tail"]) == (3, "words")
        assert launcher.pid == pid


# --- processes that do not end ---------------------------------------------------------------------------------------

# A host on a system that ends nothing, and whose subjects leave a process behind.
UNKILLABLE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from measure.engine import host
host._kill_group = lambda pid: None
host._END_S = 0.05
host.adopt_orphans()
spec, channel = host.Host(0, 1).run(int(sys.argv[1]))
import os
if spec.name:
    path = spec.name
    exec(spec.script)
os._exit(0)
"""


# A host whose subjects end themselves as the kernel ends them, and of which one is counted as the kernel counts.
ENDED_FOR_MEMORY = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from measure.engine import host
host.ends_for_memory = lambda: len(open({{counter!r}}).read())
spec, channel = host.Host(0, 1).run(int(sys.argv[1]))
import os
if spec.role != "devices":
    open({{counter!r}}, "a").write(spec.name)
    os.kill(os.getpid(), 9)
os._exit(0)
"""


def test_a_subject_that_the_kernel_has_ended_for_want_of_memory_is_known(start: Start, tmp_path: Path):
    (tmp_path / "counter").touch()
    launcher = start(ENDED_FOR_MEMORY.format(counter=str(tmp_path / "counter")))
    ready(launcher)
    by_others, by_kernel = talk(launcher, [Spec(role="timing"), Spec(role="timing", name="x")])
    for one, for_memory in ((by_others, False), (by_kernel, True)):
        assert one.exit is not None and (one.exit["signal"], one.exit["for_memory"]) == (signal.SIGKILL, for_memory)


def test_a_process_that_does_not_end_when_it_is_killed_is_given_up_and_said(start: Start, tmp_path: Path):
    path, log = tmp_path / "pids", tmp_path / "the.log"
    launcher = start(UNKILLABLE, log)
    pid = ready(launcher)
    script = LEAVE_A_PROCESS.format(path=str(path)) + WAIT_UNTIL_LEFT.format(path=str(path))
    leaves = Spec(role="timing", name=str(path), script=script)
    try:
        first, second = talk(launcher, [leaves, Spec(role="timing")])
        for one in (first, second):
            assert one.exit is not None and (one.exit["kind"], one.exit["status"]) == ("exit", 0)
        assert launcher.pid == pid and len(left_behind(path)) == 2
        eventually(lambda: "do not end, though they were killed" in log.read_text(), "it is said")
    finally:
        for left in left_behind(path):
            os.kill(left, signal.SIGKILL)


@pytest.mark.parametrize("kind", ["comparison", "sweep"])
def test_a_run_says_that_a_process_of_it_did_not_end(monkeypatch: pytest.MonkeyPatch, kind: str):
    class Unkillable(Subjects):
        """The run is cancelled as soon as a strategy is timed."""

        def send(self, subject: int, message: Message) -> None:
            if message["op"] == "samples":
                job.cancel()
            else:
                super().send(subject, message)

        def kill(self, subject: int) -> None:
            pass

    monkeypatch.setattr(dialogue, "_END_S", 0.0)
    launcher, settings = Unkillable(), Settings(rules=QUICK, probes=False, process_peaks_s=0.0)
    job: Comparison | Sweep
    if kind == "sweep":
        axis = {"kind": "size", "name": "batch", "values": [10, 20]}
        swept = parse_sweep({"workload": "square", "strategies": ["batched.eager"], "axes": [axis]})
        job = Sweep("0" * 24, swept, launcher, lambda view: None, settings=settings)
    else:
        job = Comparison("0" * 24, small_request("batched.eager"), launcher, lambda view: None, settings=settings)
    run = job.run()
    assert run.status == "cancelled"
    (warning,) = (warning for warning in run.warnings if warning.code == "not_ended")
    assert "of this run did not end when killed" in warning.message


def test_a_fresh_interpreter_that_the_system_refuses_fails_its_strategy(monkeypatch: pytest.MonkeyPatch):
    def popen(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(fresh_launcher, "subprocess", SimpleNamespace(Popen=popen, PIPE=subprocess.PIPE))
    (one,) = talk(FreshLauncher(finds_devices=False), [Spec(role="timing")])
    assert one.exit is not None and one.exit["kind"] == "exit"
    assert "the system refused another process" in one.messages[0]["message"]
