"""The machine's lock: a file by which the Mapbenches of one machine measure one after another.

It is the kernel's lock of an open file, which ends with whoever holds it. Containers of a machine, and accounts, share
it where they share the file: ``MAPBENCH_LOCK`` names one. Without that it is one file for each account, in the folder
for temporary files, which is anybody's: so no link is followed there, and nobody else's file is used.
"""

import contextlib
import fcntl
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from measure.run.request import RequestError

_OPENED = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_WAIT_S = 0.2  # between two looks
_MOST_BYTES = 200  # of the words for a holder, which are in the file itself


@contextlib.contextmanager
def machine_lock(name: str, cancelled: Callable[[], bool], say: Callable[[str], None]) -> Iterator[bool]:
    """Hold the lock, for others to see as ``name``; yields False where it was ``cancelled`` while waiting. ``say``: is
    told for whom it waits, again and again. Raises `RequestError` where the file cannot be used."""
    file = _open()
    try:
        is_held = False
        while not (is_held or cancelled()):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_held = True
            except BlockingIOError:
                words = os.pread(file, _MOST_BYTES, 0).decode(errors="replace")
                who = "".join(filter(str.isprintable, words)) or "another Mapbench"
                say(f"waiting for {who}, which is measuring on this machine")
                time.sleep(_WAIT_S)
        if is_held:
            # A container has a host's name and numbers of processes of its own.
            _write(file, f"{name} (process {os.getpid()} on {socket.gethostname()})")
        yield is_held
        if is_held:
            _write(file, "")
    finally:
        os.close(file)  # and the lock with it


def _open() -> int:
    """The descriptor of the file. Raises `RequestError`."""
    shared = os.environ.get("MAPBENCH_LOCK")
    path = Path(shared or Path(tempfile.gettempdir()) / f"mapbench-{os.getuid()}.lock")
    mode = 0o666 if shared else 0o600
    try:
        # First without O_CREAT: with it the kernel refuses another account's file in a shared folder.
        try:
            file = os.open(path, _OPENED)
        except FileNotFoundError:
            file = os.open(path, _OPENED | os.O_CREAT, mode)
            with contextlib.suppress(PermissionError):  # another account has made it just now
                os.fchmod(file, mode)
    except OSError as error:
        reason = f"{error.strerror}: it has to be a file, and no link"
        raise RequestError(f"the lock {path} cannot be used ({reason}); name another one in MAPBENCH_LOCK") from None
    status = os.fstat(file)
    if not shared and (status.st_uid, status.st_nlink) != (os.getuid(), 1):
        os.close(file)
        raise RequestError(f"the lock {path} is another account's file, or has two names: name one in MAPBENCH_LOCK")
    return file


def _write(file: int, words: str) -> None:
    with contextlib.suppress(OSError):  # they are a courtesy to those who wait
        os.ftruncate(file, 0)
        os.pwrite(file, words.encode()[:_MOST_BYTES], 0)
