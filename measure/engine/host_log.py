"""The log of a measuring process: what it prints, in two files whose size is bounded."""

import contextlib
from pathlib import Path

# Of each of the two: the log and, where it would become larger, the one before it.
_MOST_BYTES = 2**20


class HostLog:
    """The log at a path. It may be written by several processes, one after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, data: bytes) -> None:
        """Add bytes; where the disk is full or cannot be written they are lost, and measuring goes on."""
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.exists() and self._path.stat().st_size + len(data) > _MOST_BYTES:
                self._path.replace(self._path.with_suffix(".old.log"))
            with self._path.open("ab") as file:
                file.write(data)
