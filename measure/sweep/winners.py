"""Filling a map of winners with few measurements: which cell comes next, and what the others are by those around them.

Pure functions of who wins where. A cell is a place in the grid, (index on the first axis, index on the second); the
winners of a cell are those that tie for its lead, the first of them first.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product

Cell = tuple[int, int]
Winners = Mapping[Cell, Sequence[str]]

# Of the grid, what probes may take, and what may be measured where nothing but a small lead speaks for it.
_PROBES_SHARE = 0.36
_DOUBT_SHARE = 1 / 3
# A winner that is ahead by less than this factor may be another one a few cells on.
_SMALL_LEAD = 1.25


def next_cell(winners: Winners, open_cells: Collection[Cell], leads: Mapping[Cell, float] | None = None) -> Cell | None:
    """The cell to be measured next; None where nothing is left to be measured.

    First the probes: the corners and the middle, then the middles of the edges and of the quarters, as far as they are
    few. Then cells whose surroundings disagree: those between two cells of one row or column that disagree before
    others, and of these the farthest from all that is known, which halves the way to the border. Last, up to a third of
    the grid, cells that agree with their surroundings where ``leads`` (by how much the winner of a measured cell is
    faster than the first that does not tie with it, as a factor) says that a border may run close by. Of equals the
    smaller comes first, which is the cheaper one.
    """
    cells = {*winners, *open_cells}
    last = max(row for row, _ in cells), max(column for _, column in cells)
    for cell in _probes(*last):
        if cell in open_cells:
            return cell
    candidates = [cell for cell in open_cells if not inferred(cell, winners)]

    def order(cell: Cell) -> tuple[bool, int, Cell]:
        at_border = any(common == set() for common in _along(cell, winners))
        return not at_border, -min((_distance(cell, known) for known in winners), default=0), cell

    chosen = min(candidates, key=order, default=None)
    if chosen is None and leads and len(winners) < _DOUBT_SHARE * len(cells):
        chosen = _doubtful(winners, open_cells, leads)
    return chosen


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
    along_axes = []
    for axis in (0, 1):
        along = [known for known in winners if known[1 - axis] == cell[1 - axis]]
        before = [known for known in along if known[axis] < cell[axis]]
        behind = [known for known in along if known[axis] > cell[axis]]
        along_axes.append(_common(winners, (_nearest(cell, side) for side in (before, behind))))
    return along_axes


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
