"""Sweeps: what may be asked, who is measured where and how closely, what is kept, and how one is continued."""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from measure import __main__ as command
from measure import runner
from measure.engine.bench import Settings
from measure.engine.dialogue import Dialogues
from measure.engine.host_launcher import HostLauncher
from measure.engine.record import View
from measure.machine import environment
from measure.model import forecast, text
from measure.model.request import RequestError, case_of
from measure.model.run import Analysis, Axis, Correctness, Error, Memory, Point, Run, decode, encode
from measure.output import export, sweep_table
from measure.store import imports
from measure.store.store import Store
from measure.subject.messages import Spec
from measure.sweep import analysis as sweep_analysis
from measure.sweep import contenders as sweep_contenders
from measure.sweep import continuing, winners
from measure.sweep import forecast as sweep_forecast
from measure.sweep.request import SweepRequest, of_run, parse_range, parse_sweep
from measure.sweep.sweep import PROCESSES, Sweep
from measure.sweep.visit import ROUNDS, Visit
from tests import costs, synthetic
from tests.engine import DEADLINE_S, QUICK, eventually, running, write_mapper
from tests.workloads.test_workloads import CUBE

GIB = 2**30


def asked(*strategies: str, axes: Any, **more: Any) -> SweepRequest:
    return parse_sweep({"workload": "square", "strategies": list(strategies), "axes": axes, "budget_s": 300.0, **more})


def batch(*values: int) -> list[dict[str, Any]]:
    return [{"name": "batch", "values": list(values)}]


# --- what may be asked -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "more", "values"),
    [
        ("1:100000", {}, [1, 4, 18, 75, 316, 1334, 5623, 23714, 100000]),
        ("1:1000:4", {}, [1, 10, 100, 1000]),
        ("1:1000", {"points": 4}, [1, 10, 100, 1000]),
        ("0:10:3", {"scale": "linear"}, [0, 5, 10]),
        ("1:4:9", {}, [1, 2, 3, 4]),
        ("8,1, 2,2", {}, [1, 2, 8]),
    ],
)
def test_a_range_is_a_grid_whose_points_are_whole_and_differ(text: str, more: dict[str, Any], values: list[int]):
    assert parse_range(text, **more) == values


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        (None, "nothing is swept"),
        ([], "nothing is swept"),
        ("batch", "a list of axes is needed"),
        ([{"name": "batch", "range": "100:1"}], "batch=100:1 is reversed: write the smaller end first, batch=1:100"),
        ([{"name": "batch", "range": ""}], "batch is empty"),
        ([{"name": "batch", "values": []}], "batch is empty"),
        ([{"name": "batch", "range": "5:5"}], "is one point"),
        ([{"name": "batch", "values": [5, 5]}], "is one point"),
        ([{"name": "batch", "range": "1:100", "points": 5000}], "5000 points is not valid: from 2 to 64 are"),
        ([{"name": "batch", "range": "1:100:1"}], "1 points is not valid"),
        ([{"name": "batch", "values": list(range(1, 99))}], "98 values of batch are too many"),
        ([{"name": "batch", "range": "1:1000000000"}], "batch=1000000000 is not valid: a whole number from 0 to"),
        ([{"name": "batch", "range": "-5:10"}], "batch=-5 is not valid"),
        ([{"name": "batch", "range": "0:10"}], "batch=0 has no place on a log scale"),
        ([{"name": "batch", "range": "one:ten"}], "whole numbers are needed"),
        ([{"name": "batch", "range": "1:2:3:4"}], "whole numbers are needed"),
        ([{"name": "batch", "values": [1, 2.5]}], "batch=2.5 is not valid"),
        ([{"name": "batch", "values": "1:5"}], "a list of whole numbers is needed"),
        ([{"name": "batch"}], "needs either values or a range"),
        ([{"name": "batch", "range": "1:9", "points": "many"}], "points=many is not valid"),
        ([{"name": "batch", "range": "1:9", "scale": "cubic"}], "scale 'cubic' is not valid: log or linear is"),
        ([{"name": "batch", "range": "1:9", "kind": "dtype"}], "axis kind 'dtype' is not valid"),
        ([{"name": "batch", "range": "1:9", "colour": 1}], "an axis has no field 'colour'"),
        ([{"name": "side", "range": "1:9"}], "square has no size 'side': its sizes are batch"),
        ([{"name": "batch", "range": "1:9"}] * 2, "batch is swept twice"),
        ([{"name": "batch", "range": "1:9"}] * 3, "3 axes are too many"),
        ([{"kind": "option", "name": "chunk", "range": "1:9"}], "no chosen strategy has an option 'chunk'"),
    ],
)
def test_what_cannot_be_swept_is_refused_with_one_sentence(axes: Any, says: str):
    with pytest.raises(RequestError) as caught:
        asked("loop.eager", "batched.graph", axes=axes)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_too_many_cells_a_fixed_size_that_is_swept_and_an_option_given_twice_are_refused():
    wide = [{"name": name, "range": "1:100", "points": 30} for name in ("batch", "side")]
    with pytest.raises(RequestError, match="points are too many: a sweep has at most 400"):
        parse_sweep({"workload": "outer_product", "axes": wide})
    with pytest.raises(RequestError, match="batch is both fixed and swept"):
        asked("loop.eager", axes=batch(1, 2), size={"batch": 3})
    with pytest.raises(RequestError, match="gives chunk itself"):
        asked("chunked.graph?chunk=4", axes=[{"kind": "option", "name": "chunk", "values": [1, 2]}])


def test_a_map_is_over_two_sizes():
    """At another value of an option than the first, only those that have it would be measured, and one of them win."""
    option = {"kind": "option", "name": "chunk", "values": [1, 8]}
    for axes in ([*batch(1, 8), option], [option, *batch(1, 8)]):
        with pytest.raises(RequestError, match="chunk is an option of strategies, which is swept alone"):
            asked("chunked.graph", "batched.graph", axes=axes)


def test_default_strategies_are_those_of_the_smallest_point():
    found = parse_sweep({"workload": "square", "axes": batch(1, 100_000)})
    assert "loop.eager" in found.base.strategies, "a Python loop is hopeless at the large end only"
    assert found.base.size == {"batch": 1} and found.points() == [{"batch": 1}, {"batch": 100_000}]


def test_a_swept_option_changes_the_strategies_that_have_it_and_the_others_are_measured_once():
    found = asked("chunked.graph", "batched.graph", axes=[{"kind": "option", "name": "chunk", "values": [1, 8]}])
    assert found.comparison({"chunk": 1}).strategies == ("chunked.graph?chunk=1", "batched.graph")
    assert found.comparison({"chunk": 8}).strategies == ("chunked.graph?chunk=8",)
    assert found.slugs({"chunk": 8})["chunked.graph"] == "chunked.graph?chunk=8"


def test_a_stored_sweep_tells_what_it_asked():
    found = asked("loop.eager", axes=[{"name": "batch", "range": "1:100"}], seed=3, dtype="float64")
    run = Run(
        id="0" * 24, kind="sweep", created="2025-01-15T09:30:00Z", request=found.base.record(), axes=list(found.axes)
    )
    assert of_run(decode(encode(run))) == found
    with pytest.raises(RequestError, match="is a comparison: only a sweep can be continued"):
        of_run(synthetic.run())


def test_the_command_refuses_what_cannot_be_swept(capsys: pytest.CaptureFixture[str]):
    for arguments, says in (
        (["square"], "nothing is swept"),
        (["square", "--size", "batch=4"], "nothing is swept"),
        (["square", "--size", "batch=9:1"], "is reversed"),
        (["square", "--size", "batch=1:9", "--size", "batch=2"], "gives batch twice"),
        (["square", "--size", "batch=1:9", "--scale", "cubic"], "scale 'cubic' is not valid"),
        (["square", "--continue", "0" * 24], "leave them out"),
        (["--continue", "0" * 24], "is not known here"),
    ):
        assert command.main(["sweep", *arguments]) == command.INVALID
        assert says in capsys.readouterr().err


# --- what it will take -----------------------------------------------------------------------------------------------


def test_the_budget_is_shared_so_that_every_point_gets_its_minimum():
    found = asked("loop.eager", "batched.graph", axes=[{"name": "batch", "range": "1:1000000"}], budget_s=30.0)
    plan = sweep_forecast.plan(found, 64 * GIB)
    left_out = {at: sorted(reasons) for at, reasons in plan.left_out.items() if reasons}
    largest = sweep_forecast.key({"batch": 1_000_000})
    assert left_out[largest] == ["loop.eager"], "what takes longest is left out"
    assert "of the sweep's 30 s" in plan.left_out[largest]["loop.eager"].message
    [said] = plan.forecast.strategies_left_out()
    assert said.startswith("loop.eager is not run at batch ") and ", batch 1,000,000: it would take about " in said
    many = sweep_forecast.SweepForecast(1.0, 1, [], [({"batch": n}, "loop.eager", "too long") for n in range(1, 7)])
    assert many.strategies_left_out() == ["loop.eager is not run at 6 points, the first of them batch 1: too long"]
    assert sweep_forecast.key({"batch": 1}) not in left_out
    assert all("batched.graph" not in slugs for slugs in left_out.values()), "no point is left empty"
    assert plan.forecast.seconds <= 30.0
    others = {sweep_forecast.key(at) for at in found.points()} - {largest}
    alone = sweep_forecast.plan(found, 64 * GIB, dict.fromkeys(others, found.base.strategies))
    assert alone.left_out.keys() == {largest} and alone.forecast.seconds <= plan.forecast.seconds
    rest = sweep_forecast.plan(found, 64 * GIB, {largest: ["batched.graph"]})
    assert sorted(rest.left_out[largest]) == ["loop.eager"], "a point that has a strategy by now is not empty"
    generous = sweep_forecast.plan(asked("loop.eager", "batched.graph", axes=batch(1, 1000), budget_s=3600.0), 64 * GIB)
    assert not any(generous.left_out.values()) and 0 < generous.forecast.seconds < 60


def test_a_dear_last_strategy_of_a_point_goes_before_cheaper_points_of_its_line():
    """What is quickest at 100 000, since nothing else fits there, would take more than half of the budget."""
    found = parse_sweep(
        {"workload": "outer_reduce", "size": {"side": 16}, "strategies": ["map_fn.graph", "vectorized_map.graph"],
         "axes": [{"name": "batch", "range": "1:100000"}], "memory_limit_mib": 500, "budget_s": 30.0}
    )  # fmt: skip
    plan = sweep_forecast.plan(found, 20 * GIB)
    over = [
        dict(at)["batch"]
        for at, each in plan.left_out.items()
        if each.get("map_fn.graph") is not None and each["map_fn.graph"].type == sweep_forecast.OVER_BUDGET
    ]
    values = [at["batch"] for at in found.points()]
    assert over and over == values[-len(over):], "no hole in the middle of a line"  # fmt: skip
    assert plan.forecast.seconds <= 30.0
    costs = {(("n", n),): {"a": cost} for n, cost in ((1, 1.0), (2, 2.0), (3, 9.0), (4, 30.0))}
    assert sweep_forecast._over_budget(costs, (), 20.0) == [((("n", 4),), "a")]
    assert sweep_forecast._over_budget(costs, (), 50.0) == []
    two = {(("n", 1),): {"a": 30.0}, (("n", 2),): {"a": 60.0}}
    assert sweep_forecast._over_budget(two, (), 20.0) == [], "two points stay"
    # Where b takes less, a's cell goes; and then that beyond, where a is the quickest and would not be dear.
    hole = {(("n", 1),): {"a": 1.0}, (("n", 2),): {"a": 5.0, "b": 4.0}, (("n", 3),): {"a": 6.0}}
    assert sweep_forecast._over_budget(hole, (), 16.5) == [((("n", 3),), "a")]
    assert sweep_forecast._over_budget(hole, (), 10.0) == [((("n", 3),), "a"), ((("n", 2),), "a")]


def test_the_forecast_peak_is_of_what_is_run_and_what_exceeds_the_memory_limit_is_not():
    raw = {
        "workload": "outer_reduce", "size": {"side": 16}, "strategies": ["map_fn.graph", "vectorized_map.graph"],
        "axes": [{"name": "batch", "range": "1:100000"}], "budget_s": 3600.0,
    }  # fmt: skip
    free = sweep_forecast.forecast_sweep(parse_sweep(raw), 20 * GIB)
    limited = sweep_forecast.forecast_sweep(parse_sweep({**raw, "memory_limit_mib": 500}), 20 * GIB)
    marked = {at["batch"]: said for at, slug, said in limited.left_out if slug == "vectorized_map.graph"}
    assert 100_000 in marked and 1 not in marked
    assert marked[100_000].endswith(", and the memory limit is 500 MiB")
    assert not [slug for _, slug, _ in limited.left_out if slug == "map_fn.graph"]
    assert limited.peak_bytes < 2 * GIB < free.peak_bytes
    alone = sweep_forecast.forecast_sweep(parse_sweep({**raw, "strategies": ["map_fn.graph"]}), 20 * GIB)
    # Within what forecasts are off by, it may fit, and then takes no more than the limit.
    small = {**raw, "axes": batch(1, 1000), "strategies": ["vectorized_map.graph"]}
    unlimited = sweep_forecast.forecast_sweep(parse_sweep(small), 20 * GIB)
    largest = case_of(parse_sweep(small).comparison({"batch": 1000}))
    peak = forecast.estimate(largest, "vectorized_map.graph").peak_bytes
    limit_mib = int(peak / 1.3) // 2**20
    tight = sweep_forecast.forecast_sweep(parse_sweep({**small, "memory_limit_mib": limit_mib}), 20 * GIB)
    assert not tight.left_out
    assert unlimited.peak_bytes - tight.peak_bytes == peak - limit_mib * 2**20
    short = sweep_forecast.forecast_sweep(parse_sweep({**raw, "budget_s": 10.0}), 20 * GIB)
    assert short.peak_bytes < free.peak_bytes and alone.peak_bytes < free.peak_bytes


def test_the_forecast_of_a_sweep_that_is_continued_is_of_what_is_left():
    request = asked("loop.eager", "batched.graph", axes=batch(1, 10, 1000))
    whole = sweep_forecast.forecast_sweep(request, 64 * GIB)
    rng = np.random.default_rng(0)
    points = costs.points((1, 1000), {"loop.eager": (1e-4, 1e-4), "batched.graph": (1e-4, 1e-6)}, rng)
    rest = sweep_forecast.forecast_sweep(request, 64 * GIB, points)
    only = sweep_forecast.forecast_sweep(asked("loop.eager", "batched.graph", axes=batch(9, 10)), 64 * GIB)
    assert 0 < rest.seconds < only.seconds < whole.seconds and rest.peak_bytes <= whole.peak_bytes
    assert sweep_forecast.forecast_sweep(request, 64 * GIB, [*points, *costs.points((10,), {
        "loop.eager": (1e-4, 1e-4), "batched.graph": (1e-4, 1e-6)}, rng)]).seconds == 0.0  # fmt: skip


def test_points_that_cannot_fit_are_known_beforehand():
    found = parse_sweep({"workload": "outer_product", "axes": batch(10, 1_000_000), "size": {"side": 32}})
    ((at, reason),) = sweep_forecast.forecast_sweep(found, 8 * GIB).skipped
    assert at == {"batch": 1_000_000} and "This cannot fit" in reason and "is the largest that fits" in reason


# --- the map of winners ----------------------------------------------------------------------------------------------


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


# --- the run ---------------------------------------------------------------------------------------------------------


def test_the_verdict_names_the_crossing_the_winner_everywhere_or_the_map():
    line = synthetic.sweep()
    assert line.verdict.startswith("vectorized_map.graph overtakes loop.eager at batch 3 [")
    large = [point for point in line.points if point.at["batch"] >= 10]
    assert sweep_analysis.verdict(replace(line, points=large, crossovers=[])) == (
        "vectorized_map.graph is fastest at every point that was measured."
    )
    undecided = [replace(each, value=None, low=None, high=None, none="they tie") for each in line.crossovers]
    assert sweep_analysis.verdict(replace(line, crossovers=undecided)) == (
        "loop.eager is fastest at batch 1, vectorized_map.graph at batch 1,000; "
        "where one overtakes another is not decided."
    )
    back = [*line.points[:3], replace(line.points[0], at={"batch": 1_000})]
    assert sweep_analysis.verdict(replace(line, points=back, crossovers=undecided)) == (
        "loop.eager is fastest at batch 1 and 1,000, but not everywhere between; "
        "where one overtakes another is not decided."
    )
    assert synthetic.winners().verdict == "vectorized_map.graph leads at 6, loop.eager leads at 3 of 9 points."
    assert sweep_analysis.verdict(replace(line, points=[])).startswith("Nothing was ranked")


def test_a_sweep_that_ends_early_settles_its_points_and_keeps_what_they_have():
    line = synthetic.sweep()
    points = [*line.points[:2], replace(line.points[2], status="running"), Point(at={"batch": 1_000})]
    closed = sweep_analysis.close(replace(line, points=points), "interrupted", "the machine went away", line.created)
    assert [point.status for point in closed.points] == ["complete", "complete", "interrupted", "interrupted"]
    for now, before in zip(closed.points[:2], points[:2], strict=True):
        # Intervals are of the spread over all points, of which there is one less.
        assert [item.replicas for item in now.measurements] == [item.replicas for item in before.measurements]
        assert (now.ranking, now.limit) == (before.ranking, before.limit)
    assert closed.points[2].measurements[1].latency is not None
    assert closed.points[3].reason == "the machine went away" and closed.status == "interrupted"


@pytest.mark.parametrize("run", [synthetic.sweep(), synthetic.winners()], ids=["line", "map"])
def test_a_sweep_leaves_and_comes_in_as_it_is(run: Run, tmp_path: Path):
    data = encode(run)
    kept = Store(tmp_path)
    assert kept.add(imports.read(data)) and encode(kept.load(run.id)) == data
    entry = kept.entries()[0]
    assert "batch 1 to " in entry.size and entry.verdict == run.verdict
    header, *lines = export.table_csv(run).splitlines()
    names = [axis.name for axis in run.axes]
    assert header.split(",")[: len(names)] == names and "strategy" in header
    assert len(lines) == sum(max(1, len(point.measurements)) for point in run.points)
    rounds = [r.rounds for point in run.points for item in point.measurements for r in item.replicas]
    assert len(export.samples_csv(run).splitlines()) == 1 + sum(map(len, rounds))
    for shown in (sweep_table.render(run), export.markdown(run)):
        assert "loop.eager" in shown and run.verdict.split(" ")[0] in shown


def test_a_cost_that_may_be_nothing_is_said_by_its_upper_end():
    assert sweep_table.cost(5e-6, 4e-6, 6e-6) == "5.00 µs [4.00, 6.00]"
    assert sweep_table.cost(5e-6, -1e-6, 6e-6) == "5.00 µs [under 6.00 µs]"
    assert sweep_table.cost(2.6e-14, -1e-7, 1.07e-7) == "under 107 ns"


def test_what_a_table_of_a_sweep_says():
    shown = sweep_table.render(synthetic.sweep())
    assert "122 µs*" in shown and "timeout" in shown and "skipped: This cannot fit" in shown
    assert "vectorized_map.graph overtakes loop.eager at batch" in shown and " a call, and " in shown
    assert "(B)" in sweep_table.render(synthetic.winners()), "what is inferred stands in brackets"


# --- measuring -------------------------------------------------------------------------------------------------------

_SLEEP = """
    import os, time
    n = int(elems.shape[0])
    {hang}
    time.sleep({seconds})
    return fn(elems)
"""
SLEEPERS = {
    # Seconds of a call: the one is overtaken by the other at 6.3.
    "rises": ("0.0001 * n * n", ""),
    "stays": ("0.004", ""),
    "behind": ("0.02", ""),
    "slow": ("0.4", ""),
    "hangs_later": ("0.001", "while n >= 4: time.sleep(0.01)"),
    "waits": ("0.001", "while n >= 4 and not os.path.exists({gate!r}): time.sleep(0.01)"),
}


@pytest.fixture(scope="module", autouse=True)
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file that a strategy waits for; and strategies that take as long as a test wants."""
    folder = tmp_path_factory.mktemp("mappers")
    gate = folder / "open"
    for slug, (seconds, hang) in SLEEPERS.items():
        write_mapper(folder, slug, _SLEEP.format(seconds=seconds, hang=hang.format(gate=str(gate))))
    write_mapper(folder, "dial", _SLEEP.format(seconds="(0.1, 0.02, 0.02, 0.1)[level - 1]", hang=""))
    text = (folder / "dial.py").read_text().replace("map_with_dial(fn, elems)", "map_with_dial(fn, elems, level=1)")
    text = text.replace("Estimate, Mapper", "Estimate, Mapper\nfrom workloads.spec import Option")
    option = 'options=(Option("level", default=1, help="its pace", least=1, most=4),),'
    (folder / "dial.py").write_text(text.replace("MAPPER = Mapper(", f"MAPPER = Mapper({option}"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAPBENCH_MAPPERS", str(folder))
        yield gate


@pytest.fixture
def own(host: HostLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[runner.Runner]:
    monkeypatch.setenv("MAPBENCH_LOCK", str(tmp_path / "measure.lock"))
    with running(host, tmp_path) as running_:
        yield running_


def finished(own: runner.Runner, run_id: str) -> Run:
    assert own.wait(run_id, DEADLINE_S), own.snapshot(run_id)
    snapshot = own.snapshot(run_id)
    assert snapshot is not None and snapshot.state == "finished" and not snapshot.fault, snapshot
    assert own.store.load(run_id) == snapshot.run == imports.read(encode(snapshot.run))
    return snapshot.run


def processes(point: Point, slug: str) -> int:
    return next(len(item.replicas) for item in point.measurements if item.strategy == slug)


def outcome(point: Point, slug: str) -> str:
    return next(item.outcome for item in point.measurements if item.strategy == slug)


@pytest.mark.slow
def test_lines_cross_and_the_crossing_is_refined_where_it_is_and_nowhere_else(own: runner.Runner):
    request = asked("rises.eager", "stays.eager", "behind.eager", axes=batch(1, 4, 16))
    run_id = own.submit_sweep(request)
    seen: list[tuple[int, ...]] = []

    def look() -> bool:
        snapshot = own.snapshot(run_id)
        assert snapshot is not None
        now = tuple(sum(item.latency is not None for item in point.measurements) for point in snapshot.run.points)
        if not seen or seen[-1] != now:
            seen.append(now)
        return snapshot.state == "finished"

    eventually(look, "the sweep has ended")
    run = finished(own, run_id)
    assert (run.status, run.kind) == ("complete", "sweep") and run.environment["cores_granted"]
    assert any(now[:2] == (1, 1) for now in seen), "the first line is seen before the first points are complete"
    by_value = {point.at["batch"]: point for point in run.points}
    assert list(by_value) == sorted(by_value) and {1, 4, 16} <= set(by_value)
    crossover = next(each for each in run.crossovers if each.value is not None)
    assert (crossover.a, crossover.b) == ("rises.eager", "stays.eager")
    assert crossover.low <= 6.6 and crossover.high >= 5.9 and crossover.high / crossover.low < 2
    assert run.verdict.startswith("stays.eager overtakes rises.eager at batch ")
    added = [point for value, point in by_value.items() if value not in (1, 4, 16)]
    assert added and all(4 < point.at["batch"] < 16 for point in added)
    assert all({item.strategy for item in point.measurements} == {"rises.eager", "stays.eager"} for point in added)
    assert all(processes(point, "stays.eager") >= 3 for point in added)
    assert processes(by_value[16], "behind.eager") < PROCESSES
    assert all(point.status == "complete" for point in run.points)
    assert all(item.memory and item.correctness.ok for point in run.points for item in point.measurements)
    first, second = next(item for item in by_value[1].measurements if len(item.replicas) > 1).replicas[:2]
    assert not set(first.rounds) & set(second.rounds), "rounds of an earlier part are others"


@pytest.mark.slow
def test_values_of_an_option_that_lead_are_sampled_together_in_more_processes(host: HostLauncher):
    axes = [{"kind": "option", "name": "level", "values": [1, 2, 3, 4]}]
    run = Sweep("0" * 24, asked("dial.eager", "slow.eager", axes=axes), host, lambda view: None).run()
    by_level = {point.at["level"]: point for point in run.points}
    # Calls of 100, 20, 20 and 100 ms, and one of 0.4 s that is measured at level 1 only.
    assert all(processes(by_level[level], "dial.eager") >= PROCESSES for level in (2, 3))
    assert all(processes(by_level[level], "dial.eager") < PROCESSES for level in (1, 4))
    assert processes(by_level[1], "slow.eager") < PROCESSES
    two, three = (by_level[level].measurements[0].replicas[-1] for level in (2, 3))
    assert two.rounds == three.rounds and len(two.rounds) == ROUNDS
    assert two.rounds[0] > max(by_level[2].measurements[0].replicas[0].rounds)
    assert max(two.at_s[0], three.at_s[0]) < min(two.at_s[-1], three.at_s[-1]), "in turns, not one after the other"
    assert run.status == "complete" and {point.status for point in run.points} == {"complete"}
    assert "; it ties with level " in run.verdict and "; slow.eager takes " in run.verdict
    assert not {"continued"} & {warning.code for warning in run.warnings}


def test_more_processes_go_to_what_ties_over_all_values_and_to_what_is_odd_on_its_line():
    rng = np.random.default_rng(1)
    chunks = {1: 12e-3, 2: 20e-3, 4: 6.6e-3, 8: 5e-3, 16: 5.2e-3, 32: 9e-3}
    axis = Axis(kind="option", name="chunk", values=list(chunks), scale="log")
    points = [
        costs.point(
            n, {f"chunked.graph?chunk={n}": seconds, **({"map_fn.graph": 10e-3} if n == 1 else {})}, rng,
            replicas=1, rounds=3, name="chunk",
        )
        for n, seconds in chunks.items()
    ]  # fmt: skip
    leading = sweep_contenders.leading(points, [axis], Analysis())
    # 6.6 ms, by one process each, is not beyond what the verdict would call a tie with 5 ms.
    assert [(cell.place, cell.slug) for cell in leading[2:]] == [(2, "chunked.graph")]
    assert {cell.place for cell in leading[:2]} == {3, 4}
    [odd] = sweep_contenders.doubtful(points, [axis], Analysis())
    assert (odd.place, odd.slug, odd.processes) == (1, "chunked.graph", 1)
    item = points[3].measurements[0]
    scattered = replace(item, replicas=[replace(item.replicas[0], samples_s=[2e-3, 9e-3, 240e-3])])
    points[3] = replace(points[3], measurements=[scattered])
    assert sweep_contenders.doubtful(points, [axis], Analysis())[0].place == 3, "its interval says nothing"
    rising = [costs.point(n, {"loop.eager": 1e-4 * n}, rng, replicas=1, rounds=3) for n in (1, 2, 4, 8)]
    assert sweep_contenders.doubtful(rising, [costs.axis([1, 2, 4, 8])], Analysis()) == []
    assert sweep_contenders.leading([], [axis], Analysis()) == []


def test_a_point_that_stands_out_from_both_its_neighbours_gets_a_second_opinion(host: HostLauncher):
    rng = np.random.default_rng(0)
    seconds = {1: 4e-3, 2: 4e-3, 4: 9e-3, 8: 4e-3}
    points = [costs.point(n, {"stays.eager": each}, rng, replicas=1, rounds=3) for n, each in seconds.items()]
    run, added = taken_up(host, asked("stays.eager", axes=batch(*seconds)), points)
    assert not added and [processes(point, "stays.eager") for point in run.points] == [1, 1, PROCESSES, 1]
    assert run.points[2].measurements[0].replicas[0] == points[2].measurements[0].replicas[0]


@pytest.mark.slow
def test_what_ran_into_the_time_limit_is_a_result_and_is_not_run_at_larger_points(
    own: runner.Runner, host: HostLauncher, tmp_path: Path
):
    with running(host, tmp_path / "impatient", timeout_floor_s=2.0) as impatient:
        request = asked("hangs_later.eager", "stays.eager", axes=batch(1, 4, 8))
        run = finished(impatient, impatient.submit_sweep(request))
    one, four, eight = run.points
    assert outcome(one, "hangs_later.eager") == "ok" and outcome(four, "hangs_later.eager") == "timeout"
    item = eight.measurements[0]
    assert item.outcome == "not_run"
    assert item.error.message == "not run here: at batch=4 it ran into the time limit already"
    assert [point.ranking[0] for point in (four, eight)] == [["stays.eager"]] * 2 and run.status == "complete"


def test_a_cancelled_sweep_keeps_what_it_has_and_is_continued_from_the_store(
    own: runner.Runner, host: HostLauncher, gate: Path, tmp_path: Path
):
    request = asked("waits.eager", axes=batch(1, 2, 4, 8))
    with running(host, tmp_path / "patient", timeout_floor_s=10 * DEADLINE_S) as patient:
        run_id = patient.submit_sweep(request, owner="me")
        eventually(
            lambda: patient.snapshot(run_id).run.points[2].status == "running", "the third point is being measured"
        )
        with pytest.raises(RequestError, match="is not finished: cancel it"):
            patient.submit_sweep(request, continue_from=run_id)
        patient.cancel(run_id)
        before = finished(patient, run_id)
        assert [point.status for point in before.points] == ["complete", "complete", "cancelled", "cancelled"]
        assert before.status == "cancelled" and before.points[3].reason == "cancelled by a person"
        with pytest.raises(RequestError, match="was asked something else"):
            patient.submit_sweep(asked("waits.eager", axes=batch(1, 2, 4)), continue_from=run_id)
        gate.touch()
        after = finished(patient, patient.submit_sweep(of_run(before), continue_from=run_id))
    assert after.parent == before.id and after.status == "complete"
    for old, new in zip(before.points[:2], after.points[:2], strict=True):
        (known,), (taken,) = old.measurements, new.measurements
        assert (taken.memory, taken.correctness) == (known.memory, known.correctness), "nothing is measured twice"
        assert taken.replicas[: len(known.replicas)] == known.replicas, "more processes may be beside them"
    assert [point.status for point in after.points] == ["complete"] * 4
    elsewhere = replace(before, id="1" * 24, environment={**before.environment, "cpu_model": "Another one"})
    own.store.save(elsewhere)
    with pytest.raises(RequestError, match="cannot be continued here: Processor was Another one"):
        own.submit_sweep(of_run(elsewhere), continue_from=elsewhere.id)
    with pytest.raises(RequestError, match="is not known here"):
        own.submit_sweep(request, continue_from="2" * 24)


def test_what_the_budget_kept_from_being_timed_says_so_and_is_measured_when_continued(host: HostLauncher):
    request = asked("stays.eager", "slow.eager", axes=batch(1, 2))
    error = Error(type=sweep_forecast.OVER_BUDGET, message="the time budget was spent")
    case, views = request.comparison({"batch": 1}), list[View]()
    visit = Visit("0" * 24, case, host, views.append, Dialogues(host), Settings())
    visit.begin(time.monotonic(), {})
    visit.finish("complete", "", error)
    visit.end()
    body = views[-1].run
    assert [(item.outcome, item.error) for item in body.measurements] == [("not_run", error)] * 2
    points = [
        sweep_analysis.settled(Point(at={"batch": 1}, status="complete"), body),
        Point(at={"batch": 2}, status="complete"),
    ]
    run = Run(id="0" * 24, kind="sweep", created="", request=body.request, axes=list(request.axes), points=points)
    assert continuing.taken_over(run, request, {}) == points[1:]


class Counting:
    """A launcher that notes which subjects it starts."""

    def __init__(self, launcher: HostLauncher) -> None:
        self._launcher = launcher
        self.started: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)

    def start(self, spec: Spec, *more: Any) -> int:
        self.started.append((spec.role, spec.name))
        return self._launcher.start(spec, *more)


@pytest.mark.slow
def test_of_a_point_where_some_lacked_time_or_were_cut_short_only_these_are_measured(host: HostLauncher):
    rng = np.random.default_rng(0)
    # Slug → seconds of a call; nobody overtakes anybody.
    seconds = {"stays.eager": 4e-3, "behind.eager": 2e-2, "slow.eager": 0.4, "rises.eager": 1e-3}
    request = asked(*seconds, axes=batch(2, 4))
    memory = Memory(peak_bytes=9, output_bytes=8, temporary_bytes=1, input_bytes=8, captured_bytes=0, method="events")
    over = Error(type=sweep_forecast.OVER_BUDGET, message="not timed here")
    points = []
    for n in (2, 4):
        whole = costs.point(n, seconds, rng, replicas=1, rounds=3)
        stays, behind, slow, rises = (
            replace(item, memory=memory, correctness=Correctness(ok=True)) for item in whole.measurements
        )
        behind = replace(behind, replicas=[replace(each, ended="cancelled") for each in behind.replicas])
        slow = replace(slow, outcome="not_run", error=over, latency=None, replicas=[])
        rises = replace(rises, outcome="not_run", error=over, latency=None, replicas=[], memory=None, correctness=None)
        points.append(replace(whole, measurements=[stays, behind, slow, rises]))
    broken = replace(points[1].measurements[0], outcome="failed", error=Error(type="E", message="it broke"))
    points[1] = replace(points[1], status="cancelled", measurements=[broken, *points[1].measurements[1:]])
    before = Run(
        id="0" * 24, kind="sweep", created="", status="cancelled", request=request.base.record(),
        axes=list(request.axes), points=points,
    )  # fmt: skip
    taken = continuing.taken_over(before, request, {})
    launcher = Counting(host)
    run = Sweep("1" * 24, request, launcher, lambda view: None, taken=taken).run()
    assert (run.status, [point.status for point in run.points]) == ("complete", ["complete"] * 2)
    one, two = run.points
    assert [name for role, name in launcher.started if role == "memory"] == ["rises.eager"] * 2
    timed = [name for role, name in launcher.started if role == "timing"]
    assert sorted(timed) == sorted(["behind.eager", "slow.eager", "rises.eager"] * 2)
    assert one.measurements[0].replicas == points[0].measurements[0].replicas
    assert (two.measurements[0].outcome, two.measurements[0].error) == ("failed", broken.error)
    assert all(item.latency is not None for point in run.points for item in point.measurements)
    assert one.measurements[2].memory == memory and one.measurements[3].memory.peak_bytes != memory.peak_bytes
    assert [slug for group in one.ranking for slug in group] == ["rises.eager", "stays.eager", "behind.eager",
                                                                 "slow.eager"]  # fmt: skip
    assert "continued" in {warning.code for warning in run.warnings}


def test_what_is_taken_over_is_kept_where_the_sweep_is_cancelled_again_before_it_comes_there(host: HostLauncher):
    request = asked("stays.eager", "slow.eager", axes=batch(2, 4))
    memory = Memory(peak_bytes=9, output_bytes=8, temporary_bytes=1, input_bytes=8, captured_bytes=0, method="events")
    whole = costs.point(4, {"stays.eager": 4e-3, "slow.eager": 0.4}, np.random.default_rng(0), replicas=1, rounds=3)
    stays, slow = (replace(item, memory=memory, correctness=Correctness(ok=True)) for item in whole.measurements)
    part = replace(whole, status="waiting", ranking=[], measurements=[stays, replace(slow, latency=None, replicas=[])])
    sweep = Sweep("0" * 24, request, host, lambda view: None, taken=[part])
    sweep.cancel()
    point = sweep.run().points[1]
    assert point.status == "cancelled" and point.measurements[0].latency is not None
    assert [item.outcome for item in point.measurements] == ["ok", "cancelled"]
    assert point.measurements[1].memory == memory


class LeftOpen:
    """A runner that a command does not close: there is another one after it."""

    def __init__(self, own: runner.Runner) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def close(self) -> None:
        pass


@pytest.mark.slow
def test_a_sweep_of_a_file_of_ones_own_is_continued_with_the_file_and_only_as_long_as_its_code_is_the_same(
    own: runner.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("measure.runner.Runner", lambda name: LeftOpen(own))
    monkeypatch.setattr("measure.output.export_command.kept", lambda run_id: own.store.load(run_id))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setenv("MAPBENCH_WORKLOADS", "")  # the command adds the file to these
    file = tmp_path / "cube.py"
    file.write_text(CUBE)

    def sweep(*arguments: str) -> tuple[int, str]:
        status = command.main(["sweep", *arguments, "--json", str(tmp_path / "run.json")])
        return status, capsys.readouterr().err

    status, _ = sweep("--workload-file", str(file), "--size", "batch=2:8:2", "--strategies", "loop.eager")
    assert status == command.MEASURED
    run = decode((tmp_path / "run.json").read_bytes())
    one, two = run.points
    cut = replace(run, id="c" * 24, status="cancelled", points=[one, Point(at=two.at, status="cancelled")])
    own.store.save(cut)
    monkeypatch.setenv("MAPBENCH_WORKLOADS", "")
    status, said = sweep("--continue", cut.id)
    assert status == command.INVALID and "cube" in said and "--workload-file" in said
    status, said = sweep("--continue", cut.id, "--workload-file", str(file))
    assert status == command.MEASURED, said
    left = sweep_forecast.forecast_sweep(of_run(cut), environment.available_memory(), [one])
    assert f"forecast: about {text.seconds(left.seconds)}, " in said, "of what is left"
    after = decode((tmp_path / "run.json").read_bytes())
    assert after.parent == cut.id and [point.status for point in after.points] == ["complete", "complete"]
    # What is said of it borrows from the others; what was measured stays.
    (kept,), (before,) = after.points[0].measurements, one.measurements
    assert (kept.replicas, kept.memory, kept.correctness) == (before.replicas, before.memory, before.correctness)
    file.write_text(CUBE.replace("x**3", "x * x * x").replace("x ** 3", "x * x * x"))
    status, said = sweep("--continue", cut.id, "--workload-file", str(file))
    assert status == command.INVALID and "the code of loop.eager for cube has changed since it was measured" in said
    other = tmp_path / "other.py"
    other.write_text(CUBE.replace('slug="cube"', 'slug="another"'))
    status, said = sweep("--continue", cut.id, "--workload-file", str(other))
    assert status == command.INVALID and "is of the workload 'cube', not of 'another'" in said


def taken_up(host: HostLauncher, request: SweepRequest, points: list[Point]) -> tuple[Run, list[Point]]:
    """A sweep all of whose grid was measured before, and the points that it adds."""
    run = Sweep("0" * 24, request, host, lambda view: None, taken=points).run()
    asked_for = {sweep_forecast.key(at) for at in request.points()}
    return run, [point for point in run.points if sweep_forecast.key(point.at) not in asked_for]


@pytest.mark.slow
def test_a_sweep_that_was_cancelled_while_it_refined_goes_on_with_that(host: HostLauncher):
    rng = np.random.default_rng(0)
    points = [
        costs.point(n, {"rises.eager": seconds, "stays.eager": 4e-3}, rng, replicas=1, rounds=3)
        for n, seconds in ((4, 1.6e-3), (16, 25.6e-3))
    ]
    run, added = taken_up(host, asked("rises.eager", "stays.eager", axes=batch(4, 16)), points)
    assert added and all(4 < point.at["batch"] < 16 and processes(point, "stays.eager") >= 3 for point in added)
    assert run.status == "complete" and "and crossings are refined" in run.stop_reason
    for before, after in zip(points, (run.points[0], run.points[-1]), strict=True):
        for old, new in zip(before.measurements, after.measurements, strict=True):
            assert new.replicas[0] == old.replicas[0] and len(new.replicas) == PROCESSES, "more beside what there was"
            assert not {n for each in new.replicas[1:] for n in each.rounds} & set(old.replicas[0].rounds)
            assert (new.memory, new.correctness) == (old.memory, old.correctness)
        assert "continued" in {each.code for each in after.warnings}


@pytest.mark.slow
def test_of_a_crossing_with_a_line_that_a_swept_option_does_not_concern_the_other_is_refined(host: HostLauncher):
    rng = np.random.default_rng(0)
    axis = {"kind": "option", "name": "chunk", "values": [1, 3]}
    points = [
        costs.point(1, {"chunked.graph": 9e-3, "batched.graph": 3e-3}, rng, name="chunk"),
        costs.point(3, {"chunked.graph": 1e-3}, rng, name="chunk"),
    ]
    points = [
        replace(point, measurements=[
            replace(item, options=point.at if item.mapper == "chunked" else {}) for item in point.measurements
        ])
        for point in points
    ]  # fmt: skip
    request = asked("chunked.graph", "batched.graph", axes=[axis], size={"batch": 8})
    _, [between] = taken_up(host, request, points)
    assert between.at == {"chunk": 2} and [item.strategy for item in between.measurements] == ["chunked.graph"]


def test_a_sweep_that_runs_out_of_time_says_which_points_it_has_not_reached(own: runner.Runner):
    run = finished(own, own.submit_sweep(asked("slow.eager", axes=batch(1, 2, 3, 4, 5, 6), budget_s=2.0)))
    statuses = [point.status for point in run.points]
    assert run.status == "budget" and statuses[-1] == "budget" and run.points[0].measurements[0].latency is not None
    assert "continue the sweep" in run.points[-1].reason and "of the points" in run.stop_reason


def test_a_point_that_cannot_fit_is_marked_and_not_run(own: runner.Runner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("measure.machine.environment.available_memory", lambda *_: GIB)
    run = finished(own, own.submit_sweep(asked("batched.eager", axes=batch(1, 4, 100_000_000))))
    assert [point.status for point in run.points] == ["complete", "complete", "skipped"]
    assert run.points[2].reason.startswith("This cannot fit") and not run.points[2].measurements
    with pytest.raises(RequestError, match="This cannot fit"):
        own.submit_sweep(asked("batched.eager", axes=batch(90_000_000, 100_000_000)))


@pytest.mark.slow
def test_a_swept_option_is_one_line_and_strategies_without_it_have_one_point(own: runner.Runner):
    axes = [{"kind": "option", "name": "chunk", "values": [1, 4]}]
    run = finished(own, own.submit_sweep(asked("chunked.graph", "batched.eager", axes=axes, size={"batch": 8})))
    assert [[item.strategy for item in point.measurements] for point in run.points] == [
        ["chunked.graph", "batched.eager"],
        ["chunked.graph"],
    ]
    assert [point.measurements[0].options for point in run.points] == [{"chunk": 1}, {"chunk": 4}]
    assert run.verdict.startswith("batched.eager is fastest: ") and "; chunked.graph with chunk " in run.verdict
    assert run.verdict.endswith("] as long.")


@pytest.mark.slow
def test_a_map_fills_from_its_corners_and_infers_what_lies_between(own: runner.Runner):
    raw = {"workload": "outer_product", "strategies": ["batched.eager", "loop.eager"], "budget_s": 300.0}
    axes = [{"name": "batch", "values": [8, 16, 32, 64]}, {"name": "side", "values": [2, 3, 4, 5]}]
    run = finished(own, own.submit_sweep(parse_sweep({**raw, "axes": axes})))
    measured = [point for point in run.points if point.measurements]
    inferred = [point for point in run.points if not point.measurements]
    assert len(measured) == 5 and len(inferred) == 11, "one winner everywhere: corners and the middle"
    for point in inferred:
        assert point.status == "skipped" and point.ranking == [["batched.eager"]]
        assert point.reason == "inferred: all around it batched.eager wins" and "inferred" in point.verdict
    corners = {(8, 2), (8, 5), (64, 2), (64, 5)}
    assert corners <= {tuple(point.at.values()) for point in measured}


@pytest.mark.slow
@pytest.mark.parametrize(("doubted_within", "processes"), [(1e9, 2), (1.0, 1)])
def test_no_cell_of_a_map_is_won_by_one_process_of_what_may_lead(
    host: HostLauncher, monkeypatch: pytest.MonkeyPatch, doubted_within: float, processes: int
):
    monkeypatch.setattr(Visit, "contenders", lambda visit: [])  # what ties gets more processes anyway
    strategies = ["batched.eager", "batched.graph", "loop.eager"]
    axes = [{"name": "batch", "values": [64, 128]}, {"name": "side", "values": [2, 3]}]
    asked = parse_sweep({"workload": "outer_product", "strategies": strategies, "budget_s": 300.0, "axes": axes})
    settings = Settings(rules=changed(QUICK, doubted_within=doubted_within), probes=False, process_peaks_s=0.0)
    views = list[View]()
    Sweep("0" * 24, asked, host, views.append, settings=settings).run()
    measured = [item for point in views[-1].run.points for item in point.measurements]
    assert len(measured) == 4 * 3 and {len(item.replicas) for item in measured} == {processes}


def test_a_map_shows_itself_filling(host: HostLauncher):
    raw = {"workload": "outer_product", "strategies": ["batched.eager", "loop.eager"], "budget_s": 300.0}
    axes = [{"name": "batch", "values": [8, 16, 32, 64]}, {"name": "side", "values": [2, 3, 4, 5]}]
    views = list[View]()
    settings = Settings(rules=QUICK, probes=False, process_peaks_s=0.0)
    Sweep("0" * 24, parse_sweep({**raw, "axes": axes}), host, views.append, settings=settings).run()
    shown = list(dict.fromkeys(tuple(point.status for point in view.run.points) for view in views))
    done = [statuses.count("complete") for statuses in shown]
    assert done == sorted(done) and set(done) == {0, 1, 2, 3, 4, 5}, "each cell is seen as soon as it is measured"
    assert all(statuses.count("running") <= 1 for statuses in shown)
    first = next(statuses for statuses in shown if "complete" in statuses)
    assert first[0] == "complete" and first.count("waiting") == 15, "nothing is inferred yet"
    inferred = [statuses.count("skipped") for statuses in shown]
    assert set(range(12)) <= set(inferred) and max(done[:inferred.index(1)]) == 5  # fmt: skip


def test_the_command_measures_a_sweep_and_writes_it(
    own: runner.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("measure.runner.Runner", lambda name: own)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    file = tmp_path / "sweep.json"
    arguments = ["--size", "batch=2:8:2", "--strategies", "batched.eager,hangs_at_no_size.eager", "--json", str(file)]
    assert command.main(["sweep", "square", *arguments]) == command.INVALID
    arguments[3] = "batched.eager"
    assert command.main(["sweep", "square", *arguments]) == command.MEASURED
    run = decode(file.read_bytes())
    said = capsys.readouterr()
    assert run.kind == "sweep" and [point.at for point in run.points] == [{"batch": 2}, {"batch": 8}]
    assert "batched.eager is fastest at every point that was measured." in said.out and "batch=8: " in said.err
    assert said.err.index("forecast: about ") < said.err.index("batch=8: ")


def test_the_command_sweeps_an_option_whose_default_is_among_its_values(
    own: runner.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("measure.runner.Runner", lambda name: own)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    file = tmp_path / "sweep.json"
    arguments = ["--size", "batch=8", "--option", "parallel_iterations=1,10,32", "--json", str(file)]
    chosen = ["--strategies", "map_fn.graph,batched.eager"]
    assert command.main(["sweep", "square", *chosen, *arguments]) == command.MEASURED
    run, said = decode(file.read_bytes()), capsys.readouterr()
    assert [(axis.kind, axis.name, axis.values) for axis in run.axes] == [
        ("option", "parallel_iterations", [1, 10, 32])
    ]
    of_map_fn = [point.measurements[0] for point in run.points]
    assert [item.options for item in of_map_fn] == [{"parallel_iterations": 1}, {}, {"parallel_iterations": 32}]
    assert ["parallel_iterations=1" in item.code.source for item in of_map_fn] == [True, False, False]
    assert [len(point.measurements) for point in run.points] == [2, 1, 1], "what does not have it is measured once"
    assert run.verdict.startswith("batched.eager is fastest: ") and run.verdict in said.out
    assert "; map_fn.graph with parallel_iterations " in run.verdict
    again = ["--option", "parallel_iterations=1,10", "--strategies", "batched.eager"]
    assert command.main(["sweep", "square", *again]) == command.INVALID
    assert "no chosen strategy has an option 'parallel_iterations'" in capsys.readouterr().err


def test_a_point_of_which_all_is_over_budget_says_so_and_can_be_continued(
    host: HostLauncher, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("measure.sweep.forecast._DEAR", 0.0)
    monkeypatch.setattr("measure.sweep.forecast.GRID_SHARE", 1 / 300)
    request = asked("stays.eager", axes=batch(1, 2, 3))
    plan = sweep_forecast.plan(request, GIB)
    assert [sorted(each) for each in plan.left_out.values()] == [[], [], ["stays.eager"]]
    launcher = Counting(host)
    run = Sweep("0" * 24, request, launcher, lambda view: None).run()
    [item] = run.points[2].measurements
    assert item.outcome == "not_run" and item.error.type == sweep_forecast.OVER_BUDGET
    assert continuing.is_open(run) and len([name for role, name in launcher.started if role == "memory"]) <= 2
    assert [point.at for point in continuing.points_kept(run, request)] == [{"batch": 1}, {"batch": 2}]


def test_a_fault_of_our_own_settles_the_points_of_a_sweep(own: runner.Runner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("measure.sweep.sweep.Sweep.run", lambda self: 1 / 0)
    run_id = own.submit_sweep(asked("stays.eager", axes=batch(1, 2)))
    assert own.wait(run_id, DEADLINE_S)
    run = own.snapshot(run_id).run
    assert own.snapshot(run_id).fault and [point.status for point in run.points] == ["interrupted"] * 2


def test_a_sweep_that_waits_in_the_queue_can_be_cancelled(own: runner.Runner):
    first = own.submit_sweep(asked("slow.eager", axes=batch(1, 2, 3)))
    second = own.submit_sweep(asked("stays.eager", axes=batch(1, 2)))
    assert own.queue() == (first, second)
    own.cancel(second)
    run = finished(own, second)
    assert run.status == "cancelled" and {point.status for point in run.points} == {"cancelled"}
    own.cancel(first)
    assert finished(own, first).status == "cancelled"


def test_a_sweep_that_ends_before_it_begins_removes_nothing(
    host: HostLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "precious").touch()
    monkeypatch.chdir(folder)
    sweep = Sweep("0" * 24, asked("stays.eager", axes=batch(1, 2)), host, lambda view: None)
    sweep.cancel()
    assert sweep.run().status == "cancelled"
    assert (folder / "precious").exists(), "what has not been made is not removed"


def test_what_the_budget_left_out_can_be_continued_though_every_point_is_measured():
    run = replace(synthetic.sweep(), status="complete")
    assert not continuing.is_open(run) and continuing.is_open(replace(run, status="cancelled"))
    error = Error(type=sweep_forecast.OVER_BUDGET, message="not timed here")
    first = run.points[0]
    short = replace(first, measurements=[replace(first.measurements[0], error=error), *first.measurements[1:]])
    assert continuing.is_open(replace(run, points=[short, *run.points[1:]]))
