"""One sweep from its request to its crossovers: in which order what is measured.

First the grid, of which every point gets its minimum. What is left of the budget goes to where it decides something: to
what stands out from its line, between the points that a crossing lies between, and to leaders that tie.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace as changed
from typing import Any

from measure.engine.bench import Settings
from measure.engine.clock import Clock, TimeIsUp
from measure.engine.dialogue import HOST_LOST, Cancelled, Dialogues, HostLost
from measure.engine.launcher import Launcher
from measure.engine.record import View, seed_of
from measure.judge import advice
from measure.machine import environment
from measure.model import text
from measure.model.place import utc_now
from measure.model.run import Analysis, Point, Run, Status, Warning
from measure.sweep import doubts, grid, refining
from measure.sweep.comparison import PointComparison
from measure.sweep.draft import Draft
from measure.sweep.findings import undone
from measure.sweep.needs import known_before, plan
from measure.sweep.request import SweepRequest
from measure.sweep.sites import make_sites
from measure.sweep.survey import Comparisons, Survey

_LOAD_WINDOW_S = 0.1
_SPENT, _STOPPED = "the time budget was spent", "a person stopped the sweep"


class Sweep:
    """Runs one sweep, with the protocol of a `Comparison`. ``taken``: what an earlier run knows of its points, which is
    not measured again: all of points that are ``complete``, a part of those that are ``waiting``; ``doubtful``: lines
    that get further processes at every point, in place of what may lead."""

    def __init__(
        self,
        run_id: str,
        request: SweepRequest,
        launcher: Launcher,
        publish: Callable[[View], None],
        *,
        settings: Settings | None = None,
        parent: str | None = None,
        taken: Sequence[Point] = (),
        doubtful: Sequence[str] = (),
    ) -> None:
        self.request = request.base
        settings = settings or Settings()
        bound_s = math.inf if settings.bound_s is None else settings.bound_s
        self._launcher, self._dialogues = launcher, Dialogues(launcher, Clock(settings.bound_s))
        self._doubtful = doubtful
        self._is_map, self._by_option = len(request.axes) == 2, request.axes[0].kind == "option"
        comparisons = Comparisons(run_id, launcher, self._dialogues, changed(settings, process_peaks=False))
        run = Run(
            id=run_id,
            kind="sweep",
            parent=parent,
            created=utc_now(),
            request=request.base.record(),
            analysis=Analysis(seed=seed_of(run_id)),
            axes=list(request.axes),
            digest={},
        )
        available_bytes = min(environment.available_memory(), settings.most_bytes or math.inf)
        planned = plan(request, int(available_bytes), known_before(taken), bound_s)
        self._draft = Draft(run, make_sites(request, planned, taken), planned.forecast.seconds, publish)
        self._survey = Survey(request, planned, comparisons, self._draft)
        # Scripts that cannot be made are said before anything is queued.
        for site in self._draft.waiting()[:1]:
            self._survey.comparison(site)

    def view(self) -> View:
        return self._draft.view()

    def cancel(self) -> None:
        self._dialogues.cancel()
        for comparison in self._comparisons():
            comparison.cancel()

    def stop(self) -> None:
        """End as if the time budget were spent."""
        self._survey.stopped = True

    @property
    def cancelled(self) -> bool:
        return self._dialogues.cancelled

    def warn(self, warning: Warning) -> None:
        """Add a warning about the sweep as a whole, once per code."""
        self._draft.warn(warning)

    def run(self) -> Run:
        """Measure, and return the finished run. Does not raise for what a strategy, the host or a person did."""
        status: Status
        clock = self._dialogues.clock
        self._survey.begin()
        try:
            with clock.running():
                self._draft.describe(self._environment())
                status, reason = self._measure()
        except Cancelled:
            status, reason = "cancelled", "cancelled by a person"
        except HostLost:
            status, reason = "interrupted", HOST_LOST
        finally:
            if left := self._dialogues.end():
                self._draft.warn(advice.not_ended(left))
            for comparison in self._comparisons():
                comparison.end()
        if clock.still_s:
            self.warn(advice.stood_still(clock.still_s))
        return self._draft.close(status, reason)

    def _measure(self) -> tuple[Status, str]:
        try:
            return self._measure_map() if self._is_map else self._measure_line()
        except TimeIsUp:
            return self._out_of_time() or ("complete", f"every point is measured; {self._ended}")

    def _measure_line(self) -> tuple[Status, str]:
        survey, draft = self._survey, self._draft
        grid.measure_line(survey)
        if ended := self._out_of_time():
            return ended
        # Of points that were taken over, crossings are not known yet.
        draft.analyse()
        if self._doubtful:
            if doubts.sample_lines(survey, self._doubtful):
                return "complete", f"every point is measured, and {text.listed(self._doubtful)} in more processes"
            return "complete", f"every point is measured; {self._ended}"
        doubts.doubt(survey)
        if self._by_option:
            doubts.tell_values_apart(survey)
        for _ in refining.refine(survey):
            draft.analyse()
            if survey.left_s <= 0:
                return "complete", f"every point is measured; {self._ended} before all crossings were refined"
        if self._by_option:
            return "complete", "every value is measured, and the leading ones in more processes"
        self._tell_leaders_apart()
        return "complete", "every point is measured, and crossings are refined"

    def _measure_map(self) -> tuple[Status, str]:
        grid.fill_map(self._survey)
        if ended := self._out_of_time():
            return ended
        self._tell_leaders_apart()
        return "complete", "every cell is measured, or follows from the cells around it"

    def _out_of_time(self) -> tuple[Status, str] | None:
        """Settle points that the budget did not reach: the end of the sweep then; None where all are measured."""
        left = self._draft.waiting()
        reason = f"{self._ended} before this point: continue the sweep"
        for site in left:
            site.point = undone(self._draft.run, site.point, "budget", reason, utc_now())
        return ("budget", f"{self._ended} before {len(left)} of the points") if left else None

    @property
    def _ended(self) -> str:
        """The words for why there is no more time."""
        if self._survey.stopped:
            return _STOPPED
        return self._dialogues.clock.over if self._dialogues.clock.is_over else _SPENT

    def _tell_leaders_apart(self) -> None:
        for site in self._draft.sites:
            if self._survey.left_s > 0:
                doubts.tell_leaders_apart(self._survey, site)

    def _comparisons(self) -> list[PointComparison]:
        return [site.comparison for site in self._draft.sites if site.comparison is not None]

    def _environment(self) -> dict[str, Any]:
        return environment.collect(
            start_method=self._launcher.start_method,
            threads=self.request.threads,
            tensorflow=self._launcher.state().details or {},
            load_window_s=_LOAD_WINDOW_S,
        )
