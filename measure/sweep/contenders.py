"""Which strategies of a sweep deserve further processes, and at which points. Pure functions of its points.

One process in some dozens is far off its strategy's pace, and every point begins with one of each. Where a swept option
has its values, all of them are of one case, so that all values of all strategies race for one lead, as the strategies
of a comparison do.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from measure.model.run import Analysis, Axis, Measurement, Point
from measure.statistics import ranking
from measure.statistics.intervals import Level
from measure.sweep import crossovers
from measure.sweep.lines import lines

# A point of a line that is higher than both of its neighbours by this factor, or lower, is looked at again.
STANDS_OUT = 1.3
# So is one whose interval's ends are farther apart than by this factor: its samples are scattered beyond use.
WIDE = 4.0


@dataclass(frozen=True)
class Cell:
    """A strategy (the line's slug) at a point, by its place among the sweep's."""

    place: int
    slug: str
    measurement: Measurement

    @property
    def processes(self) -> int:
        return len(self.measurement.replicas)


def leading(points: Sequence[Point], axes: Sequence[Axis], analysis: Analysis) -> list[Cell]:
    """Over all points and strategies, the fastest, all whose ratio to it, at the low end of its interval, is within the
    tie margin, and all that the verdict would say to tie with it; fastest first. For points of one case, as those of a
    swept option are."""
    found = {f"{cell.place} {cell.slug}": (cell, level) for line in _lines(points, axes) for cell, level in line}
    order = ranking.Order({name: level for name, (_, level) in found.items()}, analysis, resolution=0.0)
    return [
        found[name][0]
        for place, name in enumerate(order.fastest_first)
        if place == 0
        or order.ratio(name, order.fastest_first[0]).low < 1 + analysis.margin
        or not order.separated(name, order.fastest_first[0])
    ]


def doubtful(points: Sequence[Point], axes: Sequence[Axis], analysis: Analysis) -> list[Cell]:
    """What stands out from both of its neighbours on its line, or has an interval that says nothing; worst first."""
    found = []
    for line in _lines(points, axes):
        for index, (cell, level) in enumerate(line):
            neighbours = line[index - 1 : index] + line[index + 1 : index + 2]
            steps = [level.log_mean - other.log_mean for _, other in neighbours]
            alone = len(steps) == 2 and (min(steps) > 0 or max(steps) < 0)
            low, high = level.interval(analysis.confidence)
            excess = max(
                min(map(abs, steps)) / math.log(STANDS_OUT) if alone else 0.0,
                math.log(high / low) / math.log(WIDE),
            )
            if excess > 1:
                found.append((excess, cell))
    return [cell for _, cell in sorted(found, key=lambda each: -each[0])]


def _lines(points: Sequence[Point], axes: Sequence[Axis]) -> list[list[tuple[Cell, Level]]]:
    """What was measured rightly of each line, in order, with its level."""
    levels = crossovers.point_levels(points)
    places = {id(point): place for place, point in enumerate(points)}
    return [
        [
            (Cell(places[id(point)], line.slug, item), levels[places[id(point)]][item.strategy])
            for _, point, item in line.points
            if item.outcome == "ok" and item.strategy in levels[places[id(point)]]
        ]
        for line in lines(points, axes)
    ]
