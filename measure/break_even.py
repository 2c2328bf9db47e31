"""After how many calls a strategy with a slower start has paid for it. Pure functions of a run."""

from collections.abc import Sequence

from measure.run import BreakEven, Measurement


def break_even(measurement: Measurement, others: Sequence[Measurement]) -> list[BreakEven]:
    """After how many calls ``measurement``, its first call included, has cost less than each strategy that starts
    faster; None where it is not faster per call. Strategies that both start and run slower are left out."""
    found = []
    if measurement.latency is None or measurement.first_call_s is None:
        return []
    for other in others:
        if other.latency is None or other.first_call_s is None or other.first_call_s >= measurement.first_call_s:
            continue
        head_start_s = measurement.first_call_s - other.first_call_s

        def calls(own_s: float, other_s: float, head_start_s: float = head_start_s) -> float | None:
            return 1 + head_start_s / (other_s - own_s) if other_s > own_s else None

        own, its = measurement.latency, other.latency
        found.append(
            BreakEven(
                against=other.strategy,
                calls=calls(own.median_s, its.median_s),
                low=calls(own.low_s, its.high_s),
                high=calls(own.high_s, its.low_s),
            )
        )
    return found
