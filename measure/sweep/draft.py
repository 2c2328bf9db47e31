"""The run of a sweep in the making: its sites, what follows from them, and what is shown of it meanwhile."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from measure.engine.record import View
from measure.model.place import utc_now
from measure.model.run import Run, Stage, Status, Warning
from measure.sweep import findings
from measure.sweep.evidence import evidence
from measure.sweep.places import written
from measure.sweep.sites import Site, in_order


class Draft:
    """The run that ``sites`` make. ``run`` is its head; ``forecast_s``: seconds that all of it will take; ``publish``
    gets a view of it after everything that changes it."""

    def __init__(self, run: Run, sites: Sequence[Site], forecast_s: float, publish: Callable[[View], None]) -> None:
        self.sites = list(sites)
        # Of the points as they were analysed last.
        self.evidence = evidence([], run.axes)
        self._head, self._forecast_s, self._publish = run, forecast_s, publish
        self._message, self._stages = "", dict[str, Stage]()
        self._round_number: int | None = None
        self._version = 0
        self._started_s: float | None = None

    @property
    def run(self) -> Run:
        """The run as it is now."""
        return replace(self._head, points=[site.point for site in self.sites])

    def view(self) -> View:
        started_s, forecast_s = self._started_s, self._forecast_s
        return View(self.run, self._stages, self._message, self._version, started_s, forecast_s, self._round_number)

    def begin(self, started_s: float) -> None:
        """``started_s``: on the clock of `time.monotonic`."""
        self._started_s = started_s
        self._head = replace(self._head, started=utc_now())

    def describe(self, environment: Mapping[str, Any]) -> None:
        self._head = replace(self._head, environment=dict(environment))

    def warn(self, warning: Warning) -> None:
        """Add a warning about the sweep as a whole, once per code."""
        if all(known.code != warning.code for known in self._head.warnings):
            self._head = replace(self._head, warnings=[*self._head.warnings, warning])

    def add(self, site: Site) -> None:
        """Take in a site between those of the grid."""
        self.sites = in_order([*self.sites, site])

    def waiting(self) -> list[Site]:
        """Sites of which not all is measured."""
        return [site for site in self.sites if site.point.status in ("waiting", "running")]

    def say(self, message: str, stages: Mapping[str, Stage] | None = None, round_number: int | None = None) -> None:
        """Publish what is being done; ``stages``: of the strategies that it is done to; ``round_number``: of the
        round that is sampled."""
        self._stages, self._message, self._round_number = dict(stages or {}), message, round_number
        self._publish(self.view())

    def take(self, site: Site, view: View) -> None:
        """A point's comparison publishes: its results are the point's."""
        if view.version != site.version:
            site.version = view.version
            site.point = findings.settled(site.point, findings.of_comparison(view.run))
            self._version += 1
        self.say(f"{written(site.point.at)}: {view.message}", view.stages, view.round_number)

    def settle(self, site: Site, **changes: Any) -> None:
        """Change what a point is said to be."""
        site.point = replace(site.point, **changes)
        self._changed()

    def analyse(self) -> None:
        """Compute anew what follows from the points."""
        run = self._with_warnings()
        if len(run.axes) == 1:
            self.evidence = evidence(run.points, run.axes)
            self._put(findings.analyse(run, self.evidence))
        else:
            self._put(findings.analyse(run))
        self._changed()

    def close(self, status: Status, reason: str) -> Run:
        """Settle what is open; the finished run."""
        self._put(findings.close(self._with_warnings(), status, reason, utc_now()))
        self._stages, self._message, self._round_number, self._forecast_s = {}, "finished", None, 0.0
        self._changed()
        return self.run

    def _with_warnings(self) -> Run:
        """The run with the warnings of its points, once per code."""
        every = [*self._head.warnings, *(warning for site in self.sites for warning in site.point.warnings)]
        return replace(self.run, warnings=list({warning.code: warning for warning in reversed(every)}.values())[::-1])

    def _put(self, run: Run) -> None:
        self._head = run
        for site, point in zip(self.sites, run.points, strict=True):
            site.point = point

    def _changed(self) -> None:
        self._version += 1
        self._publish(self.view())
