"""The environment that a run was measured in: facts that change what is measured, null where one is not known.

Nothing private is among them: no name of a machine or a person, no path. Nothing here needs TensorFlow: what is true of
the processes that are measured and need not be of this one, one of them has reported. Sizes are in bytes.
"""

import contextlib
import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from measure.machine import control_groups
from measure.machine.control_groups import ROOT
from measure.machine.control_groups import available_memory as available_memory
from measure.run import text

VERSION = "1.0"
# Known only when a comparison has watched others for a while.
LOAD_OF_OTHERS = "load_of_others_cores"

# Variables that change what is measured: what TensorFlow, XLA, oneDNN, OpenMP, CUDA, NumPy, Python and the C library
# read. TF_FORCE_GPU_ALLOW_GROWTH is set by Mapbench itself in whatever it runs on a GPU; the others that are left out
# change what is printed, or name places.
_FLAGS = re.compile(
    r"(?!TF_FORCE_GPU_ALLOW_GROWTH|TF_CONFIG|TF_CPP_|\w+_(HOME|PATH|DIR|ROOT|FILE|VERSION)$)"
    r"((TF|XLA|CUDA|NVIDIA_TF32|OMP|GOMP|KMP|MKL|DNNL|ONEDNN|OPENBLAS|NPY|MALLOC)_\w+|GLIBC_TUNABLES|"
    r"PYTHON(MALLOC|OPTIMIZE))"
)
# Numbers and words: no name of a file with its ending, and no identifier of a GPU.
_WORDS = re.compile(r"(?!--|.*(\.[A-Za-z]|GPU-|MIG-))[\w.,:=+-]*")
_FLAG = re.compile(r"--\w+(=(-?[\d.]+|true|false))?", re.IGNORECASE)


def collect(
    *, start_method: str, tensorflow: Mapping[str, Any] | None = None, threads: int | None = None, root: Path = ROOT
) -> dict[str, Any]:
    """All facts by key, ready for JSON. ``start_method``: "fork" or "fresh", how subjects start. ``tensorflow``: what a
    process that has TensorFlow reported, `measure.subject.messages.Devices`. ``threads``: TensorFlow's thread count as
    configured, None where TensorFlow chooses."""
    reported = tensorflow or {}
    return {
        "mapbench": VERSION,
        "python": platform.python_version(),
        "os": _os(),
        "tensorflow": _version("tensorflow") or _version("tensorflow-cpu") or _version("tf-nightly"),
        "numpy": _version("numpy"),
        "keras": _version("keras"),
        "cpu_model": _processor(root),
        "cpu_governor": _in_file(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", r"(.+)"),
        "cores_granted": control_groups.cores_granted(root),
        "memory_total_bytes": psutil.virtual_memory().total,
        "memory_limit_bytes": control_groups.memory_limit(root),
        "huge_pages": _in_file(root / "sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]"),
        "gpus": reported.get("gpus"),
        "gpu_driver": _in_file(root / "proc/driver/nvidia/version", r"\b(\d{3,}\.[\d.]+)\b"),
        "cuda": reported.get("cuda"),
        "cudnn": reported.get("cudnn"),
        "threads_intra_used": _threads(threads, "TF_NUM_INTRAOP_THREADS"),
        "threads_inter_used": _threads(threads, "TF_NUM_INTEROP_THREADS"),
        "onednn": reported.get("onednn"),
        "flags": {name: public(value) for name, value in sorted(os.environ.items()) if _FLAGS.fullmatch(name)},
        "allocator": _allocator(),
        "tensorflow_allocator": reported.get("tensorflow_allocator"),
        "start_method": start_method,
        LOAD_OF_OTHERS: None,
    }


def public(value: str) -> str:
    """The value of a variable without what may tell of a person or a machine. Of a list of flags those are shown whose
    setting is a number, or yes or no: any other one may be the name of a file."""
    if _WORDS.fullmatch(value):
        return value
    return " ".join(word if _FLAG.fullmatch(word) else "<path>" for word in value.split())


def _os() -> str:
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    return "macOS" if platform.system() == "Darwin" else platform.system()


def _version(package: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None


def _processor(root: Path) -> str | None:
    if platform.system() == "Darwin":
        asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or None
    return _in_file(root / "proc/cpuinfo", r"(?m)^(?:model name|Model|cpu model|Hardware)\s*: *(.+)")


def _in_file(path: Path, pattern: str) -> str | None:
    with contextlib.suppress(OSError):
        if match := re.search(pattern, path.read_text(errors="replace")):
            return match[1].strip()
    return None


def _threads(configured: int | None, variable: str) -> int:
    """The size of one of TensorFlow's pools of threads: as configured, or else by its variable, or else as many as
    there are processors in the process's affinity, whatever a control group grants of their time.

    Source: ``EigenThreadPoolInfo`` in tensorflow/core/common_runtime/local_device.cc and
    ``NumInterOpThreadsFromSessionOptions`` in process_util.cc.
    """
    value = os.environ.get(variable, "")
    return configured or (int(value) if value.isdecimal() else 0) or len(control_groups.processors())


def _allocator() -> str | None:
    for name in ("jemalloc", "tcmalloc", "mimalloc"):
        if name in os.environ.get("LD_PRELOAD", ""):
            return f"{name} (preloaded)"
    return " ".join(platform.libc_ver()).strip() or None


# The allocators of tensors in the machine's memory: the first keeps all that is freed, the second does so for buffers
# from 256 KiB on, and the third asks malloc each time.
BFC, POOL, C_LIBRARY = "BFC", "oneDNN's pool", "C library"


def tensor_allocator(onednn: bool) -> str:
    """The one of these that TensorFlow takes in this process. ``onednn``: True if oneDNN's kernels are in use.

    Source: ``ProcessState::GetCPUAllocator``, the priority of ``MklCPUAllocator`` in threadpool_device.cc, and
    ``UseSystemAlloc`` in mkl_cpu_allocator.cc, all in tensorflow/core/common_runtime.
    """
    true = ("1", "true")  # as ``ReadBoolFromEnvVar`` reads them
    if os.environ.get("TF_CPU_ALLOCATOR_USE_BFC", "").lower() in true:
        return BFC
    by_system = os.environ.get("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "").lower() in true
    return POOL if onednn and not by_system else C_LIBRARY


# --- how they are shown ----------------------------------------------------------------------------------------------


def _cores(value: float) -> str:
    return f"{value:.3g} {'core' if value == 1 else 'cores'}"


_SHOW: Mapping[str, Callable[[Any], str]] = {
    "cores_granted": _cores,
    "memory_total_bytes": text.size,
    "memory_limit_bytes": text.size,
    "gpus": lambda names: ", ".join(names) or "none",
    "onednn": lambda is_on: "on" if is_on else "off",
    "flags": lambda values: ", ".join(f"{name}={value}" for name, value in values.items()) or "none set",
    LOAD_OF_OTHERS: _cores,
}


def label(key: str) -> str:
    """The name of a fact for people: ``cpu model``."""
    return key.removesuffix("_bytes").removesuffix("_cores").replace("_", " ")


def shown(key: str, value: Any) -> str:
    """A fact with its unit; what is not known is a dash."""
    if value is None:
        return text.MISSING
    try:
        return _SHOW.get(key, str)(value)
    except (TypeError, ValueError, AttributeError):  # a run made elsewhere may hold anything
        return str(value)


def describe(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(label(key), shown(key, value)) for key, value in environment.items()]


def machine(environment: Mapping[str, Any]) -> str:
    """The machine that a run was measured on, in a few words: Intel(R) Xeon(R) Processor, 2 cores, 23.5 GiB."""
    keys = ("gpus", "cpu_model", "cores_granted", "memory_total_bytes")
    return ", ".join(shown(key, environment[key]) for key in keys if environment.get(key))
