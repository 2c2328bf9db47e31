"""The environment that a run was measured in: a fixed list of facts, each with how it is read and how it is shown.

All keys are in every run, null where a fact is not known; a run of an earlier Mapbench may lack the later ones. Nothing
private is among them: no name of a machine or a person, no path. Nothing here needs TensorFlow. Files of the system are
read under a ``root`` that tests can replace.

The keys, in their order (sizes in bytes, cores may be fractions):

- versions and system: ``mapbench``, ``analysis``, ``python``, ``python_implementation``, ``os``, ``os_release``,
  ``tensorflow``, ``numpy``, ``keras``
- processor: ``cpu_model``, ``architecture``, ``cpu_features``, ``cache_l1d_bytes``, ``cache_l2_bytes``,
  ``cache_l3_bytes``, ``cores_machine``, ``cores_granted`` (the lesser of the next two), ``cores_affinity``,
  ``cores_cgroup`` (null without a limit), ``cpu_governor``, ``virtualised``
- memory: ``memory_total_bytes``, ``memory_available_bytes``, ``memory_limit_bytes``, ``swap_total_bytes``,
  ``swap_used_bytes``, ``huge_pages``
- GPUs: ``gpus``, ``gpu_memory_bytes``, ``gpu_driver``, ``gpu_memory_growth``, ``gpu_allocator``, ``cuda``, ``cudnn``
- threads: ``threads_intra``, ``threads_inter`` (as configured), ``threads_intra_used``, ``threads_inter_used`` (in
  effect), ``openblas_threads`` (of NumPy's matrix products)
- libraries: ``onednn``, ``flags``, ``allocator`` (the C library's), ``tensorflow_allocator`` (of tensors in the
  machine's memory)
- the run: ``start_method``, ``load_of_others_cores``, ``load_average_1min``

What is true of the processes that are measured and need not be of this one (``gpus`` to ``cudnn``, ``onednn``,
``openblas_threads``, ``tensorflow_allocator``), one of them has reported.
"""

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from measure.machine import control_groups, flags, load, processor, system
from measure.machine.control_groups import available_memory
from measure.model import text
from measure.model.run import Analysis

__all__ = ["FACTS", "LOAD_OF_OTHERS", "VERSION", "available_memory", "collect", "describe", "machine"]

VERSION = "1.0"
# Known only when a comparison has watched others for a while.
LOAD_OF_OTHERS = "load_of_others_cores"


@dataclass(frozen=True)
class Source:
    """The sources of facts: the system's files, variables, and what the caller says."""

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
    reported: ``gpus`` (dicts with ``name``, ``compute_capability`` and ``memory_bytes``), ``gpu_driver``,
    ``gpu_memory_growth``, ``gpu_allocator``, ``cuda``, ``cudnn``, ``onednn``, ``openblas_threads``,
    ``tensorflow_allocator``. ``threads``: TensorFlow's thread count as configured, None where TensorFlow chooses.
    ``load_window_s``: for how long to watch what others do.
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
        unknown = fact.unknown if fact.key in environment else Fact.unknown  # what nobody asked for is not known
        try:
            rows.append((fact.label, unknown if value is None else fact.show(value)))
        except (TypeError, ValueError, AttributeError, KeyError):  # a run made elsewhere may hold anything
            rows.append((fact.label, str(value)))
    return rows


def machine(environment: Mapping[str, Any]) -> str:
    """The machine that a run was measured on, in a few words: Intel(R) Xeon(R) Processor, 2 cores, 23.5 GiB."""
    shown = {fact.key: words for fact, (_, words) in zip(FACTS, describe(environment), strict=True)}
    keys = ("gpus", "cpu_model", "cores_granted", "memory_total_bytes")
    return ", ".join(shown[key] for key in keys if environment.get(key))


def _read(fact: Fact, source: Source) -> Any:
    try:
        return fact.read(source)
    except (OSError, ValueError, KeyError, IndexError, psutil.Error, subprocess.TimeoutExpired):
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
    for line in system.lines(source.root / "etc/os-release"):
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip("\"' ")
    return "Linux"


def _os_release(source: Source) -> str:
    if sys.platform == "darwin":
        return platform.mac_ver()[0]
    return platform.version() if sys.platform == "win32" else platform.release()


def _allocator(source: Source) -> str | None:
    preloaded = source.variables.get("LD_PRELOAD", "")
    for name in ("jemalloc", "tcmalloc", "mimalloc"):
        if name in preloaded:
            return f"{name} (preloaded)"
    return " ".join(platform.libc_ver()).strip() or None


# --- what else the system does ---------------------------------------------------------------------------------------


def _huge_pages(source: Source) -> str:
    """Return the kernel's policy for backing large allocations by large pages: always, madvise or never."""
    chosen = re.search(r"\[(\w+)\]", system.text(source.root / "sys/kernel/mm/transparent_hugepage/enabled"))
    if chosen is None:
        raise ValueError("not told")
    return chosen.group(1)


def _load_of_others(source: Source) -> float | None:
    if source.load_window_s <= 0:
        return None
    watch = load.Watch()
    time.sleep(source.load_window_s)
    return round(watch.cores_of_others(), 2)


def _load_average(source: Source) -> float:
    if sys.platform == "win32":
        raise ValueError("Windows has no load average")
    return round(os.getloadavg()[0], 2)


def _memory_limit(source: Source) -> int | None:
    return control_groups.memory_limit(source.root)


def _swap_used(source: Source) -> int:
    memory = control_groups.memory(source.root)
    return memory["swap_total"] - memory["swap_free"]


# --- GPUs -------------------------------------------------------------------------------------------------------------


def _gpus(source: Source) -> list[str] | None:
    if "gpus" not in source.tensorflow:
        return None
    rows = []
    for gpu in source.tensorflow["gpus"]:
        capability = gpu.get("compute_capability")
        rows.append(f"{gpu.get('name') or 'GPU'}{f', compute capability {capability}' if capability else ''}")
    return rows


def _gpu_memory(source: Source) -> list[int | None] | None:
    """Bytes of each GPU's memory, in the order of ``gpus``."""
    gpus = source.tensorflow.get("gpus")
    return [gpu.get("memory_bytes") for gpu in gpus] if gpus else None


def _gpu_driver(source: Source) -> str | None:
    try:
        said = system.text(source.root / "proc/driver/nvidia/version")
    except OSError:  # under Windows' Linux there is no such file
        return source.tensorflow.get("gpu_driver")
    version = re.search(r"\b(\d{3,}\.[\d.]+)\b", said)
    return version.group(1) if version else None


def _for_gpus(key: str) -> Callable[[Source], Any]:
    # TensorFlow's builds name the CUDA that they were made with even where there is no GPU to use it.
    return lambda source: source.tensorflow.get(key) if source.tensorflow.get("gpus") else None


# --- the list ---------------------------------------------------------------------------------------------------------


def _reported(key: str) -> Callable[[Source], Any]:
    """A fact that a process that is measured has said of itself."""
    return lambda source: source.tensorflow.get(key)


def _cores_of_group(source: Source) -> float | None:
    cores = control_groups.cores(source.root)
    return None if cores is None else round(cores, 2)


def _yes_or_no(value: bool) -> str:
    return {True: "yes", False: "no"}[value]


def _listed(values: list[str]) -> str:
    return ", ".join(values) or "none"


def _cores(value: float) -> str:
    return f"{value:.3g} {'core' if value == 1 else 'cores'}"


def _sizes(values: list[int | None]) -> str:
    return ", ".join("not known" if value is None else text.size(value) for value in values)


def _shown_flags(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "none set"


def _threads_used(across_ops: bool) -> Callable[[Source], int]:
    return lambda source: processor.tensorflow_threads(source.threads, source.variables, across_ops=across_ops)


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
    Fact("cpu_model", "Processor", lambda source: processor.model(source.root)),
    Fact("architecture", "Architecture", lambda source: platform.machine() or None),
    Fact("cpu_features", "Features of the processor", lambda source: processor.features(source.root), _listed),
    Fact("cache_l1d_bytes", "Level 1 data cache", lambda source: processor.cache_bytes(source.root, 1), text.size),
    Fact("cache_l2_bytes", "Level 2 cache", lambda source: processor.cache_bytes(source.root, 2), text.size),
    Fact("cache_l3_bytes", "Level 3 cache", lambda source: processor.cache_bytes(source.root, 3), text.size),
    Fact("cores_machine", "Cores of the machine", lambda source: os.cpu_count(), _cores),
    Fact("cores_granted", "Cores granted", lambda source: processor.granted(source.root), _cores),
    Fact("cores_affinity", "Cores by affinity", lambda source: processor.affinity(), _cores),
    Fact("cores_cgroup", "Cores by the control group", _cores_of_group, _cores, unknown="no limit"),
    Fact("cpu_governor", "Frequency governor", lambda source: processor.governor(source.root)),
    Fact("virtualised", "Virtual machine", lambda source: processor.virtualised(source.root)),
    Fact("memory_total_bytes", "Memory", lambda source: control_groups.memory(source.root)["total"], text.size),
    Fact("memory_available_bytes", "Memory available", lambda source: available_memory(source.root), text.size),
    Fact("memory_limit_bytes", "Limit of the control group", _memory_limit, text.size, unknown="none"),
    Fact("swap_total_bytes", "Swap", lambda source: control_groups.memory(source.root)["swap_total"], text.size),
    Fact("swap_used_bytes", "Swap in use", _swap_used, text.size),
    Fact("huge_pages", "Large pages unasked", _huge_pages),
    Fact("gpus", "GPUs", _gpus, _listed),
    Fact("gpu_memory_bytes", "Memory of each GPU", _gpu_memory, _sizes, unknown="none"),
    Fact("gpu_driver", "GPU driver", _gpu_driver, unknown="none"),
    Fact("gpu_memory_growth", "Memory of GPUs grows", _for_gpus("gpu_memory_growth"), _yes_or_no, unknown="not used"),
    Fact("gpu_allocator", "Allocator of GPUs", _for_gpus("gpu_allocator"), unknown="not used"),
    Fact("cuda", "CUDA", _for_gpus("cuda"), unknown="not used"),
    Fact("cudnn", "cuDNN", _for_gpus("cudnn"), unknown="not used"),
    Fact("threads_intra", "Threads within an op", lambda source: source.threads, unknown="TensorFlow's choice"),
    Fact("threads_inter", "Threads across ops", lambda source: source.threads, unknown="TensorFlow's choice"),
    Fact("threads_intra_used", "Threads within an op, in effect", _threads_used(False)),
    Fact("threads_inter_used", "Threads across ops, in effect", _threads_used(True)),
    Fact("openblas_threads", "Threads of NumPy's matrix products", _reported("openblas_threads")),
    Fact("onednn", "oneDNN", _reported("onednn"), {True: "on", False: "off"}.__getitem__),
    Fact("flags", "Flags", lambda source: flags.read(source.variables), _shown_flags),
    Fact("allocator", "Allocator of the C library", _allocator),
    Fact("tensorflow_allocator", "Allocator of tensors by default", _reported("tensorflow_allocator")),
    Fact(
        "start_method",
        "Processes start",
        lambda source: source.start_method,
        lambda value: {"fork": "as forks of one host", "fresh": "as fresh interpreters"}.get(value, str(value)),
    ),
    Fact(LOAD_OF_OTHERS, "Others' use before the run", _load_of_others, _cores, unknown="not measured"),
    Fact("load_average_1min", "Load average over 1 min", _load_average),
)
