"""The memory and the time that a comparison and a sweep need, against those that there are, before any is started."""

import bisect
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import strategies
from measure.run import forecast, text
from measure.run.request import Request, case_of
from measure.run.run import Point
from measure.run.sweep_request import SweepRequest

# The share of the available memory that a run may plan with: forecasts are right within a factor, not to the byte.
_USABLE = 0.9
# The same for a memory limit; and what TensorFlow's runtime needs, its allocator begins with and gives to any tensor.
_SPARE, _RUNTIME_BYTES, _REGION_BYTES, _LEAST_BYTES = 1.1, 2**16, 2**21, 256
# The first turns of a process, in which it comes to its pace: seconds, and calls, at the least.
_TURNS_S, _TURNS = 0.12, 4
# Of a sweep's budget, what is needed by forecast until then: further turns, of some seconds a point, have the rest.
_NEEDED_SHARE, _POINT_S = 0.8, 5.0


def check(request: Request, available_bytes: int, most_bytes: int | None = None) -> str | None:
    """Return the sentence that says why a comparison cannot fit into memory and what would; None where it can.
    ``available_bytes``: what the machine can give now; ``most_bytes``: what a run may have, where that is limited."""
    case, slugs = case_of(request), request.strategies
    able = [slug for slug in slugs if not strategies.unsupported(strategies.parse(slug), case.workload)] or slugs
    limit_bytes = math.inf if request.memory_limit_mib is None else 2**20 * request.memory_limit_mib
    usable_bytes = min(_USABLE * available_bytes, math.inf if most_bytes is None else most_bytes)

    def needed_bytes(batch: int, limit_bytes: float) -> float:
        """Of the thriftiest strategy or the float64 reference, which is computed whole, with its inputs in its process;
        infinite where that strategy does not fit the limit."""
        smaller = replace(case, size={**case.size, "batch": batch})
        read, output = smaller.read_bytes, smaller.output_bytes
        peak = min(forecast.estimate(smaller, slug).peak_bytes for slug in able)
        beside = max(peak - output, _RUNTIME_BYTES)
        if beside >= output:  # results of single elements
            beside += _LEAST_BYTES * batch
        # Twice beside, since it is scattered, and its forecast is rough.
        if not fits_allocator(limit_bytes, [_SPARE * size for size in (read, output, beside, beside)]):
            return math.inf
        return read + max(peak, smaller.reference_bytes) + forecast.PROCESS_BYTES

    def is_too_large(batch: int) -> bool:
        return needed_bytes(batch, limit_bytes) > usable_bytes

    all_bytes = needed_bytes(case.batch, math.inf)
    if case.tensor_bytes > limit_bytes:
        takes, limit = text.size(case.tensor_bytes), request.memory_limit_mib
        reason = f"inputs and output alone take {takes}, and the memory limit is {limit} MiB"
    elif all_bytes > usable_bytes:
        reason = f"it needs about {text.size(all_bytes)}, and {text.size(usable_bytes)} can be used"
    else:
        return None
    largest = bisect.bisect_left(range(1, case.batch), True, key=is_too_large)
    advice = f"by forecast batch={largest} fits" if largest else "no batch fits: make the other sizes smaller"
    return f"This cannot fit: {reason}; {advice}."


def fits_allocator(limit_bytes: float, tensors: Iterable[float]) -> bool:
    """Return True if TensorFlow's allocator has room for tensors, in this order. Its regions double in size. A tensor
    lies in one, and takes all of a chunk that is not twice as large. Source: tsl/framework/bfc_allocator.cc."""
    rest, left, region = 0.0, limit_bytes, _REGION_BYTES
    for size in tensors:
        if size <= rest:
            chunk, rest = rest, 0.0
        elif size > left:
            return False
        else:
            chunk = region
            while chunk < size:
                chunk *= 2
            region, chunk = max(chunk, 2 * region), min(chunk, left)
            left -= chunk
        if chunk >= 2 * size:
            rest = max(rest, chunk - size)
    return True


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
    for at in (at for at in request.points() if at not in measured):
        asked = request.comparison(at)
        case = case_of(asked)
        ahead = forecast.forecast_run(case, asked.strategies)
        estimates = ahead.per_strategy.values()
        least_s = min(forecast.needed_s(case, [estimate]) for estimate in estimates)
        if refusal := check(asked, available_bytes):
            skipped.append((at, refusal))
        elif least_s > budget_s:
            reason = f"it takes at least {text.seconds(least_s)} by forecast, and the budget is {budget_s:.0f} s"
            skipped.append((at, f"This cannot end in time: {reason}. Choose a longer one, or smaller sizes."))
        else:
            turns_s = sum(max(_TURNS_S, _TURNS * estimate.latency_s) for estimate in estimates)
            points.append(PointForecast(at, asked, ahead.needed_s + turns_s))
            peak_bytes = max(peak_bytes, ahead.peak_bytes)
    needed_s = sum(point.seconds for point in points)
    too_long = ""
    if needed_s > _NEEDED_SHARE * budget_s:
        too_long = f"by forecast a budget of {budget_s:.0f} s is short for all of it: some of it will not be timed"
    return SweepForecast(min(budget_s, needed_s + _POINT_S * len(points)), peak_bytes, points, skipped, too_long)
