"""The sentence of a sweep: regions of a line and of a map, ties with all their names, borders with their intervals."""

import itertools
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from measure.model.run import Axis, Crossover, Point, Run
from measure.sweep import findings
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


def test_a_line_is_told_by_its_regions() -> None:
    for leading, says in (
        ("A A A B B", f"Fastest: {A} up to side 4, {B} from 8."),
        # Nobody of a tie is crowned.
        ("A BCDE CBDE", f"Fastest: {A} at side 1, {B}, {C}, {D} and 1 more tied from 2."),
        ("A A B BC B", f"Fastest: {A} up to side 2, {B} from 4 ({C} ties at 1 of 3 points)."),
        ("AC AC ACD A B",
         f"Fastest: {A} and {C} tied up to side 8 ({C} not at 1 of 4 points, {D} ties at 1), {B} at 16."),
        ("A A", f"{A} is fastest at every point that was measured."),
    ):  # fmt: skip
        assert findings.verdict(line(*leading.split())) == says, leading
    assert findings.verdict(line()).startswith("Nothing was ranked")


def test_a_border_that_is_known_is_the_crossing_with_its_interval() -> None:
    known = crossing(A, B, 6.3, 5.9, 6.8)
    assert findings.verdict(line("A", "A", "A", "B", "B", crossovers=[known])) == (
        f"Fastest: {A} below side 7, {B} from 7 [6, 7]."
    )
    elsewhere, back, of_others = crossing(A, B, 1.5, 1.2, 1.8), crossing(B, A, 6.3, 5.9, 6.8), replace(known, b=C)
    for other in (elsewhere, back, of_others):
        assert findings.verdict(line("A", "A", "A", "B", "B", crossovers=[other])) == (
            f"Fastest: {A} up to side 4, {B} from 8."
        )


def test_a_map_is_told_by_its_regions() -> None:
    for rows, says in (
        ("A B B/A B B", f"Fastest: {B} from batch 10 (4 of 6 cells); {A} at batch 1 (2)."),
        ("A B B/A C C", f"Fastest: {B} from batch 10 and at side 1 (2 of 6 cells); {A} at batch 1 (2); "
                        f"{C} from batch 10 and at side 2 (2)."),
        # Nobody of a tie is crowned.
        ("A BC CB/A CB BC", f"Fastest: {B} and {C} tied from batch 10 (4 of 6 cells); {A} at batch 1 (2)."),
        # A region between others has both ends.
        ("A B B A A", f"Fastest: {A} at 3 of 5 cells, including all from batch 1,000; {B} from batch 10 to 100 (2)."),
        # A cell without a winner belongs to nobody, and is not counted.
        ("A - B/A B B", f"Fastest: {B} at 3 of 5 cells, including all at batch 100; {A} at batch 1 (2)."),
    ):  # fmt: skip
        assert findings.verdict(map_(*rows.split("/"))) == says, rows


def test_a_sweep_that_ends_early_settles_its_points_and_keeps_what_they_have() -> None:
    run = synthetic.sweep()
    points = [*run.points[:2], replace(run.points[2], status="running"), Point(at={"batch": 1_000})]
    closed = findings.close(replace(run, points=points), "interrupted", "the machine went away", run.created)
    assert closed.status == "interrupted"
    assert [point.status for point in closed.points] == ["complete", "complete", "interrupted", "interrupted"]
    for now, before in zip(closed.points[:2], points[:2], strict=True):
        # Intervals are of the spread over all points, of which there is one less.
        assert [item.replicas for item in now.measurements] == [item.replicas for item in before.measurements]
        assert (now.ranking, now.limit) == (before.ranking, before.limit)
    assert closed.points[2].measurements[1].latency is not None
    assert closed.points[3].reason == "the machine went away"
