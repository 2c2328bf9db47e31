"""A sweep's points seen as lines: what one strategy did along the axis. Pure functions of data."""

from collections.abc import Sequence
from dataclasses import dataclass

from measure.model.run import Axis, Measurement, Point


@dataclass(frozen=True)
class Line:
    """One strategy along an axis: ``points`` are (value of the axis, the point, its measurement), ascending.

    ``slug`` leaves a swept option out. ``flat``: the swept option does not concern the strategy, so that its one
    measurement holds all along.
    """

    slug: str
    mapper: str
    mode: str
    points: tuple[tuple[int, Point, Measurement], ...]
    flat: bool


def slug(measurement: Measurement, axes: Sequence[Axis]) -> str:
    """The strategy's slug without the swept options."""
    swept = {axis.name for axis in axes if axis.kind == "option"}
    head, _, tail = measurement.strategy.partition("?")
    kept = [pair for pair in tail.split("&") if pair and pair.partition("=")[0] not in swept]
    return f"{head}?{'&'.join(kept)}" if kept else head


def lines(points: Sequence[Point], axes: Sequence[Axis]) -> list[Line]:
    """The lines along the first axis, in the order in which their strategies first occur; twins are left out."""
    axis = axes[0]
    found: dict[str, list[tuple[int, Point, Measurement]]] = {}
    for point in sorted(points, key=lambda each: each.at[axis.name]):
        for item in point.measurements:
            if item.twin_of is None:
                found.setdefault(slug(item, axes), []).append((point.at[axis.name], point, item))
    made = []
    for name, each in found.items():
        first = each[0][2]
        flat = axis.kind == "option" and not any(axis.name in item.options for _, _, item in each)
        made.append(Line(name, first.mapper, first.mode, tuple(each[:1] if flat else each), flat))
    return made
