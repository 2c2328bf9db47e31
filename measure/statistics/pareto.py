"""Latency against memory: which strategies nothing beats in both, and the fastest that fits.

Pure functions of a comparison's measurements.
"""

from collections.abc import Sequence

from measure.model.run import Measurement


def known(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The strategies whose latency and memory are both known and whose values are right."""
    return [
        item
        for item in measurements
        if item.twin_of is None and item.outcome == "ok" and item.latency is not None and item.memory is not None
    ]


def front(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The strategies that no other beats in one of latency and memory without losing in the other; fastest first."""
    unbeaten: list[Measurement] = []
    for item in sorted(known(measurements), key=lambda item: (_seconds(item), _bytes(item))):
        if not unbeaten or _bytes(item) < _bytes(unbeaten[-1]):
            unbeaten.append(item)
    return unbeaten


def fastest_within(measurements: Sequence[Measurement], limit_bytes: float) -> Measurement | None:
    """The fastest whose call takes at most this much memory; None where none does."""
    return next((item for item in front(measurements) if _bytes(item) <= limit_bytes), None)


def _seconds(item: Measurement) -> float:
    assert item.latency is not None
    return item.latency.median_s


def _bytes(item: Measurement) -> int:
    assert item.memory is not None
    return item.memory.peak_bytes


def bounds(measurements: Sequence[Measurement]) -> tuple[int, int] | None:
    """The least and the most memory that a call took."""
    peaks = [_bytes(item) for item in known(measurements)]
    return (min(peaks), max(peaks)) if peaks else None
