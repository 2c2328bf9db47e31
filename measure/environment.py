"""What a run was measured on: a fixed list of facts, each with how it is read and how it is shown.

All keys are in every run, null where a fact is not known. Nothing private is among them: no name of a machine or a
person, no path. Nothing here needs TensorFlow. Files of the system are read under a ``root`` that tests can replace.
"""

import importlib.metadata
import math
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import psutil

from measure import text
from measure.run import Analysis

VERSION = "1.0"

# What decides how fast kernels may be, out of the hundred features that a processor lists.
_FEATURES = (
    *("sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_bf16", "amx_int8", "asimd", "asimdhp", "bf16", "i8mm", "sve", "sve2", "sme"),
)
# Variables that change what TensorFlow, XLA, oneDNN, OpenMP or NumPy do.
_FLAGS = (
    *("CUDA_VISIBLE_DEVICES", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ONEDNN_MAX_CPU_ISA"),
    *("NVIDIA_TF32_OVERRIDE", "TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB", "TF_CUDNN_DETERMINISTIC"),
    *("TF_DETERMINISTIC_OPS", "TF_ENABLE_ONEDNN_OPTS", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR"),
    *("TF_GPU_THREAD_MODE", "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_ONEDNN_USE_SYSTEM_ALLOCATOR"),
    *("TF_USE_LEGACY_KERAS", "TF_XLA_FLAGS", "XLA_FLAGS", "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_"),
)


@dataclass(frozen=True)
class Source:
    """Where facts are read from: the system's files, variables, and what the caller says."""

    root: Path = Path("/")
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)
    tensorflow: Mapping[str, Any] = field(default_factory=dict)
    start_method: str = "fresh"
    threads: int | None = None
    load_window_s: float = 0.0


@dataclass(frozen=True)
class Fact:
    """One key of a run's environment. ``read`` may return None or raise OSError or ValueError: not known."""

    key: str
    label: str
    read: Callable[[Source], Any]
    show: Callable[[Any], str] = str
    unknown: str = "not known"


def collect(
    *,
    start_method: str,
    tensorflow: Mapping[str, Any] | None = None,
    threads: int | None = None,
    load_window_s: float = 0.0,
    root: Path | str = "/",
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """All facts by key, ready for JSON.

    ``start_method``: "fork" or "fresh", how subjects start. ``tensorflow``: what a process that has TensorFlow
    reported: ``gpus`` (dicts with ``name`` and ``compute_capability``), ``cuda``, ``cudnn``. ``threads``: TensorFlow's
    thread count as configured, None where TensorFlow chooses. ``load_window_s``: for how long to watch what others do.
    """
    source = Source(
        root=Path(root),
        variables=os.environ if variables is None else variables,
        tensorflow=tensorflow or {},
        start_method=start_method,
        threads=threads,
        load_window_s=load_window_s,
    )
    return {fact.key: _read(fact, source) for fact in FACTS}


def describe(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Label and text of every fact, in a fixed order, whatever the run that they come from holds."""
    rows = []
    for fact in FACTS:
        value = environment.get(fact.key)
        try:
            rows.append((fact.label, fact.unknown if value is None else fact.show(value)))
        except (TypeError, ValueError, AttributeError):  # a run made elsewhere may hold anything
            rows.append((fact.label, str(value)))
    return rows


def machine(environment: Mapping[str, Any]) -> str:
    """What a run was measured on, in a few words: Intel(R) Xeon(R) Processor, 2 cores, 23.5 GiB."""
    shown = {fact.key: words for fact, (_, words) in zip(FACTS, describe(environment), strict=True)}
    keys = ("gpus", "cpu_model", "cores_granted", "memory_total_bytes")
    return ", ".join(shown[key] for key in keys if environment.get(key))


def available_memory(root: Path | str = "/") -> int:
    """Bytes that this process and its children can still take: the machine's, or less where a control group limits it.

    Page cache that can be dropped counts as available, as in the kernel's MemAvailable.
    """
    root = Path(root)
    available = _memory(root)["available"]
    left = [max(0, limit - used) for limit, used in _cgroup_memory(root)]
    return min([available, *left])


def granted_cores(root: Path | str = "/") -> int:
    """Whole cores that this process may use: its affinity, or less where a control group limits processor time."""
    return max(1, math.ceil(min(_affinity(), _cgroup_cores(Path(root)) or math.inf)))


def cpu_use_of_others(window_s: float) -> float:
    """How many cores were busy on average during ``window_s`` seconds with what is not this process or its children."""
    tree = [psutil.Process(), *psutil.Process().children(recursive=True)]
    start_s, all_before, own_before = time.perf_counter(), _busy_s(), _own_s(tree)
    time.sleep(window_s)
    elapsed_s, all_after, own_after = time.perf_counter() - start_s, _busy_s(), _own_s(tree)
    if elapsed_s <= 0:
        return 0.0
    return max(0.0, ((all_after - all_before) - (own_after - own_before)) / elapsed_s)


def _read(fact: Fact, source: Source) -> Any:
    try:
        return fact.read(source)
    except (OSError, ValueError, KeyError, IndexError, psutil.Error):
        return None


# --- versions, system -------------------------------------------------------------------------------------------------


def _version(*packages: str) -> str | None:
    for package in packages:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _os(source: Source) -> str:
    if not sys.platform.startswith("linux"):
        return {"Darwin": "macOS"}.get(platform.system(), platform.system())
    for line in _lines(source.root / "etc/os-release"):
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip("\"' ")
    return "Linux"


def _os_release(source: Source) -> str:
    if sys.platform == "darwin":
        return platform.mac_ver()[0]
    return platform.version() if sys.platform == "win32" else platform.release()


def _flags(source: Source) -> dict[str, str]:
    return {name: without_paths(source.variables[name]) for name in _FLAGS if name in source.variables}


def without_paths(value: str) -> str:
    """The value of a variable without what tells of a person or a machine: paths and identifiers of GPUs."""
    parts = re.split(r"([\s,;=]+)", value)
    kept = ["<path>" if re.search(r"[/\\]|^~", part) and not part.isspace() else part for part in parts]
    return re.sub(r"(GPU|MIG)-[0-9A-Za-z-]+", r"\1-<id>", "".join(kept))


def _allocator(source: Source) -> str | None:
    preloaded = source.variables.get("LD_PRELOAD", "")
    for name in ("jemalloc", "tcmalloc", "mimalloc"):
        if name in preloaded:
            return f"{name} (preloaded)"
    return " ".join(platform.libc_ver()).strip() or None


# --- processor --------------------------------------------------------------------------------------------------------


def _cpuinfo(source: Source, *keys: str) -> str:
    for line in _lines(source.root / "proc/cpuinfo"):
        key, _, value = line.partition(":")
        if key.strip() in keys:
            return value.strip()
    raise ValueError("not told")


def _cpu_model(source: Source) -> str | None:
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string")
    if sys.platform == "win32":
        return platform.processor() or None
    return _cpuinfo(source, "model name", "Model", "cpu model", "Hardware")


def _cpu_features(source: Source) -> list[str]:
    listed = set(_cpuinfo(source, "flags", "Features").split())
    return [name for name in _FEATURES if name in listed]


def _cache_bytes(level: int) -> Callable[[Source], int | None]:
    def read(source: Source) -> int | None:
        if sys.platform == "darwin":
            return int(_sysctl({1: "hw.l1dcachesize", 2: "hw.l2cachesize", 3: "hw.l3cachesize"}[level]) or 0) or None
        for folder in sorted((source.root / "sys/devices/system/cpu/cpu0/cache").glob("index*")):
            if _text(folder / "level") == str(level) and _text(folder / "type") in ("Data", "Unified"):
                size = _text(folder / "size")
                return int(size.rstrip("KMG")) * {"K": 2**10, "M": 2**20, "G": 2**30}.get(size[-1], 1)
        return None

    return read


def _sysctl(name: str) -> str | None:
    run = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False)
    return run.stdout.strip() or None


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _governor(source: Source) -> str:
    return _text(source.root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def _virtualised(source: Source) -> str | None:
    """The maker of the machine that a hypervisor shows, or "yes" where it does not say; "no" without one."""
    if not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "AMD64"):
        return None
    if "hypervisor" not in _cpuinfo(source, "flags").split():
        return "no"
    try:
        return _text(source.root / "sys/class/dmi/id/sys_vendor") or "yes"
    except OSError:
        return "yes"


def _busy_s() -> float:
    times = psutil.cpu_times()
    # Linux counts guests' time as user time too.
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


def _own_s(tree: list[psutil.Process]) -> float:
    total = 0.0
    for process in tree:
        try:
            times = process.cpu_times()
        except psutil.Error:  # it has ended
            continue
        total += times.user + times.system
    return total


def _load_of_others(source: Source) -> float | None:
    return round(cpu_use_of_others(source.load_window_s), 2) if source.load_window_s > 0 else None


def _load_average(source: Source) -> float:
    if sys.platform == "win32":
        raise ValueError("Windows has no load average")
    return round(os.getloadavg()[0], 2)


# --- memory and control groups ----------------------------------------------------------------------------------------


def _memory(root: Path) -> dict[str, int]:
    """Bytes: total, available, swap_total, swap_free."""
    try:
        found = {}
        for line in _lines(root / "proc/meminfo"):
            key, _, value = line.partition(":")
            found[key] = int(value.split()[0]) * 1024
        return {
            "total": found["MemTotal"],
            "available": found["MemAvailable"],
            "swap_total": found["SwapTotal"],
            "swap_free": found["SwapFree"],
        }
    except (OSError, KeyError, ValueError, IndexError):
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        return {
            "total": memory.total,
            "available": memory.available,
            "swap_total": swap.total,
            "swap_free": swap.free,
        }


def _cgroup_memory(root: Path) -> list[tuple[int, int]]:
    """Limit and use in bytes of each control group above this process that limits memory; version 2 or version 1.

    Use is without page cache that the kernel would drop first, as Kubernetes counts it.
    """
    pairs = []
    for folder in _cgroup_folders(root, "memory"):
        for limit_name, used_name, inactive_name in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            try:
                limit, used = _text(folder / limit_name), int(_text(folder / used_name))
                stat = dict(line.split()[:2] for line in _lines(folder / "memory.stat"))
            except (OSError, ValueError):
                continue
            if limit != "max":  # version 1 says "no limit" with a number near 2^63, which limits nothing
                pairs.append((int(limit), max(0, used - int(stat.get(inactive_name, 0)))))
    return pairs


def _cgroup_cores(root: Path) -> float | None:
    """Processor time per time that control groups grant, in cores; None where there is no limit."""
    grants = []
    for folder in _cgroup_folders(root, "cpu"):
        try:
            quota, period = _text(folder / "cpu.max").split()
        except (OSError, ValueError):
            try:
                quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
            except OSError:
                continue
        if quota not in ("max", "-1") and int(period) > 0:
            grants.append(int(quota) / int(period))
    return min(grants, default=None)


def _cgroup_folders(root: Path, controller: str) -> list[Path]:
    """Folders of this process's group and of those above it, for a controller.

    Inside a container the path that the kernel tells may be that of the host, where only the topmost folder exists.
    """
    folders: list[Path] = []
    try:
        lines = _lines(root / "proc/self/cgroup")
    except OSError:
        return folders
    for line in lines:
        _, names, path = line.split(":", 2)
        if names == "":
            mounts = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
        elif controller in names.split(","):
            mounts = [root / "sys/fs/cgroup" / name for name in dict.fromkeys((controller, names))]
        else:
            continue
        relative = PurePosixPath(path.strip()).relative_to("/")
        for mount in mounts:
            folders += [mount / above for above in (relative, *relative.parents) if (mount / above).is_dir()]
    return list(dict.fromkeys(folders))


def _memory_limit(source: Source) -> int | None:
    limit = min((limit for limit, _ in _cgroup_memory(source.root)), default=None)
    return limit if limit is not None and limit < _memory(source.root)["total"] else None


# --- GPUs -------------------------------------------------------------------------------------------------------------


def _gpus(source: Source) -> list[str] | None:
    if "gpus" not in source.tensorflow:
        return None
    rows = []
    for gpu in source.tensorflow["gpus"]:
        capability = gpu.get("compute_capability")
        rows.append(f"{gpu.get('name') or 'GPU'}{f', compute capability {capability}' if capability else ''}")
    return rows


def _gpu_driver(source: Source) -> str | None:
    found = re.search(r"\b(\d{3,}\.[\d.]+)\b", _text(source.root / "proc/driver/nvidia/version"))
    return found.group(1) if found else None


def _for_gpus(key: str) -> Callable[[Source], str | None]:
    # TensorFlow's builds name the CUDA that they were made with even where there is no GPU to use it.
    return lambda source: source.tensorflow.get(key) if source.tensorflow.get("gpus") else None


# --- files ------------------------------------------------------------------------------------------------------------


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace").strip()


def _lines(path: Path) -> list[str]:
    return _text(path).splitlines()


# --- the list ---------------------------------------------------------------------------------------------------------


def _listed(values: list[str]) -> str:
    return ", ".join(values) or "none"


def _cores(value: float) -> str:
    return f"{value:.3g} {'core' if value == 1 else 'cores'}"


def _shown_flags(flags: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in flags.items()) or "none set"


def _granted(source: Source) -> float:
    """As `granted_cores`, with the fraction that a control group may grant."""
    return round(min(_affinity(), _cgroup_cores(source.root) or math.inf), 2)


FACTS: tuple[Fact, ...] = (
    Fact("mapbench", "Mapbench", lambda source: VERSION),
    Fact("analysis", "Version of the analysis", lambda source: Analysis().version),
    Fact("python", "Python", lambda source: platform.python_version()),
    Fact("python_implementation", "Implementation of Python", lambda source: platform.python_implementation()),
    Fact("os", "Operating system", _os),
    Fact("os_release", "Release of the system", _os_release),
    Fact("tensorflow", "TensorFlow", lambda source: _version("tensorflow", "tensorflow-cpu", "tf-nightly")),
    Fact("numpy", "NumPy", lambda source: _version("numpy")),
    Fact("keras", "Keras", lambda source: _version("keras")),
    Fact("cpu_model", "Processor", _cpu_model),
    Fact("architecture", "Architecture", lambda source: platform.machine() or None),
    Fact("cpu_features", "Features of the processor", _cpu_features, _listed),
    Fact("cache_l1d_bytes", "Level 1 data cache", _cache_bytes(1), text.size),
    Fact("cache_l2_bytes", "Level 2 cache", _cache_bytes(2), text.size),
    Fact("cache_l3_bytes", "Level 3 cache", _cache_bytes(3), text.size),
    Fact("cores_machine", "Cores of the machine", lambda source: os.cpu_count(), _cores),
    Fact("cores_granted", "Cores granted", _granted, _cores),
    Fact("cpu_governor", "Frequency governor", _governor),
    Fact("virtualised", "Virtual machine", _virtualised),
    Fact("memory_total_bytes", "Memory", lambda source: _memory(source.root)["total"], text.size),
    Fact("memory_available_bytes", "Memory available", lambda source: available_memory(source.root), text.size),
    Fact("memory_limit_bytes", "Limit of the control group", _memory_limit, text.size, unknown="none"),
    Fact("swap_total_bytes", "Swap", lambda source: _memory(source.root)["swap_total"], text.size),
    Fact(
        "swap_used_bytes",
        "Swap in use",
        lambda source: _memory(source.root)["swap_total"] - _memory(source.root)["swap_free"],
        text.size,
    ),
    Fact("gpus", "GPUs", _gpus, _listed),
    Fact("gpu_driver", "GPU driver", _gpu_driver, unknown="none"),
    Fact("cuda", "CUDA", _for_gpus("cuda"), unknown="not used"),
    Fact("cudnn", "cuDNN", _for_gpus("cudnn"), unknown="not used"),
    Fact("threads_intra", "Threads within an op", lambda source: source.threads, unknown="TensorFlow's choice"),
    Fact("threads_inter", "Threads across ops", lambda source: source.threads, unknown="TensorFlow's choice"),
    Fact("flags", "Flags", _flags, _shown_flags),
    Fact("allocator", "Allocator of the C library", _allocator),
    Fact(
        "start_method",
        "Processes start",
        lambda source: source.start_method,
        lambda value: {"fork": "as forks of one host", "fresh": "as fresh interpreters"}.get(value, str(value)),
    ),
    Fact("load_of_others_cores", "Others' use before the run", _load_of_others, _cores, unknown="not measured"),
    Fact("load_average_1min", "Load average over 1 min", _load_average),
)
