"""The host: imports TensorFlow once, runs no op, and forks a fresh subject for each request (Linux). Where a fork is
not safe (macOS), it imports nothing and starts interpreters, each of which needs seconds for its first op.

It says ``{"event": "ready"}`` over the socket to its launcher, one JSON object a line. A request is one byte with the
channel of a subject and the pipe for what that prints, and is answered by ``{"event": "started", "pid"}`` or
``{"event": "refused", "reason"}``. When a subject has ended, the host says ``{"event": "exit", "pid", "status"}``. It
ends when the socket closes, and takes every subject with it.

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
from collections.abc import Collection
from typing import Any

import psutil

from measure.pool.process import kill_group
from measure.subject.lifeline import HOST_OOM_SCORE, SUBJECT_OOM_SCORE, adopt_orphans, die_with_parent, offer_memory
from measure.subject.messages import Channel, Spec, encode
from measure.subject.subject import import_from, serve

# How long the host waits for processes that it has killed, and how often it looks at them.
_END_S, _LOOK_S = 1.0, 0.001
# The status of a subject that could not be made, or could not say how it ended (EX_SOFTWARE).
_BROKEN = 70


class Host:
    """One loop over requests and the ends of subjects."""

    def __init__(self, requests: socket.socket, start_method: str) -> None:
        self._requests, self._is_fresh = requests, start_method == "fresh"
        self._subjects: set[int] = set()

    def run(self, parent: int) -> Channel:
        """Serve until ``parent``, who started the host, has closed the socket or ended. Returns in subjects only."""
        ended, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        # Not SIGKILL from here on: only the host can reach processes that a strategy has left behind.
        die_with_parent(parent, by=signal.SIGTERM)
        self._say(event="ready")
        sources: list[Any] = [self._requests, ended]
        while True:
            ready, _, _ = select.select(sources, [], [])
            if ended in ready:
                os.read(ended, 4_096)
                self._reap()
            if self._requests in ready:
                request, files, _, _ = socket.recv_fds(self._requests, 1, 2)
                if not request:
                    self._end()
                if (channel := self._start(*files)) is not None:
                    return channel

    def _say(self, **message: Any) -> None:
        try:
            self._requests.sendall(encode(message))
        except OSError:  # nobody reads any more
            self._end()

    def _start(self, channel_fd: int, output_fd: int) -> Channel | None:
        """Make a subject; its channel in the subject, None in the host."""
        parent = os.getpid()
        try:
            pid = _spawn(channel_fd, output_fd) if self._is_fresh else os.fork()
        except OSError as error:
            self._say(event="refused", reason=error.strerror)
        else:
            if pid == 0:
                try:
                    return _become_subject(parent, channel_fd, output_fd)
                except BaseException:
                    os._exit(_BROKEN)
            # Set from both sides, so that a kill that comes at once finds the group.
            with contextlib.suppress(OSError):
                os.setpgid(pid, pid)
            self._subjects.add(pid)
            self._say(event="started", pid=pid)
        os.close(channel_fd)
        os.close(output_fd)
        return None

    def _reap(self) -> None:
        """Tell of subjects that have ended, and end what they have left behind: in their groups, and in those of its
        own, which has become a child of the host."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if pid in self._subjects:
                    self._subjects.remove(pid)
                    with contextlib.suppress(OSError):
                        os.killpg(pid, signal.SIGKILL)
                    _end_children(but=self._subjects)
                    self._say(event="exit", pid=pid, status=os.waitstatus_to_exitcode(status))

    def _end(self) -> None:
        _end_children()
        os._exit(0)


def _end_children(but: Collection[int] = ()) -> None:
    """End all children of this process ``but`` some, and theirs, which become its own when their parents end. One that
    the kernel does not end, since it waits for a device or is traced, is waited for in vain."""
    end_s = time.monotonic() + _END_S
    while time.monotonic() < end_s:
        left = [child.pid for child in psutil.Process().children() if child.pid not in but]
        if not left:
            break
        for pid in left:
            kill_group(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(_LOOK_S)


def _spawn(channel_fd: int, output_fd: int) -> int:
    """Start a subject in an interpreter of its own; the number of its process."""
    code = "from measure.subject.subject import main; main()"
    files = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate((channel_fd, output_fd, output_fd))]
    command = [sys.executable, "-c", code, str(os.getpid()), *sys.argv[3:]]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=files, setpgroup=0)


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


def main() -> None:
    # Who started this process: by now its parent may have ended, and another one have taken its place.
    parent = int(sys.argv[1])
    die_with_parent(parent)
    offer_memory(HOST_OOM_SCORE)
    adopt_orphans()
    requests = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if sys.argv[2] == "fork":
        import tensorflow

        # Modules that the first use of the profiler or of correctness would import in every subject.
        import tensorflow.tsl.profiler.protobuf.xplane_pb2  # noqa: F401

        # Garbage collection in subjects would otherwise walk over, and so copy, all that the host has imported.
        gc.collect()
        gc.freeze()
    import_from(sys.argv[3:])  # only now, when the project's own modules and TensorFlow are there
    host = Host(requests, sys.argv[2])
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
