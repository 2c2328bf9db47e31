"""Settings of a child process for itself: it ends with its parent, and before it when memory runs out."""

import contextlib
import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36
# A subject can be spared, the host can be started again, and so can the worker, whose run is lost; pages stay.
SUBJECT_OOM_SCORE, HOST_OOM_SCORE, WORKER_OOM_SCORE = 1000, 500, 250


def die_with_parent(parent_pid: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send ``by`` to this process when its parent ends (Linux; elsewhere the closed channel has to do).
    The signal is tied to the *thread* that made this process, so parents start children from threads that live as long
    as they do."""
    _prctl(_PR_SET_PDEATHSIG, int(by))
    if os.getppid() != parent_pid:  # it has ended before the call
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none is out of reach (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError):  # only Linux has it
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def offer_memory(score: int) -> None:
    """Have the kernel end this process, and those that it makes, before others where memory runs out (Linux), by a
    ``score`` of at most 1000, or the higher one that it has already."""
    file = Path("/proc/self/oom_score_adj")
    with contextlib.suppress(OSError, ValueError):
        file.write_text(str(max(score, int(file.read_text()))))
