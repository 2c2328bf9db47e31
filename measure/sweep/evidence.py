"""The evidence of a sweep's samples: the level of each strategy at each point. Pure functions of its points.

The spread between processes is pooled over the whole sweep, as a point far from any crossing has few of them. Levels
are made once: crossovers, fits, intervals and the verdict rest on the same ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from measure.model.run import Axis, Measurement, Point
from measure.statistics.effects import detrend
from measure.statistics.intervals import ASSUMED_SPREAD, Level, level, pooled_spread
from measure.sweep.lines import Line, lines

# A cell whose processes differ by so many times what is usual says nothing of others.
_OUTLYING = 4.0
_FEW = 3


@dataclass(frozen=True)
class Timed:
    """A strategy whose values are right, at one value of the axis. ``place``: of its point among the sweep's."""

    place: int
    value: int
    measurement: Measurement
    level: Level

    @property
    def processes(self) -> int:
        return len(self.measurement.replicas)


@dataclass(frozen=True)
class TimedLine:
    """A line with what was timed along it, ascending."""

    line: Line
    timed: tuple[Timed, ...]


@dataclass(frozen=True)
class Evidence:
    """The levels of a sweep: by strategy at each of its ``points``, and along the ``lines`` of the first axis."""

    points: tuple[Point, ...]
    axes: tuple[Axis, ...]
    levels: tuple[Mapping[str, Level], ...]
    lines: tuple[TimedLine, ...]


def evidence(points: Sequence[Point], axes: Sequence[Axis]) -> Evidence:
    """The levels of these points, with one spread between processes for all of them."""
    levels = point_levels(points)
    places = {id(point): place for place, point in enumerate(points)}

    def timed(line: Line) -> tuple[Timed, ...]:
        along = [(places[id(point)], value, item) for value, point, item in line.points]
        return tuple(
            Timed(place, value, item, levels[place][item.strategy])
            for place, value, item in along
            if item.outcome == "ok" and item.strategy in levels[place]
        )

    along = tuple(TimedLine(line, timed(line)) for line in lines(points, axes))
    return Evidence(tuple(points), tuple(axes), tuple(levels), along)


def point_levels(points: Sequence[Point]) -> list[dict[str, Level]]:
    """Strategy → its level, of each point, with one spread between processes for all of them."""
    samples = [detrend(point.measurements).logs for point in points]
    by_cell = {f"{place} {slug}": logs for place, here in enumerate(samples) for slug, logs in here.items()}
    spread = pooled_spread(_without_outliers(by_cell))
    return [{slug: level(logs, spread) for slug, logs in here.items()} for here in samples]


def _without_outliers(by_cell: Mapping[str, Sequence[np.ndarray]]) -> dict[str, Sequence[np.ndarray]]:
    """The cells (strategies at points) but for those whose processes differ far more than others' do. A latency that
    is odd gets more processes because it is odd: what these differ by is true of it, and not of all others."""
    variances = {
        cell: float(np.var([np.median(process) for process in logs], ddof=1))
        for cell, logs in by_cell.items()
        if len(logs) > 1
    }
    assumed = ASSUMED_SPREAD**2
    # Of few cells it is not known which is the odd one.
    usual = max(assumed, float(np.median([*variances.values(), *[assumed] * _FEW])))
    return {cell: logs for cell, logs in by_cell.items() if variances.get(cell, 0.0) <= _OUTLYING**2 * usual}
