"""The explanation of a run that has ended: a job in the same queue, one subject for each strategy, nothing else."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from measure.engine import explaining
from measure.engine.bench import Bench, Job, Settings
from measure.engine.clock import TimeIsUp
from measure.engine.dialogue import Cancelled, HostLost
from measure.engine.explaining import Keep
from measure.engine.launcher import Launcher
from measure.engine.record import View
from measure.machine import environment
from measure.model.request import RequestError, parse, raw_of
from measure.model.run import Run

# What the reasons of a call depend on beside the machine.
_SAME = ("python", "tensorflow", "numpy", "onednn", "flags", "threads_intra_used", "threads_inter_used")
_SAME_ON_GPUS = ("gpu_driver", "cuda", "cudnn")
_LABELS = {fact.key: fact.label for fact in environment.FACTS}
_AGAIN = "«Measure again here» gives a run that can be"


def refusal(run: Run, tensorflow: Mapping[str, Any] | None, *, imported: bool) -> str | None:
    """Return the reason why this run cannot be explained here, as a sentence; None if it can. It has to have been
    measured on this machine, with today's versions and settings. ``tensorflow``: what the host says of its devices."""
    if run.kind != "compare":
        return "only comparisons can be explained"
    if imported:
        return f"this run comes from elsewhere, and its code is not executed: {_AGAIN} explained"
    here = environment.collect(start_method="", tensorflow=tensorflow, threads=run.request.threads)
    if environment.machine(run.environment) != environment.machine(here):
        return f"this run was measured on another machine: {_AGAIN} explained"
    keys = (*_SAME, *_SAME_ON_GPUS) if run.request.device.startswith("GPU") else _SAME
    for key in keys:
        was, now = run.environment.get(key), here[key]
        if was is not None and now is not None and was != now:  # what either does not know says nothing
            then, today = (dict(environment.describe({key: value}))[_LABELS[key]] for value in (was, now))
            differs = f"{_LABELS[key]}: {then} then, {today} now"
            return f"this run was measured with something else ({differs}): {_AGAIN} explained"
    return None


class Explanation(Job):
    """Explains the strategies of a run that it does not know the reasons of; nothing else in the run changes."""

    def __init__(
        self,
        run: Run,
        launcher: Launcher,
        publish: Callable[[View], None],
        keep: Keep,
        *,
        settings: Settings | None = None,
    ) -> None:
        """Raises `RequestError` where the code of the strategies is no longer what was measured."""
        request = parse(raw_of(run.request))
        super().__init__(Bench(run.id, request, launcher, publish, settings=settings))
        self._keep = keep
        now = {item.strategy: item.code for item in self.bench.record.items()}
        for item in run.measurements:
            if not item.twin_of and item.code is not None and item.code != now.get(item.strategy):
                raise RequestError(f"the code of {item.strategy} has changed since it was measured: {_AGAIN} explained")
        self.bench.record.take(run)

    def run(self) -> Run:
        """Explain, and return the run with what was found, however it ended."""
        bench = self.bench
        with bench.opened(), contextlib.suppress(Cancelled, HostLost, TimeIsUp):
            explaining.explain(bench, self._keep)
        bench.say("finished", result=True)
        return bench.record.run
