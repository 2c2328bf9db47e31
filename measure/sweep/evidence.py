"""The evidence of a sweep's samples: the level of each strategy at each point. Pure functions of its points.

The spread between processes is pooled over the whole sweep, as a point far from any crossing has few of them. Levels
are made once: crossovers, fits, intervals and the verdict rest on the same ones.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import UNSET, structs

from measure.model.digits import rounded
from measure.model.run import Analysis, Axis, Measurement, Point
from measure.statistics.intervals import Level
from measure.statistics.levels import Levels, levels_of, spread_of
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
    analysis = with_spread(Analysis(), points)
    return [levels_of(point.measurements, analysis) for point in points]


def with_spread(analysis: Analysis, points: Sequence[Point]) -> Analysis:
    """The analysis of a sweep with the spread between processes of one strategy at one point, over all points, if any
    strategy has two at one."""
    alone = (levels_of(point.measurements).logs.values() for point in points)
    spread = spread_of(itertools.chain.from_iterable(alone))
    return structs.replace(analysis, spread=rounded((spread.deviation, spread.degrees)) if spread.degrees else UNSET)
