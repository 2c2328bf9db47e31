"""The evidence of a sweep's samples: the level of each strategy at each point. Pure functions of its points.

The spread between processes is pooled over the whole sweep, as a point far from any crossing has few of them. Levels
are made once: crossovers, fits, intervals and the verdict rest on the same ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from measure.model.run import Axis, Measurement, Point
from measure.statistics.intervals import ASSUMED_SPREAD, Level, level, spread_of
from measure.statistics.levels import Levels, levels_of
from measure.sweep.lines import Line, lines

# A strategy at a point whose processes differ by so many times what is usual says nothing of others.
_OUTLYING = 4.0
# The usual is looked for among what was seen and so many assumed ones: of few it is not known which is the odd one.
_ASSUMED = 3


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
    """The evidence of a sweep: the levels of each of its ``points``, and what was timed along the ``lines`` of the
    first axis."""

    points: tuple[Point, ...]
    axes: tuple[Axis, ...]
    levels: tuple[Levels, ...]
    lines: tuple[TimedLine, ...]


def evidence(points: Sequence[Point], axes: Sequence[Axis]) -> Evidence:
    """The evidence of these points, with one spread between processes for all of them."""
    levels = point_levels(points)
    places = {id(point): place for place, point in enumerate(points)}

    def timed(line: Line) -> tuple[Timed, ...]:
        along = [(places[id(point)], value, item) for value, point, item in line.points]
        return tuple(
            Timed(place, value, item, levels[place].by_slug[item.strategy])
            for place, value, item in along
            if item.outcome == "ok" and item.strategy in levels[place].by_slug
        )

    along = tuple(TimedLine(line, timed(line)) for line in lines(points, axes))
    return Evidence(tuple(points), tuple(axes), tuple(levels), along)


def point_levels(points: Sequence[Point]) -> list[Levels]:
    """The levels of each point, with one spread between processes for all of them."""
    alone = [levels_of(point.measurements) for point in points]
    spread = spread_of(_usual([values for levels in alone for values in levels.logs.values()]))
    return [
        replace(levels, by_slug={slug: level(values, spread) for slug, values in levels.logs.items()}, spread=spread)
        for levels in alone
    ]


def _usual(logs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The strategies at a point whose processes differ no more than is usual. What is odd gets more processes because
    it is odd: what these differ by is true of it, and not of all others."""
    several = [values for values in logs if len(values) > 1]
    deviations = [float(values.std(ddof=1)) for values in several]
    usual = float(np.median([*deviations, *[ASSUMED_SPREAD] * _ASSUMED]))
    return [
        values
        for values, deviation in zip(several, deviations, strict=True)
        if deviation <= _OUTLYING * max(ASSUMED_SPREAD, usual)
    ]
