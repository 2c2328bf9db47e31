"""A sweep from its request to its crossings: comparisons of points, one after another.

Both ends of each axis come first and then the middles, so that a picture shows early. A point has the time that it
needs by forecast, and an even share of what is left beside that; where there is too little for all, an even share of
that.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.parts import Parts
from measure.engine.record import View, seed_of
from measure.judge import advice, sweep_analysis
from measure.judge.lines import place, readable
from measure.machine import environment
from measure.pool.clock import Clock
from measure.pool.dialogue import HOST_LOST
from measure.pool.launcher import Launcher
from measure.run import deadline
from measure.run.place import utc_now
from measure.run.request import Request
from measure.run.run import Analysis, Axis, Error, Point, Run, Status, Warning
from measure.run.sweep_forecast import DOES_NOT_FIT, PointForecast, forecast_sweep
from measure.run.sweep_request import SweepRequest

# Outcomes that say something of larger points: the type of the error there, and words.
_TOO_MUCH = {"timeout": ("LeftOut", "took too long"), "out_of_memory": (DOES_NOT_FIT, "ran out of memory")}


class Sweep(Parts):
    """Runs one sweep, with the protocol of a `Comparison`. ``earlier``: complete points of another run, which are not
    measured again."""

    def __init__(
        self,
        run_id: str,
        request: SweepRequest,
        launcher: Launcher,
        publish: Callable[[View], None],
        *,
        settings: Settings | None = None,
        parent: str | None = None,
        earlier: Sequence[Point] = (),
    ) -> None:
        """Raises `ScriptError` where the sources of the workload and a mapper do not make a script."""
        self.request = request.base
        self._launcher, self._publish = launcher, publish
        settings = settings or Settings()
        self._settings = dataclasses.replace(settings, probes=False, process_peaks=False, controls=False)
        self._bound_s = settings.bound_s or deadline.of(request.base.budget_s)
        self._clock, self._started_s = Clock(self._bound_s), 0.0
        most_bytes = min(environment.available_memory(), settings.most_bytes or math.inf)
        ahead = forecast_sweep(request, int(most_bytes), earlier)
        self._waiting = sorted(ahead.points, key=_ends_first(request.axes))
        points = [*(Point(at=point.at) for point in ahead.points), *earlier]
        points += [Point(at=at, status="skipped", reason=reason) for at, reason in ahead.skipped]
        self._run = Run(
            id=run_id,
            kind="sweep",
            parent=parent,
            created=utc_now(),
            request=request.base.record(),
            analysis=Analysis(seed=seed_of(run_id)),
            axes=list(request.axes),
            points=sorted(points, key=place),
            digest={},
        )
        super().__init__(View(self._run, {}, forecast_s=ahead.seconds))
        for point in self._waiting[:1]:
            self._comparison(point, point.asked)

    def warn(self, warning: Warning) -> None:
        """Add a warning about the sweep as a whole, once per code."""
        if all(other.code != warning.code for other in self._run.warnings):
            self._run = replace(self._run, warnings=[*self._run.warnings, warning])

    def run(self) -> Run:
        """Measure, and return the finished run. Does not raise for what a strategy, the host or a person did."""
        self._started_s = time.monotonic()
        self._view = dataclasses.replace(self._view, started_s=self._started_s)
        about = environment.collect(
            start_method=self._launcher.start_method,
            threads=self.request.threads,
            tensorflow=self._launcher.state().details or {},
        )
        self._run = replace(self._run, started=utc_now(), environment=about)
        with self._clock.running():
            status, reason = self._measure()
        if self._clock.still_s:
            self.warn(advice.stood_still(self._clock.still_s))
        self._run = sweep_analysis.close(self._run, status, reason, utc_now())
        self._view = dataclasses.replace(self._view, forecast_s=0.0)
        self._say("finished")
        return self._run

    def _measure(self) -> tuple[Status, str]:
        end_s = self._clock.now_s + self.request.budget_s
        for number, point in enumerate(self._waiting):
            waiting, left_s = self._waiting[number:], end_s - self._clock.now_s
            if left_s <= 0 or self._stopped:
                words = "a person stopped the sweep" if self._stopped else "the time budget was spent"
                reason = f"{words} before this point: continue the sweep"
                for other in waiting:
                    self._put(replace(self._point(other.at), status="budget", reason=reason))
                return "budget", f"{words} before {len(waiting)} of the points"
            spare_s = left_s - sum(other.seconds for other in waiting)
            budget_s = point.seconds + spare_s / len(waiting) if spare_s > 0 else left_s / len(waiting)
            status, reason = self._measure_point(point, replace(point.asked, budget_s=budget_s))
            if status in ("interrupted", "cancelled"):
                return status, HOST_LOST if status == "interrupted" else reason
        return "complete", "every point is measured"

    def _measure_point(self, point: PointForecast, asked: Request) -> tuple[Status, str]:
        """Measure a point; how it ended, and the reason."""
        part = self._comparison(point, asked)
        part.leave_out(self._too_much_before(point.at))
        self._begin(part)
        self._put(replace(self._point(point.at), status="running"))
        part.begin(self._started_s, self._run.environment)
        body = part.run()
        self._part = None
        # Where the budget of a point ended before all were told apart, it is as complete as it was meant to be.
        status = "complete" if body.status == "budget" and body.ranking else body.status
        self._put(replace(self._point(point.at), status=status, reason=body.stop_reason))
        self._run = sweep_analysis.analyse(self._run)
        self._say(self._view.message)
        return body.status, body.stop_reason

    def _comparison(self, point: PointForecast, asked: Request) -> Comparison:
        def take(view: View) -> None:
            self._put(sweep_analysis.settled(self._point(point.at), view.run))
            self._view = dataclasses.replace(self._view, stages=view.stages, round_number=view.round_number)
            self._say(f"{readable(point.at)}: {view.message}")

        bound_s = max(1.0, min(self._clock.left_s, self._bound_s))
        settings = dataclasses.replace(self._settings, bound_s=bound_s)
        return Comparison(self._run.id, asked, self._launcher, take, settings=settings)

    def _too_much_before(self, at: Mapping[str, int]) -> dict[str, Error]:
        """Strategies for which a smaller point was too much, each with the error that it has here."""
        errors = {}
        for other in self._run.points:
            if self._run.axes[0].kind == "size" and all(other.at[name] <= at[name] for name in at):
                for item in other.measurements:
                    if item.outcome in _TOO_MUCH:
                        type_, words = _TOO_MUCH[item.outcome]
                        message = f"not run here: it {words} at {readable(other.at)} already"
                        errors[item.strategy] = Error(type=type_, message=message)
        return errors

    def _point(self, at: Mapping[str, int]) -> Point:
        return next(point for point in self._run.points if point.at == at)

    def _put(self, changed: Point) -> None:
        points = [changed if point.at == changed.at else point for point in self._run.points]
        self._run = replace(self._run, points=points)

    def _say(self, message: str) -> None:
        every = [*self._run.warnings, *(warning for point in self._run.points for warning in point.warnings)]
        warnings = list({warning.code: warning for warning in reversed(every)}.values())[::-1]
        self._run = replace(self._run, warnings=warnings)
        self._view = dataclasses.replace(self._view, run=self._run, message=message, version=self._view.version + 1)
        self._publish(self._view)


def _ends_first(axes: Iterable[Axis]) -> Callable[[PointForecast], tuple[int, int]]:
    """The order of points: both ends of each axis first, and then the middles of what is left between."""
    ranks = []
    for axis in axes:
        order, spans = [0, len(axis.values) - 1], [(0, len(axis.values) - 1)]
        for low, high in spans:
            if high - low > 1:
                middle = (low + high) // 2
                order.append(middle)
                spans += [(low, middle), (middle, high)]
        ranks.append({axis.values[place]: rank for rank, place in enumerate(order)})

    def rank(point: PointForecast) -> tuple[int, int]:
        own = [of_axis[value] for of_axis, value in zip(ranks, point.at.values(), strict=True)]
        return max(own), sum(own)

    return rank
