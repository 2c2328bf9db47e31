"""A memory cgroup to run something in."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

# Version 1 of cgroups has a hierarchy for memory, version 2 one for all.
_PLACES = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.failcnt"),
    (Path("/sys/fs/cgroup"), "memory.max", "memory.peak", "memory.events"),
)


class Group:
    """A memory cgroup."""

    def __init__(self, path: Path, peak: str, failures: str) -> None:
        self.path, self._peak, self._failures = path, peak, failures

    def enter(self) -> None:
        """Move this process there, and so all that it will start."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def figures(self) -> tuple[int, str]:
        """The most bytes so far, page cache included, and what the kernel says of failures."""
        return int((self.path / self._peak).read_text()), " ".join((self.path / self._failures).read_text().split())


@contextlib.contextmanager
def group_of(mib: int) -> Iterator[Group | None]:
    """A memory cgroup; None where none can be made."""
    for root, limit, peak, failures in _PLACES:
        path = root / f"mapbench-{os.getpid()}"
        try:
            path.mkdir()
            (path / limit).write_text(str(mib * 2**20))
        except OSError:
            with contextlib.suppress(OSError):
                path.rmdir()
            continue
        try:
            yield Group(path, peak, failures)
        finally:
            end = time.monotonic() + 10.0
            while time.monotonic() < end:
                try:
                    path.rmdir()
                    break
                except OSError:  # a process is still ending
                    time.sleep(0.1)
        return
    yield None
