"""The host: imports TensorFlow once, runs no op, and forks a fresh subject for each request.

A fork of a process that has imported TensorFlow but started none of its threads runs its first op 0.1 s later, where
a fresh interpreter needs seconds. The host speaks `measure.subject.messages` on stdin and stdout; whatever else is
printed in it goes to stderr, its log. It ends when stdin closes, and takes every subject with it.

A subject leaves the host's loop before it does anything: TensorFlow records the Python stack with each eager op, and
with the loop's frames below it a small op took 1.2 times as long as in a plain script.
"""

import contextlib
import gc
import os
import resource
import selectors
import signal
import socket
import sys
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import msgspec

from measure.machine.control_groups import ends_for_memory
from measure.subject.lifeline import (
    HOST_OOM_SCORE,
    SUBJECT_OOM_SCORE,
    adopt_orphans,
    children,
    die_with_parent,
    offer_memory,
)
from measure.subject.messages import TAIL_BYTES, Channel, Lines, ProtocolError, Spec, disturbed, encode, refused
from measure.subject.subject import serve

# The longest line of a subject: what it measured, or an error with its detail.
_LONGEST_OF_SUBJECT = 2**22
# How long the host waits for processes that it has killed, and how often it looks at them.
_END_S = 1.0
_LOOK_S = 0.001
# The status of a subject that could not be made, or could not say how it ended (EX_SOFTWARE).
_BROKEN = 70
# Reads from a pipe of a subject that has ended; bounded, since a process that it left behind may go on writing.
_MOST_DRAINS = 1_024


@dataclass
class _Child:
    """A subject as its host sees it."""

    id: int
    pid: int
    channel: socket.socket
    output_fd: int
    ends_for_memory: int  # of processes like it, when it was made
    lines: Lines = field(default_factory=lambda: Lines(_LONGEST_OF_SUBJECT))
    tail: bytearray = field(default_factory=bytearray)


class Host:
    """One loop over stdin, the subjects' channels, what they print, and their ends."""

    def __init__(self, stdin_fd: int, stdout_fd: int) -> None:
        self._stdin_fd, self._stdout_fd = stdin_fd, stdout_fd
        self._children: dict[int, _Child] = {}
        self._given_up: set[int] = set()  # processes that do not end
        self._lines = Lines()
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def run(self, parent: int) -> tuple[Spec, Channel]:
        """Serve until stdin closes or ``parent``, who started the host, has ended. Returns in subjects only, with what
        each is to be."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self.end())
        # Not SIGKILL from here on: only the host can reach processes that a strategy has left behind.
        die_with_parent(parent, by=signal.SIGTERM)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._selector.register(self._stdin_fd, selectors.EVENT_READ, self._on_stdin)
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._on_child_signal)
        self._send({"event": "ready", "pid": os.getpid()})
        while True:
            for key, _ in self._selector.select():
                # An earlier one of these may have ended the subject that this one belongs to.
                if key in self._selector.get_map().values() and (born := key.data()) is not None:
                    return born

    def _send(self, message: dict[str, Any]) -> None:
        data = memoryview(encode(message))
        try:
            while data:
                data = data[os.write(self._stdout_fd, data) :]
        except OSError:  # nobody reads any more
            self.end()

    def _on_stdin(self) -> tuple[Spec, Channel] | None:
        data = os.read(self._stdin_fd, 2**16)
        if not data:
            self.end()
        for message in self._lines.feed(data):
            if message["op"] == "ping":
                self._send({"event": "pong"})
            elif message["op"] == "fork":
                spec = msgspec.convert(message["spec"], Spec)
                if (channel := self._fork(message["id"])) is not None:
                    return spec, channel
            elif message["id"] in self._children:
                child = self._children[message["id"]]
                if message["op"] == "kill":
                    _kill_group(child.pid)
                else:
                    # A subject that has died or closed its end is reported by its exit.
                    with contextlib.suppress(OSError):
                        child.channel.sendall(encode(message["message"]))
        return None

    def end(self) -> None:
        """End the host with all its descendants."""
        for child in self._children.values():
            _kill_group(child.pid)
        # Descendants of those that end become children of the host.
        deadline = time.monotonic() + _END_S
        while (left := children(os.getpid())) and time.monotonic() < deadline:
            for pid in left:
                _kill_group(pid)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        os._exit(0)

    def _fork(self, subject_id: int) -> Channel | None:
        """Make a subject; its end of the channel in the subject, None in the host."""
        ours, theirs = socket.socketpair()
        output_read, output_write = os.pipe()
        parent, ends_before = os.getpid(), ends_for_memory()  # a subject may end before anything after the fork is done
        with warnings.catch_warnings():
            # Python 3.12 warns about a fork beside threads. Those that exist here belong to libraries that are idle
            # (OpenBLAS, pyarrow's allocator); TensorFlow has started none yet. A soak test holds this.
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                pid = os.fork()
            except OSError as error:
                for end in (ours, theirs):
                    end.close()
                os.close(output_read)
                os.close(output_write)
                reason = f"the system refused another process ({error.strerror})"
                self._send({"id": subject_id, "event": "message", "message": refused(reason)})
                self._send({"id": subject_id, "event": "exit", "status": None, "signal": None, "tail": ""})
                return None
        if pid == 0:
            try:
                return _become_subject(parent, theirs, output_write)
            except BaseException:
                os._exit(_BROKEN)
        # Set from both sides, so that a kill that comes at once finds the group.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        theirs.close()
        os.close(output_write)
        child = _Child(subject_id, pid, ours, output_read, ends_before)
        self._children[subject_id] = child
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._on_channel(child))
        self._selector.register(output_read, selectors.EVENT_READ, lambda: self._on_output(child))
        self._send({"id": subject_id, "event": "started", "pid": pid})
        return None

    def _on_channel(self, child: _Child) -> None:
        try:
            data = child.channel.recv(2**18)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(child.channel)
            return
        try:
            messages = child.lines.feed(data)
        except ProtocolError as error:
            # A strategy has written into its subject's channel: nothing it says can be trusted any more.
            self._selector.unregister(child.channel)
            self._send({"id": child.id, "event": "message", "message": disturbed(str(error))})
            _kill_group(child.pid)
            return
        for message in messages:
            self._send({"id": child.id, "event": "message", "message": message})

    def _on_output(self, child: _Child) -> None:
        try:
            data = os.read(child.output_fd, 2**16)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(child.output_fd)
            return
        child.tail += data
        del child.tail[:-TAIL_BYTES]

    def _on_child_signal(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_read, 4_096):
                pass
        for child in list(self._children.values()):
            # Look before reaping: while the leader is a zombie its group's number cannot be given to anybody else.
            ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                continue
            _kill_group(child.pid)
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid == 0:  # somebody traces it
                continue
            self._kill_orphans()
            self._drain(child)
            del self._children[child.id]
            if child.tail:
                _note(f"subject {child.id} said:\n{child.tail.decode(errors='replace')}")
            self._send(
                {
                    "id": child.id,
                    "event": "exit",
                    "status": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                    "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
                    "for_memory": ends_for_memory() > child.ends_for_memory,
                    "tail": child.tail.decode(errors="replace"),
                }
            )

    def _kill_orphans(self) -> None:
        """End what subjects left behind in process groups of their own: such orphans have become our children. One that
        the kernel does not end, since it waits for a device or is traced, is given up."""
        known = {child.pid for child in self._children.values()} | self._given_up
        deadline = time.monotonic() + _END_S
        # Each generation that ends hands its own children over.
        while orphans := [pid for pid in children(os.getpid()) if pid not in known]:
            if time.monotonic() > deadline:
                _note(f"processes that subjects left behind do not end, though they were killed: {orphans}")
                self._given_up.update(orphans)
                return
            for pid in orphans:
                _kill_group(pid)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(_LOOK_S)

    def _drain(self, child: _Child) -> None:
        """Take in what the subject wrote before it ended; a process of its own making may still hold the pipes."""
        for source, take in ((child.channel, self._on_channel), (child.output_fd, self._on_output)):
            for _ in range(_MOST_DRAINS):
                if source not in self._sources() or not _readable(source):
                    break
                take(child)
            if source in self._sources():
                self._selector.unregister(source)
        child.channel.close()
        os.close(child.output_fd)

    def _sources(self) -> set[Any]:
        return {key.fileobj for key in self._selector.get_map().values()}


def _become_subject(parent: int, channel: socket.socket, output_fd: int) -> Channel:
    """Keep nothing of the host's but its modules, in the process that has just been forked."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    die_with_parent(parent)
    offer_memory(SUBJECT_OOM_SCORE)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    channel_fd = channel.detach()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    kept = os.dup2(channel_fd, 3) if channel_fd != 3 else 3
    os.closerange(4, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 65_536 else 65_536)
    return Channel(kept, kept)


def _note(text: str) -> None:
    """A line in the log; where nobody reads it any more, the host goes on to its own end."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _readable(source: Any) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(source, selectors.EVENT_READ)
        return bool(selector.select(timeout=0))


def _kill_group(pid: int) -> None:
    """Kill a subject with the processes that it has made."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)


def main() -> None:
    # Who started this process: by now its parent may have ended, and another one have taken its place.
    parent = int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid()
    die_with_parent(parent)
    offer_memory(HOST_OOM_SCORE)
    adopt_orphans()
    stdin_fd, stdout_fd = os.dup(0), os.dup(1)
    os.set_inheritable(stdin_fd, False)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    # NumPy's matrix products run on one thread: the pool of OpenBLAS would be started before the fork.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    started = time.perf_counter()
    import tensorflow as tf

    # Modules that the first use of the profiler or of correctness would import in every subject.
    import tensorflow.tsl.profiler.protobuf.xplane_pb2

    _note(f"host: TensorFlow {tf.__version__} imported in {time.perf_counter() - started:.1f} s")
    # Garbage collection in subjects would otherwise walk over, and so copy, all that the host has imported.
    gc.collect()
    gc.freeze()
    host = Host(stdin_fd, stdout_fd)
    spec, channel = host.run(parent)
    # In a subject. `host` stays: sockets that are freed would close the numbers of files opened since.
    try:
        serve(spec, channel)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    finally:
        os._exit(_BROKEN)
