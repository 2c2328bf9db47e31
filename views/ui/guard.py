"""What pages must not do: show a traceback, and keep waiting what is measured."""

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Iterator

import streamlit as st

# Of two that want a core, the one that is measured gets 29 thirtieths of it: with the lowest priority a click would
# have no turn where a run takes all cores.
NICE = 15
_serves = False
_log = logging.getLogger("mapbench.page")


@contextlib.contextmanager
def calm(part: str) -> Iterator[None]:
    """Show a sentence in place of a part of the page where drawing it fails, and keep the traceback in the log.
    Streamlit's own control flow passes."""
    try:
        yield
    except Exception:
        _log.exception("%s could not be drawn", part)
        st.error(
            f"A fault in Mapbench kept {part} from being shown. Measuring is not affected; the server's log holds the "
            "details. Reloading the page may help.",
            icon=":material/error:",
        )


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
