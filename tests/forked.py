"""Commands of the project's whose hosts and fresh interpreters are forks of them, in place of new interpreters.

The command itself is a fork of a nursery (`tests.warm`), so that TensorFlow is imported for none of them. Their parents
and children are those that they always have.
"""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from measure.making import Making
from measure.pool import process
from tests.deadlines import RUN_S
from tests.warm import WarmPopen

_COMMAND = """
import runpy
from tests import forked
forked.hosts_are_forked()
runpy.run_module("measure", run_name="__main__", alter_sys=True)
"""


class ForkedPopen(subprocess.Popen[bytes]):
    """A fork of this process that runs the code of a command like ``[sys.executable, "-c", code, *arguments]``."""

    def __init__(self, command: list[str], *, stdin: Any, stdout: Any, env: dict[str, str], **_: Any) -> None:
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                for file, number in ((stdin, 0), (stdout, 1), (stdout, 2)):
                    os.dup2(file.fileno(), number)
                os.closerange(3, 256)
                os.environ.update(env)
                sys.argv = command[2:]
                exec(command[2], {"__name__": "__main__"})
            finally:
                os._exit(70)
        self.stdin = self.stdout = self.stderr = None
        # What `Popen` needs to wait for a process, and to end it.
        self.args, self.returncode, self._waitpid_lock, self._child_created = command, None, threading.Lock(), True


def hosts_are_forked() -> None:
    """From now on, of this process, which has imported TensorFlow and has not used it."""
    forking = SimpleNamespace(Popen=ForkedPopen, TimeoutExpired=subprocess.TimeoutExpired)
    # A step of a real subject has as long as other deadlines of tests.
    Making.SETTINGS = replace(Making.SETTINGS, timeout_floor_s=RUN_S)
    process.subprocess = forking  # type: ignore[attr-defined]


def start(*arguments: str, **more: Any) -> WarmPopen:
    """``python -m measure arguments…``; ``more`` is for `Popen`."""
    return WarmPopen([sys.executable, "-c", _COMMAND, *arguments], **more)
