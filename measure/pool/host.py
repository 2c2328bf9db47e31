"""The host: imports TensorFlow once, runs no op, and forks a fresh subject for each request (Linux).

A fork of a process that has imported TensorFlow but started none of its threads runs its first op 0.1 s later, where
a fresh interpreter needs seconds. The host talks with its launcher over a socket, one message a packet: it says
``{"event": "ready"}``. A request ``{"op": "fork", "id"}`` comes with the channel of the subject and the pipe for what
that prints, and is answered by ``{"event": "done"}`` or ``{"event": "refused", "id", "reason"}``, and ``{"op": "kill",
"id"}`` by ``{"event": "done"}``. When a subject has ended, the host says
``{"event": "exit", "id", "status"}``. It ends when the socket closes, and takes every subject with it.

A subject leaves the host's loop before it does anything: TensorFlow records the Python stack with each eager op, and
with the loop's frames below it a small op took 1.2 times as long as in a plain script.
"""

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import sys
import time
import warnings
from typing import Any

import msgspec
import psutil

from measure.subject.lifeline import HOST_OOM_SCORE, SUBJECT_OOM_SCORE, adopt_orphans, die_with_parent, offer_memory
from measure.subject.messages import Channel, Spec
from measure.subject.subject import serve

# How long the host waits for processes that it has killed, and how often it looks at them.
_END_S = 1.0
_LOOK_S = 0.001
# The status of a subject that could not be made, or could not say how it ended (EX_SOFTWARE).
_BROKEN = 70


class Host:
    """One loop over requests and the ends of subjects."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._subjects: dict[int, int] = {}  # pid → number
        self._given_up: set[int] = set()  # processes that do not end

    def run(self, parent: int) -> Channel:
        """Serve until ``parent``, who started the host, has closed the socket or ended. Returns in subjects only."""
        ended, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self.end())
        # Not SIGKILL from here on: only the host can reach processes that a strategy has left behind.
        die_with_parent(parent, by=signal.SIGTERM)
        self._say(event="ready")
        sources: list[Any] = [self._requests, ended]
        while True:
            ready, _, _ = select.select(sources, [], [])
            if ended in ready:
                os.read(ended, 4_096)
                self._reap()
            if self._requests in ready and (channel := self._answer()) is not None:
                return channel

    def _say(self, **message: Any) -> None:
        try:
            self._requests.sendall(msgspec.json.encode(message))
        except OSError:  # nobody reads any more
            self.end()

    def _answer(self) -> Channel | None:
        data, fds, _, _ = socket.recv_fds(self._requests, 4_096, 2)
        if not data:
            self.end()
        request = msgspec.json.decode(data)
        if request["op"] == "fork":
            return self._fork(request["id"], *fds)
        for pid in [pid for pid, number in self._subjects.items() if number == request["id"]]:
            _kill_group(pid)
        self._say(event="done")
        return None

    def _fork(self, number: int, channel_fd: int, output_fd: int) -> Channel | None:
        """Make a subject; its channel in the subject, None in the host."""
        parent = os.getpid()
        try:
            with warnings.catch_warnings():
                # Python 3.12 warns about a fork beside threads. Those that exist here belong to libraries that are idle
                # (OpenBLAS, pyarrow's allocator); TensorFlow has started none yet. A soak test holds this.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
        except OSError as error:
            self._say(event="refused", id=number, reason=error.strerror)
        else:
            if pid == 0:
                try:
                    return _become_subject(parent, channel_fd, output_fd)
                except BaseException:
                    os._exit(_BROKEN)
            # Set from both sides, so that a kill that comes at once finds the group.
            with contextlib.suppress(OSError):
                os.setpgid(pid, pid)
            self._subjects[pid] = number
            self._say(event="done")
        os.close(channel_fd)
        os.close(output_fd)
        return None

    def _reap(self) -> None:
        for pid in [*self._subjects]:
            # Look before reaping: while the leader is a zombie its group's number cannot be given to anybody else.
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            _kill_group(pid)
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:  # somebody traces it
                continue
            number = self._subjects.pop(pid)
            self._kill_orphans()
            self._say(event="exit", id=number, status=os.waitstatus_to_exitcode(status))

    def _kill_orphans(self) -> None:
        """End what subjects left behind in process groups of their own: such orphans have become our children. One that
        the kernel does not end, since it waits for a device or is traced, is given up."""
        deadline = time.monotonic() + _END_S
        # Each generation that ends hands its own children over.
        while orphans := [pid for pid in _children() if pid not in self._subjects and pid not in self._given_up]:
            if time.monotonic() > deadline:
                self._given_up.update(orphans)
                return
            _end_all(orphans)

    def end(self) -> None:
        """End the host with all its descendants, which become its children when their parents end."""
        deadline = time.monotonic() + _END_S
        while (left := _children()) and time.monotonic() < deadline:
            _end_all(left)
        os._exit(0)


def _become_subject(parent: int, channel_fd: int, output_fd: int) -> Channel:
    """Keep nothing of the host's but its modules, in the process that has just been forked."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    die_with_parent(parent)
    offer_memory(SUBJECT_OOM_SCORE)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    os.dup2(channel_fd, 3)
    os.closerange(4, min(os.sysconf("SC_OPEN_MAX"), 65_536))
    return Channel(3)


def _children() -> list[int]:
    try:
        return [child.pid for child in psutil.Process().children()]
    except psutil.Error:
        return []


def _end_all(pids: list[int]) -> None:
    for pid in pids:
        _kill_group(pid)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    time.sleep(_LOOK_S)


def _kill_group(pid: int) -> None:
    """Kill a subject with the processes that it has made."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)


def main() -> None:
    # Who started this process: by now its parent may have ended, and another one have taken its place.
    parent = int(sys.argv[1])
    die_with_parent(parent)
    offer_memory(HOST_OOM_SCORE)
    adopt_orphans()
    requests = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    started = time.perf_counter()
    import tensorflow as tf

    # Modules that the first use of the profiler or of correctness would import in every subject.
    import tensorflow.tsl.profiler.protobuf.xplane_pb2

    with contextlib.suppress(OSError):
        os.write(1, f"host: TensorFlow {tf.__version__} imported in {time.perf_counter() - started:.1f} s\n".encode())
    # Garbage collection in subjects would otherwise walk over, and so copy, all that the host has imported.
    gc.collect()
    gc.freeze()
    host = Host(requests)
    channel = host.run(parent)
    # In a subject. `host` stays: sockets that are freed would close the numbers of files opened since.
    try:
        if (spec := channel.receive(Spec)) is not None:
            serve(spec, channel)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    finally:
        os._exit(_BROKEN)
