"""The memory that one steady call needs: by the allocator's events, by its counters, and as the system saw it.

Every method costs speed, so a process that measures memory is never timed. Before its first op one of two settings must
be made: `prepare_events` for the bytes that TensorFlow asks for, `prepare_process_peak` for its resident memory.
"""

import ctypes
import gc
import operator
import os
import re
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from measure.run.run import TIMELINE_POINTS, AtPeak, Memory, Timeline
from measure.subject.messages import MemoryMethod
from measure.subject.tracing import Event, Profile, profiled
from workloads.spec import Leaf

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


# --- settings, before the first op ------------------------------------------------------------------------------------


def prepare_events(limit_mib: int | None = None, device: str = "CPU:0") -> None:
    """Make TensorFlow's CPU memory visible to `measure` by events, and limit it to ``limit_mib`` MiB, and that of a GPU
    where ``device`` is one. More fails with ``ResourceExhaustedError``, XLA's buffers included."""
    os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"
    if limit_mib is not None:
        os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(limit_mib)
        if device.startswith("GPU"):
            import tensorflow as tf

            gpu = tf.config.list_physical_devices("GPU")[int(device.removeprefix("GPU:"))]
            limited = tf.config.LogicalDeviceConfiguration(memory_limit=limit_mib)
            tf.config.set_logical_device_configuration(gpu, [limited])


def prepare_process_peak() -> None:
    """Make this process give memory back as soon as it is freed, as `measure_process_peak` needs. Raises AttributeError
    without glibc's malloc."""
    os.environ["TF_ONEDNN_USE_SYSTEM_ALLOCATOR"] = "1"
    for parameter, value in _MALLOPT.items():
        ctypes.CDLL(None).mallopt(parameter, value)


# --- measurements of one steady call, which waits for its device: the caller has made the calls before it ------------


def measure(call: Callable[[], Any], method: MemoryMethod, device: str = "CPU:0") -> Memory:
    """Memory of one call, which returns a nest of tensors. ``device`` is the one whose memory counts (``CPU:0``,
    ``GPU:1``). Bytes of inputs and captured ones are not measured. The methods:

    - ``events`` of the allocator, exact to the requested byte, with what was live when. RuntimeError where they do not
      arrive, since `prepare_events` came too late. Source: ``tsl/framework/bfc_allocator.cc``.
    - ``events_with_numpy``: the call runs NumPy code. The allocator has NumPy's memory only once it is copied, which is
      not done where it happens to start at a multiple of 64 bytes. The most that NumPy and Python used is then added to
      the peak, an upper bound and good to some 100 KiB of Python's own; the timeline stays TensorFlow's.
    - ``allocator``: its counters, for calls with too many events, and for any GPU. With the default CPU allocator
      buffers under 256 KiB are not counted; after `prepare_events` whole chunks are.
    - ``tracemalloc``: as Python's allocator saw it, NumPy's arrays included; TensorFlow's tensors are not.
    """
    import tensorflow as tf

    gc.collect()
    at_peak: list[AtPeak] = []
    timeline = None
    if method == "tracemalloc":
        outputs, peak_bytes = _by_tracemalloc(call)
    elif method == "allocator":
        tf.config.experimental.reset_memory_stats(device)
        before = tf.config.experimental.get_memory_info(device)["current"]
        outputs = call()
        peak_bytes = tf.config.experimental.get_memory_info(device)["peak"] - before
    else:
        outputs, peak_bytes, at_peak, timeline = _by_events(call, device, with_numpy=method == "events_with_numpy")
    output_bytes = bytes_of(outputs)
    return Memory(
        peak_bytes=max(0, peak_bytes), output_bytes=output_bytes, temporary_bytes=max(0, peak_bytes - output_bytes),
        input_bytes=0, captured_bytes=0, method="events" if method == "events_with_numpy" else method,
        at_peak=at_peak, timeline=timeline,
    )  # fmt: skip


def _by_tracemalloc(call: Callable[[], Any]) -> tuple[Any, int]:
    tracemalloc.start()
    outputs = call()
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return outputs, peak_bytes


def _by_events(call: Callable[[], Any], device: str, *, with_numpy: bool) -> tuple[Any, int, list[AtPeak], Timeline]:
    import tensorflow as tf

    numpy_bytes = 0
    # The allocator reports from the host, for a GPU's memory too; tracing the GPU itself would add nothing.
    with profiled() as profile:
        with tf.device(device):
            canary = tf.fill([1], tf.constant(1, tf.uint8))  # which is reported, even if the call needs nothing
        with profile.call():
            if with_numpy:
                outputs, numpy_bytes = _by_tracemalloc(call)
            else:
                outputs = call()
    del canary
    called = profile.quickest_call()
    reports = allocations(profile, device)
    if not reports:
        raise RuntimeError(f"the allocator of {device} reports no events: prepare_events must come before the first op")
    reports = [report for report in reports if report.start_ps >= called.start_ps]
    times_ps = [called.start_ps, *(report.start_ps for report in reports)]
    live = [0, *replayed(reports)[0]]
    peak = int(np.argmax(live))  # the first time
    held = replayed(reports[:peak])[1] + Counter({"NumPy and Python": numpy_bytes})
    at_peak = [AtPeak(op=op, bytes=size) for op, size in held.most_common(_OPS_AT_PEAK)]
    times_ps, live = [*times_ps, max(called.end_ps, times_ps[-1])], [*live, live[-1]]
    shown = shown_points(live)
    t_s = [(times_ps[place] - called.start_ps) / _PS_PER_S for place in shown]
    return outputs, live[peak] + numpy_bytes, at_peak, Timeline(t_s=t_s, live_bytes=[live[place] for place in shown])


def measure_process_peak(call: Callable[[], Any]) -> int:
    """The most bytes by which the process's resident memory rose during one call, outputs and scratch memory included
    that no allocator reports. OSError where the system does not tell. Before the first op `prepare_process_peak` must
    have come. Source: proc(5), ``clear_refs``, ``VmHWM``."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = _status_bytes("VmRSS")
    outputs = call()
    peak = _status_bytes("VmHWM")
    del outputs
    return max(0, peak - before)


def _status_bytes(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def bytes_of(tensors: Any) -> int:
    """Bytes of the distinct buffers in a nest of tensors or arrays: what begins at one place is counted once. On a GPU
    only the same tensor is known to share memory."""
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


def allocations(profile: Profile, device: str) -> list[Event]:
    """The reports of the allocators of ``device`` in a profile, in their order, those before the marked call too:
    ``GPU_0_bfc`` is GPU 0's, ``gpu_host_bfc`` pins the host's memory."""
    kind, _, index = device.rpartition(":")
    reports = []
    for event in profile.events(lambda name, _: name in (_ALLOCATION, _FREE)):
        allocator = str(event.stats.get("allocator_name", ""))
        if allocator.startswith(f"GPU_{index}_") if kind == "GPU" else not allocator.lower().startswith("gpu_"):
            reports.append(event)
    return sorted(reports, key=operator.attrgetter("start_ps"))


def replayed(reports: Iterable[Event]) -> tuple[list[int], Counter[str]]:
    """The bytes that are live after each report, and the bytes that each op holds after the last. Frees of addresses
    that were not allocated here change nothing; an address that is allocated again replaces what was there."""
    live: dict[int, tuple[str, int]] = {}
    totals, total = [], 0
    for report in reports:
        address, size = int(report.stats["addr"]), int(report.stats["requested_bytes"])
        total -= live.pop(address, ("", 0))[1]
        if report.name == _ALLOCATION:
            live[address] = str(report.stats.get("tf_op", "")), size
            total += size
        totals.append(total)
    held: Counter[str] = Counter()
    for op, size in live.values():
        held[readable_op(op)] += size
    return totals, held


def shown_points(live: Sequence[int]) -> list[int]:
    """Places of at most `TIMELINE_POINTS` values, evenly apart, and of the last and the greatest one."""
    evenly = np.linspace(0, len(live) - 1, min(len(live), TIMELINE_POINTS - 1))
    return sorted({int(np.argmax(live)), *map(int, evenly)})


def readable_op(name: str) -> str:
    """An op's name without the functions that it was inlined from and without the number of its kind:
    ``map/while/body/_1/map/while/mul_7`` is one of the ops ``map/while/mul``. Of XLA's buffers events name only the
    compiled function, ``__inference_strategy_62``."""
    name = re.sub(r"_\d+$", "", re.sub(r"^.*/_\d+/", "", name))
    return re.sub("^__inference_", "XLA program ", name) or "not named by TensorFlow"
