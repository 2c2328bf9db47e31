"""Finished runs that could not be written: each is written again, after longer and longer pauses, until it is."""

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

# A disk may be full for a moment or for a day.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0

_Item = TypeVar("_Item", bound=Hashable)


class Unwritten(Generic[_Item]):
    """A thread of its own writes while there is something to write. Safe to use from any thread."""

    def __init__(self, write: Callable[[_Item], bool]) -> None:
        """``write``: tries it once, and returns True where it is done."""
        self._write = write
        self._changed = threading.Condition()
        self._items: list[_Item] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, item: _Item) -> None:
        with self._changed:
            self._items.append(item)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._work, name="mapbench-unwritten", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Try each once more, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()
        for item in self._items:
            if not self._write(item):
                break

    def _work(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._closed, pause_s):
                    return
                items = list(self._items)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            for item in items:
                if not self._write(item):
                    break  # what hinders one hinders all
                pause_s = FIRST_PAUSE_S
                with self._changed:
                    self._items.remove(item)
            with self._changed:
                if not self._items:
                    self._thread = None
                    return
