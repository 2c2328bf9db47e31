"""Measuring in this process, as the command line and Python do: by what a worker calls too, and into the same store."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

from measure import admission, making
from measure.engine import deriving
from measure.engine.bench import Keep, clear_leftovers
from measure.engine.machine_lock import machine_lock
from measure.engine.record import View
from measure.hosting import limits
from measure.judge.lines import line_of
from measure.making import Asked, Recording
from measure.output import sweep_table
from measure.pool.launcher import HOST_START_S, HostState, Launcher, launcher
from measure.pool.process import HERE, Interpreter
from measure.run import place, text
from measure.run.run import Request, Run
from measure.store.store import Store
from workloads import functions
from workloads.functions import Given


class HostFailed(Exception):
    """The measuring process does not start."""


class Local:
    """Measures one request after another in this process, and starts nothing before that.

    Within its ``with``, Ctrl-C and SIGTERM end what is measured with what there is, or raise KeyboardInterrupt before
    that, where this is the main thread, which alone hears them."""

    def __init__(
        self, name: str, say: Callable[[str], None] = lambda line: None, *, store: Store | None = None,
        interpreter: Interpreter = HERE,
    ) -> None:  # fmt: skip
        """``name``: who measures, as others on this machine are told; ``say``: takes lines on what happens;
        ``interpreter``: of the processes that measure."""
        clear_leftovers()
        self.store = store or Store()
        self._name, self._say = name, say
        self.launcher = launcher(interpreter)
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
        self.launcher.close()
        self.store.close()

    def host(self, of: Launcher | None = None) -> HostState:
        """How the measuring process stands, once it is ready. ``of``: the launcher, where there is another one. Raises
        `HostFailed`."""
        of = of or self.launcher
        is_ready = of.wait_ready(HOST_START_S, lambda: False)
        host = of.state()
        if not is_ready:
            raise HostFailed(f"nothing can be measured: {host.message}")
        return host

    def beside(self, interpreter: Interpreter) -> Launcher:
        """Another launcher, for a part of the same jobs, which is ended with this one. Raises `HostFailed`."""
        self.launcher.state()  # so that both load TensorFlow at the same time
        another = launcher(interpreter, self.launcher)
        self._ending.callback(another.close)
        self.host(another)
        return another

    def give(self, given: Given, seed: int = 0, by: Launcher | None = None) -> str:
        """Have a function of a person's own executed in a process that is thrown away, once nobody measures, and make
        it a workload of this process; its slug. ``by``: another launcher. Raises `RequestError` with a sentence where
        it cannot be measured, and `HostFailed`."""
        self.host()
        with machine_lock(self._name, lambda: False, self._say):
            return functions.add(deriving.derive(given, {}, seed, by or self.launcher))

    def measure(
        self, asked: Asked, look: Callable[[View], None], *, why: bool = False, continue_from: str | None = None
    ) -> tuple[Run, str]:
        """Measure, once nobody else on this machine does; ``look`` takes every view of it. The run as it ended, and the
        sentence why it is not in the store, where it is not. ``why``: the strategies of a comparison are explained in
        the end; ``continue_from``: the sweep whose measurements are taken over. Raises `RequestError` where it cannot
        be measured, if that can be told before anything is started, and `HostFailed`."""
        admission.check(asked, (), limits())
        asked = admission.within(asked, limits()) if isinstance(asked, Request) else asked

        def make(run_id: str, publish: making.Publish, keep: Keep) -> making.Measuring:
            return making.made(
                self.store, run_id, asked, self.launcher, publish, parent=continue_from, continue_from=continue_from,
                keep=keep if why else None,
            )  # fmt: skip

        return self.record(make, look)

    def record(
        self, make: Callable[[str, making.Publish, Keep], making.Measuring], look: Callable[[View], None]
    ) -> tuple[Run, str]:
        """Measure by what ``make`` makes, as `measure` does."""
        self._recording = None
        self.host()
        run_id = place.new_id()
        recording = Recording(self.store, run_id, is_new=True)

        def publish(view: View) -> None:
            recording.take(view)
            look(view)

        with machine_lock(self._name, lambda: False, self._say):
            measuring = make(run_id, publish, recording.keep)
            publish(measuring.view())
            self._recording = recording
            run = recording.measure(measuring)
        return run, recording.end(run, lambda: True)


# --- a run as it is followed in a terminal ---------------------------------------------------------------------------


def say(line: str) -> None:
    """A line on stderr; where nobody reads it any more, measuring goes on."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


class Following:
    """Says on stderr what happens, once each, unless it is ``quiet``."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._lines: set[str] = set()

    def say(self, line: str) -> None:
        if not self._quiet and line not in self._lines:
            self._lines.add(line)
            say(line)

    def look(self, view: View) -> None:
        """Say how a run stands, and what has become of strategies: at a sweep's points where that is no latency."""
        if view.forecast_s:
            most = f", at most {text.seconds(view.max_forecast_s)}" if view.max_forecast_s > view.forecast_s else ""
            self.say(f"forecast: about {text.seconds(view.forecast_s)}{most}")
        if view.message and view.message != "finished":
            self.say(view.message)
        for item in view.run.measurements:
            if item.twin_of is None and item.outcome != "not_run":
                self.say(f"  {item.strategy}: {text.outcome(item.outcome, item.reason)}")
        for point in view.run.points:
            for item in point.measurements:
                if item.outcome not in ("ok", "not_run"):
                    words = f"{item.strategy}: {text.outcome(item.outcome, item.reason)}"
                    self.say(f"  {sweep_table.where(point)}: {words}")


def warnings(run: Run) -> Iterator[str]:
    """Yield the warnings of the run and of each strategy; what is said at several points of a sweep, once."""
    yield from (warning.message for warning in run.warnings)
    lines = set()
    for item in (*run.measurements, *(item for point in run.points for item in point.measurements)):
        for warning in item.warnings:
            line = line_of(item.strategy, run.axes)
            if warning.code != "chosen" and (line, warning.code) not in lines:
                lines.add((line, warning.code))
                yield f"{item.strategy}: {warning.message}"
