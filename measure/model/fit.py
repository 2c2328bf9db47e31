"""Check that a request can fit into memory, before anything is started, and name the nearest size that fits."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from measure.model import forecast, text
from measure.model.request import Request, case_of
from workloads.case import Case

# The share of the available memory that a run may plan with: forecasts are right within a factor, not to the byte.
_USABLE = 0.9


def needed_bytes(case: Case, slugs: Iterable[str]) -> int:
    """Return the least memory that a comparison of the strategies needs.

    That is the thriftiest strategy with its inputs, and the float64 reference, of which a block at a time is in memory
    but which is computed whole.
    """
    least_peak_bytes = min(forecast.estimate(case, slug).peak_bytes for slug in slugs)
    return case.read_bytes + max(least_peak_bytes, case.reference_bytes) + forecast.PROCESS_BYTES


def check(request: Request, available_bytes: int, most_bytes: int | None = None) -> str | None:
    """Return the sentence that says why the request cannot fit and what would; None where it can.

    ``available_bytes`` is what the machine can give to this process and its children now; ``most_bytes`` is what a run
    may have of it, where that is limited.
    """
    usable_bytes = _USABLE * available_bytes
    is_limited = most_bytes is not None and most_bytes < usable_bytes
    if most_bytes is not None:
        usable_bytes = min(usable_bytes, most_bytes)
    case = case_of(request)
    limit_bytes = None if request.memory_limit_mib is None else request.memory_limit_mib * 2**20

    def fits(batch: int) -> bool:
        smaller = replace(case, size={**case.size, "batch": batch})
        if limit_bytes is not None and smaller.tensor_bytes > limit_bytes:
            return False
        return needed_bytes(smaller, request.strategies) <= usable_bytes

    if fits(case.batch):
        return None
    nearest = largest_batch(case.batch, fits)
    if limit_bytes is not None and case.tensor_bytes > limit_bytes:
        reason = (
            f"inputs and output alone take {text.size(case.tensor_bytes)}, "
            f"and the memory limit is {request.memory_limit_mib} MiB"
        )
    else:
        usable = text.size(usable_bytes)
        there = f"this server allows {usable}" if is_limited else f"{usable} are available"
        reason = f"it needs about {text.size(needed_bytes(case, request.strategies))}, and {there}"
    advice = (
        f"batch={nearest} is the largest that fits" if nearest else "no batch of these sizes fits: make them smaller"
    )
    return f"This cannot fit: {reason}; {advice}."


def largest_batch(batch: int, fits: Callable[[int], bool]) -> int | None:
    """Return the largest batch below ``batch`` that fits; None where not even one element does."""
    low, high = 0, batch
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low or None
