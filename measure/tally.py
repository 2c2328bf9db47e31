"""The counts of a server since its start, for who operates it: what was asked for, refused and measured."""

import threading
from collections import Counter

from measure.model.run import Run


class Tally:
    """Counts. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: Counter[tuple[str, str]] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._measured_s = 0.0

    def finished(self, run: Run) -> None:
        """Count a run that has ended, and what became of its strategies."""
        measured = [*run.measurements, *(item for point in run.points for item in point.measurements)]
        with self._lock:
            self._runs[run.kind, run.status] += 1
            self._outcomes.update(str(item.outcome) for item in measured if item.twin_of is None)

    def refused(self, reason: str, sentence: str) -> str:
        """Count a request that was not accepted; the sentence that says why. ``reason``: a word for it."""
        with self._lock:
            self._refusals[reason] += 1
        return sentence

    def measured(self, seconds: float) -> None:
        with self._lock:
            self._measured_s += seconds

    def runs(self) -> dict[tuple[str, str], int]:
        """Runs that have ended, by kind and status."""
        with self._lock:
            return dict(self._runs)

    def outcomes(self) -> dict[str, int]:
        with self._lock:
            return dict(self._outcomes)

    def refusals(self) -> dict[str, int]:
        with self._lock:
            return dict(self._refusals)

    @property
    def measured_s(self) -> float:
        with self._lock:
            return self._measured_s
