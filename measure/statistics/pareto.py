"""Latency against memory: which strategies nothing beats in both, the fastest that fits, and the dial between them.

Pure functions of a comparison's measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from measure.model.run import Measurement
from strategies.planning import plan
from workloads.case import Case

# Mappers that a chunk of one element, and a chunk of the whole batch, come down to.
_ENDS = ("map_fn", "vectorized_map")


@dataclass(frozen=True)
class Dial:
    """``chunked`` from its smallest chunk to its largest, in the order of the curve: (chunk, slug). ``start`` and
    ``end`` are the strategies that it joins, in the same mode, where they were measured. ``chosen``: the chunk that
    is taken where none is named."""

    mode: str
    chunks: tuple[tuple[int, str], ...]
    start: str | None
    end: str | None
    chosen: int


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


def dials(measurements: Sequence[Measurement], case: Case, memory_limit_mib: int | None) -> list[Dial]:
    """Return one for each mode in which ``chunked`` was measured with several chunks of the same function."""
    by_mode: dict[str, dict[int, str]] = {}
    measured = known(measurements)
    for item in measured:
        if item.mapper == "chunked" and set(item.options) == {"chunk"} and item.options["chunk"]:
            by_mode.setdefault(item.mode, {})[int(item.options["chunk"])] = item.strategy
    made = []
    for mode, chunks in by_mode.items():
        if len(chunks) > 1:
            slugs = {item.strategy for item in measured}
            start, end = (slug if slug in slugs else None for slug in (f"{mapper}.{mode}" for mapper in _ENDS))
            made.append(Dial(mode, tuple(sorted(chunks.items())), start, end, _chosen(mode, case, memory_limit_mib)))
    return made


def _chosen(mode: str, case: Case, memory_limit_mib: int | None) -> int:
    return int(plan(case, f"chunked.{mode}", memory_limit_mib).options["chunk"])


def nearest_chunk(dial: Dial) -> str:
    """The measured strategy whose chunk is nearest to the one that would be chosen."""
    chosen = max(1, dial.chosen)
    _, slug = min(dial.chunks, key=lambda point: max(point[0] / chosen, chosen / point[0]))
    return slug


def bounds(measurements: Sequence[Measurement]) -> tuple[int, int] | None:
    """The least and the most memory that a call took."""
    peaks = [_bytes(item) for item in known(measurements)]
    return (min(peaks), max(peaks)) if peaks else None
