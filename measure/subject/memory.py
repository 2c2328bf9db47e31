"""The memory that one steady call needs: by the allocator's events, by its counters, and as the system saw it.

Every method costs speed, so a process that measures memory is never timed. Two settings must be made before the
process runs its first op: `prepare_events` for the bytes that TensorFlow asks for, `prepare_process_peak` for the
resident memory of the process; one process does one of the two.
"""

import ctypes
import gc
import itertools
import operator
import os
import re
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from measure.model.run import TIMELINE_POINTS, AtPeak, Memory, Timeline
from measure.subject.profiler import Profile, profiled
from workloads.spec import Leaf

NUMPY = "NumPy and Python"
UNNAMED_OP = "not named by TensorFlow"
OTHER_OPS = "other ops"
OPS_AT_PEAK = 20

_PS_PER_S = 1e12
_ALLOCATION, _FREE = "MemoryAllocation", "MemoryDeallocation"

# mallopt's parameters, from glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
# Buffers from here on are mapped on their own and leave no trace when freed. Smaller ones lie in the one heap, which is
# trimmed; mapping those too would add up to a page to each (4 KiB buffers would read 1.5 times their size).
_MMAP_THRESHOLD_BYTES = 64 * 1024

_CANARY_BYTES = 12_347


# --- settings, before the first op ------------------------------------------------------------------------------------


def prepare_events(limit_mib: int | None = None) -> None:
    """Make TensorFlow's CPU memory visible to `measure_events`, and limit it to ``limit_mib`` MiB.

    More than the limit fails with ``ResourceExhaustedError``, XLA's buffers included. Before the first op only.
    """
    os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"
    if limit_mib is not None:
        os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(limit_mib)


def prepare_gpu() -> None:
    """Let this process take a GPU's memory as it needs it, not all at once: others live on the same one. Before the
    first op only. Source: ``GPUBFCAllocator::GetAllowGrowthValue``, which asks for the variable by name."""
    os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"


def limit_gpu(index: int, limit_mib: int) -> None:
    """Limit this process to ``limit_mib`` MiB of a GPU's memory, as `prepare_events` does for the machine's."""
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
    """Make this process give memory back as soon as it is freed, as `measure_process_peak` needs; before the first op.

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


# --- measurements of one steady call, which waits for its device: the caller has made the calls before it ------------


def measure_events(call: Callable[[], Any], *, device: str = "CPU:0", with_numpy: bool = False) -> Memory:
    """Memory of one call from the allocator's events, exact to the requested byte.

    ``call`` returns a nest of tensors, which is held until the last event is in. ``device`` is the one whose memory
    counts (``CPU:0``, ``GPU:1``). RuntimeError where events do not arrive, since `prepare_events` came too late.
    Source of the events: ``tsl/framework/bfc_allocator.cc``, seen through TensorFlow's profiler.

    ``with_numpy``: the call runs NumPy code. The allocator knows NumPy's memory only once it is copied, which is
    not done where it happens to start at a multiple of 64 bytes. The most that NumPy and Python used is then added to
    the peak, an upper bound and good to some 100 KiB of Python's own; the timeline stays TensorFlow's.
    """
    import tensorflow as tf

    numpy_bytes = 0
    # The allocator reports from the host, for a GPU's memory too; tracing the GPU itself would add nothing.
    with profiled() as profile:
        with tf.device(device):
            canary = tf.fill([_CANARY_BYTES], tf.constant(1, tf.uint8))
        if with_numpy:
            tracemalloc.start()
        with profile.call():
            outputs = call()
        if with_numpy:
            numpy_bytes = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    del canary
    begin = profile.calls()[0]
    allocated = allocations(profile, device)
    if not allocated:
        raise RuntimeError(f"the allocator of {device} reports no events: prepare_events must come before the first op")
    live = live_memory(event for event in allocated if event.time_ps >= begin.start_ps)
    times_ps = [begin.start_ps, *live.times_ps, max([begin.end_ps, *live.times_ps[-1:]])]
    values = [0, *live.live_bytes, *(live.live_bytes[-1:] or [0])]
    shown = downsample(values)
    at_peak = ops_at_peak(live.at_peak)
    if with_numpy:
        at_peak = sorted([*at_peak, AtPeak(op=NUMPY, bytes=numpy_bytes)], key=lambda row: -row.bytes)
    timeline = Timeline(
        t_s=[(times_ps[i] - begin.start_ps) / _PS_PER_S for i in shown], live_bytes=[values[i] for i in shown]
    )
    return _memory(outputs, live.peak_bytes + numpy_bytes, "events", at_peak=at_peak, timeline=timeline)


def measure_allocator(call: Callable[[], Any], *, device: str = "CPU:0") -> Memory:
    """Memory of one call from the allocator's own counters: for calls with too many events, and for any GPU.

    With the default CPU allocator buffers under 256 KiB are not counted; after `prepare_events` whole chunks are.
    """
    import tensorflow as tf

    gc.collect()
    tf.config.experimental.reset_memory_stats(device)
    before = tf.config.experimental.get_memory_info(device)["current"]
    outputs = call()
    return _memory(outputs, tf.config.experimental.get_memory_info(device)["peak"] - before, "allocator")


def measure_tracemalloc(call: Callable[[], Any]) -> Memory:
    """Memory of one call as Python's allocator saw it, NumPy's arrays included; TensorFlow's tensors are not."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    outputs = call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return _memory(outputs, peak - before, "tracemalloc")


def _memory(outputs: Any, peak_bytes: int, method: Any, **more: Any) -> Memory:
    peak_bytes, output_bytes = max(0, peak_bytes), bytes_of(outputs)
    temporary_bytes = max(0, peak_bytes - output_bytes)
    return Memory(
        peak_bytes=peak_bytes, output_bytes=output_bytes, temporary_bytes=temporary_bytes, input_bytes=0,
        captured_bytes=0, method=method, **more,
    )  # fmt: skip


def measure_process_peak(call: Callable[[], Any]) -> int | None:
    """The most bytes by which the process's resident memory rose during one call, outputs included.

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
    import tensorflow as tf

    spans: list[tuple[int, int]] = []
    elsewhere: dict[int, int] = {}
    for leaf in tf.nest.flatten(tensors, expand_composites=True):  # ragged and sparse tensors are several
        array = host_array(leaf)
        if array is not None and array.dtype == object:
            elsewhere[id(leaf)] = Leaf(array.shape, "string").bytes
        elif array is not None:
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


# --- what an allocator reported: pure functions of data --------------------------------------------------------------


@dataclass(frozen=True)
class Allocation:
    """A buffer was allocated, or ``freed``; ``bytes`` and ``op`` of a free are not looked at."""

    time_ps: int
    address: int
    freed: bool
    bytes: int = 0
    op: str = ""


@dataclass
class Buffer:
    """A buffer of ``bytes`` that is live from step ``born`` up to step ``freed``, None where it stays."""

    bytes: int
    op: str
    born: int
    freed: int | None = None


@dataclass(frozen=True)
class LiveMemory:
    """``live_bytes[i]`` from ``times_ps[i]`` on; ``at_peak``: the buffers that are live when most bytes are, for the
    first time."""

    peak_bytes: int
    times_ps: list[int]
    live_bytes: list[int]
    at_peak: list[Buffer]


def allocations(profile: Profile, device: str) -> list[Allocation]:
    """The reports of the allocators of ``device`` in a profile, those before the marked call too: ``GPU_0_bfc`` is GPU
    0's, ``gpu_host_bfc`` pins the host's memory."""
    kind, _, index = device.rpartition(":")
    on_gpu = kind.upper().endswith("GPU")
    reported = []
    for event in profile.events(lambda name, _: name in (_ALLOCATION, _FREE)):
        stats, name = event.stats, str(event.stats.get("allocator_name", ""))
        if name.startswith(f"GPU_{index}_") if on_gpu else not name.lower().startswith("gpu_"):
            freed, op = event.name == _FREE, str(stats.get("tf_op") or "")
            reported.append(Allocation(event.start_ps, int(stats["addr"]), freed, int(stats["requested_bytes"]), op))
    return reported


_time_of = operator.attrgetter("time_ps")


def live_memory(events: Iterable[Allocation]) -> LiveMemory:
    """The bytes that were live at each time, from events in any order.

    Frees of addresses that were not allocated here are ignored. An address that is allocated again without a free in
    between replaces what was there. At one and the same time frees come before allocations, other than those of buffers
    that were only allocated at that time.
    """
    buffers: list[Buffer] = []
    live: dict[int, Buffer] = {}
    times: list[int] = []
    totals: list[int] = []
    total = 0
    for time_ps, group in itertools.groupby(sorted(events, key=_time_of), key=_time_of):
        early: dict[int, Allocation] = {}
        allocated, late = [], []
        for event in group:
            if not event.freed:
                allocated.append(event)
            elif event.address in live and event.address not in early:
                early[event.address] = event
            else:
                late.append(event)
        for event in (*early.values(), *allocated, *late):
            before = live.pop(event.address, None)
            if before is None and event.freed:
                continue
            if before is not None:
                before.freed = len(totals)
                total -= before.bytes
            if not event.freed:
                live[event.address] = Buffer(event.bytes, event.op, len(totals))
                buffers.append(live[event.address])
                total += event.bytes
            times.append(time_ps)
            totals.append(total)
    peak = max(totals, default=0)
    step = totals.index(peak) if peak else -1
    at_peak = [one for one in buffers if one.born <= step and (one.freed is None or one.freed > step)]
    return LiveMemory(peak, times, totals, at_peak)


def downsample(values: Sequence[int], most: int = TIMELINE_POINTS) -> list[int]:
    """Indices of at most ``most`` points (4 at least): first, last, and the least and greatest of every stretch."""
    count = len(values)
    if count <= most:
        return list(range(count))
    stretches = (most - 2) // 2
    indices = {0, count - 1}
    for number in range(stretches):
        stretch = range(count * number // stretches, count * (number + 1) // stretches)
        indices |= {min(stretch, key=values.__getitem__), max(stretch, key=values.__getitem__)}
    return sorted(indices)


def ops_at_peak(buffers: Iterable[Buffer], most: int = OPS_AT_PEAK) -> list[AtPeak]:
    """Bytes per op, most first; beyond ``most`` rows the rest are one row. The sum of the rows is the peak.

    Ops of one kind are one row, ``map/while/mul (3 ops)``. Under XLA the events name only the compiled function: its
    buffers are told apart by whether they stay.
    """
    sums: dict[str, int] = {}
    ops: dict[str, set[str]] = {}
    for one in buffers:
        if function := re.fullmatch(r"__inference_(.+)_\d+|(cluster_\d+.*)", one.op):
            name = f"XLA {'output' if one.freed is None else 'temporary'} buffer (cluster {function[1] or function[2]})"
        else:
            name = readable_op(one.op) or UNNAMED_OP
            ops.setdefault(name, set()).add(one.op)
        sums[name] = sums.get(name, 0) + one.bytes
    ordered = sorted(sums.items(), key=lambda row: (-row[1], row[0]))
    counts = {name: len(ops.get(name, ())) for name in sums}
    rows = [AtPeak(op=f"{name} ({counts[name]} ops)" if counts[name] > 1 else name, bytes=n) for name, n in ordered]
    if len(rows) > most:
        rows = [*rows[: most - 1], AtPeak(op=OTHER_OPS, bytes=sum(row.bytes for row in rows[most - 1 :]))]
    return rows


def readable_op(name: str) -> str:
    """An op's name without the functions that it was inlined from and without the number of its kind.

    ``map/while/body/_1/map/while/mul_7`` is one of the ops ``map/while/mul``.
    """
    return re.sub(r"_\d+$", "", re.sub(r"^.*/_\d+/", "", name))
