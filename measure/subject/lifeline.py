"""The start of a child process, so that it ends when its parent does: nothing survives its parent."""

import contextlib
import ctypes
import os
import secrets
import signal
import sys
import time
from pathlib import Path

import psutil

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36
_OOM_SCORE = Path("/proc/self/oom_score_adj")
# A subject can be spared, the host can be started again, and the server has what others are waiting for.
SUBJECT_OOM_SCORE, HOST_OOM_SCORE = 1000, 500
_FAMILY = "MAPBENCH_FAMILY"
_END_S = 5.0  # for a family to end


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


def offer_memory(score: int) -> None:
    """Have the kernel end this process, and those that it makes, before others where the machine's memory runs out
    (Linux). The highest ``score`` is 1000; a process that has a higher one already keeps it."""
    with contextlib.suppress(OSError, ValueError):
        if int(_OOM_SCORE.read_text()) < score:
            _OOM_SCORE.write_text(str(score))


def children(pid: int) -> list[int]:
    """Process ids of the children of ``pid``."""
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.Error:
        return []


def family_name() -> dict[str, str]:
    """The variable in the environment of a new process by which `end_family` knows it and all its descendants."""
    return {_FAMILY: secrets.token_hex(8)}


def end_family(name: dict[str, str]) -> None:
    """End every process of a family, in whichever group it is and whether or not its parent still lives."""
    # Until a look finds none: one of them may be making another.
    end = time.monotonic() + _END_S
    while (members := _members(name[_FAMILY])) and time.monotonic() < end:
        for process in members:
            with contextlib.suppress(psutil.Error):
                process.kill()


def _members(name: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _is_member(process, name)]


def _is_member(process: psutil.Process, name: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(_FAMILY) == name
    except (psutil.Error, OSError):
        return False  # it has ended, or is somebody else's
