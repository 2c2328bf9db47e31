"""Hosts that stand still, do not start, cannot write or are left with what does not end: measuring goes on, or says why
it cannot. Hosts here are stand-ins that speak like one."""

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

from measure.engine import dialogue, host_launcher, host_process
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.host_launcher import HostLauncher
from measure.engine.launcher import Event
from measure.subject.messages import Spec
from tests.deadlines import ANSWER_S, RUN_S
from tests.engine import QUICK, ROOT, eventually, small_request, talk
from tests.subjects import Message, Subjects, leave_the_machine

# Its subjects say all that they are told, and end when they are told to.
STAND_IN = """
import json, sys

def say(**message):
    print(json.dumps(message), flush=True)

say(event="ready", pid=0)
for line in sys.stdin:
    message = json.loads(line)
    if message["op"] == "ping":
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
def start(live: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """``start(code)`` is a launcher whose hosts run this code, without waits before they are started again."""
    launchers = []

    def begin(code: str = STAND_IN, log: Path = tmp_path / "host.log") -> HostLauncher:
        monkeypatch.setattr(host_launcher, "command", lambda _: [sys.executable, "-c", code, str(os.getpid())])
        monkeypatch.setattr(host_launcher, "_BACK_OFF_S", (0.0,) * 5)
        launchers.append(HostLauncher(log))
        return launchers[-1]

    yield begin
    for launcher in launchers:
        launcher.close()


def ready(launcher: HostLauncher) -> int:
    """The number of the host's process, as soon as that is ready."""
    assert launcher.wait_ready(RUN_S, lambda: False), launcher.state()
    assert launcher.pid is not None
    return launcher.pid


# --- standing still --------------------------------------------------------------------------------------------------


def test_nobody_waits_for_a_host_that_stands_still_and_it_goes_on_where_it_was(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    launcher, events = start(), queue.Queue[Event]()
    pid = ready(launcher)
    os.kill(pid, signal.SIGSTOP)
    numbers = range(100)

    def ask() -> None:
        subject = launcher.start(Spec(role="timing", script="x" * 2**20), events)  # more than its pipe holds
        for number in numbers:
            launcher.send(subject, {"number": number})
        launcher.kill(subject)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(ANSWER_S)
    assert not asking.is_alive(), "whoever asks is answered while the host stands still"
    os.kill(pid, signal.SIGCONT)
    got = [events.get(timeout=ANSWER_S) for _ in range(len(numbers) + 2)]
    assert [event.kind for event in got] == ["started", *["message"] * len(numbers), "exit"]
    assert [event.fields["number"] for event in got[1:-1]] == list(numbers)
    monkeypatch.setattr(host_process, "_MOST_WAITING", 0)
    subject = launcher.start(Spec(role="timing"), events)
    assert events.get(timeout=ANSWER_S) == Event(subject, "lost", {}), "no more than so much is asked of it"
    assert launcher.pid == pid


def test_a_host_that_stands_still_for_long_is_killed_and_another_one_started(start: Start):
    launcher, events = start(), queue.Queue[Event]()
    pid = ready(launcher)
    os.kill(pid, signal.SIGSTOP)
    subject = launcher.start(Spec(role="timing"), events)
    launcher.silent_s = 0.0
    lost = events.get(timeout=RUN_S)
    launcher.silent_s = RUN_S
    assert lost == Event(subject, "lost", {})
    eventually(lambda: launcher.pid not in (None, pid) and launcher.state().state == "ready", "another one is ready")
    launcher.kill(launcher.start(Spec(role="timing"), events))
    assert [events.get(timeout=ANSWER_S).kind for _ in range(2)] == ["started", "exit"]


# --- hosts that cannot start -----------------------------------------------------------------------------------------


def test_a_system_that_refuses_to_start_a_host_is_asked_again(start: Start, monkeypatch: pytest.MonkeyPatch):
    refusals = [OSError(errno.EAGAIN, "no more processes")] * 3

    def popen(*arguments: Any, **more: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return subprocess.Popen(*arguments, **more)

    monkeypatch.setattr(host_launcher, "subprocess", SimpleNamespace(Popen=popen, PIPE=subprocess.PIPE))
    ready(start())
    assert not refusals


BROKEN = """
import os, sys
if not os.path.exists({works!r}):
    sys.exit('''Traceback (most recent call last):
  File "/home/somebody/lib/python3.12/site-packages/tensorflow/python/pywrap_tensorflow.py", line 73, in <module>
    from tensorflow.python._pywrap_tensorflow_internal import *
ImportError: /home/somebody/lib/libtensorflow.so: failed to map segment from shared object

Failed to load the native TensorFlow runtime.''')
"""


def test_the_reason_for_which_a_host_does_not_start_is_said_and_one_that_starts_after_all_is_used(
    start: Start, tmp_path: Path
):
    works = tmp_path / "works"
    launcher = start(BROKEN.format(works=str(works)) + STAND_IN)
    assert not launcher.wait_ready(RUN_S, lambda: False)
    state = launcher.state()
    reason = "ImportError: libtensorflow.so: failed to map segment from shared object"
    assert (state.state, state.message) == ("failed", f"the measuring process ended with exit status 1: {reason}")
    works.touch()
    eventually(lambda: launcher.state().state == "ready", "the host is ready")


# --- processes that do not end as they should ------------------------------------------------------------------------

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


def test_a_run_says_that_a_process_of_it_did_not_end(monkeypatch: pytest.MonkeyPatch):
    class Unkillable(Subjects):
        """The run is cancelled as soon as a strategy is timed."""

        def send(self, subject: int, message: Message) -> None:
            if message["op"] == "turn":
                job.cancel()
            else:
                super().send(subject, message)

        def kill(self, subject: int) -> None:
            pass

    leave_the_machine(monkeypatch)
    monkeypatch.setattr(dialogue, "_END_S", 0.0)
    settings = Settings(most_processes=QUICK, probes=False, process_peaks=False)
    job = Comparison("0" * 24, small_request("batched.eager"), Unkillable(), lambda view: None, settings=settings)
    run = job.run()
    assert run.status == "cancelled" and "not_ended" in [warning.code for warning in run.warnings]
