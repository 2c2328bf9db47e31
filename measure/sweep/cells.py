"""The cells of a map of winners: by how much each is won, and which others an inferred one rests on. Pure."""

from measure.model.run import Point, Run
from measure.statistics.intervals import Ratio, ratio
from measure.statistics.levels import shown_levels
from measure.sweep import findings

# A point's values along the axes.
Place = tuple[int, ...]


def inferred(point: Point) -> bool:
    """True if a point's winner was not measured, but follows from its neighbours'."""
    return point.status == "skipped" and bool(point.ranking)


def place(point: Point) -> Place:
    return tuple(point.at.values())


def lead(run: Run, point: Point) -> tuple[Ratio, str] | None:
    """Return how many times as long as the fastest the next strategy takes, and which that is: the best of the next
    group, or where all tie, of the others. None where it is not known."""
    by_slug = shown_levels(findings.comparison(run, point))
    first, *others = point.ranking[0] if point.ranking else [""]
    known = [name for name in (point.ranking[1] if len(point.ranking) > 1 else others) if name in by_slug]
    if first not in by_slug or not known:
        return None
    ratios = {name: ratio(by_slug[name], by_slug[first], run.analysis.confidence) for name in known}
    next_ = min(known, key=lambda name: ratios[name].ratio)
    return ratios[next_], next_


def rests_on(run: Run, point: Point) -> list[Point]:
    """Return the measured cells that tell who wins at an inferred one: the nearest on both sides in its row and in its
    column; where neither has two sides, the nearest in each quarter around it."""
    values = [sorted(set(along)) for along in zip(*map(place, run.points), strict=True)]

    def indices(of: Point) -> Place:
        return tuple(known.index(value) for known, value in zip(values, place(of), strict=True))

    x, y = indices(point)
    away = {
        (column - x, row - y): other
        for other in run.points
        if other.ranking and not inferred(other)
        for column, row in [indices(other)]
    }
    nearest: list[Point] = []
    for axis in (0, 1):
        along = sorted(steps for steps in away if steps[1 - axis] == 0)
        before, behind = ([steps for steps in along if side * steps[axis] > 0] for side in (-1, 1))
        if before and behind:
            nearest += [away[before[-1]], away[behind[0]]]
    if not nearest:
        quarters = [
            [steps for steps in away if right * steps[0] >= 0 and up * steps[1] >= 0]
            for right in (-1, 1)
            for up in (-1, 1)
        ]
        ends = {min(cells, key=lambda steps: (abs(steps[0]) + abs(steps[1]), steps)) for cells in quarters if cells}
        nearest = [away[steps] for steps in sorted(ends)]
    return nearest
