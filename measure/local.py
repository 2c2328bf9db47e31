"""Measuring in this process, as the command line and Python do: by what a worker calls too, and into the same store."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from measure import beginning
from measure.engine import deriving
from measure.engine.bench import Settings, clear_leftovers
from measure.engine.explanation import Keep
from measure.engine.machine_lock import machine_lock
from measure.engine.record import View
from measure.hosting import limits
from measure.making import Making, Publish
from measure.model import place
from measure.model.request import Request, RequestError
from measure.model.run import Run
from measure.pool.launcher import HOST_START_S, HostState, Launcher
from measure.pool.start_method import launcher
from measure.recording import Measuring, Recording, measured
from measure.store.store import Store
from measure.sweep.request import SweepRequest
from workloads import functions
from workloads.functions import Given

_WAIT_S = 0.2
# A run that cannot be written at its end is tried again so often; its reader has it all the same.
_LAST_TRIES = 3


# Makes a `Measuring` of a run's id, a function that takes its views, and one that keeps the reasons of strategies.
Make = Callable[[Making, str, Publish, Keep], Measuring]


class HostFailed(Exception):
    """The measuring process does not start."""


@dataclass(frozen=True)
class Ended:
    """A run as it ended. ``problem``: the sentence why it is not in the store; ``fault``: by a fault of Mapbench."""

    run: Run
    problem: str = ""
    fault: bool = False


class Local:
    """One process that measures what it is asked for, one after another. `cancel` may be called from any thread or
    signal handler."""

    def __init__(
        self,
        name: str,
        say: Callable[[str], None] = lambda line: None,
        *,
        store: Store | None = None,
        launcher_: Launcher | None = None,
        settings: Settings | None = None,
    ) -> None:
        """``name``: who measures, as others on this machine are told; ``say``: takes lines on what happens."""
        clear_leftovers()
        self.store = store or Store()
        self._name, self._say = name, say
        self._launcher = launcher_ or launcher(place.home() / "host.log")
        self._making = Making(self._launcher, settings)
        self._cancel: Callable[[], None] | None = None

    def host(self) -> HostState:
        """How the measuring process stands, once its devices are known. Raises `HostFailed`."""
        told = ""
        while not (host := self._launcher.state()).devices:
            if host.state == "failed":
                raise HostFailed(f"nothing can be measured: {host.message}")
            if host.state == "restarting" and host.message != told:
                told = host.message
                self._say(told)
            time.sleep(0.02)
        return host

    def give(self, given: Given, size: Mapping[str, int] | None = None, seed: int = 0) -> str:
        """Have a function of a person's own executed in a process that is thrown away, once nobody measures, and make
        it a workload of this process; its slug. Raises `RequestError` with a sentence where it cannot be measured."""
        deriving.check(given)
        self.host()
        with self._alone():
            return functions.add(deriving.derive(given, size or {}, seed, self._launcher))

    def check(self, asked: Request | SweepRequest) -> None:
        """Raise `RequestError` where a request cannot be measured here."""
        beginning.check(asked, self.host().devices, limits())

    def cancel(self) -> None:
        """End what is measured, with what there is."""
        if self._cancel is not None:  # beside a signal handler, which may have interrupted what this waits for
            threading.Thread(target=self._cancel, daemon=True).start()

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Have Ctrl-C and SIGTERM end what is measured, or raise KeyboardInterrupt before that, where this is the main
        thread, which alone hears them."""
        before: dict[signal.Signals, Any] = {}

        def end(*_: Any) -> None:
            if self._cancel is None:
                raise KeyboardInterrupt
            self.cancel()

        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before[number] = signal.signal(number, end)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def measure(self, make: Make, look: Callable[[View], None]) -> Ended:
        """Measure what ``make`` makes; ``look`` takes every view of it. Waits for whoever measures on this machine.
        Raises `RequestError` where it cannot be made."""
        self._cancel = None
        run_id = place.new_id()
        recording = Recording(self.store, run_id, is_new=True)
        problems: list[str] = []

        def publish(view: View) -> None:
            recording.take(view)
            if recording.problem and recording.problem not in problems:
                problems.append(recording.problem)
                self._say(f"warning: the store cannot be written, which is tried again: {recording.problem}")
            look(view)

        with self._alone():
            measuring = make(self._making, run_id, publish, recording.keep)
            if lacking := beginning.missing(measuring.request, self._launcher.state().devices):
                raise RequestError(lacking)
            publish(measuring.view())
            self._cancel = measuring.cancel
            try:
                with recording.recording(measuring):
                    run, fault = measured(measuring)
            finally:
                self._cancel = lambda: None  # who interrupts its writing changes nothing
        tries = iter(range(_LAST_TRIES))
        is_kept = recording.end(run, lambda: next(tries, None) is None)
        return Ended(run, "" if is_kept else recording.problem or "it was deleted meanwhile", fault)

    def close(self) -> None:
        """End the measuring process."""
        self._launcher.close()
        self.store.close()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the machine, and have the host ready. Raises `RequestError` where that cannot be."""
        with machine_lock(self._name, lambda: False, self._wait):
            if not self._launcher.wait_ready(HOST_START_S, lambda: False):
                raise RequestError(f"nothing can be measured now: {self._launcher.state().message}")
            yield

    def _wait(self, who: str) -> None:
        self._say(f"waiting for {who}, which is measuring on this machine")
        time.sleep(_WAIT_S)
