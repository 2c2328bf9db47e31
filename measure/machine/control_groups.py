"""Memory and processor time that control groups grant to this process, of versions 2 and 1; files below a ``root``."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

ROOT = Path("/")
# Of versions 2 and 1: a group's limit of memory, its use, and in ``memory.stat`` the page cache that is dropped first.
_OF_MEMORY = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available_memory(root: Path | str = ROOT) -> int:
    """Bytes that this process and its children can still take: the machine's, or less where a control group limits it.
    Page cache that can be dropped counts as available, as in the kernel's MemAvailable."""
    left = (max(0, limit - used) for limit, used in _memory_limits(Path(root)))
    return int(min([psutil.virtual_memory().available, *left]))


def memory_limit(root: Path | str = ROOT) -> int | None:
    """The least limit of a control group in bytes, where it is less than the machine has."""
    limits = [limit for limit, _ in _memory_limits(Path(root)) if limit < memory_total()]
    return min(limits, default=None)


def memory_total() -> int:
    """Bytes of the machine."""
    return int(psutil.virtual_memory().total)


def ends_for_memory(root: Path | str = ROOT) -> int:
    """The number of processes of this process's group that the kernel has ended since memory ran out, there or on the
    machine; 0 where it does not tell."""
    for folder in _folders(Path(root), "memory"):
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError, ValueError, KeyError):
                return int(_table(folder / name)["oom_kill"])
    return 0


@dataclass(frozen=True)
class Use:
    """The use of a control group's processor time so far: seconds, the periods in which its limit is counted, and those
    of them in which it was used up, so that the group was held."""

    used_s: float
    periods: int
    held: int


def use(root: Path | str = ROOT) -> Use | None:
    """The use by the group with the least limit of processor time; None without a limit, or where it is not told."""
    root = Path(root)
    for _, folder in sorted(_quotas(root)):
        with contextlib.suppress(OSError, ValueError, KeyError, StopIteration):
            stat = _table(folder / "cpu.stat")
            if "usage_usec" in stat:
                used_s = int(stat["usage_usec"]) / 1e6
            else:  # version 1 counts it in nanoseconds, in a controller that may be mounted elsewhere
                files = (place / "cpuacct.usage" for place in (folder, *_folders(root, "cpuacct")))
                used_s = int(_text(next(file for file in files if file.exists()))) / 1e9
            return Use(used_s, int(stat["nr_periods"]), int(stat["nr_throttled"]))
    return None


def cores(root: Path | str = ROOT) -> float | None:
    """Processor time per time that control groups grant, in cores; None where there is no limit."""
    return min((granted for granted, _ in _quotas(Path(root))), default=None)


def _memory_limits(root: Path) -> Iterator[tuple[int, int]]:
    """Limit and use in bytes of each group above this process that limits memory. Use is without page cache that the
    kernel would drop first, as Kubernetes counts it."""
    for folder in _folders(root, "memory"):
        for limit, used, inactive in _OF_MEMORY:
            # «max» is no number and no limit; version 1 says "no limit" with a number near 2^63, which limits nothing.
            with contextlib.suppress(OSError, ValueError):
                cache = int(_table(folder / "memory.stat").get(inactive, 0))
                yield int(_text(folder / limit)), max(0, int(_text(folder / used)) - cache)


def _quotas(root: Path) -> Iterator[tuple[float, Path]]:
    """Cores that each group above this process grants, where it limits them, and the group's folder."""
    for folder in _folders(root, "cpu"):
        with contextlib.suppress(OSError, ValueError):
            if (folder / "cpu.max").exists():
                quota, period = map(int, _text(folder / "cpu.max").split())  # «max» is no number and no limit
            else:
                quota, period = (int(_text(folder / f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
            if quota > 0 and period > 0:
                yield quota / period, folder


def _folders(root: Path, controller: str) -> list[Path]:
    """Folders of this process's group and of those above it, for a controller. Inside a container the path that the
    kernel tells may be that of the host, where only the topmost folder exists."""
    folders: list[Path] = []
    with contextlib.suppress(OSError):
        for line in _text(root / "proc/self/cgroup").splitlines():
            _, names, path = line.split(":", 2)
            if names == "":
                mounts = ["", "unified"]
            else:
                mounts = [controller, names] if controller in names.split(",") else []
            relative = PurePosixPath(path.strip()).relative_to("/")
            places = (
                root / "sys/fs/cgroup" / mount / above for mount in mounts for above in (relative, *relative.parents)
            )
            folders += filter(Path.is_dir, places)
    return list(dict.fromkeys(folders))


def _table(path: Path) -> dict[str, str]:
    """The names in a file and what stands behind each."""
    return dict(line.split()[:2] for line in _text(path).splitlines())


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace").strip()
