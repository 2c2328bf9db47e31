"""Memory of the machine, and what control groups leave of it and of the processors; versions 2 and 1."""

import contextlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

from measure.machine import system


def available_memory(root: Path | str = system.ROOT) -> int:
    """Bytes that this process and its children can still take: the machine's, or less where a control group limits it.

    Page cache that can be dropped counts as available, as in the kernel's MemAvailable.
    """
    root = Path(root)
    available = memory(root)["available"]
    left = [max(0, limit - used) for limit, used in _limits(root)]
    return min([available, *left])


def memory(root: Path) -> dict[str, int]:
    """Bytes: total, available, swap_total, swap_free."""
    try:
        sizes = {}
        for line in system.lines(root / "proc/meminfo"):
            key, _, value = line.partition(":")
            sizes[key] = int(value.split()[0]) * 1024
        return {
            "total": sizes["MemTotal"],
            "available": sizes["MemAvailable"],
            "swap_total": sizes["SwapTotal"],
            "swap_free": sizes["SwapFree"],
        }
    except (OSError, KeyError, ValueError, IndexError):
        machine, swap = psutil.virtual_memory(), psutil.swap_memory()
        return {
            "total": machine.total,
            "available": machine.available,
            "swap_total": swap.total,
            "swap_free": swap.free,
        }


def _limits(root: Path) -> list[tuple[int, int]]:
    """Limit and use in bytes of each control group above this process that limits memory; version 2 or version 1.

    Use is without page cache that the kernel would drop first, as Kubernetes counts it.
    """
    pairs = []
    for folder in _folders(root, "memory"):
        for limit_name, used_name, inactive_name in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            try:
                limit, used = system.text(folder / limit_name), int(system.text(folder / used_name))
                stat = dict(line.split()[:2] for line in system.lines(folder / "memory.stat"))
            except (OSError, ValueError):
                continue
            if limit != "max":  # version 1 says "no limit" with a number near 2^63, which limits nothing
                pairs.append((int(limit), max(0, used - int(stat.get(inactive_name, 0)))))
    return pairs


def ends_for_memory(root: Path | str = system.ROOT) -> int:
    """The number of processes of this process's group that the kernel has ended since memory ran out, there or on the
    machine; 0 where it does not tell."""
    for folder in _folders(Path(root), "memory"):
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError, ValueError, KeyError):
                return int(dict(line.split()[:2] for line in system.lines(folder / name))["oom_kill"])
    return 0


def cores(root: Path) -> float | None:
    """Processor time per time that control groups grant, in cores; None where there is no limit."""
    return min((granted for granted, _ in _quotas(root)), default=None)


def _quotas(root: Path) -> list[tuple[float, Path]]:
    """Cores that each control group above this process grants, where it limits them, and the group's folder."""
    quotas = []
    for folder in _folders(root, "cpu"):
        try:
            quota, period = system.text(folder / "cpu.max").split()
        except (OSError, ValueError):
            try:
                quota, period = system.text(folder / "cpu.cfs_quota_us"), system.text(folder / "cpu.cfs_period_us")
            except OSError:
                continue
        if quota not in ("max", "-1") and int(period) > 0:
            quotas.append((int(quota) / int(period), folder))
    return quotas


@dataclass(frozen=True)
class Use:
    """The use of a control group's processor time so far: seconds, the periods in which its limit is counted, and those
    of them in which it was used up, so that the group was held."""

    used_s: float
    periods: int
    held: int


def use(root: Path | str = system.ROOT) -> Use | None:
    """The use by the group with the least limit of processor time; None without a limit, or where it is not told."""
    root = Path(root)
    for _, folder in sorted(_quotas(root)):
        with contextlib.suppress(OSError, ValueError, KeyError, StopIteration):
            stat = dict(line.split() for line in system.lines(folder / "cpu.stat"))
            used_us = int(stat["usage_usec"]) if "usage_usec" in stat else _used_in_version_1(root, folder)
            return Use(used_us / 1e6, int(stat["nr_periods"]), int(stat["nr_throttled"]))
    return None


def _used_in_version_1(root: Path, folder: Path) -> int:
    """Microseconds of processor time, which a controller counts that may be mounted elsewhere."""
    files = (each / "cpuacct.usage" for each in (folder, *_folders(root, "cpuacct")))
    return int(system.text(next(file for file in files if file.exists()))) // 1_000


def _folders(root: Path, controller: str) -> list[Path]:
    """Folders of this process's group and of those above it, for a controller.

    Inside a container the path that the kernel tells may be that of the host, where only the topmost folder exists.
    """
    folders: list[Path] = []
    try:
        lines = system.lines(root / "proc/self/cgroup")
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


def memory_limit(root: Path) -> int | None:
    """The least limit of a control group, where it is less than the machine has."""
    limit = min((limit for limit, _ in _limits(root)), default=None)
    return limit if limit is not None and limit < memory(root)["total"] else None
