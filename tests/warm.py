"""A nursery: a process that has imported TensorFlow and NumPy and nothing else, and is forked for what would be a fresh
interpreter, which needs seconds of a processor for the import.

A fork of one that has imported TensorFlow, but has started none of its threads, is as good: no device is there, no op
has run, and nothing of the project's is imported. What is different: variables that are read by the import are the
nursery's (so there is one for each value of `_READ_BY_IMPORT`), its parent is the nursery, one frame more lies below
its code, and /proc shows the environment of the nursery. A nursery ends with the process that it was made for.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.deadlines import RUN_S

_READ_BY_IMPORT = "TF_ENABLE_ONEDNN_OPTS"
_MOST_REQUEST = 2**17
_asking = threading.Lock()

# A request comes with three files for the fork's streams, and a socket for its number and, when it has ended, its
# status. The fork leaves the loop, so that its code runs, fails and ends as the program of an interpreter does.
_PROGRAM = """
import gc, json, os, selectors, signal, socket, sys
import numpy, tensorflow, tensorflow.tsl.profiler.protobuf.xplane_pb2
gc.collect()
gc.freeze()
nursery, asking, asked = os.getpid(), socket.socket(fileno=os.dup(0)), None
os.dup2(os.open(os.devnull, os.O_RDWR), 0)
selector = selectors.DefaultSelector()
selector.register(asking, selectors.EVENT_READ)
while asked is None:
    for key, _ in selector.select():
        if key.data:
            child, answer = key.data
            selector.unregister(key.fileobj)
            os.close(key.fileobj)
            try:
                os.write(answer, str(os.waitpid(child, 0)[1]).encode())
            except OSError:
                pass
            os.close(answer)
            continue
        request, fds, _, _ = socket.recv_fds(asking, 2**17, 4)
        if not request:
            sys.exit()
        *streams, answer = fds
        if not (child := os.fork()):
            asked = json.loads(request)
            break
        for fd in streams:
            os.close(fd)
        os.write(answer, str(child).encode())
        selector.register(os.pidfd_open(child), selectors.EVENT_READ, (child, answer))
for key in list(selector.get_map().values()):
    if key.data:
        os.close(key.fileobj)
        os.close(key.data[1])
selector.close()
asking.close()
for number, fd in enumerate(streams):
    os.dup2(fd, number)
for fd in fds:
    os.close(fd)
signal.signal(signal.SIGINT, signal.default_int_handler)
if asked["session"]:
    os.setsid()
elif asked["group"] >= 0:
    os.setpgid(0, asked["group"])
os.chdir(asked["folder"])
os.environ.clear()
os.environ.update(asked["environment"])
if not asked["isolated"]:
    sys.path[:0] = ["", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
# Who is told by whom it was started is told the nursery, which has.
sys.argv = ["-c", *(str(nursery) if argument == asked["parent"] else argument for argument in asked["arguments"])]
sys.stdin = open(0, closefd=False)
exec(compile(asked["code"], "<string>", "exec"), {"__name__": "__main__"})
"""


@cache
def _nursery(of_import: str) -> socket.socket:
    """A connection that keeps a nursery alive for as long as this process lives."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", _READ_BY_IMPORT)}
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "1", "OPENBLAS_NUM_THREADS": "1"}
    if of_import:
        environment[_READ_BY_IMPORT] = of_import
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        nursery = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM],
            env=environment,
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    nursery.returncode = 0  # nobody waits for it
    return ours


class WarmPopen(subprocess.Popen):
    """`subprocess.Popen` of ``[sys.executable, "-c", code, *arguments]``, or with ``-I`` before ``-c``."""

    def _execute_child(self, *arguments: Any) -> None:
        args, _, _, _, _, cwd, env, *_ = arguments
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite = arguments[10:16]
        isolated = args[1] == "-I"
        dash_c, code, *rest = args[1 + isolated :]
        assert dash_c == "-c"
        environment = dict(os.environ if env is None else env)
        request = json.dumps(
            {
                "code": code,
                "arguments": list(map(str, rest)),
                "folder": str(cwd or os.getcwd()),
                "environment": environment,
                "isolated": isolated,
                "session": bool(arguments[21]),
                "group": arguments[22],
                "parent": str(os.getpid()) if code.endswith("import main; main()") else "",
            }
        ).encode()
        assert len(request) < _MOST_REQUEST
        self._connection, theirs_of_it = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        streams = [ours if theirs == -1 else theirs for ours, theirs in enumerate((p2cread, c2pwrite, errwrite))]
        with theirs_of_it, _asking:
            nursery = _nursery(environment.get(_READ_BY_IMPORT, ""))
            socket.send_fds(nursery, [request], [*streams, theirs_of_it.fileno()])
        self._child_created = True
        self.pid = int(self._connection.recv(32))
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        try:
            status = self._connection.recv(32, socket.MSG_DONTWAIT if wait_flags else 0)
        except BlockingIOError:
            return 0, 0
        self._connection.close()
        return self.pid, int(status) if status else signal.SIGKILL

    def _internal_poll(self, _deadstate: int | None = None, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(False):
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


# In place of `subprocess` in a launcher: its hosts or fresh interpreters come from the nursery.
WARM = SimpleNamespace(Popen=WarmPopen, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)


def run(
    code: str,
    *arguments: str | Path,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    isolated: bool = False,
    timeout_s: float = RUN_S,
) -> subprocess.CompletedProcess[str]:
    """What ``python -c code arguments…`` would say and do in ``folder``, with TensorFlow imported before."""
    command = [sys.executable, *(["-I"] if isolated else []), "-c", code, *map(str, arguments)]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with WarmPopen(command, cwd=folder, env=environment, text=True, **pipes) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess([code], process.returncode, out, err)
