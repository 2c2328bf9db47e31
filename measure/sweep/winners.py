"""Filling a map of winners with few measurements: which cell comes next, and what the others are by those around them.

Pure functions of who wins where. A cell is a place in the grid, (index on the first axis, index on the second); the
winners of a cell are those that tie for its lead, the first of them first.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product

import numpy as np

Cell = tuple[int, int]
Winners = Mapping[Cell, Sequence[str]]

# Of the grid, what probes may take, and what may be measured where nothing but a small lead speaks for it.
_PROBES_SHARE = 0.36
_DOUBT_SHARE = 1 / 3
# A winner that is ahead by less than this factor may be another one a few cells on.
_SMALL_LEAD = 1.25
# How far a winner is ahead, as a logarithm, tells less and less of where the border is: beyond this it is as much.
_CLEAR_LEAD = 1.0
# A plane has three unknowns.
_LEAST_OF_PLANE = 4


def next_cell(winners: Winners, open_cells: Collection[Cell], leads: Mapping[Cell, float] | None = None) -> Cell | None:
    """The cell to be measured next; None where nothing is left to be measured.

    First the probes: the corners and the middle, then the middles of the edges and of the quarters, as far as they are
    few. Then cells whose surroundings disagree: those between two cells of one row or column that disagree before
    others. Of these the one that is nearest to the border, as far as ``leads`` (by how much the winner of a measured
    cell is faster than the first that does not tie with it, as a factor) tells where that runs, or else the farthest
    from all that is known, which halves the way to it. Last, up to a third of the grid, cells that agree with their
    surroundings where ``leads`` says that a border may run close by. Of equals the smaller comes first, which is the
    cheaper one.
    """
    cells = {*winners, *open_cells}
    last = max(row for row, _ in cells), max(column for _, column in cells)
    for cell in _probes(*last):
        if cell in open_cells:
            return cell
    candidates = [cell for cell in open_cells if not inferred(cell, winners)]

    def order(cell: Cell) -> tuple[bool, float, int, Cell]:
        disagreeing = _disagreeing(cell, winners)
        off = math.inf if disagreeing is None else _off_border(cell, disagreeing, winners, leads or {})
        return disagreeing is None, off, -min((_distance(cell, known) for known in winners), default=0), cell

    chosen = min(candidates, key=order, default=None)
    if chosen is None and leads and len(winners) + 1 <= _DOUBT_SHARE * len(cells):
        chosen = _doubtful(winners, open_cells, leads)
    return chosen


def _disagreeing(cell: Cell, winners: Winners) -> tuple[set[str], set[str]] | None:
    """The winners on both sides of a cell in its row, or else in its column, where these have none in common."""
    for sides in _sides(cell, winners):
        if _common(winners, sides) == set():
            before, behind = ({slug for known in side for slug in winners[known]} for side in sides)
            return before, behind
    return None


def _off_border(
    cell: Cell, disagreeing: tuple[set[str], set[str]], winners: Winners, leads: Mapping[Cell, float]
) -> float:
    """The distance of a cell from the border between those that disagree about it, as the logarithm of their latencies'
    ratio there: that of a plane through the measured cells that one of them wins; infinite where these are too few.

    Latencies are close to powers of the sizes, so that on logarithmic axes their ratio is close to a plane.
    """
    places, logs = [], []
    for known, lead in leads.items():
        sides = [bool(slugs.intersection(winners[known])) for slugs in disagreeing]
        if any(sides):
            places.append((1.0, *known))
            logs.append((sides[0] - sides[1]) * min(math.log(lead), _CLEAR_LEAD))
    if len(places) < _LEAST_OF_PLANE:
        return math.inf
    plane = np.linalg.lstsq(np.array(places), np.array(logs), rcond=None)[0]
    return abs(float(plane @ np.array([1.0, *cell])))


def _probes(bottom: int, right: int) -> list[Cell]:
    """Cells that are measured whatever the others say: a band or an island between the corners shows at one of them."""
    middle = bottom // 2, right // 2
    corners = list(product((0, bottom), (0, right)))
    edges = [(0, middle[1]), (middle[0], 0), (middle[0], right), (bottom, middle[1])]
    quarters = list(
        product((middle[0] // 2, (middle[0] + bottom + 1) // 2), (middle[1] // 2, (middle[1] + right + 1) // 2))
    )
    probes = [*corners, middle]
    for more in (edges, quarters):
        if len({*probes, *more}) <= _PROBES_SHARE * (bottom + 1) * (right + 1):
            probes += more
    return probes


def _doubtful(winners: Winners, open_cells: Collection[Cell], leads: Mapping[Cell, float]) -> Cell | None:
    """The open cell, away from what is measured, that is nearest to where the winner is hardly ahead."""

    def doubt(cell: Cell) -> tuple[float, int, Cell]:
        distance = min(_distance(cell, known) for known in winners)
        near = [leads[known] for known in _nearest(cell, list(winners)) if known in leads]
        return min(near, default=math.inf), -distance, cell

    away = [cell for cell in open_cells if all(_distance(cell, known) > 1 for known in winners)]
    nearest = min(away, key=doubt, default=None)
    return nearest if nearest is not None and doubt(nearest)[0] < _SMALL_LEAD else None


def inferred(cell: Cell, winners: Winners) -> list[str]:
    """The strategies that win, or tie, on both sides of a cell in its row or its column, with nothing against them in
    the other; or else in all four quadrants around it. The one that leads most often comes first."""
    along = _along(cell, winners)
    beside = _common(winners, [[known for known in winners if _distance(cell, known) == 1]])
    agreeing = [common for common in along if common]
    if agreeing and set() not in along:
        common = set.intersection(*agreeing)
    else:
        common = (
            _common(winners, (_nearest(cell, _quadrant(cell, winners, *towards)) for towards in _QUADRANTS)) or set()
        )
    if beside is not None:
        # A band that ends at the grid's edge has no cell on its other side.
        common &= beside
    leaders = [group[0] for group in winners.values() if group]
    return sorted(common, key=lambda slug: (-leaders.count(slug), slug))


def _along(cell: Cell, winners: Winners) -> list[set[str] | None]:
    """The winners, in row and column, of the nearest measured cells on both sides; None where a side has none."""
    return [_common(winners, sides) for sides in _sides(cell, winners)]


def _sides(cell: Cell, winners: Winners) -> list[tuple[list[Cell], list[Cell]]]:
    """In row and column, the nearest measured cells before and behind a cell."""
    sides = []
    for axis in (0, 1):
        along = [known for known in winners if known[1 - axis] == cell[1 - axis]]
        before = [known for known in along if known[axis] < cell[axis]]
        behind = [known for known in along if known[axis] > cell[axis]]
        sides.append((_nearest(cell, before), _nearest(cell, behind)))
    return sides


_QUADRANTS = tuple(product((1, -1), (1, -1)))


def _quadrant(cell: Cell, winners: Winners, down: int, right: int) -> list[Cell]:
    return [known for known in winners if down * (known[0] - cell[0]) >= 0 and right * (known[1] - cell[1]) >= 0]


def _nearest(cell: Cell, cells: Sequence[Cell]) -> list[Cell]:
    """All those that are nearest to the cell."""
    least = min((_distance(cell, other) for other in cells), default=0)
    return [other for other in cells if _distance(cell, other) == least]


def _common(winners: Winners, sides: Iterable[Sequence[Cell]]) -> set[str] | None:
    """Return the slugs that win at all these cells; None if a side is empty."""
    common: set[str] | None = None
    for side in sides:
        if not side:
            return None
        for cell in side:
            common = set(winners[cell]) if common is None else common & set(winners[cell])
    return common


def _distance(a: Cell, b: Cell) -> int:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])
