"""The launcher of fresh interpreters: where `fork` is missing or unsafe, or TensorFlow is to be loaded otherwise."""

import contextlib
import itertools
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from measure.engine.launcher import Event, HostState, command, environment_of_subjects, find_devices
from measure.machine.control_groups import ends_for_memory
from measure.model.place import PROJECT
from measure.subject.lifeline import end_family, family_name
from measure.subject.messages import TAIL_BYTES, Lines, ProtocolError, Spec, disturbed, encode, refused

# For what a subject has written before its end.
_LAST_WORDS_S = 1.0


class FreshLauncher:
    """Subjects in fresh interpreters: where `fork` is missing or unsafe. Each imports TensorFlow itself.

    ``environment`` is what their environment has beside this process's. With ``finds_devices`` False it is ready at
    once, for what needs no list of devices.
    """

    start_method: Literal["fork", "fresh"] = "fresh"
    pid: int | None = None

    def __init__(self, environment: dict[str, str] | None = None, finds_devices: bool = True) -> None:
        self._environment = environment or {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._processes: dict[int, tuple[subprocess.Popen[bytes], dict[str, str]]] = {}  # and its family
        self._killed: set[int] = set()  # killed before their process existed
        self._state = HostState("starting", "finding devices")
        self._ready = threading.Event()
        if finds_devices:
            threading.Thread(target=self._find_devices, name="mapbench-devices", daemon=True).start()
        else:
            self._state = HostState("ready", "ready to measure")
            self._ready.set()

    def _find_devices(self) -> None:
        details = find_devices(self) or {}
        self._state = HostState("ready", "ready to measure", tuple(details.get("names") or ("CPU:0",)), details)
        self._ready.set()

    def state(self) -> HostState:
        return self._state

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> bool:
        """Wait until devices are known; False if that was cancelled, or took longer than ``timeout_s``."""
        end = time.monotonic() + timeout_s
        while not self._ready.wait(0.1):
            if cancelled() or time.monotonic() > end:
                return False
        return True

    def start(self, spec: Spec, events: "queue.Queue[Event]") -> int:
        number = next(self._numbers)
        threading.Thread(
            target=self._serve, args=(number, spec, events), name=f"mapbench-subject-{number}", daemon=True
        ).start()
        return number

    def _serve(self, number: int, spec: Spec, events: "queue.Queue[Event]") -> None:
        """Start one subject, pass on what it says, and report its end; the thread lives as long as the subject."""
        family = family_name()
        ends_before = ends_for_memory()
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    command("measure.subject.subject"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=output,
                    cwd=PROJECT,
                    env={**environment_of_subjects(), **self._environment, **family},
                    process_group=0,
                )
            except OSError as error:
                said = refused(f"the system refused another process ({error.strerror})")
                events.put(Event(number, "message", msgspec.to_builtins(said)))
                events.put(Event(number, "exit", {"status": None, "signal": None, "tail": ""}))
                return
            with self._lock:
                self._processes[number] = process, family
                killed = number in self._killed
            if killed:
                self.kill(number)
            events.put(Event(number, "started", {"pid": process.pid}))
            self.send(number, msgspec.to_builtins(spec))
            reader = threading.Thread(target=self._read, args=(number, process, events), daemon=True)
            reader.start()
            status = process.wait()
            end_family(family)  # what the subject has left behind may hold the pipe open for ever
            reader.join(_LAST_WORDS_S)
            with self._lock:
                del self._processes[number]
                self._killed.discard(number)
            output.seek(max(0, output.seek(0, os.SEEK_END) - TAIL_BYTES))
            events.put(
                Event(
                    number,
                    "exit",
                    {
                        "status": status if status >= 0 else None,
                        "signal": -status if status < 0 else None,
                        "for_memory": ends_for_memory() > ends_before,
                        "tail": output.read().decode(errors="replace"),
                    },
                )
            )

    def _read(self, number: int, process: "subprocess.Popen[bytes]", events: "queue.Queue[Event]") -> None:
        """Pass on what a subject says until it has closed its end."""
        lines = Lines()
        assert process.stdout is not None
        while data := os.read(process.stdout.fileno(), 2**18):
            try:
                messages = lines.feed(data)
            except ProtocolError as error:
                events.put(Event(number, "message", msgspec.to_builtins(disturbed(str(error)))))
                self.kill(number)
                return
            for message in messages:
                events.put(Event(number, "message", message))

    def send(self, subject: int, message: dict[str, Any]) -> None:
        with self._lock:
            process, _ = self._processes.get(subject, (None, {}))
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                process.stdin.write(encode(message))
                process.stdin.flush()

    def kill(self, subject: int) -> None:
        with self._lock:
            if subject not in self._processes:
                self._killed.add(subject)
                return
            process, family = self._processes[subject]
        process.kill()
        end_family(family)

    def close(self) -> None:
        with self._lock:
            subjects = list(self._processes)
        for subject in subjects:
            self.kill(subject)
