"""The command `mapbench` of an installation, which is `python -m measure`; and the end of a command that is interrupted
before it has anything to lose, which is so from its first moment on."""

import contextlib
import os
import runpy
import signal
from typing import Any

INTERRUPTED = 3


def main() -> None:
    runpy.run_module("measure", run_name="__main__")


def expect_interrupts() -> None:
    """From now on Ctrl-C and SIGTERM end this process with one line, also while modules are being loaded."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as for a command in a shell's background
            signal.signal(number, _end)


def _end(*_: Any) -> None:
    # No exception: libraries that are being loaded may take it for one of theirs. A host ends with this process.
    with contextlib.suppress(OSError):
        os.write(2, b"interrupted before anything was measured\n")
    os._exit(INTERRUPTED)
