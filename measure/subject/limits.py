"""Bounds for code of a person's own while it is executed, and what it does wrong as one sentence with the line.

All bounds are those of the process that executes it, which ends afterwards.
"""

import contextlib
import resource
import signal
import traceback
from collections.abc import Iterator
from typing import Any

from measure.subject.errors import shorten
from workloads.discovery import without_addresses

# The file name under which the code is executed: tracebacks name it, and AutoGraph finds the text by it.
NAME = "<your code>"
# The code may take so long, the elements and the function together.
LIMIT_S = 15.0
# What the process may take beside what it has: elements that need more are made smaller.
MOST_BYTES = 4 * 2**30
_MOST_SENTENCE = 500


class Refused(Exception):
    """The function cannot be measured: the text says in one sentence why, and names the line where there is one."""


@contextlib.contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn what the code raises into `Refused`, with the last of its lines, or ``what`` was done where none is."""
    try:
        yield
    except Refused:
        raise
    except BaseException as error:
        sentence = f"{type(error).__name__}: {shorten(str(error))}"
        if isinstance(error, MemoryError):
            sentence = f"more than {MOST_BYTES >> 30} GiB are needed: make it smaller"
        elif isinstance(error, SystemExit):
            sentence = f"it exits ({error.code!r})"
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == NAME]
        where = f"line {lines[-1]}" if lines else what
        raise Refused(without_addresses(f"{where}: {sentence}")[:_MOST_SENTENCE]) from None


def limit_memory() -> None:
    """Bound what is mapped beside what is there; where the system does not tell that, nothing is bounded."""
    with contextlib.suppress(OSError), open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + MOST_BYTES, resource.RLIM_INFINITY))


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Have what takes too long raise TimeoutError where it is. Code that never comes back to Python is ended with its
    process, by who waits for it."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"still running after {LIMIT_S:.0f} s: give fewer or smaller elements")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
