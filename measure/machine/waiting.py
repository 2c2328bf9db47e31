"""The time for which the process was ready to run and waited for a processor, as Linux counts it."""

import contextlib
import os


class Waiting:
    """The counter of the main thread; always 0 where the system has none."""

    def __init__(self) -> None:
        self._file: int | None = None
        with contextlib.suppress(OSError):
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def seconds(self) -> float:
        """Seconds that it has waited so far. Reading it takes some microseconds."""
        if self._file is None:
            return 0.0
        # Nanoseconds on a processor, nanoseconds of waiting for one, and time slices.
        return int(os.pread(self._file, 100, 0).split()[1]) / 1e9

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)
