"""Hosts that stand still, do not start, cannot write or end, as their launcher sees it: a test plays them by hand."""

import contextlib
import errno
import json
import os
import queue
import socket
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from measure.pool import clock, host_launcher, pool
from measure.pool.dialogue import Dialogue, Dialogues, HostLost
from measure.pool.host_launcher import HostLauncher
from measure.pool.launcher import Event
from measure.subject import messages
from measure.subject.messages import Spec, encode
from tests.deadlines import ANSWER_S, RUN_S


class PlayedHost:
    """In place of `Python`: a host that answers, unless it ``stands_still``, and says and does what a test wants."""

    def __init__(self, *_: Any, stdin: socket.socket, output: Any, **__: Any) -> None:
        self.pid, self.status = 0, 0
        self.stands_still = self.is_killed = False
        self.output_fd, self.socket = os.dup(output.fileno()), stdin.dup()
        self.socket.setblocking(False)
        self.asked: list[dict[str, Any]] = []
        self.files: dict[int, tuple[socket.socket, int]] = {}

    def say(self, **message: Any) -> None:
        self.socket.send(json.dumps(message).encode())

    def answer(self) -> None:
        """Answer all requests; a subject that looks for devices does so at once."""
        while not self.stands_still:
            try:
                data, fds, _, _ = socket.recv_fds(self.socket, 4_096, 2)
            except OSError:
                return
            self.asked.append(request := json.loads(data))
            self.say(event="done")
            if request["op"] == "fork":
                self.files[request["id"]] = socket.socket(fileno=fds[0]), fds[1]
                if len(self.asked) == 1:
                    self.tell(request["id"], {"event": "devices", "names": ["CPU:0"]})
                    self.end_subject(request["id"])

    def tell(self, number: int, message: dict[str, Any]) -> None:
        self.files[number][0].send(encode(message))

    def end_subject(self, number: int, status: int = 0) -> None:
        channel, output_fd = self.files.pop(number)
        channel.close()
        os.close(output_fd)
        self.say(event="exit", id=number, status=status)

    def ends(self, status: int, words: str = "") -> None:
        """It ends by itself."""
        os.write(self.output_fd, words.encode())
        self.status = status
        self.end()

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

    def look(launcher: HostLauncher, timeout_s: float) -> None:
        if started:
            started[-1].answer()
        looks(launcher, 0.0)

    looks = HostLauncher._look
    monkeypatch.setattr(HostLauncher, "_look", look)
    monkeypatch.setattr(host_launcher, "Python", start)
    return started


@pytest.fixture
def launcher(hosts: list[PlayedHost], tmp_path: Path) -> Iterator[HostLauncher]:
    launcher = HostLauncher(tmp_path / "home" / "host.log")
    yield launcher
    launcher.close()


def make_ready(launcher: HostLauncher, host: PlayedHost) -> None:
    host.say(event="ready")
    assert launcher.wait_ready(ANSWER_S, lambda: False) and launcher.state().devices == ("CPU:0",)


def start(launcher: HostLauncher, **spec: Any) -> tuple[int, "queue.Queue[Event]"]:
    """A subject, and what becomes of it."""
    events: queue.Queue[Event] = queue.Queue()
    return launcher.start(Spec(role="timing", **spec), events), events


def following(launcher: HostLauncher, events: "queue.Queue[Event]") -> Event:
    event = launcher.next(events, ANSWER_S)
    assert event is not None
    return event


def test_all_that_a_subject_has_said_and_printed_comes_before_its_end(
    launcher: HostLauncher, hosts: list[PlayedHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_ready(launcher, hosts[0])
    monkeypatch.setattr(pool, "ends_for_memory", count().__next__)
    number, events = start(launcher)
    launcher.send(number, {"op": "stop"})
    assert hosts[0].files[number][0].recv(4_096).endswith(b'{"op":"stop"}\n')
    os.write(hosts[0].files[number][1], b"o" * 10_000 + b"the last words")
    hosts[0].tell(number, {"event": "first_call", "seconds": 1.0})
    hosts[0].end_subject(number, -9)
    assert messages.read(following(launcher, events).fields) == messages.FirstCall(1.0)
    launcher.send(number, {"op": "turn"})  # one that has ended gets none
    end = following(launcher, events)
    assert (end.kind, end.fields["status"], end.fields["signal"], end.fields["for_memory"]) == ("exit", None, 9, True)
    assert len(end.fields["tail"]) == 8_192 and end.fields["tail"].endswith("the last words")
    assert launcher.next(events, 0.0) is None


def test_a_subject_that_writes_without_end_into_its_channel_is_killed(
    launcher: HostLauncher, hosts: list[PlayedHost]
) -> None:
    make_ready(launcher, hosts[0])
    number, events = start(launcher)
    while events.empty():
        hosts[0].files[number][0].send(b"x" * 2**16)
        launcher.state()
    assert messages.read(following(launcher, events).fields) == messages.disturbed(
        "a line is longer than 4194304 bytes"
    )
    launcher.state()
    assert hosts[0].asked[-1] == {"op": "kill", "id": number}


def test_a_fork_that_the_system_refuses_is_the_failure_of_its_subject(
    launcher: HostLauncher, hosts: list[PlayedHost]
) -> None:
    make_ready(launcher, hosts[0])
    hosts[0].stands_still = True
    hosts[0].say(event="refused", id=2, reason="no room")
    number, events = start(launcher)
    assert number == 2
    assert messages.read(following(launcher, events).fields) == messages.refused("no room")
    assert following(launcher, events).kind == "exit"


# --- standing still --------------------------------------------------------------------------------------------------


def pass_time(monkeypatch: pytest.MonkeyPatch, step_s: float) -> None:
    """Whenever somebody looks at the time, so much of it has passed."""
    clock = SimpleNamespace(monotonic=count(time.monotonic(), step_s).__next__)
    monkeypatch.setattr(host_launcher, "time", clock)
    monkeypatch.setattr(pool, "time", clock)


def test_a_host_that_owes_an_answer_for_20_s_is_killed_and_another_one_started(
    launcher: HostLauncher, hosts: list[PlayedHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_ready(launcher, hosts[0])
    number, _ = start(launcher)
    hosts[0].stands_still = True
    pass_time(monkeypatch, 3_600.0)
    launcher.kill(number)
    for _ in range(40):
        launcher.state()
    assert not hosts[0].is_killed, "this process stood still itself: each look is half a second at most"
    launcher.state()
    assert hosts[0].is_killed and len(hosts) == 1
    assert launcher.state().message.endswith("did not answer for 20 s; it is started again") and len(hosts) == 2
    assert launcher.state().devices == ("CPU:0",)
    pass_time(monkeypatch, 0.25)
    make_ready(launcher, hosts[1])
    assert launcher.state().restarts == 1
    for _ in range(100):
        launcher.state()
    assert not hosts[1].is_killed, "it owes nothing"


def test_nobody_waits_for_a_host_that_takes_in_nothing_for_longer_than_that(
    launcher: HostLauncher, hosts: list[PlayedHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its socket is full, and so is that of a subject that it has not forked yet."""
    make_ready(launcher, hosts[0])
    hosts[0].stands_still = True
    for module in (host_launcher, pool):
        monkeypatch.setattr(module, "SILENT_S", 0.001)
    for number in range(500):
        launcher.kill(number)
    number, events = start(launcher, script="x" * 2**21)
    assert following(launcher, events) == Event(number, "lost", {}) and hosts[0].is_killed


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_run_goes_on_with_another_host_where_one_is_lost_and_ends_where_there_is_none(
    launcher: HostLauncher, hosts: list[PlayedHost], monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    make_ready(launcher, hosts[0])
    now = [0.0]
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: now[0]))
    dialogues, seconds = Dialogues(launcher), []
    begin = launcher.start

    def start_late(spec: Spec, events: "queue.Queue[Event]") -> int:
        now[0] += 20.0 if len(hosts) == 1 else 0.0
        return begin(spec, events)

    def attempt() -> Any:
        subject = dialogues.start(Spec(role="timing"))
        if len(hosts) == 1:
            hosts[0].ends(-9)
        else:
            hosts[1].tell(subject, {"event": "first_call", "seconds": 2.0})
        return (yield from dialogues.until(subject, messages.FirstCall, RUN_S))

    def dialogue() -> Dialogue:
        seconds.append((yield from dialogues.undisturbed(attempt)).seconds)

    wait = launcher.wait_ready

    def wait_ready(*arguments: Any) -> bool:
        hosts[1].say(event="ready")
        now[0] += 60.0
        return wait(*arguments) and comes_back

    monkeypatch.setattr(launcher, "wait_ready", wait_ready)
    monkeypatch.setattr(launcher, "start", start_late)
    with contextlib.nullcontext() if comes_back else pytest.raises(HostLost):
        dialogues.hold([dialogue()])
    assert seconds == ([2.0] if comes_back else []) and len(hosts) == 2
    assert now == [80.0] and (dialogues.now_s == 0.0 or not comes_back), "no budget passes meanwhile"


# --- hosts that cannot start -----------------------------------------------------------------------------------------

WORDS = """Traceback (most recent call last):
  File "/home/somebody/lib/python3.12/site-packages/tensorflow/python/pywrap_tensorflow.py", line 73, in <module>
    from tensorflow.python._pywrap_tensorflow_internal import *
ImportError: /home/somebody/lib/libtensorflow.so: failed to map segment from shared object

Failed to load the native TensorFlow runtime.
"""


def test_the_reason_for_which_a_host_does_not_start_is_said_and_it_is_tried_again_minutes_later(
    launcher: HostLauncher, hosts: list[PlayedHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts[0].ends(1, WORDS)
    assert not launcher.wait_ready(RUN_S, lambda: False)
    reason = "ImportError: libtensorflow.so: failed to map segment from shared object"
    assert launcher.state().message == f"the measuring process ended with exit status 1: {reason}"
    assert launcher.state().state == "failed" and len(hosts) == 1
    _, events = start(launcher)
    assert following(launcher, events).kind == "lost"
    later_s = time.monotonic() + 121.0
    monkeypatch.setattr(host_launcher, "time", SimpleNamespace(monotonic=lambda: later_s))
    launcher.state()
    make_ready(launcher, hosts[1])


def test_a_host_starts_when_it_is_needed_and_says_why_the_system_refuses_it(
    hosts: list[PlayedHost], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EAGAIN, "no more processes")

    monkeypatch.setattr(host_launcher, "Python", refuse)
    launcher = HostLauncher(tmp_path / "host.log", delay_s=3_600.0)
    assert launcher.state().state == "starting"
    assert not launcher.wait_ready(ANSWER_S, lambda: False)
    assert launcher.state().state == "failed" and "could not be started: [Errno 11]" in launcher.state().message


# --- the log ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["{}/file/host.log", "/proc/host.log", "{}/host.log"])
def test_the_last_words_of_a_host_need_no_log_and_that_does_not_grow_without_end(
    hosts: list[PlayedHost], tmp_path: Path, path: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "host.log").write_bytes(b"o" * 2**21)
    for words in ("the first\n", "the second\n"):
        launcher = HostLauncher(Path(path.format(tmp_path)))
        hosts[-1].ends(1, words)
        assert launcher.state().message.endswith(words.strip())
        launcher.close()
    assert (tmp_path / "host.log").stat().st_size in (2**21, len("the first\nthe second\n"))


def test_a_full_disk_keeps_no_host_from_its_work(hosts: list[PlayedHost]) -> None:
    launcher = HostLauncher(Path("/dev/full"))
    make_ready(launcher, hosts[0])
    launcher.close()
