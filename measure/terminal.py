"""A run as it is followed in a terminal: lines on stderr, once each."""

import contextlib
import sys
from collections.abc import Iterator

from measure.engine.record import View
from measure.judge.lines import line_of
from measure.output import sweep_table
from measure.run import text
from measure.run.run import Measurement, Run


def say(line: str) -> None:
    """A line on stderr; where nobody reads it any more, measuring goes on."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


class Following:
    """Says on stderr what happens, once each, unless it is ``quiet``."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._lines: set[str] = set()

    def say(self, line: str) -> None:
        if not self._quiet and line not in self._lines:
            self._lines.add(line)
            say(line)

    def look(self, view: View) -> None:
        """Say how a run stands, and what has become of strategies: at a sweep's points where that is no latency."""
        if view.forecast_s:
            self.say(f"forecast: about {text.seconds(view.forecast_s)}")
        if view.message and view.message != "finished":
            self.say(view.message)
        for item in view.run.measurements:
            if item.twin_of is None and item.outcome != "not_run":
                self.say(f"  {item.strategy}: {_outcome(item)}")
        for point in view.run.points:
            for item in point.measurements:
                if item.outcome not in ("ok", "not_run"):
                    self.say(f"  {sweep_table.where(point)}: {item.strategy}: {_outcome(item)}")


def warnings(run: Run) -> Iterator[str]:
    """Yield the warnings of the run and of each strategy; what is said at several points of a sweep, once."""
    yield from (warning.message for warning in run.warnings)
    lines = set()
    for item in (*run.measurements, *(item for point in run.points for item in point.measurements)):
        for warning in item.warnings:
            line = line_of(item.strategy, run.axes)
            if warning.code != "chosen" and (line, warning.code) not in lines:
                lines.add((line, warning.code))
                yield f"{item.strategy}: {warning.message}"


def _outcome(item: Measurement) -> str:
    return text.outcome(item.outcome, item.error.message if item.error else "")
