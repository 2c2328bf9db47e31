"""Processes that stand still: stopped by a signal, a debugger or a person's Ctrl-Z."""

import contextlib

import psutil


def stands_still(pid: int) -> bool:
    """True if a process has been stopped; one that has ended has not."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    return False
