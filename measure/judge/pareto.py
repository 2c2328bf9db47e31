"""Latency against memory: which strategies nothing beats in both. Pure functions of a comparison's measurements."""

from collections.abc import Sequence

from measure.run.run import Measurement


def placed(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The strategies whose latency and memory are both known and whose values are right."""
    return [
        item
        for item in measurements
        if item.twin_of is None and item.outcome == "ok" and item.latency is not None and item.memory is not None
    ]


def front(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The strategies that no other beats in one of latency and memory without losing in the other; fastest first."""
    unbeaten: list[Measurement] = []
    for item in sorted(placed(measurements), key=_figures):
        if not unbeaten or _figures(item)[1] < _figures(unbeaten[-1])[1]:
            unbeaten.append(item)
    return unbeaten


def _figures(item: Measurement) -> tuple[float, int]:
    """Seconds and peak bytes of one of the `placed`."""
    assert item.latency is not None
    assert item.memory is not None
    return item.latency.median_s, item.memory.peak_bytes
