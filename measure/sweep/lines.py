"""A sweep's points, and lines of them: one strategy along the axis. Pure functions of data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from measure.model import slugs
from measure.model.run import Axis, Measurement, Point


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


def written(at: Mapping[str, object]) -> str:
    """A place on the axes as it would be asked for: «batch=1000, side=3»."""
    return ", ".join(f"{name}={value}" for name, value in at.items())


def readable(at: Mapping[str, int]) -> str:
    """A place on the axes as it is read: «batch 1,000, side 3»."""
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


def latencies_s(point: Point) -> dict[str, float]:
    """Strategy → seconds of a call at a point, of those that are right."""
    return {
        item.strategy: item.latency.median_s
        for item in point.measurements
        if item.outcome == "ok" and item.latency is not None
    }
