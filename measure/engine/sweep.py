"""A sweep from its request to its crossings: comparisons of points, one after another; and how one that ended early
goes on.

Both ends of each axis come first and then the middles, so that a picture shows early. A point has the time that it
needs by forecast, and an even share of what is left beside that; where there is too little for all, an even share of
that, and a strategy that takes longer than its point has is not begun there: it would take the time of all others.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from measure.engine.bench import UNTIMED, Settings, here
from measure.engine.comparison import Comparison
from measure.engine.record import View, changes, seed_of
from measure.judge import sweep_findings
from measure.judge.lines import place, readable
from measure.machine import environment
from measure.pool.clock import Clock
from measure.pool.dialogue import HOST_LOST
from measure.pool.launcher import Launcher
from measure.run import deadline, text
from measure.run.fit import PointForecast, forecast_sweep
from measure.run.place import utc_now
from measure.run.request import Request, RequestError, script_of
from measure.run.run import TIME_OVER, Analysis, Error, Measurement, Point, Run, Status
from measure.run.sweep_request import SweepRequest

# Outcomes that say something of larger points, in words.
_TOO_MUCH = {"timeout": "took too long", "out_of_memory": "ran out of memory"}
# The errors of what the budget left no time; the second is of earlier versions.
_NO_TIME = (TIME_OVER, "OverBudget")


class Parts:
    """A job of several comparisons, one after another. It is watched and ended as its parts are; what is asked of it
    while it has none, the next one hears."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._part: Comparison | None = None
        self._cancelled = self._stopped = False

    def view(self) -> View:
        return self._view

    def cancel(self) -> None:
        self._cancelled = True
        if (part := self._part) is not None:
            part.cancel()

    def stop(self) -> None:
        """End with what there is by now, as if the time budget were spent."""
        self._stopped = True
        if (part := self._part) is not None:
            part.stop()

    def _begin(self, part: Comparison) -> None:
        """Pass on to ``part`` from now on, and what was asked just now."""
        self._part = part
        if self._cancelled:
            part.cancel()
        if self._stopped:
            part.stop()


class Sweep(Parts):
    """Runs one sweep, with the protocol of a `Comparison`. ``earlier``: complete points of another run, which are not
    measured again."""

    def __init__(
        self, run_id: str, request: SweepRequest, launcher: Launcher, publish: Callable[[View], None], *,
        settings: Settings | None = None, parent: str | None = None, earlier: Sequence[Point] = (),
    ) -> None:  # fmt: skip
        """Raises `ScriptError` where the sources of the workload and a mapper do not make a script."""
        self.request = request.base
        self._launcher, self._publish = launcher, publish
        settings = settings or Settings()
        self._settings = dataclasses.replace(settings, probes=False, process_peaks=False, controls=False)
        self._clock = Clock(settings.bound_s or deadline.of(request.base.budget_s))
        limits = (environment.available_memory(), settings.most_bytes)
        ahead = forecast_sweep(request, min(limit for limit in limits if limit is not None), earlier)
        orders = [_ends_first(axis.values) for axis in request.axes]

        def rank(point: PointForecast) -> tuple[int, int]:
            ranks = [order.index(value) for order, value in zip(orders, point.at.values(), strict=True)]
            return max(ranks), sum(ranks)

        self._waiting = sorted(ahead.points, key=rank)
        points = [*(Point(at=point.at) for point in ahead.points), *earlier]
        points += [Point(at=at, status="skipped", reason=reason) for at, reason in ahead.skipped]
        self._run = Run(
            id=run_id, kind="sweep", parent=parent, created=utc_now(), request=request.base.record(),
            analysis=Analysis(seed=seed_of(run_id)), axes=list(request.axes), points=sorted(points, key=place),
            digest={},
        )  # fmt: skip
        super().__init__(View(self._run, {}, forecast_s=ahead.seconds))
        for point in self._waiting[:1]:
            self._comparison(point, point.asked)

    def run(self) -> Run:
        """Measure, and return the finished run. Does not raise for what a strategy, the host or a person did."""
        self._view = dataclasses.replace(self._view, started_s=time.monotonic())
        about = here(self._launcher, self.request.threads)
        self._run = replace(self._run, started=utc_now(), environment=about)
        with self._clock.running():
            status, reason = self._measure()
        self._run = sweep_findings.close(self._run, status, reason, utc_now())
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
                    self._change(other.at, partial(replace, status="budget", reason=reason))
                return "budget", f"{words} before {len(waiting)} of the points"
            spare_s = left_s - sum(other.seconds for other in waiting)
            budget_s = point.seconds + spare_s / len(waiting) if spare_s > 0 else left_s / len(waiting)
            body = self._measure_point(point, replace(point.asked, budget_s=budget_s))
            if body.status in ("interrupted", "cancelled"):
                return body.status, HOST_LOST if body.status == "interrupted" else body.stop_reason
        return "complete", "every point is measured"

    def _measure_point(self, point: PointForecast, asked: Request) -> Run:
        """Measure a point; the run of its comparison."""
        part = self._comparison(point, asked)
        too_long = {
            slug: Error(type=TIME_OVER, message=f"it takes about {text.seconds(first_s)} by forecast, "
                        f"and this point has {text.seconds(asked.budget_s)}: {UNTIMED}")
            for slug, estimate in part.forecast.per_strategy.items()
            if (first_s := estimate.first_call_s + estimate.latency_s) > asked.budget_s
        }  # fmt: skip
        for slug, error in (too_long | self._too_much_before(point.at)).items():
            part.update(slug, stage="forecast", error=error)
        part.started_s = self._view.started_s
        self._begin(part)
        self._change(point.at, partial(replace, status="running"))
        body = part.run()
        self._part = None
        # Where the budget of a point ended before all were told apart, it is as complete as it was meant to be.
        status = "complete" if body.status == "budget" and body.ranking else body.status
        self._change(point.at, partial(replace, status=status, reason=body.stop_reason))
        self._run = sweep_findings.analyse(self._run)
        self._say(self._view.message)
        return body

    def _comparison(self, point: PointForecast, asked: Request) -> Comparison:
        def take(view: View) -> None:
            self._change(point.at, partial(sweep_findings.settled, body=view.run))
            self._view = dataclasses.replace(self._view, stages=view.stages, round_number=view.round_number)
            self._say(f"{readable(point.at)}: {view.message}")

        settings = dataclasses.replace(self._settings, bound_s=max(1.0, self._clock.left_s))
        return Comparison(self._run.id, asked, self._launcher, take, settings=settings)

    def _too_much_before(self, at: Mapping[str, int]) -> dict[str, Error]:
        """Strategies for which a smaller point was too much, each with the error that it has here."""
        errors = {}
        for other in self._run.points:
            if self._run.axes[0].kind == "size" and all(other.at[name] <= at[name] for name in at):
                for item in other.measurements:
                    if item.outcome in _TOO_MUCH:
                        message = f"not run here: it {_TOO_MUCH[item.outcome]} at {readable(other.at)} already"
                        errors[item.strategy] = Error(type="LeftOut", message=message)
        return errors

    def _change(self, at: Mapping[str, int], change: Callable[[Point], Point]) -> None:
        points = [change(point) if point.at == at else point for point in self._run.points]
        self._run = replace(self._run, points=points)

    def _say(self, message: str) -> None:
        warnings = {warning.code: warning for point in self._run.points for warning in point.warnings}
        self._run = replace(self._run, warnings=[*warnings.values()])
        self._view = dataclasses.replace(self._view, run=self._run, message=message, version=self._view.version + 1)
        self._publish(self._view)


def _ends_first(values: Sequence[int]) -> list[int]:
    """Both ends, and then the middles of what is left between."""
    order, spans = [values[0], values[-1]], [(0, len(values) - 1)]
    for low, high in spans:
        if high - low > 1:
            middle = (low + high) // 2
            order.append(values[middle])
            spans += [(low, middle), (middle, high)]
    return order


# --- going on with one that ended early ------------------------------------------------------------------------------


def is_open(run: Run) -> bool:
    """True if a sweep that has ended left something for which there was no time."""
    return run.status != "complete" or any(_lacks_time(item) for point in run.points for item in point.measurements)


def taken_over(run: Run, request: SweepRequest, here: Mapping[str, Any]) -> list[Point]:
    """The points of ``run`` that need not be measured again: those that are complete, of the code that would run now.
    ``here``: the environment of this process. Raises `RequestError` where the run was measured in another one."""
    if other := changes(run, here):
        raise RequestError(f"run {run.id} cannot be continued here, where {other}: measure it anew")
    return [point for point in run.points if _is_whole(point, request.comparison(point.at))]


def _is_whole(point: Point, asked: Request) -> bool:
    """True if a point was measured to its end, and is what would be measured now: what a strategy does may have
    changed."""
    items = [item for item in point.measurements if not item.twin_of]
    return (
        point.status == "complete"
        and {item.strategy for item in items} == {*asked.strategies}
        and not any(map(_lacks_time, items))
        and all(item.code is None or item.code.source == script_of(asked, item.strategy) for item in items)
    )


def _lacks_time(item: Measurement) -> bool:
    return item.error is not None and item.error.type in _NO_TIME
