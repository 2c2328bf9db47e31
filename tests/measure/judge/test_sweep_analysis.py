"""Who leads where in a sweep, and the headline: along a line, on a map and over an option, with ties and crossings."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from measure.judge import sweep_analysis
from measure.judge.sweep_findings import findings
from measure.run.run import Axis, Point, Run
from tests import costs, synthetic

A, B, C, D, E = "loop.eager", "batched.graph", "map_fn.graph", "chunked.graph", "while_loop.graph"
LETTERS = {"A": A, "B": B, "C": C, "D": D, "E": E}


def axis(name: str, values: Sequence[int]) -> Axis:
    return Axis(kind="size", name=name, values=list(values), scale="log")


def line(*leading: str) -> Run:
    """A sweep over side = 1, 2, 4, …: ``leading`` are the letters of those that lead, or tie, at each point."""
    values = [2**place for place in range(len(leading))]
    points = [point({"side": value}, names) for value, names in zip(values, leading, strict=True)]
    return replace(synthetic.sweep(), axes=[axis("side", values)], points=points)


def map_(*rows: str) -> Run:
    """A map, its rows from the least side to the greatest: in each the letters of who leads at batch = 1, 10, 100, …"""
    cells = [row.split() for row in rows]
    batches, sides = [10**place for place in range(len(cells[0]))], [2**place for place in range(len(rows))]
    points = [
        point({"batch": batch, "side": side}, cells[y][x])
        for (x, batch), (y, side) in itertools.product(enumerate(batches), enumerate(sides))
        if cells[y][x] != "-"
    ]
    return replace(synthetic.sweep(), axes=[axis("batch", batches), axis("side", sides)], points=points)


def point(at: Mapping[str, int], names: str) -> Point:
    first = [LETTERS[name] for name in names]
    ranked = [*first, *(slug for slug in LETTERS.values() if slug not in first)]
    measurements = [synthetic.failure(*slug.split("."), "ok", "") for slug in ranked]
    return Point(at=dict(at), status="complete", measurements=measurements, ranking=[first, [*ranked[len(first) :]]])


def verdict(run: Run) -> str:
    return sweep_analysis.verdict(findings(run))


def test_stretches_of_a_line_are_led_by_those_who_lead_or_tie_at_all_of_their_points() -> None:
    for leading, stretches in (
        ("A A A B B", "A1 B8"),
        ("A BCDE CBDE", "A1 BCDE2"),
        ("A AB B", "A1 B4"),
        ("AB BA", "AB1"),
        ("A B A B A B", "A1 B2 A4 B8 A16 B32"),
    ):
        made = findings(line(*leading.split())).stretches
        names = {slug: letter for letter, slug in LETTERS.items()}
        shown = ["".join(names[name] for name in part.names) + str(part.points[0].at["side"]) for part in made]
        assert " ".join(shown) == stretches, leading


def test_nobody_of_a_tie_is_crowned_and_what_was_not_ranked_is_told() -> None:
    assert "tied" in verdict(line("A", "BC")) and verdict(line("A", "A")).startswith(f"{A} is fastest at every point")
    assert verdict(line("AB", "BA")).startswith(f"{A} and {B} tie") and "or ties" in verdict(line("A", "AB"))
    assert verdict(line("A", "A", "B", "BC", "B")).startswith("Fastest, alone or tied: ")
    for run in (line(), map_("A B")):
        bare = replace(run, points=[replace(point_, ranking=[[]]) for point_ in run.points])
        assert verdict(bare).startswith("Nothing was ranked")
    cut = line("A", "B", "B")
    unranked = replace(cut, points=[*cut.points[:2], replace(cut.points[2], ranking=[])])
    assert verdict(unranked).endswith("Beyond 2 nothing is ranked.")


def test_the_headline_answers_what_was_asked() -> None:
    rng = np.random.default_rng(0)
    crossing = {A: (1e-5, 3e-5), B: (1.6e-4, 5e-6)}  # at 6
    of_two, of_three = (
        findings(
            sweep_analysis.analyse(
                replace(
                    synthetic.sweep(),
                    axes=[costs.axis((1, 4, 16, 64))],
                    points=costs.points((1, 4, 16, 64), lines, rng, costs.QUIET),
                )
            )
        )
        for lines in (crossing, crossing | {C: (1e-3, 3e-5)})
    )
    assert of_two.run.verdict.startswith(f"{B} overtakes {A} at batch 7 [")
    assert of_three.run.verdict.startswith(f"Fastest: {A} below batch 7, {B} from 7 [")
    assert sweep_analysis.verdict(of_three, A, B).startswith(f"{B} overtakes {A} at batch 7 [")
    assert sweep_analysis.verdict(of_three, C, B).startswith(f"{C} and {B}" if C < B else f"{B} and {C}")
    [first, second] = of_three.stretches
    assert first.crossing == of_three.crossovers[0] and second.crossing is None


def test_a_map_is_told_by_how_many_cells_each_leads_and_says_that_some_tie() -> None:
    for rows, says in (
        ("A B B/A B B", f"Fastest: {B} at 4 of 6 cells and {A} at 2."),
        ("A BC CB/A CB BC", f"Fastest, alone or tied: {B} at 4 of 6 cells, {C} at 4 and {A} at 2."),
        # A cell without a winner is not counted.
        ("A - B/A B B", f"Fastest: {B} at 3 of 5 cells and {A} at 2."),
    ):
        assert verdict(map_(*rows.split("/"))) == says, rows
