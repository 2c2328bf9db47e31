"""The needs of a sweep, before it is run: its time and peak memory, and what of it is not run, with the reason.

Pure arithmetic on metadata, as `forecast` is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from measure.model import fit, forecast, text
from measure.model.request import Request, case_of
from measure.model.run import Error, Point
from measure.sweep.request import SweepRequest
from strategies.spec import Estimate

# Types of errors: by forecast there is too little memory, or time; a smaller point was too much already.
DOES_NOT_FIT, OVER_BUDGET, SMALLER_FAILED = "DoesNotFit", "OverBudget", "LeftOut"
# Of the budget, what is forecast to be needed before the turns of processes, which have the rest; and what turns take
# at a point, about.
NEEDED_SHARE, TURNS_S = 0.8, 5.0
# The last strategy of a point goes early where it takes so many times a point's even share of the budget.
_DEAR = 2.0
# Forecasts of memory are right within this factor.
_MEMORY_FACTOR = 1.5

At = tuple[tuple[str, int], ...]


def key(at: Mapping[str, int]) -> At:
    return tuple(at.items())


@dataclass(frozen=True)
class PointForecast:
    """A point that is to be measured: its request, the seconds that it needs, and the strategies that are not run."""

    at: dict[str, int]
    asked: Request
    seconds: float
    errors: dict[str, Error]


@dataclass(frozen=True)
class SweepForecast:
    """Wall-clock seconds, bytes at the worst moment, the points that are measured, and those that are not, each with
    the reason."""

    seconds: float
    peak_bytes: int
    points: list[PointForecast] = field(default_factory=list)
    skipped: list[tuple[dict[str, int], str]] = field(default_factory=list)

    @property
    def left_out(self) -> list[tuple[dict[str, int], str, Error]]:
        """Strategies that are not run at a point, each with the reason."""
        return [(point.at, slug, error) for point in self.points for slug, error in point.errors.items()]

    def strategies_left_out(self) -> list[str]:
        """A sentence for each strategy that is not run everywhere, and reason."""
        places: dict[tuple[str, str], list[str]] = {}
        for at, slug, error in self.left_out:
            place = " ".join(f"{name} {value:,}" for name, value in at.items())
            places.setdefault((slug, error.message), []).append(place)
        return [f"{slug}, at {text.listed(where, 3)}: {message}" for (slug, message), where in places.items()]


def forecast_sweep(request: SweepRequest, available_bytes: int, taken: Iterable[Point] = ()) -> SweepForecast:
    """The forecast of what will be run. What cannot fit is left out; and where all would take longer than the budget,
    the cells (a strategy at a point) that take longest, so that a sweep ends in time. ``taken``: points that an earlier
    run has measured."""
    budget_s = request.base.budget_s
    known = {key(point.at) for point in taken}
    skipped: list[tuple[dict[str, int], str]] = []
    asked: dict[At, Request] = {}
    errors: dict[At, dict[str, Error]] = {}
    estimates: dict[At, dict[str, Estimate]] = {}
    for at in request.points():
        where, wanted = key(at), request.comparison(at)
        if where in known:
            continue
        if refusal := fit.check(wanted, available_bytes):
            skipped.append((at, refusal))
            continue
        asked[where], errors[where], estimates[where] = wanted, {}, {}
        for slug, estimate in forecast.forecast_run(case_of(wanted), wanted.strategies).per_strategy.items():
            if error := _too_large(wanted, estimate, available_bytes):
                errors[where][slug] = error
            else:
                estimates[where][slug] = estimate
    costs = {
        where: {slug: forecast.cell_s(case_of(asked[where]), estimate, len(cells)) for slug, estimate in cells.items()}
        for where, cells in estimates.items()
    }
    references_s = {where: forecast.reference_s(case_of(wanted)) for where, wanted in asked.items()}
    for where, slug in over_budget(costs, NEEDED_SHARE * budget_s, references_s):
        errors[where][slug] = _error(OVER_BUDGET, f"by forecast it takes too long for a budget of {budget_s:.0f} s")
        del estimates[where][slug]
    points = []
    for where, cells in estimates.items():
        if cells:
            turns_s = sum(max(forecast.TURNS_S, forecast.LEAST_CALLS * cell.latency_s) for cell in cells.values())
            seconds = forecast.needed_s(case_of(asked[where]), cells.values()) + turns_s
            points.append(PointForecast(dict(where), asked[where], seconds, errors[where]))
        elif costs[where]:
            quickest = text.seconds(references_s[where] + min(costs[where].values()))
            reason = f"by forecast it takes at least {quickest}, and the budget of the sweep is {budget_s:.0f} s"
            skipped.append((dict(where), f"This cannot end in time: {reason}. Choose a longer one, or smaller sizes."))
        else:
            skipped.append((dict(where), next(iter(errors[where].values())).message))
    seconds = sum(point.seconds for point in points)
    peaks = [_peak_bytes(asked[key(point.at)], estimates[key(point.at)].values()) for point in points]
    return SweepForecast(
        max(seconds, min(budget_s, seconds + TURNS_S * len(points))),
        min(max(peaks, default=0), available_bytes),
        points,
        skipped,
    )


def smaller_failed(at: Mapping[str, int], outcome: str) -> Error | None:
    """The error of a strategy that ended with ``outcome`` at a smaller point, ``at``; None where that says nothing of
    larger ones."""
    types = {"timeout": (SMALLER_FAILED, "took too long"), "out_of_memory": (DOES_NOT_FIT, "ran out of memory")}
    if outcome not in types:
        return None
    type_, words = types[outcome]
    return _error(type_, f"it {words} at {' '.join(f'{name} {value:,}' for name, value in at.items())} already")


def over_budget(
    costs: Mapping[At, Mapping[str, float]], allowed_s: float, references_s: Mapping[At, float]
) -> list[tuple[At, str]]:
    """The cells to leave out so that the rest takes at most ``allowed_s`` seconds: what takes longest first, and the
    last cell of a point only where it is dear, or there is nothing else to leave out. ``references_s``: of points that
    have any cell."""
    left = {where: set(cells) for where, cells in costs.items()}
    dear_s = _DEAR * allowed_s / max(1, len(costs))
    cells = sorted(((cost, where, slug) for where, own in costs.items() for slug, cost in own.items()), reverse=True)
    total_s = sum(cost for cost, _, _ in cells) + sum(references_s.values())
    dropped: list[tuple[At, str]] = []
    for is_last_spared in (True, False):
        for cost, where, slug in cells:
            if total_s <= allowed_s:
                return dropped
            if slug in left[where] and not (is_last_spared and len(left[where]) == 1 and cost <= dear_s):
                left[where].remove(slug)
                total_s -= cost + (0.0 if left[where] else references_s[where])
                dropped.append((where, slug))
    return dropped


def _error(type_: str, reason: str) -> Error:
    return Error(type=type_, message=f"not run here: {reason}")


def _too_large(asked: Request, estimate: Estimate, available_bytes: int) -> Error | None:
    """The error of a strategy that cannot fit, by a forecast that is right within a factor; None where it can."""
    limit_bytes, least_bytes = _limit_bytes(asked), int(estimate.peak_bytes / _MEMORY_FACTOR)
    if limit_bytes is not None and least_bytes + case_of(asked).read_bytes > limit_bytes:
        return _error(DOES_NOT_FIT, f"by forecast it needs more than the memory limit of {asked.memory_limit_mib} MiB")
    if least_bytes > available_bytes:
        return _error(DOES_NOT_FIT, f"by forecast it needs more than the {text.size(available_bytes)} that there are")
    return None


def _limit_bytes(asked: Request) -> int | None:
    return None if asked.memory_limit_mib is None else asked.memory_limit_mib * 2**20


def _peak_bytes(asked: Request, estimates: Iterable[Estimate]) -> int:
    """Bytes of all processes at the worst moment; an allocator gives no more than its limit."""
    limit_bytes, case = _limit_bytes(asked), case_of(asked)
    peaks = [estimate.peak_bytes for estimate in estimates]
    return forecast.together_bytes(case, peaks if limit_bytes is None else [min(peak, limit_bytes) for peak in peaks])
