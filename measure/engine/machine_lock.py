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

import filelock


@contextlib.contextmanager
def machine_lock(name: str, cancelled: Callable[[], bool], wait: Callable[[str], None]) -> Iterator[bool]:
    """Hold the lock, for others to see as ``name``; yields False where it was ``cancelled`` while waiting.

    ``wait`` is called as long as another process holds it, with words for that one, and returns after a moment.
    """
    path = Path(os.environ.get("MAPBENCH_LOCK") or Path(tempfile.gettempdir()) / "mapbench.lock")
    lock, holder = filelock.FileLock(path, mode=0o666), path.with_suffix(".holder")
    while not cancelled() and not lock.is_locked:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            words = ""
            with contextlib.suppress(OSError, UnicodeDecodeError):
                words = holder.read_text(encoding="utf-8")[:200]
            wait(words or "another Mapbench")
    try:
        if lock.is_locked:
            with contextlib.suppress(OSError):
                # A container has a host's name and numbers of processes of its own.
                holder.write_text(f"{name} (process {os.getpid()} on {socket.gethostname()})", encoding="utf-8")
        yield lock.is_locked
    finally:
        if lock.is_locked:
            with contextlib.suppress(OSError):
                holder.unlink()
            lock.release()
