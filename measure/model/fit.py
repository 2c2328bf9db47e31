"""Whether a request can fit into memory at all, said before anything is started, with the nearest size that fits."""

from collections.abc import Callable

import numpy as np

import strategies
import workloads
from measure.model import forecast, text
from measure.model.request import Request

# The share of the available memory that a run may plan with: forecasts are right within a factor, not to the byte.
_USABLE = 0.9


def needed_bytes(request: Request, size: dict[str, int]) -> int:
    """Least memory that the comparison needs at ``size``: the thriftiest strategy with its inputs, and the float64
    reference, of which a block at a time is in memory but which is computed whole."""
    workload = workloads.get(request.workload)
    input_bytes, output_bytes, captured_bytes = forecast.case_bytes(
        workload, size, request.dtype, request.workload_options
    )
    peaks = [
        forecast.forecast(workload, size, request.dtype, strategies.parse(slug), request.workload_options).peak_bytes
        for slug in request.strategies
    ]
    reference_bytes = output_bytes * 8 // max(1, _item_bytes(request.dtype))
    return input_bytes + captured_bytes + max(min(peaks), reference_bytes) + forecast.PROCESS_BYTES


def _item_bytes(dtype: str) -> int:
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def least_tensor_bytes(request: Request, size: dict[str, int]) -> int:
    """What any strategy holds in TensorFlow's allocator at the least: inputs, captured variables and the output."""
    workload = workloads.get(request.workload)
    return sum(forecast.case_bytes(workload, size, request.dtype, request.workload_options))


def check(request: Request, available_bytes: int) -> str | None:
    """The sentence that says why the request cannot fit and what would, or None where it can.

    ``available_bytes``: what the machine can give to this process and its children now.
    """
    size = dict(request.size)
    limit_bytes = None if request.memory_limit_mib is None else request.memory_limit_mib * 2**20

    def fits(candidate: dict[str, int]) -> bool:
        if limit_bytes is not None and least_tensor_bytes(request, candidate) > limit_bytes:
            return False
        return needed_bytes(request, candidate) <= _USABLE * available_bytes

    if fits(size):
        return None
    nearest = _largest_batch(size, fits)
    if limit_bytes is not None and least_tensor_bytes(request, size) > limit_bytes:
        reason = (
            f"inputs and output alone take {text.size(least_tensor_bytes(request, size))}, "
            f"and the memory limit is {request.memory_limit_mib} MiB"
        )
    else:
        reason = (
            f"it needs about {text.size(needed_bytes(request, size))}, "
            f"and {text.size(_USABLE * available_bytes)} are available"
        )
    advice = (
        f"batch={nearest} is the largest that fits" if nearest else "no batch of these sizes fits: make them smaller"
    )
    return f"This cannot fit: {reason}; {advice}."


def _largest_batch(size: dict[str, int], fits: Callable[[dict[str, int]], bool]) -> int | None:
    """The largest batch, other sizes unchanged, that fits; None where not even one element does."""
    low, high = 0, size["batch"]
    while high - low > 1:
        middle = (low + high) // 2
        if fits({**size, "batch": middle}):
            low = middle
        else:
            high = middle
    return low or None
