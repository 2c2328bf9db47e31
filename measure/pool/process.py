"""One way to start Python and to end it with all that it has started: for hosts, fresh subjects and scripts."""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from measure.model.place import PROJECT

# The variable in the environment of a process by which all its descendants are found.
_FAMILY = "MAPBENCH_FAMILY"
# For a process, and for its family, to end once they are killed.
_END_S = 5.0


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
    ) -> None:
        """``code`` can import the project, and finds ``arguments`` in `sys.argv`. ``stdin``, ``output``: files, the
        latter for all that is printed; ``environment``: beside this process's own."""
        self._family = secrets.token_hex(8)
        paths = filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")])
        self._process = (
            _starter(os.getpid())
            .submit(
                subprocess.Popen,
                # Not ``-m``, whose frames would lie below every call of a strategy: TensorFlow records the Python stack
                # with each eager op, and a small one takes 1.1 times as long.
                [sys.executable, "-c", code, *arguments],
                stdin=stdin,
                stdout=output,
                stderr=output,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment, _FAMILY: self._family},
                # No session of its own: Linux may share the processors among sessions, whatever the priorities within.
                process_group=0,
            )
            .result()
        )
        self.pid: int = self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status, negative the signal that ended it; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        for kill in (os.killpg, os.kill):
            if self.status is None:
                with contextlib.suppress(OSError):
                    kill(self.pid, signal.SIGKILL)

    def end(self, patience_s: float = 0.0) -> int | None:
        """End it, if it does not do so by itself within ``patience_s``, and its family, in whichever group and with
        whatever parent; its status, or None where the kernel does not end it."""
        for wait_s in (patience_s, _END_S):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(wait_s)
                break
            self.kill()
        # Until a look finds none: one of them may be making another.
        end_s = time.monotonic() + _END_S
        while (members := _members(self._family)) and time.monotonic() < end_s:
            for process in members:
                with contextlib.suppress(psutil.Error):
                    process.kill()
        return self.status


@cache
def _starter(pid: int) -> ThreadPoolExecutor:
    """A thread of the process ``pid`` that lives as long as that does: the kernel ends a child that asks for it when
    the thread ends that has started it."""
    return ThreadPoolExecutor(1, "mapbench-starter")


def _members(family: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _is_member(process, family)]


def _is_member(process: psutil.Process, family: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(_FAMILY) == family
    except (psutil.Error, OSError):
        return False  # it has ended, or is somebody else's
