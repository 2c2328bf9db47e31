"""The making of what measures: of a request that somebody asks, and of work that waits in the store."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from measure import beginning
from measure.claims.tries import Tries, chosen
from measure.engine import deriving, explanation
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.explanation import Keep
from measure.engine.record import View
from measure.model.job import Job
from measure.model.request import Request, RequestError, again
from measure.model.run import Point, Run
from measure.pool.launcher import Launcher
from measure.recording import Measuring
from measure.store.store import Kept
from measure.sweep.request import SweepRequest, of_run
from measure.sweep.sweep import Sweep
from strategies.script import ScriptError
from workloads import functions, places
from workloads.discovery import DiscoveryError

Publish = Callable[[View], None]


class Making:
    """Makes what measures with one launcher. All methods raise `RequestError` where that cannot be."""

    SETTINGS = Settings()

    def __init__(self, launcher: Launcher, settings: Settings | None = None, *, executes: bool = True) -> None:
        """``executes``: functions of a person's own are looked at, at sizes at which that was not done yet: the
        launcher is ready then, and the machine nobody else's."""
        self._launcher, self._executes = launcher, executes
        self._settings = replace(settings or self.SETTINGS, most_bytes=beginning.most_bytes())

    def comparison(
        self, run_id: str, request: Request, publish: Publish, parent: str | None = None, keep: Keep | None = None
    ) -> Measuring:
        """``keep``: takes the reasons of strategies; without it none are looked for."""
        self._look(request)
        make = partial(Comparison, run_id, request, keep=keep, parent=parent)
        return self._made(make, publish, beginning.bound_s(request, why=keep is not None))

    def sweep(
        self, run_id: str, request: SweepRequest, publish: Publish, parent: str | None = None,
        taken: Sequence[Point] = (),
    ) -> Measuring:  # fmt: skip
        """``taken``: points of an earlier sweep that are not measured again."""
        self._look(*map(request.comparison, request.points()))
        make = partial(Sweep, run_id, request, parent=parent, taken=taken)
        return self._made(make, publish, beginning.bound_s(request))

    def claims(self, run_id: str, ids: Sequence[str], publish: Publish, parent: str | None = None) -> Measuring:
        return self._made(partial(Tries, run_id, ids, parent=parent), publish, beginning.bound_s(chosen(ids)))

    def taken_over(self, request: SweepRequest, run_id: str | None, find: Callable[[str], Kept | None]) -> list[Point]:
        """The points of a sweep that is to be continued; none where there is none. ``find``: finds it."""
        return beginning.taken_over(request, run_id, find(run_id), self._launcher) if run_id else []

    def waiting(
        self, run: Run, job: Job, publish: Publish, keep: Keep, find: Callable[[str], Kept | None]
    ) -> Measuring:
        """The measuring of a run that waits in the store. ``find``: finds the sweep that is to be continued."""
        _know_function(run)
        if run.kind == "claims":
            return self.claims(run.id, run.claims or (), publish, run.parent)
        if run.kind == "compare":
            return self.comparison(run.id, again(run.request), publish, run.parent, keep if job.why else None)
        sweep = of_run(run)
        return self.sweep(run.id, sweep, publish, run.parent, self.taken_over(sweep, job.continue_from, find))

    def explanation(self, run: Run, publish: Publish, keep: Keep, *, imported: bool) -> Measuring:
        """The explanation of a run that has ended."""
        if refusal := explanation.refusal(run, self._launcher.state().details, imported=imported):
            raise RequestError(refusal)
        _know_function(run)
        make = partial(_explanation, run, keep)
        return self._made(make, publish, beginning.explanation_bound_s(again(run.request)))

    def _look(self, *requests: Request) -> None:
        for request in requests if self._executes else ():
            deriving.look(self._launcher, request)

    def _made(self, make: Callable[..., Measuring], publish: Publish, bound_s: float) -> Measuring:
        try:
            return make(launcher=self._launcher, publish=publish, settings=replace(self._settings, bound_s=bound_s))
        except (ScriptError, DiscoveryError) as error:
            raise RequestError(str(error)) from error


def _know_function(run: Run) -> None:
    """Make a workload of the function of a person's own that a run was asked for, which was given here: what comes from
    elsewhere is never queued."""
    if run.request.own is msgspec.UNSET:
        return
    if places.hosted():
        raise RequestError("no code of a person's own is executed on a hosted server")
    functions.add(run.request.own)


def _explanation(run: Run, keep: Keep, *, launcher: Launcher, publish: Publish, settings: Settings) -> Measuring:
    return explanation.Explanation(run, launcher, publish, keep, settings=settings)
