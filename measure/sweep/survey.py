"""Measuring at the sites of a sweep. Who is measured where is decided by `grid`, `doubts` and `refining`."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed

from msgspec.structs import replace

from measure.engine.bench import Settings
from measure.engine.dialogue import Dialogues
from measure.engine.launcher import Launcher
from measure.engine.record import View
from measure.model.request import Request
from measure.model.run import Error
from measure.sweep import omissions
from measure.sweep.comparison import PointComparison
from measure.sweep.draft import Draft
from measure.sweep.evidence import with_spread
from measure.sweep.lines import line_of
from measure.sweep.needs import Plan
from measure.sweep.request import SweepRequest
from measure.sweep.sites import Site, left_out, strategies_at


@dataclass(frozen=True)
class Comparisons:
    """Makes comparisons, with what all of a sweep share."""

    run_id: str
    launcher: Launcher
    dialogues: Dialogues
    settings: Settings

    def make(self, request: Request, publish: Callable[[View], None]) -> PointComparison:
        return PointComparison(self.run_id, request, self.launcher, publish, self.dialogues, self.settings)


class Survey:
    """Measures the sites of a ``draft``, as long as the time budget lasts. Its seconds are counted from `begin` on."""

    def __init__(self, request: SweepRequest, plan: Plan, comparisons: Comparisons, draft: Draft) -> None:
        self.request, self.comparisons, self.draft = request, comparisons, draft
        self.started_s = self._end_s = 0.0
        self.stopped = False
        self._plan = plan
        # Lines that have been run once more with oneDNN off: what is found of them holds at all points.
        self._suspected: set[str] = set()

    def begin(self) -> None:
        self.started_s = time.monotonic()
        self._end_s = self.comparisons.dialogues.now_s + self.request.base.budget_s
        self.draft.begin(self.started_s)

    @property
    def left_s(self) -> float:
        """Seconds that are left of the time budget and of the run's time; none where a person has stopped it."""
        if self.stopped:
            return 0.0
        dialogues = self.comparisons.dialogues
        return min(self._end_s - dialogues.now_s, dialogues.clock.left_s)

    def left_out(self, site: Site) -> dict[str, Error]:
        """Strategies that are not run at a site, with the reason."""
        return left_out(site, self.draft.sites, self.request, self._plan)

    def comparison(self, site: Site) -> PointComparison:
        """The comparison of a site, which need not have begun."""
        if site.comparison is None:
            request = self.request.comparison(site.point.at)
            if site.only:
                request = changed(request, strategies=tuple(strategies_at(site, self.request).values()))
            site.comparison = self.comparisons.make(request, functools.partial(self.draft.take, site))
        return site.comparison

    def begun(self, site: Site) -> PointComparison:
        """The comparison of a site, begun: with its reference, and with what an earlier run knows."""
        comparison = self.comparison(site)
        if not site.begun:
            site.begun = True
            if site.point.status == "waiting":
                site.point = replace(site.point, status="running")
            comparison.begin(self.started_s, self.left_out(site), site.taken)
        comparison.know(with_spread(self.draft.run.analysis, self.draft.run.points))
        return comparison

    def measure(self, site: Site, budget_s: float) -> None:
        """Measure all that is unknown at a site."""
        comparison = self.begun(site)
        comparison.look(comparison.unknown())
        if suspected := {line_of(slug, self.request.axes) for slug in comparison.suspects()} - self._suspected:
            self._suspected |= suspected
            comparison.ask_onednn()
        comparison.time(budget_s)
        self.finish(site)
        self.draft.analyse()

    def sample(self, site: Site, strategies: Sequence[str], processes: int) -> None:
        """Measure these strategies of a site in so many further processes."""
        self.begun(site).time_more(strategies, processes, self.left_s)
        self.finish(site)

    def finish(self, site: Site) -> None:
        """Settle a site; more processes may still be asked for."""
        self.comparison(site).finish("complete", "", omissions.untimed())
        self.draft.settle(site, status="complete")
