"""The processor: which one, what it can do, its caches, and how much of it this process may use."""

import math
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from measure.machine import control_groups, system

# What decides how fast kernels may be, out of the hundred features that a processor lists.
_FEATURES = (
    *("sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_bf16", "amx_int8", "asimd", "asimdhp", "bf16", "i8mm", "sve", "sve2", "sme"),
)


def _cpuinfo(root: Path, *keys: str) -> str:
    for line in system.lines(root / "proc/cpuinfo"):
        key, _, value = line.partition(":")
        if key.strip() in keys:
            return value.strip()
    raise ValueError("not told")


def model(root: Path) -> str | None:
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string")
    if sys.platform == "win32":
        return platform.processor() or None
    return _cpuinfo(root, "model name", "Model", "cpu model", "Hardware")


def features(root: Path) -> list[str]:
    listed = set(_cpuinfo(root, "flags", "Features").split())
    return [name for name in _FEATURES if name in listed]


def cache_bytes(root: Path, level: int) -> int | None:
    """Return the size of the data cache of that level, as one core sees it; None if it is not known."""
    if sys.platform == "darwin":
        return int(_sysctl({1: "hw.l1dcachesize", 2: "hw.l2cachesize", 3: "hw.l3cachesize"}[level]) or 0) or None
    for folder in sorted((root / "sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if system.text(folder / "level") == str(level) and system.text(folder / "type") in ("Data", "Unified"):
            size = system.text(folder / "size")
            return int(size.rstrip("KMG")) * {"K": 2**10, "M": 2**20, "G": 2**30}.get(size[-1], 1)
    return None


def _sysctl(name: str) -> str | None:
    run = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False)
    return run.stdout.strip() or None


def affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def governor(root: Path) -> str:
    return system.text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def virtualised(root: Path) -> str | None:
    """The maker of the machine that a hypervisor shows, or "yes" where it does not say; "no" without one."""
    if not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "AMD64"):
        return None
    if "hypervisor" not in _cpuinfo(root, "flags").split():
        return "no"
    try:
        return system.text(root / "sys/class/dmi/id/sys_vendor") or "yes"
    except OSError:
        return "yes"


def granted(root: Path) -> float:
    """Cores that this process may use: its affinity, or less where a control group limits processor time."""
    return round(min(affinity(), control_groups.cores(root) or math.inf), 2)


def tensorflow_threads(configured: int | None, variables: Mapping[str, str], *, across_ops: bool) -> int:
    """The size of TensorFlow's pool of threads within an op, or ``across_ops``: as configured, or else by its variable,
    or else as many as there are processors in the process's affinity, whatever a control group grants of their time.

    Source: ``EigenThreadPoolInfo`` in tensorflow/core/common_runtime/local_device.cc and
    ``NumInterOpThreadsFromSessionOptions`` in process_util.cc.
    """
    name = "TF_NUM_INTEROP_THREADS" if across_ops else "TF_NUM_INTRAOP_THREADS"
    try:
        asked = int(variables.get(name, ""))
    except ValueError:
        asked = 0
    return configured or (asked if asked > 0 else affinity())
