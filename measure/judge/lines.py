"""A sweep's points, and lines of them: one strategy along the axis, and its levels. Pure functions of data."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import UNSET, structs

from measure.judge.intervals import Level
from measure.judge.levels import levels_of, spread_of
from measure.run import slugs
from measure.run.run import Analysis, Axis, Measurement, Point, Run


@dataclass(frozen=True)
class Line:
    """One strategy along an axis: ``points`` are (value of the axis, the point, its measurement), ascending.

    ``slug`` is the strategy's without the swept option. ``flat``: the swept option does not concern the strategy, so
    that its one measurement holds all along.
    """

    slug: str
    mapper: str
    mode: str
    points: tuple[tuple[int, Point, Measurement], ...]
    flat: bool


def readable(at: Mapping[str, int]) -> str:
    """A place on the axes: «batch 1,000, side 3»."""
    return ", ".join(f"{name} {value:,}" for name, value in at.items())


def place(point: Point) -> tuple[int, ...]:
    """A point's values along the axes."""
    return tuple(point.at.values())


def inferred(point: Point) -> bool:
    """True if a point's winner was not measured, but follows from its neighbours', as in sweeps of earlier versions."""
    return point.status == "skipped" and bool(point.ranking)


def line_of(strategy: str, axes: Sequence[Axis]) -> str:
    """The slug of the line that a strategy's slug belongs to: ``chunked.graph?chunk=8`` over ``chunk`` is of the line
    ``chunked.graph``, and a size that is swept is in no slug."""
    return slugs.without_options(strategy, [axis.name for axis in axes if axis.kind == "option"])


def lines(points: Sequence[Point], axes: Sequence[Axis]) -> list[Line]:
    """The lines along the first axis, in the order in which their strategies first occur; twins are left out."""
    axis = axes[0]
    by_slug: dict[str, list[tuple[int, Point, Measurement]]] = {}
    for point in sorted(points, key=lambda point: point.at[axis.name]):
        for item in point.measurements:
            if item.twin_of is None:
                by_slug.setdefault(line_of(item.strategy, axes), []).append((point.at[axis.name], point, item))
    made = []
    for slug, along in by_slug.items():
        first = along[0][2]
        flat = axis.kind == "option" and not any(axis.name in item.options for _, _, item in along)
        made.append(Line(slug, first.mapper, first.mode, tuple(along[:1] if flat else along), flat))
    return made


def leaders(point: Point, axes: Sequence[Axis]) -> list[str]:
    """The lines that are fastest at a point, or tie for it; none where nothing is ranked."""
    return [line_of(strategy, axes) for strategy in point.ranking[0]] if point.ranking else []


def levels_along(run: Run) -> dict[str, dict[int, Level]]:
    """Line → value of the first axis → the level of its latency there, where its values are right. A line that is flat
    has its one level at all values; one that was timed nowhere is left out."""
    analysis = with_spread(run.analysis, run.points)
    levels = {id(point): levels_of(point.measurements, analysis).by_slug for point in run.points}
    along = {}
    for line in lines(run.points, run.axes):
        timed = {
            value: levels[id(point)][item.strategy]
            for value, point, item in line.points
            if item.outcome == "ok" and item.strategy in levels[id(point)]
        }
        if timed:
            along[line.slug] = dict.fromkeys(run.axes[0].values, *timed.values()) if line.flat else timed
    return along


def with_spread(analysis: Analysis, points: Sequence[Point]) -> Analysis:
    """The analysis of a sweep with the spread between processes of one strategy at one point, over all points, as one
    by itself may have a single process of each; without any where no strategy has two at one."""
    alone = (levels_of(point.measurements).logs.values() for point in points)
    spread = spread_of(itertools.chain.from_iterable(alone))
    return structs.replace(analysis, spread=(spread.deviation, spread.degrees) if spread.degrees else UNSET)
