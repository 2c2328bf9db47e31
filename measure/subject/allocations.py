"""Live bytes over time, their peak and the ops that held it, from what an allocator reported. Pure functions of data.

The events are those that `measure.subject.trace.allocations` reads.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from measure.model import op_names
from measure.model.run import TIMELINE_POINTS, AtPeak

OPS_AT_PEAK = 20
OTHER_OPS = "other ops"
UNNAMED_OP = "not named by TensorFlow"


@dataclass(frozen=True)
class AllocationEvent:
    """A buffer was allocated (``freed`` False) or freed. ``bytes`` and ``op`` of a free are not looked at."""

    time_ps: int
    address: int
    freed: bool
    bytes: int = 0
    op: str = ""


@dataclass(frozen=True)
class LiveMemory:
    """Live bytes over time: ``live_bytes[i]`` from ``times_ps[i]`` on; ``holders`` are the buffers live at the peak."""

    peak_bytes: int
    peak_time_ps: int
    times_ps: tuple[int, ...]
    live_bytes: tuple[int, ...]
    holders: tuple[AllocationEvent, ...]
    survivors: frozenset[int]  # addresses never freed


def live_bytes(events: Iterable[AllocationEvent]) -> LiveMemory:
    """The bytes that were alive at each time, from events in any order; linear in their number once sorted.

    Where the peak is reached more than once, the first time counts. Frees of addresses that were not allocated here are
    ignored. An address that is allocated again without a free seen replaces what was there. At one and the same time
    frees come before allocations, other than those of buffers that were only allocated at that time.
    """
    live: dict[int, AllocationEvent] = {}
    times, sums = [], []
    total = peak = peak_time = 0
    at_peak = -1
    ordered = _in_order(events)
    for place, event in enumerate(ordered):
        before = live.pop(event.address, None)
        if before is not None:
            total -= before.bytes
        elif event.freed:
            continue
        if not event.freed:
            live[event.address] = event
            total += event.bytes
        times.append(event.time_ps)
        sums.append(total)
        if total > peak:
            peak, peak_time, at_peak = total, event.time_ps, place

    holders: dict[int, AllocationEvent] = {}
    for event in ordered[: at_peak + 1]:
        holders.pop(event.address, None)
        if not event.freed:
            holders[event.address] = event
    return LiveMemory(peak, peak_time, tuple(times), tuple(sums), tuple(holders.values()), frozenset(live))


def _in_order(events: Iterable[AllocationEvent]) -> list[AllocationEvent]:
    """Events by time; at one time frees of what is alive, then allocations, then the other frees."""
    by_time = sorted(events, key=lambda event: event.time_ps)
    ordered: list[AllocationEvent] = []
    alive: set[int] = set()
    start = 0
    while start < len(by_time):
        end = start + 1
        while end < len(by_time) and by_time[end].time_ps == by_time[start].time_ps:
            end += 1
        late = []
        for event in by_time[start:end]:
            if event.freed and event.address in alive:
                alive.remove(event.address)
                ordered.append(event)
            elif event.freed:
                late.append(event)
        for event in by_time[start:end]:
            if not event.freed:
                alive.add(event.address)
                ordered.append(event)
        for event in late:
            alive.discard(event.address)
            ordered.append(event)
        start = end
    return ordered


def downsample(times: Sequence[int], values: Sequence[int], most: int = TIMELINE_POINTS) -> list[int]:
    """Indices of at most ``most`` points (4 at least): first, last, and the least and greatest of every stretch."""
    count = len(times)
    if count <= most:
        return list(range(count))
    stretches = (most - 2) // 2
    kept = {0, count - 1}
    for stretch in range(stretches):
        indices = range(count * stretch // stretches, count * (stretch + 1) // stretches)
        kept.add(min(indices, key=values.__getitem__))
        kept.add(max(indices, key=values.__getitem__))
    return sorted(kept)


def readable_op(name: str) -> str:
    """An op's name without the functions that it was inlined from and without the number of its kind.

    ``map/while/body/_1/map/while/mul_7`` is one of the ops ``map/while/mul``.
    """
    name = re.sub(r"^.*/_\d+/", "", name)
    return re.sub(r"_\d+$", "", name)


def ops_at_peak(live: LiveMemory, most: int = OPS_AT_PEAK) -> list[AtPeak]:
    """Bytes held at the peak per op, most first; beyond ``most`` rows the rest are one row.

    The sum of the rows is the peak. Under XLA the events name only the compiled function: its buffers are told apart by
    whether they were given back before the end.
    """
    sums: dict[str, int] = {}
    names: dict[str, set[str]] = {}
    for event in live.holders:
        if function := re.fullmatch(r"__inference_(.+)_\d+|(cluster_\d+.*)", event.op):
            cluster = function.group(1) or function.group(2)
            kind = "output" if event.address in live.survivors else "temporary"
            op = op_names.of_xla_buffer(kind, cluster)
        else:
            op = readable_op(event.op) or UNNAMED_OP
        sums[op] = sums.get(op, 0) + event.bytes
        names.setdefault(op, set()).add(event.op)
    rows = sorted(sums.items(), key=lambda row: (-row[1], row[0]))
    labelled = [AtPeak(op=op_names.of_ops(op, len(names[op])), bytes=n) for op, n in rows]
    if len(labelled) > most:
        rest = sum(row.bytes for row in labelled[most - 1 :])
        labelled = [*labelled[: most - 1], AtPeak(op=OTHER_OPS, bytes=rest)]
    return labelled
