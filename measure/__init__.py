"""The evidence: from a request through processes and samples to a run; pages, worker and command line."""

import os
import runpy
import signal
from typing import Any

INTERRUPTED = 3


def main() -> None:
    """The command `mapbench` of an installation, which is `python -m measure`."""
    runpy.run_module("measure", run_name="__main__")


def expect_interrupts() -> None:
    """From now on Ctrl-C and SIGTERM end this process with one line, also while modules are being loaded: a command
    that is interrupted so early has nothing to lose."""

    def end(*_: Any) -> None:
        # No exception: libraries that are being loaded may take it for one of theirs. A host ends with this process.
        os.write(2, b"interrupted before anything was measured\n")
        os._exit(INTERRUPTED)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
