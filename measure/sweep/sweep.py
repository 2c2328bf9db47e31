"""A sweep from its request to its crossings: comparisons of points, one after another.

Both ends of each axis come first and then the middles, so that a picture shows early. A point has the time that it
needs by forecast, and an even share of what is left beside that. In the end points are added where lines that lead
cross, as long as there is time.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from measure.engine import deriving
from measure.engine.bench import Settings
from measure.engine.comparison import Comparison
from measure.engine.record import View, seed_of
from measure.judge import advice
from measure.machine import environment
from measure.model import deadline
from measure.model.forecast import forecast_run
from measure.model.place import utc_now
from measure.model.request import Request, RequestError, case_of
from measure.model.run import Analysis, Error, Point, Run, Status, Warning
from measure.pool.clock import TimeIsUp
from measure.pool.dialogue import HOST_LOST
from measure.pool.launcher import Launcher
from measure.sweep import findings
from measure.sweep.lines import latencies_s, written
from measure.sweep.needs import TURNS_S, At, forecast_sweep, key, smaller_failed
from measure.sweep.request import SweepRequest

# A crossing is refined until its interval spans less than this factor; with so many points at most, for all crossings.
CLOSE, MOST_ADDED = 1.2, 6
# Refined are crossings near the lead: the lines cross at most so many times above the fastest strategy there.
NEAR_LEAD = 1.5
# A point gets at least so many times what it needs, as things have gone so far.
_TIMES_NEEDED = 2.0
_STOPPED, _SPENT = "a person stopped the sweep", "the time budget was spent"


class Sweep:
    """Runs one sweep, with the protocol of a `Comparison`. ``taken``: complete points of an earlier run, which are not
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
        taken: Sequence[Point] = (),
    ) -> None:
        """Raises `ScriptError` where the sources of the workload and a mapper do not make a script."""
        self.request = request.base
        self._asked, self._launcher, self._publish = request, launcher, publish
        settings = settings or Settings()
        self._settings = dataclasses.replace(settings, probes=False, process_peaks=False, controls=False)
        self._left_s, self._bound_s = request.base.budget_s, settings.bound_s or deadline.of(request.base.budget_s)
        most_bytes = min(environment.available_memory(), settings.most_bytes or math.inf)
        ahead = forecast_sweep(request, int(most_bytes), taken)
        self._forecast = {key(point.at): point for point in ahead.points}
        points = {key(at): Point(at=at) for at in request.points()}
        points |= {key(at): replace(points[key(at)], status="skipped", reason=reason) for at, reason in ahead.skipped}
        points |= {key(point.at): point for point in taken}
        self._run = Run(
            id=run_id,
            kind="sweep",
            parent=parent,
            created=utc_now(),
            request=request.base.record(),
            analysis=Analysis(seed=seed_of(run_id)),
            axes=list(request.axes),
            points=_in_order(points.values()),
            digest={},
        )
        self._view = View(self._run, {}, forecast_s=ahead.seconds)
        self._part: Comparison | None = None
        self._part_version = -1
        self._cancelled = self._stopped = False
        self._started_s = self._still_s = 0.0
        self._pace = 1.0
        if waiting := self._waiting():
            self._comparison(waiting[0], self._forecast[key(waiting[0])].asked)

    def view(self) -> View:
        return self._view

    def cancel(self) -> None:
        self._cancelled = True
        if (part := self._part) is not None:
            part.cancel()

    def stop(self) -> None:
        """End as if the time budget were spent."""
        self._stopped = True
        if (part := self._part) is not None:
            part.stop()

    @property
    def cancelled(self) -> bool:
        return self._cancelled

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
        status, reason = self._measure()
        if self._still_s:
            self.warn(advice.stood_still(self._still_s))
        self._run = findings.close(self._run, status, reason, utc_now())
        self._view = dataclasses.replace(self._view, forecast_s=0.0)
        self._say("finished", result=True)
        return self._run

    # --- the points --------------------------------------------------------------------------------------------------

    def _measure(self) -> tuple[Status, str]:
        while waiting := self._waiting():
            at = waiting[0]
            if self._left_s <= 0 or self._stopped:
                words = _STOPPED if self._stopped else _SPENT
                reason = f"{words} before this point: continue the sweep"
                self._put(*(replace(self._point(at), status="budget", reason=reason) for at in waiting))
                return "budget", f"{words} before {len(waiting)} of the points"
            spare_s = self._left_s - sum(self._forecast[key(other)].seconds for other in waiting)
            needed_s = self._forecast[key(at)].seconds
            # On a slow machine points that are complete are worth more than parts of all.
            budget_s = max(needed_s + spare_s / len(waiting), _TIMES_NEEDED * self._pace * needed_s)
            if ended := self._measure_point(at, self._forecast[key(at)].asked, min(budget_s, self._left_s)):
                return ended
        for _ in range(MOST_ADDED):
            if (crossing := refined(self._run)) is None:
                break
            at, both = crossing
            asked = replace(self._asked.comparison(at), strategies=list(both))
            try:
                deriving.look(self._launcher, asked)  # of a person's own function, a size between those of the grid
            except (RequestError, TimeIsUp):
                break
            needed_s = forecast_run(case_of(asked), both).seconds + TURNS_S
            if needed_s > self._left_s or self._stopped or self._cancelled:
                break
            self._put(Point(at=at))
            if ended := self._measure_point(at, asked, needed_s):
                return ended
        return "complete", "every point is measured"

    def _measure_point(self, at: dict[str, int], asked: Request, budget_s: float) -> tuple[Status, str] | None:
        """Measure a point; the end of the sweep, where it ends there."""
        part = self._comparison(at, replace(asked, budget_s=budget_s))
        part.leave_out(self._left_out(at))
        self._part, self._part_version = part, -1
        if self._cancelled:  # just now, when there was no part to tell
            part.cancel()
        self._put(replace(self._point(at), status="running"))
        begun_s = part.bench.clock.now_s
        part.bench.begin(self._started_s, self._run.environment)
        body = part.run()
        self._still_s += part.bench.clock.still_s
        self._pace = part.bench.pace
        passed_s = part.bench.clock.now_s - begun_s
        self._left_s, self._bound_s = self._left_s - passed_s, self._bound_s - passed_s
        self._part = None
        # Where the budget of a point ended before all were told apart, it is as complete as it was meant to be.
        status = "complete" if body.status == "budget" and body.ranking else body.status
        self._put(replace(self._point(at), status=status, reason=body.stop_reason))
        self._run = findings.analyse(self._run)
        self._say(result=True)
        if body.status == "interrupted":
            return "interrupted", HOST_LOST
        return (body.status, body.stop_reason) if body.status == "cancelled" else None

    def _comparison(self, at: dict[str, int], asked: Request) -> Comparison:
        settings = dataclasses.replace(self._settings, bound_s=max(self._bound_s, 1.0))

        def take(view: View) -> None:
            point = self._point(at)
            if view.version != self._part_version:
                self._part_version = view.version
                self._put(findings.settled(point, findings.of_comparison(view.run)))
            self._view = dataclasses.replace(self._view, stages=view.stages, round_number=view.round_number)
            self._say(f"{written(at)}: {view.message}", result=True)

        return Comparison(self._run.id, asked, self._launcher, take, settings=settings)

    def _left_out(self, at: dict[str, int]) -> dict[str, Error]:
        """Strategies that are not run at a point, with the reason: by forecast, or since a smaller point was too
        much."""
        ahead = self._forecast.get(key(at))
        errors = dict(ahead.errors) if ahead else {}
        for other in self._run.points:
            if _is_smaller(other.at, at, self._asked):
                for item in other.measurements:
                    if error := smaller_failed(other.at, item.outcome):
                        errors[item.strategy] = error
        return errors

    # --- the run -----------------------------------------------------------------------------------------------------

    def _waiting(self) -> list[dict[str, int]]:
        """Points that are still to be measured: both ends of each axis first, then the middles."""
        ranks = [dict(zip(axis.values, _ends_first(len(axis.values)), strict=True)) for axis in self._run.axes]

        def order(at: dict[str, int]) -> tuple[int, int]:
            own = [rank[value] for rank, value in zip(ranks, at.values(), strict=True)]
            return max(own), sum(own)

        return sorted((point.at for point in self._run.points if point.status == "waiting"), key=order)

    def _point(self, at: dict[str, int]) -> Point:
        return next(point for point in self._run.points if point.at == at)

    def _put(self, *points: Point) -> None:
        known: dict[At, Point] = {key(point.at): point for point in (*self._run.points, *points)}
        self._run = replace(self._run, points=_in_order(known.values()))

    def _say(self, message: str | None = None, *, result: bool = False) -> None:
        every = [*self._run.warnings, *(warning for point in self._run.points for warning in point.warnings)]
        warnings = list({warning.code: warning for warning in reversed(every)}.values())[::-1]
        self._run = replace(self._run, warnings=warnings)
        self._view = dataclasses.replace(
            self._view,
            run=self._run,
            message=self._view.message if message is None else message,
            version=self._view.version + result,
        )
        self._publish(self._view)


def _in_order(points: Iterable[Point]) -> list[Point]:
    return sorted(points, key=lambda point: tuple(point.at.values()))


def _ends_first(count: int) -> list[int]:
    """The rank of each place of an axis: 0 and 1 for its ends, then the middles of what is left between."""
    order, spans = [0, count - 1], [(0, count - 1)]
    for low, high in spans:
        if high - low > 1:
            middle = (low + high) // 2
            order.append(middle)
            spans += [(low, middle), (middle, high)]
    return [order.index(place) for place in range(count)]


def _is_smaller(one: Mapping[str, int], other: Mapping[str, int], request: SweepRequest) -> bool:
    """True if a point is smaller than another one: less or as much in every size, and otherwise the same."""
    return one != other and all(
        one[axis.name] <= other[axis.name] if axis.kind == "size" else one[axis.name] == other[axis.name]
        for axis in request.axes
    )


def refined(run: Run) -> tuple[dict[str, int], tuple[str, str]] | None:
    """The point that makes the least certain crossing near the lead more certain, and the two strategies that cross
    there; None where none does. Over one size alone."""
    axis = run.axes[0]
    if len(run.axes) > 1 or axis.kind != "size":
        return None
    timed = {point.at[axis.name]: latencies_s(point) for point in run.points}
    found: list[tuple[float, int, tuple[str, str]]] = []
    for crossing in run.crossovers:
        if crossing.value is None or not crossing.low or not crossing.high or crossing.high <= CLOSE * crossing.low:
            continue
        a, b = crossing.a, crossing.b
        values = [value for value, seconds in timed.items() if a in seconds and b in seconds]
        low = max((value for value in values if value <= crossing.value), default=None)
        high = min((value for value in values if value > crossing.value), default=None)
        if low is None or high is None or high - low < 2:
            continue
        above = (min(timed[value][a], timed[value][b]) / min(timed[value].values()) for value in (low, high))
        if max(above) <= NEAR_LEAD:
            middle = round(math.sqrt(max(low, crossing.low) * min(high, crossing.high)))
            found.append((crossing.high / crossing.low, min(max(middle, low + 1), high - 1), (a, b)))
    if not found:
        return None
    _, value, both = max(found)
    return {axis.name: value}, both
