"""Measuring in this process, as the command line and Python do: by what a worker calls too, and into the same store."""

import contextlib
import signal
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from measure import admission, making
from measure.engine import deriving
from measure.engine.bench import clear_leftovers
from measure.engine.record import View
from measure.hosting import limits
from measure.making import Asked
from measure.pool.launcher import HOST_START_S, HostState, launcher
from measure.recording import Recording, alone
from measure.run import place
from measure.run.run import Run
from measure.store.store import Store
from workloads import functions
from workloads.functions import Given


class HostFailed(Exception):
    """The measuring process does not start."""


class Ended(NamedTuple):
    """A run as it ended. ``problem``: the sentence why it is not in the store."""

    run: Run
    problem: str = ""


class Local:
    """Measures one request after another in this process, and starts nothing before that.

    Within its ``with``, Ctrl-C and SIGTERM end what is measured with what there is, or raise KeyboardInterrupt before
    that, where this is the main thread, which alone hears them."""

    def __init__(
        self, name: str, say: Callable[[str], None] = lambda line: None, *, store: Store | None = None
    ) -> None:
        """``name``: who measures, as others on this machine are told; ``say``: takes lines on what happens."""
        clear_leftovers()
        self.store = store or Store()
        self._name, self._say = name, say
        self._launcher = launcher()
        self._recording: Recording | None = None
        self._ending = contextlib.ExitStack()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._ending.callback(signal.signal, number, signal.signal(number, self._interrupt))
        self._ending.callback(self.close)
        return self

    def __exit__(self, *_: Any) -> None:
        self._ending.close()  # the host first

    def _interrupt(self, *_: Any) -> None:
        if self._recording is None:
            raise KeyboardInterrupt
        self._recording.cancel()

    def close(self) -> None:
        """End the measuring process."""
        self._launcher.close()
        self.store.close()

    def host(self) -> HostState:
        """How the measuring process stands, once it is ready. Raises `HostFailed`."""
        is_ready = self._launcher.wait_ready(HOST_START_S, lambda: False)
        host = self._launcher.state()
        if not is_ready:
            raise HostFailed(f"nothing can be measured: {host.message}")
        return host

    def give(self, given: Given, seed: int = 0) -> str:
        """Have a function of a person's own executed in a process that is thrown away, once nobody measures, and make
        it a workload of this process; its slug. Raises `RequestError` with a sentence where it cannot be measured, and
        `HostFailed`."""
        self.host()
        with alone(self._name, lambda: False, self._say):
            return functions.add(deriving.derive(given, {}, seed, self._launcher))

    def measure(
        self, asked: Asked, look: Callable[[View], None], *, why: bool = False, continue_from: str | None = None
    ) -> Ended:
        """Measure, once nobody else on this machine does; ``look`` takes every view of it. ``why``: the strategies of a
        comparison are explained in the end; ``continue_from``: the sweep whose measurements are taken over. Raises
        `RequestError` where it cannot be measured, if that can be told before anything is started, and `HostFailed`."""
        self._recording = None
        admission.check(asked, (), limits())
        admission.check(asked, self.host().devices, limits())
        run_id = place.new_id()
        recording = Recording(self.store, run_id, is_new=True)

        def publish(view: View) -> None:
            recording.take(view)
            look(view)

        with alone(self._name, lambda: False, self._say):
            making.look(asked, self._launcher)
            earlier = making.taken_over(
                self.store, continue_from, asked, self._launcher.start_method, self._launcher.state().details
            )
            measuring = making.measuring(
                run_id, asked, self._launcher, publish, parent=continue_from, earlier=earlier,
                keep=recording.keep if why else None,
            )  # fmt: skip
            publish(measuring.view())
            self._recording = recording
            run = recording.measure(measuring)
        return Ended(run, recording.end(run, lambda: True))
