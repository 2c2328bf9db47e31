"""The pages give way to what is measured: on a machine of few cores a click may wait, a sample must not."""

import contextlib
import os
import sys
import threading

# Of two that want a core, the one that is measured gets 29 thirtieths of it: with the lowest priority a click would
# have no turn where a run takes all cores.
NICE = 15

_serves = False


def serve() -> None:
    """This process serves pages, and does nothing that should not wait for them."""
    global _serves
    _serves = True


def give_way() -> None:
    """Lower the priority of the thread that serves pages and of the one that draws this one; those that either starts
    inherit it. The threads that measure are older, and so are not lowered, nor is what they start. It cannot be raised
    again without privileges. Linux alone has priorities of threads."""
    if not _serves or not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError):
        for thread in (os.getpid(), threading.get_native_id()):  # the main thread has the process' number
            if os.getpriority(os.PRIO_PROCESS, thread) < NICE:
                os.setpriority(os.PRIO_PROCESS, thread, NICE)
