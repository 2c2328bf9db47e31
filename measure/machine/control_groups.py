"""Memory and processor time that control groups of version 2 grant to this process; files below a ``root``.

A group without a limit says «max», and the machine's topmost group has no such files: neither limits anything.
"""

import contextlib
import math
import os
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

ROOT = Path("/")


def available_memory(root: Path = ROOT) -> int:
    """Bytes that this process and its children can still take: the machine's, or less where a control group limits it.
    Page cache that the kernel would drop first counts as available, as in its MemAvailable and as Kubernetes counts."""
    left = [psutil.virtual_memory().available]
    for limit, current, stat in _files(root, "memory.max", "memory.current", "memory.stat"):
        used = max(0, int(current) - _counts(stat)["inactive_file"])
        left.append(max(0, _limit(limit) - used))
    return int(min(left))


def memory_limit(root: Path = ROOT) -> int | None:
    """The least limit of a control group in bytes, where it is less than the machine has."""
    least = min((_limit(limit) for (limit,) in _files(root, "memory.max")), default=math.inf)
    return int(least) if least < psutil.virtual_memory().total else None


def ends_for_memory(root: Path = ROOT) -> int:
    """The number of processes of this process's group that the kernel has ended since memory ran out, there or on the
    machine; 0 where it does not tell."""
    return next((_counts(events)["oom_kill"] for (events,) in _files(root, "memory.events")), 0)


def processors() -> Collection[int]:
    """The numbers of the processors that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


def cores_granted(root: Path = ROOT) -> float:
    """Cores that this process may use: its affinity, or less where a control group limits processor time."""
    return round(min([len(processors()), *(_cores(quota) for (quota,) in _files(root, "cpu.max"))]), 2)


@dataclass(frozen=True)
class Use:
    """The use of a control group's processor time so far: seconds, the periods in which its limit is counted, and those
    of them in which it was used up, so that the group was held."""

    used_s: float
    periods: int
    held: int


def use(root: Path = ROOT) -> Use | None:
    """The use by the group with the least limit of processor time, or without a limit by the container that this
    process is in; None in neither."""
    cores, stat = min(((_cores(quota), stat) for quota, stat in _files(root, "cpu.max", "cpu.stat")), default=(0, ""))
    if not 0 < cores < math.inf:
        top = root / "sys/fs/cgroup"
        try:  # the topmost group that can be seen here has a type in a container, and on the machine itself none
            stat = (top / "cpu.stat").read_text() if (top / "cgroup.type").exists() else ""
        except OSError:
            stat = ""
        if not stat:
            return None
    counts = _counts(stat)
    return Use(counts["usage_usec"] / 1e6, counts["nr_periods"], counts["nr_throttled"])


def _files(root: Path, *names: str) -> Iterator[list[str]]:
    """The texts of these files of this process's group and of each one above it, where a group has them. Inside a
    container the path that the kernel tells may be that of the host, where only the topmost folder exists."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    group = PurePosixPath(next((line.removeprefix("0::/") for line in groups if line.startswith("0::")), ""))
    for path in (group, *group.parents):
        with contextlib.suppress(OSError):
            yield [(root / "sys/fs/cgroup" / path / name).read_text() for name in names]


def _limit(text: str) -> float:
    return math.inf if text.startswith("max") else float(text)


def _cores(quota: str) -> float:
    """Cores by a group's quota of microseconds in each period: ``200000 100000``."""
    granted, period = quota.split()
    return _limit(granted) / float(period)


def _counts(text: str) -> Counter[str]:
    """The names in a file with the number behind each; any other one counts 0."""
    return Counter({name: int(number) for name, number in map(str.split, text.splitlines())})
