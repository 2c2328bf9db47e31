"""One way to start Python, to end it with all that it has started, and to say how a process has ended: for the worker,
hosts and scripts."""

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from measure.run.place import PROJECT

# The variable in the environment of a process by which all its descendants are found.
_FAMILY = "MAPBENCH_FAMILY"
# For a process, and for its family, to end once they are killed.
_END_S = 5.0
_POLL_S = 0.01
# The name of the thread that starts processes.
STARTER = "mapbench-starter"
# What signals mean, as predicates.
_MEANING = {
    "SIGKILL": "was killed from outside (a system does so when its memory runs out)",
    "SIGABRT": "aborted in native code",
    "SIGSEGV": "crashed in native code",
}
# What names the reason at the end of a traceback. TensorFlow writes advice below it.
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)(?::.*)?")
# Lines of TensorFlow's log under the severity with which it ends a process, and the stack below its last words.
_CHATTER = re.compile(r"\d{4}-\d\d-\d\d \S+: [IWE] |[IWE]\d{4} \d\d:\d\d:\d\d|\*\*\* Check failure|@ ")
# Lines that TensorFlow logs at any start, most of them where there is no GPU.
NOISE = re.compile(
    "^.*(All log messages before absl|oneDNN custom operations|binary is optimized|To enable the following|to cuInit|"
    "Could not find cuda|Unable to register cu|placer already).*\n?",
    re.MULTILINE,
)
_LONGEST_REASON = 300


@dataclass(frozen=True)
class Interpreter:
    """A Python: its ``executable``, the folder with the ``project``, ``folders`` from which a person's own code may
    import modules before those that are installed, and ``facts`` of its environment, where that is another one than
    this process'."""

    executable: str = sys.executable
    project: Path = PROJECT
    folders: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


HERE = Interpreter()  # this one


class Python:
    """A Python process in a process group of its own. Raises OSError where the system refuses another one."""

    def __init__(
        self,
        code: str,
        *arguments: str,
        stdin: Any,
        output: Any,
        environment: Mapping[str, str],
        folder: Path = PROJECT,
        interpreter: Interpreter = HERE,
    ) -> None:
        """``code`` can import the project, and finds ``arguments`` in `sys.argv`. ``stdin``, ``output``: files, the
        latter for all that is printed; ``environment``: beside this process's own."""
        self._family = secrets.token_hex(8)
        paths = filter(None, [str(interpreter.project), os.environ.get("PYTHONPATH", "")])
        starting = _starter(os.getpid()).submit(
            subprocess.Popen,
            # Not ``-m``, whose frames would lie below every call of a strategy: TensorFlow records the Python stack
            # with each eager op, and a small one takes 1.1 times as long.
            [interpreter.executable, "-c", code, *arguments],
            stdin=stdin,
            stdout=output,
            stderr=output,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment, _FAMILY: self._family},
            # No session of its own: Linux may share the processors among sessions, whatever the priorities within.
            process_group=0,
        )
        self._process = starting.result()
        self.pid: int = self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status, negative the signal that ended it; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        if self.status is None:
            kill_group(self.pid)

    def end(self, patience_s: float = 0.0) -> int | None:
        """End it, if it does not do so by itself within ``patience_s``, and its family, in whichever group and with
        whatever parent; its status, or None where the kernel does not end it."""
        for wait_s in (patience_s, _END_S):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(wait_s)
                break
            self.kill()
        # Until a look finds none, for one of them may be making another, and until those that were killed are gone: one
        # with much memory takes its time, and has no environment by then.
        killed: set[psutil.Process] = set()
        end_s = time.monotonic() + _END_S
        while time.monotonic() < end_s:
            members = [process for process in psutil.process_iter() if _is_member(process, self._family)]
            for process in members:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            killed.update(members)
            if not any(map(_is_alive, killed)):
                break
            time.sleep(_POLL_S)
        return self.status


def environment() -> dict[str, str]:
    """The variables of hosts and subjects. Native logs warn, whatever is set here: they say why a process crashed.
    OpenBLAS has no threads, which would be started before a fork, unless somebody has set them."""
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "1")
    return {"OPENBLAS_NUM_THREADS": threads, "TF_CPP_MIN_LOG_LEVEL": "1", "PYTHONUNBUFFERED": "1"}


def kill_group(pid: int) -> None:
    """Kill the process ``pid``, and its group where it leads one."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)


def signal_of(status: int) -> str:
    """The name of the signal that ended a process with this negative status."""
    return next((one.name for one in signal.Signals if one == -status), f"signal {-status}")


def how_ended(status: int | None, printed: str) -> str:
    """How a process has ended, as a predicate, with its last words where it failed: the line of its last exception, or
    else the last one that is none of a log."""
    if status is None:
        return "does not end, though it was killed"
    if status < 0:
        how = _MEANING.get(name := signal_of(status), f"was ended by {name}")
    else:
        how = f"ended by itself with exit status {status}"
    lines = [line for line in map(str.strip, NOISE.sub("", printed).splitlines()) if line and not _CHATTER.match(line)]
    if not lines or status in (0, -signal.SIGKILL):
        return how
    reason = next((line for line in reversed(lines) if _EXCEPTION.fullmatch(line)), lines[-1])
    return f"{how}: {reason if len(reason) <= _LONGEST_REASON else reason[: _LONGEST_REASON - 1] + '…'}"


@cache
def _starter(pid: int) -> ThreadPoolExecutor:
    """A thread of the process ``pid`` that lives as long as that does: the kernel ends a child that asks for it when
    the thread ends that has started it."""
    return ThreadPoolExecutor(1, STARTER)


def _is_member(process: psutil.Process, family: str) -> bool:
    try:
        return _is_alive(process) and process.environ().get(_FAMILY) == family
    except (psutil.Error, OSError):
        return False  # it has ended, or is somebody else's


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
