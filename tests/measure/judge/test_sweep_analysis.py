"""The verdict of a sweep: along a line, on a map and over an option, with ties and crossings; and how one is closed."""

import itertools
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from measure.judge import sweep_analysis
from measure.run.run import Axis, Crossover, Point, Run
from tests import synthetic

A, B, C, D, E = "loop.eager", "batched.graph", "map_fn.graph", "chunked.graph", "while_loop.graph"


def line(*leading: str, crossovers: Sequence[Crossover] = ()) -> Run:
    """A sweep over side = 1, 2, 4, …: ``leading`` are the letters of those that lead, or tie, at each point."""
    values = [2**place for place in range(len(leading))]
    points = [point({"side": value}, names) for value, names in zip(values, leading, strict=True)]
    return replace(
        synthetic.sweep(), axes=[Axis(kind="size", name="side", values=values, scale="log")], points=points,
        crossovers=list(crossovers),
    )  # fmt: skip


def map_(*rows: str) -> Run:
    """A map, its rows from the least side to the greatest: in each the letters of who leads at batch = 1, 10, 100, …"""
    cells = [row.split() for row in rows]
    batches, sides = [10**place for place in range(len(cells[0]))], [2**place for place in range(len(rows))]
    points = [
        point({"batch": batch, "side": side}, cells[y][x])
        for (x, batch), (y, side) in itertools.product(enumerate(batches), enumerate(sides))
        if cells[y][x] != "-"
    ]
    axes = [
        Axis(kind="size", name=name, values=values, scale="log")
        for name, values in (("batch", batches), ("side", sides))
    ]
    return replace(synthetic.sweep(), axes=axes, points=points, crossovers=[])


def point(at: Mapping[str, int], names: str) -> Point:
    first = [{"A": A, "B": B, "C": C, "D": D, "E": E}[name] for name in names]
    ranked = [*first, *(slug for slug in (A, B, C, D, E) if slug not in first)]
    measurements = [synthetic.failure(*slug.split("."), "ok", "") for slug in ranked]
    return Point(at=dict(at), status="complete", measurements=measurements, ranking=[first, [*ranked[len(first) :]]])


def crossing(a: str, b: str, value: float, low: float, high: float) -> Crossover:
    return Crossover(a=a, b=b, axis="side", value=value, low=low, high=high)


def test_a_line_is_told_by_who_leads_or_ties_at_all_of_its_points() -> None:
    for leading, says in (
        ("A A A B B", f"Fastest: {A} up to side 4, {B} from 8."),
        # Nobody of a tie is crowned.
        ("A BCDE CBDE", f"Fastest: {A} up to side 1, {B}, {C}, {D} and 1 more tied from 2."),
        ("A A B BC B", f"Fastest, alone or tied: {A} up to side 2, {B} from 4."),
        ("A AB B", f"Fastest: {A} up to side 2, {B} from 4."),
        ("A A", f"{A} is fastest at every point that was measured."),
        ("A AB", f"{A} is fastest, or ties for it, at every point that was measured."),
        ("AB BA", f"{A} and {B} tie for the lead at every point that was measured."),
        ("A B A B A B", f"Fastest: {A} up to side 1, {B} from 2, {A} from 4, {B} from 8, and 2 more changes."),
    ):
        assert sweep_analysis.verdict(line(*leading.split())) == says, leading
    assert sweep_analysis.verdict(line()).startswith("Nothing was ranked")
    cut = line("A", "B", "B")
    unranked = replace(cut, points=[*cut.points[:2], replace(cut.points[2], ranking=[])])
    assert sweep_analysis.verdict(unranked) == f"Fastest: {A} up to side 1, {B} from 2; beyond 2 nothing is ranked."


def test_a_crossing_has_its_place_and_interval_in_the_verdict() -> None:
    crossed = crossing(A, B, 6.3, 5.9, 6.8)
    assert sweep_analysis.verdict(line("A", "A", "A", "B", "B", crossovers=[crossed])) == (
        f"Fastest: {A} below side 7, {B} from 7 [6, 7]."
    )
    back, of_others = crossing(B, A, 6.3, 5.9, 6.8), replace(crossed, b=C)
    for other in (back, of_others):
        assert sweep_analysis.verdict(line("A", "A", "A", "B", "B", crossovers=[other])) == (
            f"Fastest: {A} up to side 4, {B} from 8."
        )


def test_a_map_is_told_by_how_many_cells_each_leads_and_says_that_some_tie() -> None:
    for rows, says in (
        ("A B B/A B B", f"Fastest: {B} at 4 of 6 cells and {A} at 2."),
        ("A BC CB/A CB BC", f"Fastest, alone or tied: {B} at 4 of 6 cells, {C} at 4 and {A} at 2."),
        # A cell without a winner is not counted.
        ("A - B/A B B", f"Fastest: {B} at 3 of 5 cells and {A} at 2."),
    ):
        assert sweep_analysis.verdict(map_(*rows.split("/"))) == says, rows
