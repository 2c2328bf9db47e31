"""A call as TensorFlow's profiler saw it: spans and allocations, and the spans as a file for Perfetto. Pure.

Everything here reads an ``XSpace``, the message in the profiler's file: planes (the host, each device) of lines (on the
host, threads) of events, which have statistics. Times in it are picoseconds from the start of their line.
"""

import gzip
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from measure.subject.allocations import AllocationEvent
from measure.subject.profiler import CALL

MOST_EVENTS = 100_000

_PS_PER_NS = 1000
_PS_PER_US = 1e6


@dataclass(frozen=True)
class Span:
    """Something that took its time on one thread, in picoseconds. ``stats`` are the event's own."""

    thread: int
    name: str
    start_ps: int
    duration_ps: int
    stats: Mapping[str, Any]

    @property
    def end_ps(self) -> int:
        return self.start_ps + self.duration_ps


@dataclass(frozen=True)
class Thread:
    """A line of a plane: a thread of the host, or a stream of a device."""

    plane: str
    name: str


@dataclass(frozen=True)
class Trace:
    """All that was traced from the start of the marked call to its end."""

    threads: tuple[Thread, ...]
    spans: tuple[Span, ...]
    calling_thread: int
    start_ps: int
    end_ps: int


@dataclass(frozen=True)
class Allocations:
    """The work of the allocators of one device from the start of the marked call on, until the profiler was stopped.
    ``reported``: True if they report at all."""

    events: list[AllocationEvent]
    reported: bool
    start_ps: int
    end_ps: int


def read(space: Any) -> Trace:
    """The spans in the quickest of the marked calls. Raises ValueError where there is no such call."""
    duration_ps, start_ps, calling_thread = min(_calls(space), default=(0, 0, -1))
    if calling_thread < 0:
        raise ValueError("the profiler did not see the call")
    threads: list[Thread] = []
    spans: list[Span] = []
    for thread, (plane, line) in enumerate(_lines(space)):
        threads.append(Thread(plane.name, line.name))
        names, stats = _names(plane.event_metadata), _names(plane.stat_metadata)
        line_ps = line.timestamp_ns * _PS_PER_NS
        # There can be a million events, and most are of other calls.
        first, last = start_ps - line_ps, start_ps + duration_ps - line_ps
        spans += [
            Span(
                thread,
                names[event.metadata_id],
                line_ps + event.offset_ps,
                event.duration_ps,
                {stats[stat.metadata_id]: _value(stat, stats) for stat in event.stats},
            )
            for event in line.events
            if first <= event.offset_ps <= last
        ]
    return Trace(tuple(threads), tuple(spans), calling_thread, start_ps, start_ps + duration_ps)


def allocations(space: Any, device: str) -> Allocations:
    """The reports of the allocators of ``device``: ``MemoryAllocation`` and ``MemoryDeallocation`` events.

    Source: ``tsl/framework/bfc_allocator.cc``.
    """
    duration_ps, start_ps, _ = max(_calls(space), key=lambda call: call[1], default=(0, 0, -1))
    events: list[AllocationEvent] = []
    for plane, line in _lines(space):
        names, stat_names = _names(plane.event_metadata), _names(plane.stat_metadata)
        line_ps = line.timestamp_ns * _PS_PER_NS
        enclosing: _Enclosing | None = None
        for event in line.events:
            name = names[event.metadata_id]
            if name not in ("MemoryAllocation", "MemoryDeallocation"):
                continue
            stats = {stat_names[stat.metadata_id]: _value(stat, stat_names) for stat in event.stats}
            if not _belongs(stats.get("allocator_name", ""), device):
                continue
            freed = name == "MemoryDeallocation"
            op = "" if freed else stats.get("tf_op", "")
            if not freed and not op:
                enclosing = enclosing or _Enclosing(line, names)
                op = enclosing.op_at(event.offset_ps)
            events.append(
                AllocationEvent(line_ps + event.offset_ps, int(stats["addr"]), freed, int(stats["requested_bytes"]), op)
            )
    kept = [event for event in events if event.time_ps >= start_ps]
    return Allocations(kept, bool(events), start_ps, start_ps + duration_ps)


def chrome(trace: Trace, title: str, most: int = MOST_EVENTS) -> bytes:
    """The call as compressed JSON in the Trace Event Format, which Perfetto and Chrome open.

    Times are in microseconds from the start of the call. Of more than ``most`` events the first are kept.
    """
    ordered = sorted(trace.spans, key=lambda span: span.start_ps)
    kept = ordered[:most]
    used = sorted({span.thread for span in kept})
    planes = {plane: number for number, plane in enumerate(dict.fromkeys(trace.threads[i].plane for i in used), 1)}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": number, "args": {"name": f"{title} {plane}".strip()}}
        for plane, number in planes.items()
    ]
    for thread in used:
        line = trace.threads[thread]
        name = line.name or f"thread {thread}"
        events.append(
            {"ph": "M", "name": "thread_name", "pid": planes[line.plane], "tid": thread, "args": {"name": name}}
        )
    for span in kept:
        event: dict[str, Any] = {
            "ph": "X",
            "name": span.name,
            "pid": planes[trace.threads[span.thread].plane],
            "tid": span.thread,
            "ts": (span.start_ps - trace.start_ps) / _PS_PER_US,
            "dur": span.duration_ps / _PS_PER_US,
        }
        if span.stats:
            event["args"] = {
                name: value for name, value in span.stats.items() if isinstance(value, str | int | float | bool)
            }
        events.append(event)
    left_out = len(ordered) - len(kept)
    document = {"displayTimeUnit": "ns", "traceEvents": events, "otherData": {"events left out": left_out}}
    return gzip.compress(msgspec.json.encode(document), 6, mtime=0)


# --- parts of an XSpace ----------------------------------------------------------------------------------------------


def _lines(space: Any) -> Iterator[tuple[Any, Any]]:
    return ((plane, line) for plane in space.planes for line in plane.lines)


def _calls(space: Any) -> list[tuple[int, int, int]]:
    """Duration, start and thread of each marked call."""
    return [
        (event.duration_ps, line.timestamp_ns * _PS_PER_NS + event.offset_ps, thread)
        for thread, (plane, line) in enumerate(_lines(space))
        for marks in [{key for key, name in _names(plane.event_metadata).items() if name == CALL}]
        if marks
        for event in line.events
        if event.metadata_id in marks
    ]


def _names(metadata: Any) -> dict[int, str]:
    return {key: entry.name for key, entry in metadata.items()}


def _value(stat: Any, names: Mapping[int, str]) -> Any:
    """A text may be written in place, or be the key of a name that many events share."""
    kind = stat.WhichOneof("value")
    return names.get(stat.ref_value, "") if kind == "ref_value" else getattr(stat, kind) if kind else None


def _belongs(allocator: str, device: str) -> bool:
    """True if an allocator manages the device's memory: ``GPU_0_bfc`` is GPU 0's, ``gpu_host_bfc`` pins the host's."""
    kind, _, index = device.rpartition(":")
    if kind.upper().endswith("GPU"):
        return allocator.startswith(f"GPU_{index}_")
    return not allocator.lower().startswith("gpu_")


class _Enclosing:
    """The op that ran on a thread at a time, for the allocations that do not say: ops are traced as ``name:Type``."""

    def __init__(self, line: Any, names: Mapping[int, str]) -> None:
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
