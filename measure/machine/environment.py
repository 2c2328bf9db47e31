"""The environment that a run was measured in: facts that change what is measured, null where one is not known.

Nothing private is among them: no name of a machine or a person, no path. Nothing here needs TensorFlow: what is true of
the processes that are measured and need not be of this one, one of them has reported. Sizes are in bytes.
"""

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from measure.machine import control_groups, flags
from measure.machine.control_groups import available_memory
from measure.run import text

__all__ = ["LOAD_OF_OTHERS", "VERSION", "available_memory", "collect", "describe", "label", "machine", "shown"]

VERSION = "1.0"
# Known only when a comparison has watched others for a while.
LOAD_OF_OTHERS = "load_of_others_cores"

_DRIVER = "proc/driver/nvidia/version"
_HUGE_PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
_GOVERNOR = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"


def collect(
    *,
    start_method: str,
    tensorflow: Mapping[str, Any] | None = None,
    threads: int | None = None,
    root: Path = control_groups.ROOT,
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """All facts by key, ready for JSON.

    ``start_method``: "fork" or "fresh", how subjects start. ``tensorflow``: what a process that has TensorFlow
    reported: ``gpus`` (dicts with ``name`` and ``compute_capability``), ``cuda``, ``cudnn``, ``onednn``,
    ``tensorflow_allocator``. ``threads``: TensorFlow's thread count as configured, None where TensorFlow chooses.
    """
    variables = os.environ if variables is None else variables
    reported = tensorflow or {}
    gpus = [(gpu.get("name") or "GPU", gpu.get("compute_capability")) for gpu in reported.get("gpus") or ()]
    return {
        "mapbench": VERSION,
        "python": platform.python_version(),
        "os": _os(),
        "tensorflow": _version("tensorflow") or _version("tensorflow-cpu") or _version("tf-nightly"),
        "numpy": _version("numpy"),
        "keras": _version("keras"),
        "cpu_model": _processor(root),
        "cpu_governor": _in_file(root / _GOVERNOR, r"(.+)"),
        "cores_granted": control_groups.cores_granted(root),
        "memory_total_bytes": psutil.virtual_memory().total,
        "memory_limit_bytes": control_groups.memory_limit(root),
        "huge_pages": _in_file(root / _HUGE_PAGES, r"\[(\w+)\]"),
        "gpus": [", compute capability ".join(filter(None, gpu)) for gpu in gpus] if "gpus" in reported else None,
        "gpu_driver": _in_file(root / _DRIVER, r"\b(\d{3,}\.[\d.]+)\b"),
        # TensorFlow's builds name the CUDA that they were made with even where there is no GPU.
        "cuda": reported.get("cuda") if gpus else None,
        "cudnn": reported.get("cudnn") if gpus else None,
        "threads_intra_used": _threads(threads, variables.get("TF_NUM_INTRAOP_THREADS", "")),
        "threads_inter_used": _threads(threads, variables.get("TF_NUM_INTEROP_THREADS", "")),
        "onednn": reported.get("onednn"),
        "flags": flags.read(variables),
        "allocator": _allocator(variables.get("LD_PRELOAD", "")),
        "tensorflow_allocator": reported.get("tensorflow_allocator"),
        "start_method": start_method,
        LOAD_OF_OTHERS: None,
    }


def _os() -> str:
    if platform.system() != "Linux":
        return {"Darwin": "macOS"}.get(platform.system(), platform.system())
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return "Linux"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor(root: Path) -> str | None:
    if sys.platform == "darwin":
        asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or None
    return _in_file(root / "proc/cpuinfo", r"(?m)^(?:model name|Model|cpu model|Hardware)\s*: *(.+)")


def _in_file(path: Path, pattern: str) -> str | None:
    """The first match in a file of the system; None where there is none."""
    try:
        match = re.search(pattern, path.read_text(errors="replace"))
    except OSError:
        return None
    return match[1].strip() if match else None


def _threads(configured: int | None, variable: str) -> int:
    """The size of one of TensorFlow's pools of threads: as configured, or else by its variable, or else as many as
    there are processors in the process's affinity, whatever a control group grants of their time.

    Source: ``EigenThreadPoolInfo`` in tensorflow/core/common_runtime/local_device.cc and
    ``NumInterOpThreadsFromSessionOptions`` in process_util.cc.
    """
    return configured or (int(variable) if variable.isdecimal() else 0) or control_groups.affinity()


def _allocator(preloaded: str) -> str | None:
    for name in ("jemalloc", "tcmalloc", "mimalloc"):
        if name in preloaded:
            return f"{name} (preloaded)"
    return " ".join(platform.libc_ver()).strip() or None


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
    """Label and text of every fact of a run, those of an earlier Mapbench too."""
    return [(label(key), shown(key, value)) for key, value in environment.items()]


def machine(environment: Mapping[str, Any]) -> str:
    """The machine that a run was measured on, in a few words: Intel(R) Xeon(R) Processor, 2 cores, 23.5 GiB."""
    keys = ("gpus", "cpu_model", "cores_granted", "memory_total_bytes")
    return ", ".join(shown(key, environment[key]) for key in keys if environment.get(key))
