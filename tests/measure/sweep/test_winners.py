"""The map of winners: which cell is measured next, and what follows from those around it."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from measure.sweep import winners


def fill(
    side: int, truth: Callable[[int, int], str], lead: Callable[[int, int], float] | None = None
) -> tuple[dict[winners.Cell, list[str]], set[winners.Cell]]:
    cells = set(itertools.product(range(side), range(side)))
    known: dict[winners.Cell, list[str]] = {}
    while True:
        leads = {each: lead(*each) for each in known} if lead else None
        if (cell := winners.next_cell(known, cells - set(known), leads)) is None:
            return known, cells - set(known)
        known[cell] = [truth(*cell)]


@pytest.mark.parametrize("side", [8, 9, 12])
@pytest.mark.parametrize(
    "truth",
    [
        lambda row, column: "a",
        lambda row, column: "ab"[column > 2],
        lambda row, column: "ab"[row + column > 6],
        lambda row, column: "ab"[row * column > 10],
        lambda row, column: "a" if row + column < 4 else "b" if column < 4 else "c",
    ],
    ids=["one", "upright", "diagonal", "curved", "three"],
)
def test_a_map_is_filled_rightly_with_half_of_the_comparisons(side: int, truth: Callable[[int, int], str]):
    known, rest = fill(side, truth)
    assert [cell for cell in rest if winners.inferred(cell, known) != [truth(*cell)]] == []
    assert len(known) <= 0.5 * side * side


@pytest.mark.parametrize("turned", [False, True], ids=["lying", "standing"])
@pytest.mark.parametrize(
    "truth",
    [
        lambda row, column: "ab"[row in (1, 2)],
        lambda row, column: "ab"[row in (5, 6)],
        lambda row, column: "ab"[abs(column - 3) < 3 - row],
        lambda row, column: "ab"[row > 4 and abs(column - 3) < (row - 3) / 1.5],
        lambda row, column: "ab"[1 <= row <= 3 and 4 <= column <= 6],
        lambda row, column: "ab"[4 <= row <= 6 and 1 <= column <= 2],
    ],
    ids=["band", "lower band", "wedge", "lower wedge", "island", "narrow island"],
)
def test_a_band_a_wedge_and_an_island_between_corners_that_agree_are_found(
    truth: Callable[[int, int], str], turned: bool
):
    def turn(row: int, column: int) -> str:
        return truth(column, row) if turned else truth(row, column)

    known, rest = fill(8, turn)
    assert [cell for cell in rest if winners.inferred(cell, known) != [turn(*cell)]] == []
    assert len(known) <= 0.52 * 64, "two borders are followed"


@pytest.mark.parametrize("turned", [False, True], ids=["lying", "standing"])
@pytest.mark.parametrize("place", range(7))
def test_a_straight_border_takes_a_third_of_the_comparisons_where_leads_tell_its_place(place: int, turned: bool):
    def height(row: int, column: int) -> float:  # of b over a, as a logarithm
        return 0.3 * ((column if turned else row) - place - 0.5)

    def truth(row: int, column: int) -> str:
        return "b" if height(row, column) < 0 else "a"

    known, rest = fill(8, truth, lambda row, column: float(np.exp(abs(height(row, column)))))
    assert [cell for cell in rest if winners.inferred(cell, known) != [truth(*cell)]] == []
    assert len(known) <= 64 / 3


def test_an_island_that_no_probe_meets_is_found_where_the_lead_around_it_is_small():
    def height(row: int, column: int) -> float:  # of b over a, as a logarithm
        return 0.08 * (np.hypot(row - 6.0, column - 3.5) - 0.8)

    def truth(row: int, column: int) -> str:
        return "b" if height(row, column) < 0 else "a"

    def lead(row: int, column: int) -> float:
        return float(np.exp(abs(height(row, column))))

    island = {cell for cell in itertools.product(range(8), range(8)) if truth(*cell) == "b"}
    blind, _ = fill(8, truth)
    assert len(island) >= 2 and not island & set(blind), "no probe is in it"
    known, rest = fill(8, truth, lead)
    assert [cell for cell in rest if winners.inferred(cell, known) != [truth(*cell)]] == []
    assert len(known) <= 0.5 * 64
    far, _ = fill(8, lambda row, column: "a", lambda row, column: 3.0)
    assert len(far) == 13, "where one is far ahead, the probes are all that is measured"


def test_corners_come_first_then_the_middle_then_where_neighbours_disagree():
    cells = set(itertools.product(range(5), range(5)))
    known: dict[winners.Cell, list[str]] = {}
    order = []
    for _ in range(10):
        cell = winners.next_cell(known, cells - set(known))
        assert cell is not None
        order.append(cell)
        known[cell] = ["a" if cell[1] < 3 else "b"]
    assert order[:5] == [(0, 0), (0, 4), (4, 0), (4, 4), (2, 2)]
    assert sorted(order[5:9]) == [(0, 2), (2, 0), (2, 4), (4, 2)], "the middles of the edges"
    assert order[9] == (0, 3), "between two cells of a row that disagree"


def test_ties_agree_with_either_and_a_cell_without_a_winner_with_nobody():
    corners = {(0, 0): ["a"], (0, 2): ["b", "a"], (2, 0): ["a"], (2, 2): ["a", "b"]}
    assert winners.inferred((1, 1), corners) == ["a"]
    assert winners.inferred((1, 1), {cell: ["b", "a"] for cell in corners}) == ["b", "a"], "a tie all around is one"
    assert winners.inferred((1, 1), {**corners, (2, 2): []}) == []
    assert winners.inferred((1, 1), {cell: corners[cell] for cell in ((0, 0), (0, 2), (2, 0))}) == []
