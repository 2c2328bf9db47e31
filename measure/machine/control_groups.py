"""Memory and processor time that control groups of version 2 grant to this process; files below a ``root``.

A group without a limit says «max», and the machine's topmost group has no such files: neither limits anything.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

ROOT = Path("/")


def available_memory(root: Path = ROOT) -> int:
    """Bytes that this process and its children can still take: the machine's, or less where a control group limits it.
    Page cache that can be dropped counts as available, as in the kernel's MemAvailable."""
    left = (max(0, limit - used) for limit, used in _memory_limits(root))
    return int(min([psutil.virtual_memory().available, *left]))


def memory_limit(root: Path = ROOT) -> int | None:
    """The least limit of a control group in bytes, where it is less than the machine has."""
    machine_bytes = psutil.virtual_memory().total
    return min((limit for limit, _ in _memory_limits(root) if limit < machine_bytes), default=None)


def ends_for_memory(root: Path = ROOT) -> int:
    """The number of processes of this process's group that the kernel has ended since memory ran out, there or on the
    machine; 0 where it does not tell."""
    for folder in _folders(root):
        with contextlib.suppress(OSError, ValueError, KeyError):
            return int(_table(folder / "memory.events")["oom_kill"])
    return 0


def affinity() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores_granted(root: Path = ROOT) -> float:
    """Cores that this process may use: its affinity, or less where a control group limits processor time."""
    return round(min([affinity(), *(cores for cores, _ in _quotas(root))]), 2)


@dataclass(frozen=True)
class Use:
    """The use of a control group's processor time so far: seconds, the periods in which its limit is counted, and those
    of them in which it was used up, so that the group was held."""

    used_s: float
    periods: int
    held: int


def use(root: Path = ROOT) -> Use | None:
    """The use by the group with the least limit of processor time; None without a limit, or where it is not told."""
    for _, folder in sorted(_quotas(root)):
        with contextlib.suppress(OSError, ValueError, KeyError):
            stat = _table(folder / "cpu.stat")
            return Use(int(stat["usage_usec"]) / 1e6, int(stat["nr_periods"]), int(stat["nr_throttled"]))
    return None


def _memory_limits(root: Path) -> Iterator[tuple[int, int]]:
    """Limit and use in bytes of each group above this process that limits memory. Use is without page cache that the
    kernel would drop first, as Kubernetes counts it."""
    for folder in _folders(root):
        with contextlib.suppress(OSError, ValueError):
            dropped_first = int(_table(folder / "memory.stat").get("inactive_file", 0))
            used = int((folder / "memory.current").read_text())
            yield int((folder / "memory.max").read_text()), max(0, used - dropped_first)


def _quotas(root: Path) -> Iterator[tuple[float, Path]]:
    """Cores that each group above this process grants, where it limits them, and the group's folder."""
    for folder in _folders(root):
        with contextlib.suppress(OSError, ValueError):
            quota, period = map(int, (folder / "cpu.max").read_text().split())
            yield quota / period, folder


def _folders(root: Path) -> list[Path]:
    """Folders of this process's group and of those above it. Inside a container the path that the kernel tells may be
    that of the host, where only the topmost folder exists."""
    try:
        groups = (root / "proc/self/cgroup").read_text()
    except OSError:
        return []
    path = next((line.removeprefix("0::") for line in groups.splitlines() if line.startswith("0::")), "/")
    relative = PurePosixPath(path).relative_to("/")
    return [folder for above in (relative, *relative.parents) if (folder := root / "sys/fs/cgroup" / above).is_dir()]


def _table(path: Path) -> dict[str, str]:
    """The names in a file and what stands behind each."""
    return dict(line.split()[:2] for line in path.read_text().splitlines())
