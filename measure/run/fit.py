"""Check that a request can fit into memory, before anything is started, and name the largest batch that fits."""

import bisect
import math
from dataclasses import replace

from measure.run import forecast, text
from measure.run.request import Request, case_of

# The share of the available memory that a run may plan with: forecasts are right within a factor, not to the byte.
_USABLE = 0.9


def check(request: Request, available_bytes: int, most_bytes: int | None = None) -> str | None:
    """Return the sentence that says why the request cannot fit and what would; None where it can.

    ``available_bytes`` is what the machine can give to this process and its children now; ``most_bytes`` is what a run
    may have of it, where that is limited.
    """
    case = case_of(request)
    limit_bytes = 2**20 * (request.memory_limit_mib or math.inf)
    usable_bytes = min(_USABLE * available_bytes, most_bytes or math.inf)

    def needed_bytes(batch: int) -> int:
        """The thriftiest strategy with its inputs, and the float64 reference, which is computed whole."""
        smaller = replace(case, size={**case.size, "batch": batch})
        least_peak_bytes = min(forecast.estimate(smaller, slug).peak_bytes for slug in request.strategies)
        return smaller.read_bytes + max(least_peak_bytes, smaller.reference_bytes) + forecast.PROCESS_BYTES

    def is_too_large(batch: int) -> bool:
        tensor_bytes = replace(case, size={**case.size, "batch": batch}).tensor_bytes
        return tensor_bytes > limit_bytes or needed_bytes(batch) > usable_bytes

    if not is_too_large(case.batch):
        return None
    if case.tensor_bytes > limit_bytes:
        takes, limit = text.size(case.tensor_bytes), request.memory_limit_mib
        reason = f"inputs and output alone take {takes}, and the memory limit is {limit} MiB"
    else:
        there = "this server allows {}" if usable_bytes == most_bytes else "{} are available"
        reason = f"it needs about {text.size(needed_bytes(case.batch))}, and {there.format(text.size(usable_bytes))}"
    largest = bisect.bisect_left(range(1, case.batch), True, key=is_too_large)
    advice = f"batch={largest} is the largest that fits" if largest else "no batch fits: make the other sizes smaller"
    return f"This cannot fit: {reason}; {advice}."
