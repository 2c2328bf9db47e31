"""A job of several comparisons, one after another."""

from measure.engine.comparison import Comparison
from measure.engine.record import View


class Parts:
    """Is watched and ended as its parts are; what is asked of it while it has none, the next one hears."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._part: Comparison | Parts | None = None
        self._cancelled = self._stopped = False

    def view(self) -> View:
        return self._view

    def cancel(self) -> None:
        self._cancelled = True
        if (part := self._part) is not None:
            part.cancel()

    def stop(self) -> None:
        """End with what there is by now, as if the time budget were spent."""
        self._stopped = True
        if (part := self._part) is not None:
            part.stop()

    def _begin(self, part: "Comparison | Parts") -> None:
        """Pass on to ``part`` from now on, and what was asked just now."""
        self._part = part
        if self._cancelled:
            part.cancel()
        if self._stopped:
            part.stop()
