"""Measuring in this process, as the command line and Python do: by what a worker calls too, and into the same store."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from measure.admission import check
from measure.engine import deriving
from measure.engine.bench import Settings, clear_leftovers
from measure.engine.record import View
from measure.hosting import limits
from measure.making import Asked, Making
from measure.pool.launcher import HostState, launcher
from measure.recording import Recording, machine
from measure.run import place
from measure.run.request import RequestError
from measure.run.run import Run
from measure.store.store import Store
from workloads import functions
from workloads.functions import Given


class HostFailed(Exception):
    """The measuring process does not start."""


@dataclass(frozen=True)
class Ended:
    """A run as it ended. ``problem``: the sentence why it is not in the store; ``fault``: by a fault of Mapbench."""

    run: Run
    problem: str = ""
    fault: bool = False


class Local:
    """Measures one request after another in this process. `cancel` may be called from any thread or signal handler."""

    def __init__(
        self,
        name: str,
        say: Callable[[str], None] = lambda line: None,
        *,
        store: Store | None = None,
        settings: Settings | None = None,
    ) -> None:
        """``name``: who measures, as others on this machine are told; ``say``: takes lines on what happens."""
        clear_leftovers()
        self.store = store or Store()
        self._name, self._say = name, say
        self._launcher = launcher()
        self._making = Making(self._launcher, self.store, settings)
        self._recording: Recording | None = None

    def host(self) -> HostState:
        """How the measuring process stands, once its devices are known. Raises `HostFailed`."""
        while not (host := self._launcher.state()).devices:
            if host.state in ("failed", "absent"):
                raise HostFailed(f"nothing can be measured: {host.message}")
            if host.state == "restarting":
                self._say(host.message)
            time.sleep(0.02)
        return host

    def give(self, given: Given, size: Mapping[str, int] | None = None, seed: int = 0) -> str:
        """Have a function of a person's own executed in a process that is thrown away, once nobody measures, and make
        it a workload of this process; its slug. Raises `RequestError` with a sentence where it cannot be measured."""
        self.host()
        with self._alone():
            return functions.add(deriving.derive(given, size or {}, seed, self._launcher))

    def check(self, asked: Asked) -> None:
        """Raise `RequestError` where a request cannot be measured here, and `HostFailed`."""
        check(asked, self.host().devices, limits())

    def cancel(self) -> None:
        """End what is measured, with what there is."""
        if self._recording is not None:
            self._recording.cancel()

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Have Ctrl-C and SIGTERM end what is measured, or raise KeyboardInterrupt before that, where this is the main
        thread, which alone hears them."""
        before: dict[signal.Signals, Any] = {}

        def end(*_: Any) -> None:
            if self._recording is None:
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

    def measure(
        self, asked: Asked, look: Callable[[View], None], *, why: bool = False, continue_from: str | None = None
    ) -> Ended:
        """Measure; ``look`` takes every view of it. Waits for whoever measures on this machine. ``why``: the strategies
        of a comparison are explained in the end; ``continue_from``: the sweep whose measurements are taken over. Raises
        `RequestError` where it cannot be measured."""
        run_id = place.new_id()
        self._recording = None
        recording = Recording(self.store, run_id, is_new=True)

        def publish(view: View) -> None:
            recording.take(view)
            if recording.problem:
                self._say(f"warning: the store cannot be written, which is tried again: {recording.problem}")
            look(view)

        with self._alone():
            self._making.look(asked)
            keep = recording.keep if why else None
            measuring = self._making.measuring(
                run_id, asked, publish, continue_from, keep=keep, continue_from=continue_from
            )
            publish(measuring.view())
            self._recording = recording  # from here on an interrupt ends it with what there is
            run, fault = recording.measure(measuring)
        is_kept = recording.end(run, lambda: True)
        return Ended(run, "" if is_kept else recording.problem or "it was deleted meanwhile", fault)

    def close(self) -> None:
        """End the measuring process."""
        self._launcher.close()
        self.store.close()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the machine, and have the host ready. Raises `RequestError` where that cannot be."""
        with machine(self._name, self._launcher, lambda: False, self._say) as refusal:
            if refusal:
                raise RequestError(refusal)
            yield
