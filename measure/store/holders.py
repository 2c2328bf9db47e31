"""The processes that measure: each holds a lock for as long as it lives, by which others see whether it does."""

import contextlib
import os
from pathlib import Path

import filelock

from measure.run import place
from measure.run.place import StoreError


class Holders:
    """The locks of the processes that measure, as files in a folder."""

    def __init__(self, folder: Path, *, all_are_here: bool) -> None:
        """``all_are_here``: no holder is on another machine, of which nothing is known in this folder."""
        self._folder, self._all_are_here = folder, all_are_here
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

    def is_gone(self, holder: str, *, is_here: bool = False) -> bool:
        """True if a holder has ended. ``is_here``: it is one of this machine."""
        path = self._folder / f"{holder}.lock"
        if holder == self._token:
            return False
        if not path.exists():
            return is_here or self._all_are_here
        lock = filelock.FileLock(path, thread_local=False)
        try:
            lock.acquire(timeout=0)
        except OSError:  # it is held, or another user's, of which nothing can be told
            return False
        lock.release()
        return True
