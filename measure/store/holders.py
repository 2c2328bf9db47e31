"""The processes that measure: each holds a lock for as long as it lives, by which others see whether it does."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import filelock

from measure.model import place
from measure.model.place import StoreError


class Holders:
    """The locks of the processes that measure, as files in a folder."""

    def __init__(self, folder: Path, *, all_are_here: bool) -> None:
        """``all_are_here``: no holder is on another machine, of which nothing is known in this folder."""
        self._folder = folder
        self._all_are_here = all_are_here
        self._own: filelock.BaseFileLock | None = None
        self._token = place.new_id()

    def hold(self) -> str:
        """This process's name among the holders; from now on it is one, by a lock that ends when the process does.
        Raises `StoreError` where that cannot be written."""
        if self._own is None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                own = filelock.FileLock(self._folder / f"{self._token}.lock", thread_local=False)
                own.acquire(timeout=0)
            except OSError as error:
                raise StoreError(error.strerror or str(error)) from None
            self._own = own
        return self._token

    def release(self) -> None:
        """Be no holder any more, as when the process ends."""
        if self._own is not None:
            self._own.release()
            with contextlib.suppress(OSError):
                os.unlink(self._own.lock_file)
            self._own, self._token = None, place.new_id()

    def is_gone(self, holder: str) -> bool:
        """True if a holder of this machine has ended, or was none."""
        if holder == self._token:
            return False
        path = self._folder / f"{holder}.lock"
        if not path.exists():
            return True
        lock = filelock.FileLock(path, thread_local=False)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            return False
        lock.release()
        return True

    @contextlib.contextmanager
    def if_gone(self, holder: str) -> Iterator[bool]:
        """True if a holder has ended. Meanwhile nobody else finds that it has, so that one process closes its runs."""
        if holder == self._token:
            yield False
            return
        path = self._folder / f"{holder}.lock"
        if not path.exists():
            yield self._all_are_here
            return
        lock = filelock.FileLock(path, thread_local=False)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            yield False
            return
        try:
            yield True
            path.unlink(missing_ok=True)
        finally:
            lock.release()
