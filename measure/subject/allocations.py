"""What an allocator reported, as live bytes over time, their peak, and the ops that held it. Pure functions of data.

The events are those of TensorFlow's profiler: ``MemoryAllocation`` and ``MemoryDeallocation`` of
``tsl/framework/bfc_allocator.cc``, in the ``XSpace`` message of its file.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from measure.model.run import TIMELINE_POINTS, AtPeak

OPS_AT_PEAK = 20
OTHER_OPS = "other ops"
UNNAMED_OP = "not named by TensorFlow"
# The name of the span in the trace that is the call whose memory counts.
CALL = "mapbench call"

_PS_PER_NS = 1000


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
    """What was alive when, from events in any order; linear in their number once sorted.

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
            op = f"XLA {kind} buffer (cluster {cluster})"
        else:
            op = readable_op(event.op) or UNNAMED_OP
        sums[op] = sums.get(op, 0) + event.bytes
        names.setdefault(op, set()).add(event.op)
    rows = sorted(sums.items(), key=lambda row: (-row[1], row[0]))
    labelled = [AtPeak(op=f"{op} ({len(names[op])} ops)" if len(names[op]) > 1 else op, bytes=n) for op, n in rows]
    if len(labelled) > most:
        rest = sum(row.bytes for row in labelled[most - 1 :])
        labelled = [*labelled[: most - 1], AtPeak(op=OTHER_OPS, bytes=rest)]
    return labelled


# --- the profiler's file ----------------------------------------------------------------------------------------------


def read(data: bytes, device: str) -> tuple[list[AllocationEvent], bool, int, int]:
    """Of a serialised XSpace: the device's events from the start of the call on, whether its allocator reports at all,
    and the picoseconds at which the call began and ended."""
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    space = XSpace()
    space.ParseFromString(data)
    kind, _, index = device.rpartition(":")
    is_gpu = kind.upper().endswith("GPU")
    events: list[AllocationEvent] = []
    seen = False
    start_ps = end_ps = 0
    for plane in space.planes:
        event_names = {key: metadata.name for key, metadata in plane.event_metadata.items()}
        stat_names = {key: metadata.name for key, metadata in plane.stat_metadata.items()}
        for line in plane.lines:
            line_ps = line.timestamp_ns * _PS_PER_NS
            enclosing: _Enclosing | None = None
            for event in line.events:
                name = event_names[event.metadata_id]
                if name == CALL:
                    start_ps = line_ps + event.offset_ps
                    end_ps = start_ps + event.duration_ps
                if name not in ("MemoryAllocation", "MemoryDeallocation"):
                    continue
                stats = {stat_names[stat.metadata_id]: stat for stat in event.stats}
                allocator = _text(stats["allocator_name"], stat_names) if "allocator_name" in stats else ""
                if not _belongs(allocator, is_gpu, index):
                    continue
                seen = True
                freed = name == "MemoryDeallocation"
                op = "" if freed or "tf_op" not in stats else _text(stats["tf_op"], stat_names)
                if not freed and not op:
                    enclosing = enclosing or _Enclosing(line, event_names)
                    op = enclosing.op_at(event.offset_ps)
                events.append(
                    AllocationEvent(
                        time_ps=line_ps + event.offset_ps,
                        address=_number(stats["addr"]),
                        freed=freed,
                        bytes=_number(stats["requested_bytes"]),
                        op=op,
                    )
                )
    return [event for event in events if event.time_ps >= start_ps], seen, start_ps, end_ps


def _belongs(allocator: str, is_gpu: bool, index: str) -> bool:
    """Whether an allocator manages the device's memory: ``GPU_0_bfc`` is GPU 0's, ``gpu_host_bfc`` pins the host's."""
    if is_gpu:
        return allocator.startswith(f"GPU_{index}_")
    return not allocator.lower().startswith("gpu_")


def _number(stat: Any) -> int:
    return int(getattr(stat, stat.WhichOneof("value")))


def _text(stat: Any, names: dict[int, str]) -> str:
    """A text that is written in place, or as the key of a name that many events share."""
    return names[stat.ref_value] if stat.WhichOneof("value") == "ref_value" else stat.str_value


class _Enclosing:
    """Which op ran on a thread at a time, for the allocations that do not say: ops are traced as ``name:Type``."""

    def __init__(self, line: Any, names: dict[int, str]) -> None:
        spans = []
        for event in line.events:
            name, _, kind = names[event.metadata_id].rpartition(":")
            if name and not name.endswith(":") and re.fullmatch(r"[A-Z]\w*", kind) and " " not in name:
                spans.append((event.offset_ps, event.offset_ps + event.duration_ps, name))
        self._spans = sorted(spans)
        self._starts = [start for start, _, _ in self._spans]

    def op_at(self, offset_ps: int) -> str:
        place = bisect_right(self._starts, offset_ps) - 1
        if place >= 0 and offset_ps <= self._spans[place][1]:
            return self._spans[place][2]
        return ""
