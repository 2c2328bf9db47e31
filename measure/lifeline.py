"""Nothing survives its parent: what a child process does at its start so that it ends when its parent does."""

import ctypes
import os
import signal
import sys

import psutil

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(parent_pid: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send ``by`` to this process when its parent ends (Linux; elsewhere the closed channel has to do).

    The signal is tied to the *thread* that made this process, so parents start children from threads that live as
    long as they do. A parent that has ended before the call is seen by its changed pid.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(by), 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none is out of reach (Linux)."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid: int) -> list[int]:
    """Process ids of the children of ``pid``."""
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.Error:
        return []
