"""The environment that a run was measured in: facts that change what is measured, null where one is not known.

Nothing private is among them: no name of a machine or a person, no path. Nothing here needs TensorFlow: what is true of
the processes that are measured and need not be of this one, one of them has reported. Sizes are in bytes.
"""

import importlib.metadata
import itertools
import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure.machine import control_groups, flags, processor
from measure.machine.control_groups import available_memory
from measure.model import text

__all__ = ["FACTS", "LOAD_OF_OTHERS", "VERSION", "available_memory", "collect", "describe", "machine"]

VERSION = "1.0"
# Known only when a comparison has watched others for a while.
LOAD_OF_OTHERS = "load_of_others_cores"


@dataclass(frozen=True)
class Source:
    """The sources of facts: the system's files, variables, and what the caller says."""

    start_method: str
    tensorflow: Mapping[str, Any]
    threads: int | None
    root: Path
    variables: Mapping[str, str]


@dataclass(frozen=True)
class Fact:
    """One key of a run's environment. ``read`` may return None or raise OSError or ValueError: not known."""

    key: str
    label: str
    read: Callable[[Source], Any]
    show: Callable[[Any], str] = str


def collect(
    *,
    start_method: str,
    tensorflow: Mapping[str, Any] | None = None,
    threads: int | None = None,
    root: Path | str = control_groups.ROOT,
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """All facts by key, ready for JSON.

    ``start_method``: "fork" or "fresh", how subjects start. ``tensorflow``: what a process that has TensorFlow
    reported: ``gpus`` (dicts with ``name`` and ``compute_capability``), ``cuda``, ``cudnn``, ``onednn``,
    ``tensorflow_allocator``. ``threads``: TensorFlow's thread count as configured, None where TensorFlow chooses.
    """
    variables = os.environ if variables is None else variables
    source = Source(start_method, tensorflow or {}, threads, Path(root), variables)
    return {fact.key: _read(fact, source) for fact in FACTS}


def describe(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Label and text of every fact, in a fixed order; then of those that an earlier Mapbench read as well."""
    rows = []
    for fact in FACTS:
        value = environment.get(fact.key)
        try:
            rows.append((fact.label, text.MISSING if value is None else fact.show(value)))
        except (TypeError, ValueError, AttributeError, KeyError):  # a run made elsewhere may hold anything
            rows.append((fact.label, str(value)))
    today = {fact.key for fact in FACTS}
    former = ((key, value) for key, value in environment.items() if key not in today and value is not None)
    return [*rows, *itertools.starmap(_former, former)]


def machine(environment: Mapping[str, Any]) -> str:
    """The machine that a run was measured on, in a few words: Intel(R) Xeon(R) Processor, 2 cores, 23.5 GiB."""
    shown = {fact.key: words for fact, (_, words) in zip(FACTS, describe(environment), strict=False)}
    keys = ("gpus", "cpu_model", "cores_granted", "memory_total_bytes")
    return ", ".join(shown[key] for key in keys if environment.get(key))


def _former(key: str, value: Any) -> tuple[str, str]:
    """A fact of an earlier Mapbench, by its key: ``cache_l2_bytes`` as «cache l2» in KiB."""
    if key.endswith("_bytes") and isinstance(value, int):
        return key.removesuffix("_bytes").replace("_", " "), text.size(value)
    return key.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _read(fact: Fact, source: Source) -> Any:
    try:
        return fact.read(source)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


# --- how they are read -----------------------------------------------------------------------------------------------


def _version(*packages: str) -> str | None:
    for package in packages:
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _os(source: Source) -> str:
    if platform.system() != "Linux":
        return {"Darwin": "macOS"}.get(platform.system(), platform.system())
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return "Linux"


def _allocator(source: Source) -> str | None:
    preloaded = source.variables.get("LD_PRELOAD", "")
    for name in ("jemalloc", "tcmalloc", "mimalloc"):
        if name in preloaded:
            return f"{name} (preloaded)"
    return " ".join(platform.libc_ver()).strip() or None


def _file(path: str, pattern: str = r"(.+)") -> Callable[[Source], str | None]:
    """A fact that is the first match in a file of the system."""

    def read(source: Source) -> str | None:
        match = re.search(pattern, (source.root / path).read_text(errors="replace"))
        return match[1] if match else None

    return read


def _gpus(source: Source) -> list[str] | None:
    gpus = [(gpu.get("name") or "GPU", gpu.get("compute_capability")) for gpu in source.tensorflow.get("gpus") or ()]
    named = [", compute capability ".join(filter(None, gpu)) for gpu in gpus]
    return named if "gpus" in source.tensorflow else None


def _reported(key: str, *, of_gpus: bool = False) -> Callable[[Source], Any]:
    """A fact that a process that is measured has said of itself; ``of_gpus``: where there are any. TensorFlow's builds
    name the CUDA that they were made with even where there is none."""
    return lambda source: source.tensorflow.get(key) if source.tensorflow.get("gpus") or not of_gpus else None


def _threads(name: str) -> Callable[[Source], int]:
    return lambda source: processor.tensorflow_threads(source.threads, source.variables, name)


def _cores(value: float) -> str:
    return f"{value:.3g} {'core' if value == 1 else 'cores'}"


def _shown_flags(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "none set"


_DRIVER = "proc/driver/nvidia/version"
_HUGE_PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
_GOVERNOR = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
_STARTS = {"fork": "as forks of one host", "fresh": "as fresh interpreters"}

FACTS: tuple[Fact, ...] = (
    Fact("mapbench", "Mapbench", lambda source: VERSION),
    Fact("python", "Python", lambda source: platform.python_version()),
    Fact("os", "Operating system", _os),
    Fact("tensorflow", "TensorFlow", lambda source: _version("tensorflow", "tensorflow-cpu", "tf-nightly")),
    Fact("numpy", "NumPy", lambda source: _version("numpy")),
    Fact("keras", "Keras", lambda source: _version("keras")),
    Fact("cpu_model", "Processor", lambda source: processor.model(source.root)),
    Fact("cpu_governor", "Frequency governor", _file(_GOVERNOR)),
    Fact("cores_granted", "Cores granted", lambda source: processor.granted(source.root), _cores),
    Fact("memory_total_bytes", "Memory", lambda source: control_groups.memory_total(), text.size),
    Fact(
        "memory_limit_bytes",
        "Limit of the control group",
        lambda source: control_groups.memory_limit(source.root),
        text.size,
    ),
    Fact("huge_pages", "Large pages unasked", _file(_HUGE_PAGES, r"\[(\w+)\]")),
    Fact("gpus", "GPUs", _gpus, lambda names: ", ".join(names) or "none"),
    Fact("gpu_driver", "GPU driver", _file(_DRIVER, r"\b(\d{3,}\.[\d.]+)\b")),
    Fact("cuda", "CUDA", _reported("cuda", of_gpus=True)),
    Fact("cudnn", "cuDNN", _reported("cudnn", of_gpus=True)),
    Fact("threads_intra_used", "Threads within an op", _threads("TF_NUM_INTRAOP_THREADS")),
    Fact("threads_inter_used", "Threads across ops", _threads("TF_NUM_INTEROP_THREADS")),
    Fact("onednn", "oneDNN", _reported("onednn"), {True: "on", False: "off"}.__getitem__),
    Fact("flags", "Flags", lambda source: flags.read(source.variables), _shown_flags),
    Fact("allocator", "Allocator of the C library", _allocator),
    Fact("tensorflow_allocator", "Allocator of tensors by default", _reported("tensorflow_allocator")),
    Fact("start_method", "Processes start", lambda source: source.start_method, lambda way: _STARTS.get(way, str(way))),
    Fact(LOAD_OF_OTHERS, "Others' use before the run", lambda source: None, _cores),
)
