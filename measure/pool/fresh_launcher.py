"""The launcher of fresh interpreters: where `fork` is missing or unsafe, or TensorFlow is to be loaded otherwise."""

import io
import os
import signal
import socket
from typing import Literal

from measure.pool.launcher import HostState
from measure.pool.pool import Pool, Subject, environment
from measure.pool.process import Python

_LOOK_S = 0.05  # at processes, for their end


class FreshLauncher(Pool):
    """Subjects each of which imports TensorFlow itself.

    ``variables`` are what their environment has beside this process's. With ``finds_devices`` False it is ready at
    once, for what needs no list of devices.
    """

    start_method: Literal["fork", "fresh"] = "fresh"

    def __init__(self, variables: dict[str, str] | None = None, finds_devices: bool = True) -> None:
        super().__init__(HostState("starting", "finding devices"))
        self._variables = variables or {}
        self._processes: dict[int, Python] = {}
        if finds_devices:
            self.ask_for_devices()
        else:
            self._state = HostState("ready", "ready to measure")

    def _spawn(self, subject: Subject, channel: socket.socket, output: io.FileIO) -> None:
        code, parent = "from measure.subject.subject import main; main()", str(os.getpid())
        variables = environment() | self._variables
        self._processes[subject.number] = Python(code, parent, stdin=channel, output=output, environment=variables)

    def _look(self, timeout_s: float) -> None:
        super()._look(min(timeout_s, _LOOK_S))
        for number, process in [*self._processes.items()]:
            if process.status is not None:
                self._reap(number)

    def _reap(self, number: int) -> None:
        process = self._processes.pop(number)
        status = process.end()
        self.finish(self.subjects[number], -signal.SIGKILL if status is None else status)

    def kill(self, number: int) -> None:
        if number in self._processes:
            self._processes[number].kill()

    def close(self) -> None:
        with self.lock:
            for number in [*self._processes]:
                self._reap(number)
