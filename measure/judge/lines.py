"""A sweep's points, and lines of them: one strategy along the first axis. Pure functions of data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from measure.run import slugs, text
from measure.run.run import Axis, Measurement, Point, Run


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

    @property
    def label(self) -> str:
        """Its name with the shape of its mode."""
        return text.label(self.slug, self.mode)


def readable(at: Mapping[str, int]) -> str:
    """A place on the axes: «batch 1,000, side 3»."""
    return ", ".join(f"{name} {value:,}" for name, value in at.items())


def place(point: Point) -> tuple[int, ...]:
    """A point's values along the axes."""
    return tuple(point.at.values())


def inferred(point: Point) -> bool:
    """True if a point's winner was not measured, but follows from its neighbours', as in sweeps of earlier versions."""
    return point.status == "skipped" and bool(point.ranking)


def asked_for(run: Run, point: Point) -> bool:
    """True if a point is of the grid: earlier versions added others between its points, of the two strategies alone
    whose lines cross there."""
    return all(point.at[axis.name] in axis.values for axis in run.axes)


def measured(run: Run) -> list[Point]:
    """The points of the grid that were ranked, none that is inferred."""
    return [point for point in run.points if any(point.ranking[:1]) and point.measurements and asked_for(run, point)]


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
