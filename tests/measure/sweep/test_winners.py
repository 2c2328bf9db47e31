"""The map of winners: which cell is measured next, and what follows from those around it."""

import itertools
from collections.abc import Callable

from measure.sweep import winners

Truth = Callable[[int, int], str]


def fill(
    side: int, truth: Truth, lead: Callable[[int, int], float] | None = None
) -> tuple[dict[winners.Cell, list[str]], set[winners.Cell]]:
    cells = set(itertools.product(range(side), range(side)))
    known: dict[winners.Cell, list[str]] = {}
    while True:
        leads = {each: lead(*each) for each in known} if lead else None
        if (cell := winners.next_cell(known, cells - set(known), leads)) is None:
            return known, cells - set(known)
        known[cell] = [truth(*cell)]


def measured(side: int, truth: Truth, lead: Callable[[int, int], float] | None = None) -> float:
    """The share of cells that is measured where a map is filled, of which all others are inferred rightly."""
    known, rest = fill(side, truth, lead)
    assert [cell for cell in rest if winners.inferred(cell, known) != [truth(*cell)]] == []
    return len(known) / side**2


def test_a_map_is_filled_rightly_with_half_of_the_comparisons() -> None:
    one, upright, diagonal, curved, three = (
        lambda row, column: "a",
        lambda row, column: "ab"[column > 2],
        lambda row, column: "ab"[row + column > 6],
        lambda row, column: "ab"[row * column > 10],
        lambda row, column: "a" if row + column < 4 else "b" if column < 4 else "c",
    )
    for side, truth in itertools.product((8, 9), (one, upright, diagonal, curved, three)):
        assert measured(side, truth) <= 0.5


def test_a_band_a_wedge_and_an_island_between_corners_that_agree_are_found() -> None:
    band, wedge, island, narrow = (
        lambda row, column: "ab"[row in (1, 2)],
        lambda row, column: "ab"[row > 4 and abs(column - 3) < (row - 3) / 1.5],
        lambda row, column: "ab"[1 <= row <= 3 and 4 <= column <= 6],
        lambda row, column: "ab"[4 <= row <= 6 and 1 <= column <= 2],
    )
    for truth in (band, wedge, island, narrow):
        assert measured(8, truth) <= 0.52, "two borders are followed"
        assert measured(8, lambda row, column, truth=truth: truth(column, row)) <= 0.52


def test_ties_agree_with_either_and_a_cell_without_a_winner_with_nobody() -> None:
    corners = {(0, 0): ["a"], (0, 2): ["b", "a"], (2, 0): ["a"], (2, 2): ["a", "b"]}
    assert winners.inferred((1, 1), corners) == ["a"]
    assert winners.inferred((1, 1), {cell: ["b", "a"] for cell in corners}) == ["b", "a"], "a tie all around is one"
    assert winners.inferred((1, 1), {**corners, (2, 2): []}) == []
    assert winners.inferred((1, 1), {cell: corners[cell] for cell in ((0, 0), (0, 2), (2, 0))}) == []
