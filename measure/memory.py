"""How much memory one steady call needs: by the allocator's events, by its counters, and as the system saw it.

Every method costs speed, so a process that measures memory is never timed. Two settings must be made before the
process runs its first op: `prepare_events` for the bytes that TensorFlow asks for, `prepare_process_peak` for the
resident memory of the process; one process does one of the two.
"""

import ctypes
import gc
import os
import re
import sys
import tempfile
import tracemalloc
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure.run import AtPeak, Memory, Timeline

TIMELINE_POINTS = 500
OPS_AT_PEAK = 20
OTHER_OPS = "other ops"
NUMPY = "NumPy and Python"
UNNAMED_OP = "not named by TensorFlow"

_PS_PER_S = 1e12
_PS_PER_NS = 1000

# mallopt's parameters, from glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
# Buffers from here on are mapped on their own and leave no trace when freed. Smaller ones lie in the one heap, which is
# trimmed; mapping those too would add up to a page to each (4 KiB buffers would read 1.5 times their size).
_MMAP_THRESHOLD_BYTES = 64 * 1024

_CALL = "mapbench call"
_CANARY_BYTES = 12_347


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


# --- settings, before the first op ------------------------------------------------------------------------------------


def prepare_events(limit_mib: int | None = None) -> None:
    """Makes TensorFlow's CPU memory visible to `measure_events`, and limits it to ``limit_mib`` MiB.

    More than the limit fails with ``ResourceExhaustedError``, XLA's buffers included. Before the first op only.
    """
    os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"
    if limit_mib is not None:
        os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(limit_mib)


def prepare_gpu() -> None:
    """Lets this process take a GPU's memory as it needs it, not all at once: others live on the same one. Before the
    first op only. Source: ``GPUBFCAllocator::GetAllowGrowthValue``, which asks for the variable by name."""
    os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"


def limit_gpu(index: int, limit_mib: int) -> None:
    """Limits this process to ``limit_mib`` MiB of a GPU's memory, as `prepare_events` does for the machine's."""
    import tensorflow as tf

    gpu = tf.config.list_physical_devices("GPU")[index]
    tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=limit_mib)])


def gpu_room(index: int) -> int | None:
    """Bytes that a process may take of a GPU's memory now: what is free but for a reserve that TensorFlow keeps to
    itself; None where there is no such GPU."""
    import tensorflow as tf
    from tensorflow.python.client import device_lib

    options = tf.compat.v1.GPUOptions(visible_device_list=str(index), allow_growth=True)
    devices = device_lib.list_local_devices(tf.compat.v1.ConfigProto(gpu_options=options))
    return next((device.memory_limit for device in devices if device.device_type == "GPU"), None)


def prepare_process_peak() -> bool:
    """Makes this process give memory back as soon as it is freed, as `measure_process_peak` needs; before the first op.

    False where that can not be had: anywhere but on Linux with glibc.
    """
    libc = _glibc()
    if libc is None:
        return False
    os.environ["TF_ONEDNN_USE_SYSTEM_ALLOCATOR"] = "1"
    return all(
        libc.mallopt(parameter, value) == 1
        for parameter, value in (
            (_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES),
            (_M_TRIM_THRESHOLD, 0),
            # malloc_trim does not reach the free end of the heaps that threads would otherwise get of their own.
            (_M_ARENA_MAX, 1),
        )
    )


def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") else None


# --- measurements of one steady call: the caller has made the calls before it -----------------------------------------


def measure_events(
    call: Callable[[], Any],
    *,
    device: str = "CPU:0",
    input_bytes: int = 0,
    captured_bytes: int = 0,
    with_numpy: bool = False,
) -> Memory:
    """Memory of one call from the allocator's events, exact to the requested byte.

    ``call`` returns a nest of tensors, which is held until the last event is in. ``device`` is the one whose memory
    counts (``CPU:0``, ``GPU:1``). RuntimeError where events do not arrive, since `prepare_events` came too late.
    Source of the events: ``tsl/framework/bfc_allocator.cc``, seen through TensorFlow's profiler.

    ``with_numpy``: the call runs NumPy code. The allocator knows NumPy's memory only once it is copied, which is
    not done where it happens to start at a multiple of 64 bytes. The most that NumPy and Python used is then added to
    the peak, an upper bound and good to some 100 KiB of Python's own; the timeline stays TensorFlow's.
    """
    import tensorflow as tf

    # The allocator reports from the host, for a GPU's memory too; tracing the GPU itself would add nothing.
    levels = {"host_tracer_level": 2, "python_tracer_level": 0, "device_tracer_level": 0}
    options = tf.profiler.experimental.ProfilerOptions(**levels)
    with tempfile.TemporaryDirectory(prefix="mapbench-", ignore_cleanup_errors=True) as folder:
        tf.profiler.experimental.start(folder, options)
        try:
            with tf.device(device):
                canary = tf.fill([_CANARY_BYTES], tf.constant(1, tf.uint8))
            if with_numpy:
                tracemalloc.start()
            with tf.profiler.experimental.Trace(_CALL):
                outputs = call()
                _synchronise()
            numpy_bytes = tracemalloc.get_traced_memory()[1] if with_numpy else 0
        finally:
            if with_numpy:
                tracemalloc.stop()
            tf.profiler.experimental.stop()
        files = sorted(Path(folder).rglob("*.xplane.pb"))
        if not files:
            raise RuntimeError("the profiler wrote no file of events")
        events, seen, start_ps, end_ps = _read_events(files[0].read_bytes(), device)
    del canary
    if not seen:
        raise RuntimeError(f"the allocator of {device} reports no events: prepare_events must come before the first op")

    live = live_bytes(events)
    times_ps = (start_ps, *live.times_ps, max(end_ps, live.times_ps[-1] if live.times_ps else end_ps))
    values = (0, *live.live_bytes, live.live_bytes[-1] if live.live_bytes else 0)
    kept = downsample(times_ps, values)
    output_bytes = bytes_of(outputs)
    peak_bytes = live.peak_bytes + numpy_bytes
    at_peak = ops_at_peak(live)
    if with_numpy:
        at_peak = sorted([*at_peak, AtPeak(op=NUMPY, bytes=numpy_bytes)], key=lambda row: -row.bytes)
    return Memory(
        peak_bytes=peak_bytes,
        output_bytes=output_bytes,
        temporary_bytes=max(0, peak_bytes - output_bytes),
        input_bytes=input_bytes,
        captured_bytes=captured_bytes,
        method="events",
        at_peak=at_peak,
        timeline=Timeline(
            t_s=[(times_ps[i] - start_ps) / _PS_PER_S for i in kept], live_bytes=[values[i] for i in kept]
        ),
    )


def measure_allocator(
    call: Callable[[], Any], *, device: str = "CPU:0", input_bytes: int = 0, captured_bytes: int = 0
) -> Memory:
    """Memory of one call from the allocator's own counters: for calls with too many events, and for any GPU.

    With the default CPU allocator buffers under 256 KiB are not counted; after `prepare_events` whole chunks are.
    """
    import tensorflow as tf

    gc.collect()
    _synchronise()
    tf.config.experimental.reset_memory_stats(device)
    before = tf.config.experimental.get_memory_info(device)["current"]
    outputs = call()
    _synchronise()
    peak_bytes = max(0, tf.config.experimental.get_memory_info(device)["peak"] - before)
    output_bytes = bytes_of(outputs)
    return Memory(
        peak_bytes=peak_bytes,
        output_bytes=output_bytes,
        temporary_bytes=max(0, peak_bytes - output_bytes),
        input_bytes=input_bytes,
        captured_bytes=captured_bytes,
        method="allocator",
    )


def measure_tracemalloc(call: Callable[[], Any], *, input_bytes: int = 0, captured_bytes: int = 0) -> Memory:
    """Memory of one call as Python's allocator saw it, NumPy's arrays included; TensorFlow's tensors are not."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        outputs = call()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    peak_bytes = max(0, peak - before)
    output_bytes = bytes_of(outputs)
    return Memory(
        peak_bytes=peak_bytes,
        output_bytes=output_bytes,
        temporary_bytes=max(0, peak_bytes - output_bytes),
        input_bytes=input_bytes,
        captured_bytes=captured_bytes,
        method="tracemalloc",
    )


def measure_process_peak(call: Callable[[], Any]) -> int | None:
    """By how many bytes the process's resident memory rose at most during one call, outputs included.

    It also catches scratch memory that no allocator reports. None where the system does not tell. Before the first op
    `prepare_process_peak` must have come. The kernel counts in pages. Source: proc(5), ``clear_refs`` and ``VmHWM``.
    """
    libc = _glibc()
    if libc is None:
        return None
    gc.collect()
    libc.malloc_trim(0)
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = _status_bytes("VmRSS")
        outputs = call()
        peak = _status_bytes("VmHWM")
    except OSError:
        return None
    del outputs
    return None if before is None or peak is None else max(0, peak - before)


def _status_bytes(key: str) -> int | None:
    with open("/proc/self/status", encoding="utf-8") as file:
        for line in file:
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) * 1024
    return None


def bytes_of(tensors: Any) -> int:
    """Bytes of the distinct buffers in a nest of tensors or arrays: what shares memory is counted once.

    Leaves that are no tensors count as nothing; on a GPU only the same tensor is known to share memory.
    """
    spans: list[tuple[int, int]] = []
    elsewhere: dict[int, int] = {}
    for leaf in _leaves(tensors):
        array = host_array(leaf)
        if array is not None:
            address = array.__array_interface__["data"][0]
            spans.append((address, address + array.nbytes))
        elif hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            elsewhere[id(leaf)] = int(leaf.dtype.size) * int(leaf.shape.num_elements())
    total, reached = sum(elsewhere.values()), 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def host_array(leaf: Any) -> Any:
    """The NumPy view of a tensor in this machine's memory, without a copy; None where there is none."""
    import numpy as np

    if isinstance(leaf, np.ndarray | np.generic):
        return np.asarray(leaf)
    if "GPU" in getattr(leaf, "device", ""):
        return None  # a view would first copy it from the device
    try:
        return np.asarray(memoryview(leaf))
    except (TypeError, ValueError, BufferError):
        return None


def _leaves(nest: Any) -> Iterable[Any]:
    tf = sys.modules.get("tensorflow")
    if tf is not None:  # ragged and sparse tensors are several
        return tf.nest.flatten(nest, expand_composites=True)
    if isinstance(nest, dict):
        nest = nest.values()
    elif not isinstance(nest, tuple | list):
        return [nest]
    return [leaf for part in nest for leaf in _leaves(part)]


def _synchronise() -> None:
    """Waits for all devices: on a GPU a call returns before its work is done."""
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        tf.test.experimental.sync_devices()


def _read_events(data: bytes, device: str) -> tuple[list[AllocationEvent], bool, int, int]:
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
                if name == _CALL:
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
