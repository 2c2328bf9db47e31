"""The machine's lock: a file by which the Mapbenches of one machine measure one after another.

It is the kernel's lock of an open file, which ends with whoever holds it. Containers of a machine share it where they
share the file: ``MAPBENCH_LOCK`` names one on a volume that all of them mount.
"""

import contextlib
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import filelock
import msgspec


def lock_path() -> Path:
    """Return the file whose lock says that somebody measures here; ``MAPBENCH_LOCK`` names another."""
    return Path(os.environ.get("MAPBENCH_LOCK") or Path(tempfile.gettempdir()) / "mapbench.lock")


@contextlib.contextmanager
def machine_lock(name: str, cancelled: Callable[[], bool], wait: Callable[[str], None]) -> Iterator[bool]:
    """Hold the lock, for others to see as ``name``; yields False where it was ``cancelled`` while waiting.

    ``wait`` is called as long as another process holds it, with words for that one, and returns after a moment.
    """
    path = lock_path()
    lock = filelock.FileLock(path, mode=0o666)
    holder = path.with_suffix(".holder")
    while not cancelled():
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            wait(_who(holder))
            continue
        try:
            with contextlib.suppress(OSError):
                holder.write_bytes(msgspec.json.encode({"pid": os.getpid(), "name": name, "where": _where()}))
            yield True
        finally:
            with contextlib.suppress(OSError):
                holder.unlink()
            lock.release()
        return
    yield False


def _who(holder: Path) -> str:
    """Return words for whoever holds the lock."""
    try:
        written = msgspec.json.decode(holder.read_bytes(), type=dict[str, Any])
        if written["where"] == _where():
            return f"{written['name']} (process {written['pid']})"
        return f"{written['name']} (in another container, {written['where'][0]})"
    except (OSError, LookupError, TypeError, msgspec.DecodeError):
        return "another Mapbench"


def _where() -> list[str]:
    """The name of this machine or container, and the space in which its numbers of processes mean something."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return [socket.gethostname(), space]
