"""The needs of a sweep, before it is run: its time and peak memory, and the points that cannot be measured.

Pure arithmetic on metadata, as `forecast` is.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from measure.run import fit, forecast, text
from measure.run.request import Request, case_of
from measure.run.run import Point
from measure.run.sweep_request import SweepRequest

# The type of an error where there is too little memory, as a smaller point has shown.
DOES_NOT_FIT = "DoesNotFit"
# Of the budget, what is forecast to be needed before the turns of processes, which have the rest; and what turns take
# at a point, about.
_NEEDED_SHARE, _TURNS_S = 0.8, 5.0


@dataclass(frozen=True)
class PointForecast:
    """A point that is measured: its request, and the seconds that it needs: until all have had a first turn."""

    at: dict[str, int]
    asked: Request
    seconds: float


@dataclass(frozen=True)
class SweepForecast:
    """Wall-clock seconds, bytes at the worst moment, the points that are measured, and those that are not, each with
    the reason. ``too_long``: the sentence where the budget is short for all of it; empty where it is not."""

    seconds: float
    peak_bytes: int
    points: list[PointForecast]
    skipped: list[tuple[dict[str, int], str]]
    too_long: str


def forecast_sweep(request: SweepRequest, available_bytes: int, earlier: Iterable[Point] = ()) -> SweepForecast:
    """The forecast of each point, and of all together. ``earlier``: points that an earlier run has measured."""
    budget_s, measured = request.base.budget_s, [point.at for point in earlier]
    points, skipped, peak_bytes = list[PointForecast](), list[tuple[dict[str, int], str]](), 0
    for at in request.points():
        if at in measured:
            continue
        asked = request.comparison(at)
        if refusal := fit.check(asked, available_bytes):
            skipped.append((at, refusal))
            continue
        case = case_of(asked)
        ahead = forecast.forecast_run(case, asked.strategies)
        estimates = ahead.per_strategy.values()
        least_s = forecast.reference_s(case) + min(forecast.cell_s(case, estimate, 1) for estimate in estimates)
        if least_s > budget_s:
            reason = f"it takes at least {text.seconds(least_s)} by forecast, and the budget is {budget_s:.0f} s"
            skipped.append((at, f"This cannot end in time: {reason}. Choose a longer one, or smaller sizes."))
            continue
        turns_s = sum(max(forecast.TURNS_S, forecast.LEAST_CALLS * estimate.latency_s) for estimate in estimates)
        points.append(PointForecast(at, asked, ahead.seconds + turns_s))
        peak_bytes = max(peak_bytes, ahead.peak_bytes)
    needed_s = sum(point.seconds for point in points)
    too_long = (
        f"by forecast a budget of {budget_s:.0f} s is short for all of it: what there is no time for is not timed"
    )
    return SweepForecast(
        min(budget_s, needed_s + _TURNS_S * len(points)),
        peak_bytes,
        points,
        skipped,
        too_long if needed_s > _NEEDED_SHARE * budget_s else "",
    )
