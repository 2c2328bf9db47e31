"""The explanation of a run: one subject for each strategy, as the last stage of a comparison, or as a job of its own in
the same queue for a run that has ended."""

import contextlib
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from measure.engine.bench import Bench, Keep, Settings
from measure.engine.record import View
from measure.machine import environment
from measure.pool.clock import TimeIsUp
from measure.pool.dialogue import Cancelled, Dialogue, HostLost, Part, SubjectFailed
from measure.pool.launcher import Launcher
from measure.run import why
from measure.run.request import RequestError, again
from measure.run.run import Run
from measure.subject import messages

# What the reasons of a call depend on beside the machine.
_SAME = ("python", "tensorflow", "numpy", "onednn", "flags", "threads_intra_used", "threads_inter_used")
_SAME_ON_GPUS = ("gpu_driver", "cuda", "cudnn")
_AGAIN = "«Measure again here» gives a run that can be"


def explain(bench: Bench, keep: Keep) -> None:
    """Find out what happens in a call of each strategy, one after another. A failure costs nothing else."""
    slugs = [slug for slug in bench.working() if why.explained(bench[slug].why) is None]

    def dialogue(number: int, slug: str) -> Dialogue:
        bench.stages[slug] = "explaining"
        bench.say(f"explaining {slug}, {number + 1} of {len(slugs)}")
        folder = bench.folder / f"why_{number}"

        def attempt() -> Part[messages.Reasons]:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            subject = bench.dialogues.start(bench.spec("why", slug, artifacts=str(folder)))
            return (yield from bench.step("why", slug, subject, messages.Reasons))

        try:
            reasons = (yield from bench.dialogues.undisturbed(attempt)).why
        except SubjectFailed as failure:
            reasons = why.Explained(note=failure.error.message[: why.MOST_NOTE])
        bench.update(slug, why=reasons.beside(bench[slug].why))
        goes_on = keep(slug, bench[slug].why, why.artifacts(folder))
        shutil.rmtree(folder)
        bench.stages[slug] = "done"
        bench.say(result=True)
        if not goes_on:
            raise Cancelled

    bench.dialogues.hold(dialogue(number, slug) for number, slug in enumerate(slugs))


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
    for key in (*_SAME, *_SAME_ON_GPUS) if run.request.device.startswith("GPU") else _SAME:
        was, now = run.environment.get(key), here[key]
        if was is not None and now is not None and was != now:  # what either does not know says nothing
            then, today = environment.shown(key, was), environment.shown(key, now)
            differs = f"{environment.label(key)} was {then} when this run was measured, and is {today} now"
            return f"{differs}: {_AGAIN} explained"
    return None


class Explanation(Bench):
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
        request = again(run.request)
        super().__init__(run.id, request, launcher, publish, settings=settings)
        self._keep = keep
        now = {item.strategy: item.code for item in self.record.measurements}
        for item in run.measurements:
            if not item.twin_of and item.code is not None and item.code != now.get(item.strategy):
                raise RequestError(f"the code of {item.strategy} has changed since it was measured: {_AGAIN} explained")
        self.record = run

    def run(self) -> Run:
        """Explain, and return the run with what was found, however it ended."""
        with self.opened(), contextlib.suppress(Cancelled, HostLost, TimeIsUp):
            explain(self, self._keep)
        self.say("finished", result=True)
        return self.record
