"""The memory that one steady call needs: by the allocator's events, by its counters, and as the system saw it.

Every method costs speed, so a process that measures memory is never timed. Two settings must be made before the
process runs its first op: `prepare_events` for the bytes that TensorFlow asks for, `prepare_process_peak` for the
resident memory of the process; one process does one of the two.
"""

import ctypes
import gc
import operator
import os
import platform
import re
import tracemalloc
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from measure.run.run import TIMELINE_POINTS, AtPeak, Memory, Timeline
from measure.subject.profiler import Profile, profiled
from workloads.spec import Leaf

_NUMPY = "NumPy and Python"
_UNNAMED_OP = "not named by TensorFlow"
_OPS_AT_PEAK = 20

_PS_PER_S = 1e12
_ALLOCATION, _FREE = "MemoryAllocation", "MemoryDeallocation"

# mallopt's parameters, from glibc's malloc.h, and what they are set to.
_MALLOPT = {
    # M_MMAP_THRESHOLD: buffers from here on are mapped on their own and leave no trace when freed. Smaller ones lie in
    # the one heap, which is trimmed; mapping those too would add up to a page to each (4 KiB would read as 6).
    -3: 64 * 1024,
    # M_TRIM_THRESHOLD
    -1: 0,
    # M_ARENA_MAX: malloc_trim does not reach the free end of the heaps that threads would otherwise get of their own.
    -8: 1,
}

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
    if platform.libc_ver()[0] != "glibc":
        return False
    os.environ["TF_ONEDNN_USE_SYSTEM_ALLOCATOR"] = "1"
    libc = ctypes.CDLL(None)
    return all(libc.mallopt(parameter, value) == 1 for parameter, value in _MALLOPT.items())


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
    called = profile.quickest_call()
    reports = allocations(profile, device)
    if not reports:
        raise RuntimeError(f"the allocator of {device} reports no events: prepare_events must come before the first op")
    reports = [report for report in reports if report.time_ps >= called.start_ps]
    times_ps, live = [called.start_ps], [0]
    for time_ps, total, _ in live_memory(reports):
        times_ps.append(time_ps)
        live.append(total)
    times_ps.append(max(called.end_ps, times_ps[-1]))
    live.append(live[-1])
    shown = shown_points(live)
    at_peak = ops_at_peak(live_at_peak(reports))
    if with_numpy:
        at_peak = sorted([*at_peak, AtPeak(op=_NUMPY, bytes=numpy_bytes)], key=lambda row: -row.bytes)
    timeline = Timeline(
        t_s=[(times_ps[i] - called.start_ps) / _PS_PER_S for i in shown], live_bytes=[live[i] for i in shown]
    )
    return _memory(outputs, max(live) + numpy_bytes, "events", at_peak=at_peak, timeline=timeline)


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
    outputs = call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return _memory(outputs, peak, "tracemalloc")


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
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = _status_bytes("VmRSS")
        outputs = call()
        peak = _status_bytes("VmHWM")
    except (OSError, LookupError):
        return None
    del outputs
    return max(0, peak - before)


def _status_bytes(key: str) -> int:
    with open("/proc/self/status", encoding="utf-8") as file:
        kib = dict(line.split(":", 1) for line in file)[key]
    return int(kib.split()[0]) * 1024


def bytes_of(tensors: Any) -> int:
    """Bytes of the distinct buffers in a nest of tensors or arrays: what begins at one place is counted once.

    Leaves that are no tensors count as nothing; on a GPU only the same tensor is known to share memory.
    """
    import tensorflow as tf

    buffers: dict[int, int] = {}
    for leaf in tf.nest.flatten(tensors, expand_composites=True):  # ragged and sparse tensors are several
        array, place, size = host_array(leaf), id(leaf), 0
        if array is not None and array.dtype == object:
            size = Leaf(array.shape, "string").bytes
        elif array is not None:
            place, size = array.__array_interface__["data"][0], array.nbytes
        elif hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            size = int(leaf.dtype.size) * int(leaf.shape.num_elements())
        buffers[place] = max(size, buffers.get(place, 0))
    return sum(buffers.values())


def host_array(leaf: Any) -> Any:
    """The NumPy view of a tensor in this machine's memory, without a copy; None where there is none."""
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


def allocations(profile: Profile, device: str) -> list[Allocation]:
    """The reports of the allocators of ``device`` in a profile, in their order, those before the marked call too:
    ``GPU_0_bfc`` is GPU 0's, ``gpu_host_bfc`` pins the host's memory."""
    kind, _, index = device.rpartition(":")
    reports = []
    for event in profile.events(lambda name, _: name in (_ALLOCATION, _FREE)):
        stats, name = event.stats, str(event.stats.get("allocator_name", ""))
        if name.startswith(f"GPU_{index}_") if kind == "GPU" else not name.lower().startswith("gpu_"):
            freed, op = event.name == _FREE, str(stats.get("tf_op") or "")
            reports.append(Allocation(event.start_ps, int(stats["addr"]), freed, int(stats["requested_bytes"]), op))
    return sorted(reports, key=operator.attrgetter("time_ps"))


def live_memory(reports: Iterable[Allocation]) -> Iterator[tuple[int, int, Collection[Allocation]]]:
    """The time of each change, the bytes that are live from then on, and the buffers that hold them.

    Frees of addresses that were not allocated here are ignored. An address that is allocated again without a free in
    between replaces what was there.
    """
    live: dict[int, Allocation] = {}
    total = 0
    for report in reports:
        before = live.pop(report.address, None)
        if before is not None:
            total -= before.bytes
        elif report.freed:
            continue
        if not report.freed:
            live[report.address] = report
            total += report.bytes
        yield report.time_ps, total, live.values()


def live_at_peak(reports: Sequence[Allocation]) -> list[Allocation]:
    """The buffers that are live when most bytes are, for the first time."""
    peak = max((total for _, total, _ in live_memory(reports)), default=0)
    return next((list(live) for _, total, live in live_memory(reports) if total == peak), [])


def shown_points(live: Sequence[int]) -> list[int]:
    """Indices of at most `TIMELINE_POINTS` values, as far from each other, with the last one and the greatest."""
    evenly = np.linspace(0, len(live) - 1, min(len(live), TIMELINE_POINTS - 1))
    return sorted({int(np.argmax(live)), *map(int, evenly)})


def ops_at_peak(buffers: Iterable[Allocation]) -> list[AtPeak]:
    """Bytes per op of those that hold most, most first."""
    sums: Counter[str] = Counter()
    for buffer in buffers:
        sums[readable_op(buffer.op)] += buffer.bytes
    return [AtPeak(op=name, bytes=total) for name, total in sums.most_common(_OPS_AT_PEAK)]


def readable_op(name: str) -> str:
    """An op's name without the functions that it was inlined from and without the number of its kind:
    ``map/while/body/_1/map/while/mul_7`` is one of the ops ``map/while/mul``. Of XLA's buffers events name only the
    compiled function, ``__inference_strategy_62``."""
    name = re.sub(r"_\d+$", "", re.sub(r"^.*/_\d+/", "", name))
    return re.sub("^__inference_", "XLA program ", name) or _UNNAMED_OP
