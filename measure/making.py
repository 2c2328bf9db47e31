"""The making of what measures: for a request that somebody asks, and for one that waited for a server that is gone."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from measure import beginning
from measure.admission import Visitor
from measure.claims.tries import Tries, chosen
from measure.engine import explanation
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.launcher import Launcher
from measure.job import Job, Measuring
from measure.jobs import Jobs, Snapshot
from measure.model.asked import Asked
from measure.model.request import Request, RequestError, parse, raw_of
from measure.model.run import Point, Run
from measure.sweep.request import SweepRequest, of_run
from measure.sweep.sweep import Sweep
from strategies.script import ScriptError
from workloads.discovery import DiscoveryError


class Making:
    """Makes jobs with one launcher. All methods raise `RequestError` where that cannot be."""

    def __init__(self, jobs: Jobs, launcher: Launcher, settings: Settings) -> None:
        self._jobs, self._launcher, self._settings = jobs, launcher, settings

    def comparison(self, run_id: str, request: Request, parent: str | None, asked: Asked) -> Job:
        keep = partial(self._jobs.writer.keep_artifacts, run_id) if asked.why else None
        make = partial(Comparison, run_id, request, keep=keep, parent=parent)
        return self._job(run_id, make, beginning.run_bound_s(request.budget_s), asked)

    def sweep(
        self, run_id: str, request: SweepRequest, parent: str | None, asked: Asked, taken: Sequence[Point]
    ) -> Job:
        make = partial(Sweep, run_id, request, parent=parent, taken=taken)
        return self._job(run_id, make, beginning.sweep_bound_s(request.base.budget_s), asked)

    def claims(self, run_id: str, ids: Sequence[str], parent: str | None, asked: Asked) -> Job:
        make = partial(Tries, run_id, ids, parent=parent)
        return self._job(run_id, make, beginning.claims_bound_s(chosen(ids)), asked)

    def again(self, run: Run, asked: Asked, find: Callable[[str], Snapshot | None]) -> Job:
        """The job that a run waits for. ``find``: finds the sweep that is to be continued."""
        if run.request.own is not msgspec.UNSET:
            raise RequestError("a function of a person's own is not kept longer than its server: give it again")
        if run.kind == "claims":
            return self.claims(run.id, run.claims or (), run.parent, asked)
        if run.kind == "compare":
            return self.comparison(run.id, parse(raw_of(run.request)), run.parent, asked)
        request, before = of_run(run), asked.continue_from
        taken = beginning.taken_over(request, before, find(before), self._launcher) if before else []
        return self.sweep(run.id, request, run.parent, asked, taken)

    def explanation(self, job_id: str, snapshot: Snapshot | None, visitor: Visitor, waits_as: Asked | None) -> Job:
        """The job that explains a run that has ended."""
        if snapshot is None or snapshot.state != "finished":
            raise RequestError("a run can be explained when it has ended")
        run = snapshot.run
        if refusal := explanation.refusal(run, self._launcher.state().details, imported=snapshot.imported):
            raise RequestError(refusal)
        bound_s = beginning.run_bound_s(run.request.budget_s)
        settings, publish = replace(self._settings, bound_s=bound_s), partial(self._jobs.take, job_id)
        try:
            keep = partial(self._jobs.keep_reasons, run.id)
            measuring = explanation.Explanation(run, self._launcher, publish, keep, settings=settings)
        except (ScriptError, DiscoveryError) as error:
            raise RequestError(str(error)) from error
        return Job(measuring, measuring.view(), visitor, None, bound_s, explains=run.id, saved=True, waits_as=waits_as)

    def _job(self, run_id: str, make: Callable[..., Measuring], bound_s: float, asked: Asked) -> Job:
        settings, publish = replace(self._settings, bound_s=bound_s), partial(self._jobs.take, run_id)
        try:
            measuring = make(launcher=self._launcher, publish=publish, settings=settings)
        except (ScriptError, DiscoveryError) as error:
            raise RequestError(str(error)) from error
        return Job(measuring, measuring.view(), bound_s=bound_s, waits_as=asked)
