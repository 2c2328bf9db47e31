"""The evidence of a sweep's samples: the level of each strategy at each point. Pure functions of its points.

The spread between processes is pooled over the whole sweep, as a point far from any crossing has few of them. Levels
are made once: crossovers, fits, intervals and the verdict rest on the same ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from measure.model.run import Axis, Measurement, Point
from measure.statistics.intervals import Level, level, spread_of
from measure.statistics.levels import levels_of
from measure.sweep.lines import Line, lines


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
    logs = [levels_of(point.measurements).logs for point in points]
    spread = spread_of([values for here in logs for values in here.values()])
    return [{slug: level(values, spread) for slug, values in here.items()} for here in logs]
