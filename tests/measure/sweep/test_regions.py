"""The sentence of a sweep: regions of a line and of a map, ties with all their names, borders with their intervals."""

import itertools
from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from measure.model.run import Axis, Crossover, Point, Run
from measure.sweep import findings, regions
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


@pytest.mark.parametrize(
    ("leading", "says"),
    [
        (["A", "A", "A", "B", "B"], f"Fastest: {A} up to side 4, {B} from 8."),
        (["A", "B", "B"], f"Fastest: {A} at side 1, {B} from 2."),
        (["A", "A", "B"], f"Fastest: {A} up to side 2, {B} at 4."),
        (["A", "A", "B", "B", "C", "A"], f"Fastest: {A} up to side 2, {B} from 4 to 8, {C} at 16, {A} at 32."),
        # Nobody of a tie is crowned.
        (["A", "A", "BC", "BC"], f"Fastest: {A} up to side 2, {B} and {C} tied from 4."),
        (["A", "BCDE", "CBDE"], f"Fastest: {A} at side 1, {B}, {C}, {D} and 1 more tied from 2."),
        (["A", "A", "B", "BC", "B"], f"Fastest: {A} up to side 2, {B} from 4 ({C} ties at 1 of 3 points)."),
        (["A", "BC", "BCD", "BC"], f"Fastest: {A} at side 1, {B} and {C} tied from 2 ({D} ties at 1 of 3 points)."),
        (["A", "AC", "ACD", "A", "B"],
         f"Fastest: {A} up to side 8 ({C} ties at 2 of 4 points, {D} at 1), {B} at 16."),
        (["AC", "AC", "ACD", "A", "B"],
         f"Fastest: {A} and {C} tied up to side 8 ({C} not at 1 of 4 points, {D} ties at 1), {B} at 16."),
        (["A", "AC", "ACD", "ACDE", "ACDEB", "ACDEB"],
         f"{A}, {C} and {D} tie for the lead at every point that was measured "
         f"({D} not at 2 of 6, {C} not at 1, {E} ties at 3, {B} at 2)."),
        # One may tie in two regions.
        (["A", "AC", "AC", "BC", "B", "BC"], f"Fastest: {A} and {C} tied up to side 4 ({C} not at 1 of 3 points), "
                                             f"{B} and {C} tied from 8 ({C} not at 1 of 3 points)."),

        # At a border both may tie: neither has it.
        (["A", "A", "AB", "B"], f"Fastest: {A} up to side 2, {B} at 8."),
        (["A", "A"], f"{A} is fastest at every point that was measured."),
        (["AB", "BA"], f"{B} and {A} tie for the lead at every point that was measured."),
        (["A", "AB", "A"], f"{A} is fastest at every point that was measured ({B} ties at 1 of 3)."),
        (["A", "B", "A", "B", "A", "B"],
         f"Fastest: {A} at side 1, {B} at 2, {A} at 4, {B} at 8, and 2 more changes up to 32."),
    ],
)  # fmt: skip
def test_a_line_is_told_by_its_regions(leading: list[str], says: str) -> None:
    run = line(*leading)
    assert findings.verdict(run) == says


def test_a_border_that_is_known_is_the_crossing_with_its_interval() -> None:
    known = crossing(A, B, 6.3, 5.9, 6.8)
    assert findings.verdict(line("A", "A", "A", "B", "B", crossovers=[known])) == (
        f"Fastest: {A} below side 7, {B} from 7 [6, 7]."
    )
    # Where they tie, the crossing is within the tie.
    assert findings.verdict(line("A", "A", "AB", "B", crossovers=[crossing(A, B, 3.2, 2.1, 6.0)])) == (
        f"Fastest: {A} below side 4, {B} from 4 [3, 7]."
    )
    three = [crossing(A, B, 2.5, 2.0, 3.5), crossing(B, C, 9.2, 8.5, 10.5)]
    assert findings.verdict(line("A", "A", "B", "B", "C", crossovers=three)) == (
        f"Fastest: {A} below side 3, {B} from 3 [3, 4], {C} from 10 [9, 11]."
    )
    # Both have to be overtaken by who leads then.
    both = [crossing(A, C, 4.5, 4.2, 4.9), crossing(B, C, 6.5, 6.1, 6.9)]
    assert findings.verdict(line("AB", "AB", "AB", "C", crossovers=both)) == (
        f"Fastest: {A} and {B} tied below side 7, {C} from 7 [7, 7]."
    )


@pytest.mark.parametrize(
    "other",
    [crossing(A, B, 1.5, 1.2, 1.8), crossing(B, A, 6.3, 5.9, 6.8), crossing(A, C, 6.3, 5.9, 6.8)],
    ids=["elsewhere", "the other way around", "of others"],
)
def test_another_crossing_is_no_border(other: Crossover) -> None:
    assert findings.verdict(line("A", "A", "A", "B", "B", crossovers=[other])) == (
        f"Fastest: {A} up to side 4, {B} from 8."
    )


def test_nothing_is_said_of_what_is_not_ranked() -> None:
    run = line("A", "A", "B", "B", "B")
    assert findings.verdict(replace(run, points=run.points[:4])) == f"Fastest: {A} up to side 2, {B} from 4 to 8."
    assert findings.verdict(replace(run, points=run.points[:3])) == f"Fastest: {A} up to side 2, {B} at 4."
    known = replace(run, points=run.points[:4], crossovers=[crossing(A, B, 2.5, 2.2, 2.8)])
    assert findings.verdict(known) == f"Fastest: {A} below side 3, {B} from 3 [3, 3] to 8."
    map_run = map_("A B", "A B")
    waiting = replace(map_run.points[3], status="waiting", ranking=[])
    assert findings.verdict(replace(map_run, points=[*map_run.points[:3], waiting])) == (
        f"Fastest: {A} at batch 1 (2 of 3 known cells); {B} at batch 10 and side 1 (1)."
    )
    only = [*map_run.points[:2], *(replace(point, ranking=[]) for point in map_run.points[2:])]
    assert findings.verdict(replace(map_run, points=only)) == f"{A} is fastest at every known cell."


def test_a_leader_that_was_not_measured_further_on_was_not_overtaken() -> None:
    run = line("A", "A", "B", "B")
    cut = [
        replace(
            point,
            ranking=[[B], [C]],
            measurements=[synthetic.failure("loop", "eager", outcome, "") if item.strategy == A else item
                          for item in point.measurements],
        )
        for point, outcome in zip(run.points[2:], ("timeout", "not_run"), strict=True)
    ]  # fmt: skip
    assert findings.verdict(replace(run, points=[*run.points[:2], *cut])) == (
        f"Fastest: {A} up to side 2, {B} from 4 ({A}: timed out there)."
    )
    assert findings.verdict(replace(run, points=[*run.points[:2], cut[1]])) == (
        f"Fastest: {A} up to side 2, {B} at 8 ({A}: not run there)."
    )


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (["A B B", "A B B"], f"Fastest: {B} from batch 10 (4 of 6 cells); {A} at batch 1 (2)."),
        (["A A A A", "A A A A", "B B B B"], f"Fastest: {A} up to side 2 (8 of 12 cells); {B} at side 4 (4)."),
        (["A A B B", "A B B B", "B B B B"],
         f"Fastest: {B} at 9 of 12 cells, including all from batch 100; "
         f"{A} at 3, including all at batch 1 and up to side 2."),
        (["A A B", "A A B", "B B B"],
         f"Fastest: {B} at 5 of 9 cells, including all at side 4; {A} up to batch 10 and side 2 (4)."),
        (["A B B", "A C C"], f"Fastest: {B} from batch 10 and at side 1 (2 of 6 cells); {A} at batch 1 (2); "
                             f"{C} from batch 10 and at side 2 (2)."),
        # Nobody of a tie is crowned.
        (["A BC CB", "A CB BC"], f"Fastest: {B} and {C} tied from batch 10 (4 of 6 cells); {A} at batch 1 (2)."),
        (["A BC BC", "A BC B"],
         f"Fastest: {B} and {C} tied from batch 10 (4 of 6 cells, {C} not at 1); {A} at batch 1 (2)."),
        (["A BC B", "A B B"], f"Fastest: {B} from batch 10 (4 of 6 cells, {C} ties at 1); {A} at batch 1 (2)."),
        (["A B C D"],
         f"Fastest: {B} at batch 10 (1 of 4 cells); {D} at batch 1,000 (1); {A} at batch 1 (1); others at 1."),
        (["A A", "A A"], f"{A} is fastest at every cell."),
        (["AB A", "A A"], f"{A} is fastest at every cell ({B} ties at 1 of 4)."),
        (["AB AB"], f"{A} and {B} tie for the lead at every cell."),
        # A cell without a winner belongs to nobody, and is not counted.
        (["A - B", "A B B"], f"Fastest: {B} at 3 of 5 cells, including all at batch 100; {A} at batch 1 (2)."),
    ],
)  # fmt: skip
def test_a_map_is_told_by_its_regions(rows: list[str], says: str) -> None:
    assert findings.verdict(map_(*rows)) == says


def test_a_region_of_a_map_between_others_has_both_ends() -> None:
    assert findings.verdict(map_("A B B A A")).startswith(
        f"Fastest: {A} at 3 of 5 cells, including all from batch 1,000;"
    )
    assert f"{B} from batch 10 to 100 (2)" in findings.verdict(map_("A B B A A"))


def test_regions_of_a_line_hold_every_point_once_and_one_leads_at_all_of_them() -> None:
    run = line("A", "AB", "B", "BC", "C", "CD", "AD")
    found = regions.along(run.points, run.axes)
    assert [at.at["side"] for region in found for at in region.points] == run.axes[0].values
    assert len(found) == 4
    for region in found:
        first, *others = region.leaders
        for at in region.points:
            assert first in at.ranking[0] and set(at.ranking[0]) <= region.counts.keys()
        assert all(2 * region.counts[name] > len(region.points) for name in others)
