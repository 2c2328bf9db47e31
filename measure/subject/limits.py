"""Bounds for code of a person's own while it is executed, and what it does wrong as one sentence with the line.

All bounds are those of the process that executes it, which ends afterwards.
"""

import contextlib
import os
import resource
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from measure.subject.errors import shorten
from workloads.discovery import without_addresses

# The file name under which the code is executed: tracebacks name it, and AutoGraph finds the text by it.
NAME = "<your code>"
# The code is told so long before it is given up; the elements and the function together.
LIMIT_S = 15.0
# What the process may take beside what it has: elements that need more are made smaller.
MOST_BYTES = 4 * 2**30
MOST_PROCESSES = 16
# Of Python's audit events, those that start a process.
_STARTING = ("os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen")
_MOST_SENTENCE = 500


class Refused(Exception):
    """The function cannot be measured: the text says in one sentence why, and names the line where there is one."""


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """Turn what the code raises into `Refused`, with the last of its lines."""
    try:
        yield
    except Refused:
        raise
    except MemoryError:
        raise Refused(
            f"{_line_of(sys.exc_info()[1])}{what} needs more than {MOST_BYTES >> 30} GiB: make it smaller"
        ) from None
    except BaseException as error:
        text = f"it exits ({error.code!r})" if isinstance(error, SystemExit) else shorten(str(error))
        kind = type(error).__name__
        said = text if isinstance(error, SystemExit) else f"{kind}: {text}" if text and text != kind else kind
        raise Refused(without_addresses(f"{_line_of(error)}{said}")[:_MOST_SENTENCE]) from None


def _line_of(error: BaseException | None) -> str:
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    lines = [frame.lineno for frame in frames if frame.filename == NAME]
    return f"line {lines[-1]}: " if lines else ""


@contextlib.contextmanager
def limits() -> Iterator[None]:
    """Bound the memory and the processes that the code may take; this process ends afterwards, so they stay."""
    _limit_memory()
    made, this = 0, os.getpid()

    def watch(event: str, _: Any) -> None:
        nonlocal made
        if event in _STARTING:
            if os.getpid() != this:  # one that the code has made makes no more
                os._exit(1)
            made += 1
            if made > MOST_PROCESSES:
                raise Refused(f"the code starts more than {MOST_PROCESSES} processes")

    sys.addaudithook(watch)
    yield


def _limit_memory() -> None:
    """Bound what is mapped beside what is there; where the system does not tell that, nothing is bounded."""
    with contextlib.suppress(OSError), open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + MOST_BYTES, resource.RLIM_INFINITY))


@contextlib.contextmanager
def time_limit(give_up: Callable[[str], None]) -> Iterator[None]:
    """Watch the time from another thread, which says at which line the code hangs."""
    done = threading.Event()
    main = threading.main_thread().ident

    def watch() -> None:
        if done.wait(LIMIT_S):
            return
        frame = sys._current_frames().get(main or 0)
        line = ""
        while frame is not None:
            if frame.f_code.co_filename == NAME:
                line = f"line {frame.f_lineno}: "
                break
            frame = frame.f_back
        give_up(f"{line}the code was still running after {LIMIT_S:.0f} s: give fewer or smaller elements")

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()
