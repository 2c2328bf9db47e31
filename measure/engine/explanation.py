"""The explanation of a run: one subject for each strategy, as the last stage of a comparison, or as a job of its own in
the same queue for a run that has ended."""

import contextlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from measure.engine.bench import Bench, Keep, Settings
from measure.engine.record import View, changes
from measure.machine import environment
from measure.pool.clock import TimeIsUp
from measure.pool.dialogue import Cancelled, HostLost, Part, SubjectFailed
from measure.pool.launcher import Launcher
from measure.run import why
from measure.run.request import RequestError, again
from measure.run.run import Run
from measure.subject import messages

_AGAIN = "«Measure again here» gives a run that can be"


def explain(bench: Bench) -> None:
    """Find out what happens in a call of each strategy, one after another. A failure costs nothing else."""
    assert bench.keep is not None
    slugs = [slug for slug in bench.working() if why.explained(bench[slug].why) is None]
    for number, slug in enumerate(slugs, 1):
        folder = bench.folder / f"why_{number}"

        def attempt(slug: str = slug, folder: Path = folder) -> Part[messages.Reasons]:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(exist_ok=True)
            subject = bench.dialogues.start(bench.spec("why", slug, artifacts=str(folder)))
            return (yield from bench.step(slug, subject, messages.Reasons))

        bench.stages[slug] = "explaining"
        bench.say(f"explaining {slug}, {number} of {len(slugs)}")
        try:
            reasons = bench.dialogues.hold_one(attempt).why
        except SubjectFailed as failure:
            reasons = why.Explained(note=failure.error.message[: why.MOST_NOTE])
        bench.update(slug, why=reasons.beside(bench[slug].why))
        goes_on = bench.keep(slug, bench[slug].why, why.artifacts(folder))
        shutil.rmtree(folder, ignore_errors=True)
        bench.stages[slug] = "done"
        bench.say(result=True)
        if not goes_on:
            raise Cancelled


def refusal(run: Run, tensorflow: Mapping[str, Any] | None, *, imported: bool) -> str | None:
    """Return the reason why this run cannot be explained here, as a sentence; None if it can. It has to have been
    measured on this machine, with today's versions and settings. ``tensorflow``: what the host says of its devices."""
    if run.kind != "compare":
        return "only comparisons can be explained"
    if imported:
        return f"this run comes from elsewhere, and its code is not executed: {_AGAIN} explained"
    start_method = str(run.environment.get("start_method"))
    here = environment.collect(start_method=start_method, tensorflow=tensorflow, threads=run.request.threads)
    if other := changes(run, here):
        return f"this run cannot be explained here, where {other}: {_AGAIN}"
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
        super().__init__(run.id, again(run.request), launcher, publish, settings=settings, keep=keep)
        now = {item.strategy: item.code for item in self.record.measurements}
        for item in run.measurements:
            if not item.twin_of and item.code is not None and item.code != now.get(item.strategy):
                raise RequestError(f"the code of {item.strategy} has changed since it was measured: {_AGAIN} explained")
        self.record = run

    def run(self) -> Run:
        """Explain, and return the run with what was found, however it ended."""
        with self.opened(), contextlib.suppress(Cancelled, HostLost, TimeIsUp):
            explain(self)
        self.say("finished", result=True)
        return self.record
