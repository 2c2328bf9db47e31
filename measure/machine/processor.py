"""The processor: which one, and how much of it this process may use."""

import math
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from measure.machine import control_groups


def model(root: Path) -> str | None:
    """Its name as the system has it; raises OSError where that does not answer."""
    if sys.platform == "win32":
        return platform.processor() or None
    if sys.platform == "darwin":
        asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(asked, capture_output=True, text=True, timeout=5, check=False).stdout.strip() or None
    lines = (line.partition(":") for line in (root / "proc/cpuinfo").read_text(errors="replace").splitlines())
    names = ("model name", "Model", "cpu model", "Hardware")
    return next((value.strip() for name, _, value in lines if name.strip() in names), None)


def affinity() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def granted(root: Path) -> float:
    """Cores that this process may use: its affinity, or less where a control group limits processor time."""
    return round(min(affinity(), control_groups.cores(root) or math.inf), 2)


def tensorflow_threads(configured: int | None, variables: Mapping[str, str], name: str) -> int:
    """The size of one of TensorFlow's pools of threads: as configured, or else by the variable of this name, or else as
    many as there are processors in the process's affinity, whatever a control group grants of their time.

    Source: ``EigenThreadPoolInfo`` in tensorflow/core/common_runtime/local_device.cc and
    ``NumInterOpThreadsFromSessionOptions`` in process_util.cc.
    """
    asked = variables.get(name, "")
    return configured or (int(asked) if asked.isdecimal() else 0) or affinity()
