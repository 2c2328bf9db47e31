"""The processes that measure runs, and the runs of those that are gone.

A process that measures holds a lock for as long as it lives: whoever finds a run whose holder has let go of its lock
closes it as interrupted, with what was measured.
"""

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import filelock
import sqlalchemy as sa

from measure.claims.ending import CLOSE
from measure.model import place
from measure.store import documents, entries, waiting
from measure.store.database import runs

_log = logging.getLogger("mapbench.store")
_HOLDER_GONE = "the process that measured it ended unexpectedly; what was measured is kept"


class Holders:
    """The locks of the processes that measure, as files in a folder."""

    def __init__(self, folder: Path, *, all_are_here: bool) -> None:
        """``all_are_here``: no holder is on another machine, of which nothing is known in this folder."""
        self._folder = folder
        self._all_are_here = all_are_here
        self._own: filelock.BaseFileLock | None = None
        self._token = place.new_id()

    def hold(self) -> str:
        """This process's name among the holders; from now on it is one, by a lock that ends when the process does."""
        if self._own is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._own = filelock.FileLock(self._folder / f"{self._token}.lock", thread_local=False)
            self._own.acquire(timeout=0)
        return self._token

    def release(self) -> None:
        """Be no holder any more, as when the process ends."""
        if self._own is not None:
            self._own.release()
            with contextlib.suppress(OSError):
                os.unlink(self._own.lock_file)
            self._own, self._token = None, place.new_id()

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


def known(connection: sa.Connection) -> list[str]:
    """The holders of runs that have not ended, whether they live or not."""
    named = runs.c.holder.is_not(None), runs.c.holder != waiting.NOBODY
    return list(connection.execute(sa.select(runs.c.holder).distinct().where(*named)).scalars())


def close_runs_of(connection: sa.Connection, holder: str) -> None:
    """Close the runs of a holder that is gone, but for those that wait; one that is damaged stays as it is, and is
    interrupted."""
    waiting.leave(connection, holder)
    held = connection.execute(sa.select(runs.c.id, runs.c.version).where(runs.c.holder == holder)).all()
    for run_id, version in held:
        row = {"status": "interrupted"}
        try:
            run = documents.read(connection, run_id)
            run = CLOSE[run.kind](run, "interrupted", _HOLDER_GONE, entries.utc(version))
        except ValueError as error:
            _log.warning("run %s: %s", run_id, error)
        else:
            row = entries.row(run)
            documents.write(connection, run)
        entries.update(connection, run_id, version, row | {"holder": None})
