"""Hosts that stand still, do not start or end, as their launcher sees it: a test plays them by hand."""

import os
import socket
import time
from collections import deque
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from measure.pool import launcher as module
from measure.pool.launcher import Event, Events, Launcher
from measure.subject import messages
from measure.subject.messages import Spec, encode
from tests.deadlines import ANSWER_S, RUN_S

PID = 2**30  # of the first subject of a host: a number that no process has


class PlayedHost:
    """In place of `Python`: a host that answers, unless it ``stands_still``, and says and does what a test wants."""

    def __init__(self, *_: Any, stdin: socket.socket, output: Any, **__: Any) -> None:
        self.pid, self.status = 0, 0
        self.stands_still = self.is_killed = False
        self.output_fd, self.socket = os.dup(output.fileno()), stdin.dup()
        self.socket.setblocking(False)
        self.looks, self.pids = 0, count(PID)
        self.files: dict[int, tuple[socket.socket, int]] = {}

    def say(self, **message: Any) -> None:
        self.socket.send(encode(message))

    def answer(self) -> None:
        """Answer all requests; a subject that looks for devices, the first one, does so at once."""
        self.looks += 1
        while not self.stands_still:
            try:
                asked, fds, _, _ = socket.recv_fds(self.socket, 1, 2)
            except OSError:
                return
            if not asked:
                return
            pid = next(self.pids)
            self.files[pid] = socket.socket(fileno=fds[0]), fds[1]
            self.say(event="started", pid=pid)
            if pid == PID:
                self.tell(pid, {"event": "devices", "names": ["CPU:0"]})
                self.end_subject(pid)

    def tell(self, pid: int, message: dict[str, Any]) -> None:
        self.files[pid][0].send(encode(message))

    def end_subject(self, pid: int, status: int = 0) -> None:
        channel, output_fd = self.files.pop(pid)
        channel.close()
        os.close(output_fd)
        self.say(event="exit", pid=pid, status=status)

    def kill(self) -> None:
        self.is_killed, self.status = True, -9

    def end(self, patience_s: float = 0.0) -> int:
        self.socket.close()
        return self.status


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> list[PlayedHost]:
    """The hosts that were started, in that order: they answer whenever somebody looks, and nobody waits."""
    started: list[PlayedHost] = []

    def start(*arguments: Any, **more: Any) -> PlayedHost:
        started.append(PlayedHost(*arguments, **more))
        return started[-1]

    def look(launcher: Launcher, timeout_s: float) -> None:
        if started:
            started[-1].answer()
        looks(launcher, 0.0)

    looks = Launcher._look
    monkeypatch.setattr(Launcher, "_look", look)
    monkeypatch.setattr(module, "Python", start)
    return started


@pytest.fixture
def launcher(hosts: list[PlayedHost]) -> Iterator[Launcher]:
    launcher = Launcher()
    assert launcher.state().state == "starting"
    yield launcher
    launcher.close()


def make_ready(launcher: Launcher, host: PlayedHost) -> None:
    host.say(event="ready")
    assert launcher.wait_ready(ANSWER_S, lambda: False) and launcher.state().devices == ("CPU:0",)


def start(launcher: Launcher, **spec: Any) -> tuple[int, Events]:
    """A subject, and what becomes of it."""
    events: Events = deque()
    return launcher.start(Spec(role="timing", **spec), events), events


def following(launcher: Launcher, events: Events) -> Event:
    event = launcher.next(events, ANSWER_S)
    assert event is not None
    return event


def test_all_that_a_subject_has_said_and_printed_comes_before_its_end(
    launcher: Launcher, hosts: list[PlayedHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_ready(launcher, hosts[0])
    monkeypatch.setattr(module, "ends_for_memory", count().__next__)
    number, events = start(launcher)
    launcher.send(number, {"op": "stop"})
    channel, output_fd = hosts[0].files[PID + 1]
    assert channel.recv(4_096).endswith(b'{"op":"stop"}\n')
    os.write(output_fd, b"o" * 10_000 + b"the last words")
    for part in (b'{"event":"first_', b'call","seconds":1.0}\n{"event":', b'"saved"}\n'):
        channel.send(part)
    hosts[0].end_subject(PID + 1, -9)
    assert messages.read(following(launcher, events).fields) == messages.FirstCall(1.0)
    assert messages.read(following(launcher, events).fields) == messages.Saved()
    launcher.send(number, {"op": "turn"})  # one that has ended gets none
    end = following(launcher, events)
    assert (end.kind, end.fields["status"], end.fields["for_memory"]) == ("exit", -9, True)
    assert len(end.fields["tail"]) == 8_192 and end.fields["tail"].endswith("the last words")
    assert launcher.next(events, 0.0) is None


def pass_time(monkeypatch: pytest.MonkeyPatch, step_s: float) -> None:
    """Whenever somebody looks at the time, so much of it has passed."""
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=count(time.monotonic(), step_s).__next__))


def test_a_host_that_owes_an_answer_for_20_s_is_killed_and_another_one_started(
    launcher: Launcher, hosts: list[PlayedHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_ready(launcher, hosts[0])
    _, before = start(launcher)
    hosts[0].stands_still, looks = True, hosts[0].looks
    pass_time(monkeypatch, 3_600.0)
    _, events = start(launcher)
    assert hosts[0].is_killed and [one.fields["status"] for one in (*before, *events)] == [None, None]
    assert hosts[0].looks - looks > 40, "this process may have stood still itself: each look is half a second at most"
    pass_time(monkeypatch, 0.25)
    assert launcher.state().message.endswith("did not answer for 20 s; it is started again") and len(hosts) == 2
    assert launcher.state().devices == ("CPU:0",)
    make_ready(launcher, hosts[1])
    assert launcher.state().restarts == 1
    for _ in range(100):
        launcher.state()
    assert not hosts[1].is_killed, "it owes nothing"


WORDS = """Traceback (most recent call last):
  File "/home/somebody/lib/python3.12/site-packages/tensorflow/python/pywrap_tensorflow.py", line 73, in <module>
    from tensorflow.python._pywrap_tensorflow_internal import *
ImportError: /home/somebody/lib/libtensorflow.so: failed to map segment from shared object

Failed to load the native TensorFlow runtime.
"""


def test_the_reason_for_which_a_host_does_not_start_is_said_and_it_is_tried_again_minutes_later(
    launcher: Launcher, hosts: list[PlayedHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    os.write(hosts[0].output_fd, WORDS.encode())
    hosts[0].status = hosts[0].end() + 1
    assert not launcher.wait_ready(RUN_S, lambda: False)
    reason = "ImportError: libtensorflow.so: failed to map segment from shared object"
    assert launcher.state().message == f"the measuring process ended by itself with exit status 1: {reason}"
    assert launcher.state().state == "failed" and len(hosts) == 1
    _, events = start(launcher)
    assert following(launcher, events).fields == {"status": None}
    later_s = time.monotonic() + 121.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: later_s))
    launcher.state()
    later_s += 301.0
    assert launcher.state().message == "the measuring process did not start within 300 s" and hosts[1].is_killed
    later_s += 121.0
    launcher.state()
    make_ready(launcher, hosts[2])
