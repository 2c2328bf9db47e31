"""Guards of pages: none shows a traceback, and none keeps waiting what is measured."""

import contextlib
import ctypes
import logging
import os
import sys
import threading
from collections.abc import Iterator

import streamlit as st

from measure.pool.process import STARTER

# Of two that want a core, the one that is measured gets 29 thirtieths of it: with the lowest priority a click would
# have no turn where a run takes all cores.
NICE = 15
# glibc's, in malloc.h: the number of heaps, of which threads else get one each, and what one has freed stays its own.
_M_ARENA_MAX = -8
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
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def give_way() -> None:
    """Lower the priority of all threads of this process, which serve and draw pages; those that they start inherit it.
    The one that starts the worker keeps its own, for the worker's sake. It cannot be raised again without privileges.
    Linux alone has priorities of threads."""
    if not _serves or not sys.platform.startswith("linux"):
        return
    for thread in threading.enumerate():
        number = thread.native_id or 0  # 0 is this one; one that begins now has none yet
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if not thread.name.startswith(STARTER) and os.getpriority(os.PRIO_PROCESS, number) < NICE:
                os.setpriority(os.PRIO_PROCESS, number, NICE)
