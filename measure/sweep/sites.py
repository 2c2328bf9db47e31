"""The points of a sweep while it is measured, each with the comparison that measures it, and what is left out where."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from measure.model.run import Error, Point
from measure.sweep import omissions
from measure.sweep.comparison import PointComparison
from measure.sweep.lines import line_of
from measure.sweep.needs import Plan, key
from measure.sweep.request import SweepRequest

# The number of processes beside a crossing, and of leaders that tie.
AT_POINT = 3


@dataclass
class Site:
    """A point of a sweep and the comparison that measures it. ``only``: the lines that are measured here, where not all
    are; ``taken``: what an earlier run knows of the point; ``version``: of the comparison's results that the point has;
    ``begun``: true once the comparison has."""

    point: Point
    only: tuple[str, ...] = ()
    taken: Point | None = None
    comparison: PointComparison | None = None
    version: int = -1
    begun: bool = False


def make_sites(request: SweepRequest, plan: Plan, taken: Sequence[Point]) -> list[Site]:
    """The sites of the grid, and of points that an earlier run added to it, in the order of their values."""
    points = {key(at): Point(at=at) for at in request.points()}
    for where, reason in plan.skipped.items():
        points[where] = replace(points[where], status="skipped", reason=reason)
    sites = {where: Site(point) for where, point in points.items()}
    for point in taken:
        where = key(point.at)
        only = () if where in points else tuple(line_of(item.strategy, request.axes) for item in point.measurements)
        sites[where] = Site(point, only, taken=point)
    return in_order(sites.values())


def in_order(sites: Iterable[Site]) -> list[Site]:
    return sorted(sites, key=lambda site: tuple(site.point.at.values()))


def strategies_at(site: Site, request: SweepRequest) -> dict[str, str]:
    """Line → strategy, of those that are measured at a site."""
    slugs = request.slugs(site.point.at)
    if site.only:
        return {line: slugs[line] for line in site.only}
    taking_part = request.comparison(site.point.at).strategies
    return {line: slug for line, slug in slugs.items() if slug in taking_part}


def left_out(site: Site, sites: Iterable[Site], request: SweepRequest, plan: Plan) -> dict[str, Error]:
    """Strategies that are not run at a site, with the reason: by forecast, or since a smaller point was too much."""
    errors = dict(plan.left_out.get(key(site.point.at), {}))
    for other in sites:
        if _is_smaller(other.point, site.point, request):
            for item in other.point.measurements:
                if error := omissions.smaller_failed(other.point.at, item.outcome):
                    errors[item.strategy] = error
    measured = strategies_at(site, request).values()
    return {slug: error for slug, error in errors.items() if slug in measured}


def _is_smaller(one: Point, other: Point, request: SweepRequest) -> bool:
    """True if a point is smaller than another one: less or as much in every size, and otherwise the same."""
    return one.at != other.at and all(
        one.at[axis.name] <= other.at[axis.name] if axis.kind == "size" else one.at[axis.name] == other.at[axis.name]
        for axis in request.axes
    )


def fewest_processes(point: Point, strategies: Iterable[str]) -> int:
    """Processes of the strategy that has the fewest of these at a point."""
    wanted = set(strategies)
    return min(len(item.replicas) for item in point.measurements if item.strategy in wanted)
