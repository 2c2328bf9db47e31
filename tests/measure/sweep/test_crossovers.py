"""Crossovers: exact without noise, right about how often they are right with it, and honest where there is none."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from measure.model.run import Analysis, Axis, Crossover, Point, RequestRecord, Run
from measure.output import sweep_table
from measure.sweep import findings
from measure.sweep.crossovers import crossovers
from measure.sweep.evidence import evidence, point_levels
from tests import costs, synthetic
from views.charts import sweep_front

GRID = (1, 4, 16, 64, 256, 1024, 4096)
QUIET = costs.QUIET
A, B = "loop.eager", "vectorized_map.graph"


def sweep_run(axis: Axis, points: list[Point]) -> Run:
    request = RequestRecord(
        workload="w", size={"batch": 1}, dtype="float32", device="CPU:0", strategies=[], budget_s=1.0
    )
    return Run(id="0" * 24, kind="sweep", created="", request=request, axes=[axis], points=points)


def crossings_in(points: list[Point], values: tuple[int, ...] | None = None) -> list[Crossover]:
    axis = costs.axis(values or [point.at["batch"] for point in points])
    return crossovers(evidence(points, [axis]), Analysis())


def quiet(latencies: dict[str, tuple[float, float]], grid: tuple[int, ...] = GRID) -> list[Point]:
    return costs.points(grid, latencies, np.random.default_rng(0), QUIET)


def test_of_costs_without_noise_the_crossing_is_exact() -> None:
    [crossing] = crossings_in(quiet({A: (1e-5, 3e-5), B: (1.6e-4, 5e-6)}))
    assert (crossing.a, crossing.b, crossing.axis, crossing.none) == (A, B, "batch", None)
    assert crossing.value == pytest.approx(6.0, rel=1e-3)
    assert crossing.low is not None and crossing.high is not None
    assert crossing.low <= 6.001 and crossing.high >= 5.999
    # What is left is what the grid does not know: how latencies run between 4 and 16.
    assert crossing.high / crossing.low < 1.3


def test_costs_that_are_straight_on_logarithmic_axes_only_are_covered_too() -> None:
    """√n is no a + b·n: between 1 and 1 024 a straight line would have it cross far from 100."""
    rng = np.random.default_rng(0)
    points = [costs.point(value, {A: 1e-4 * value**0.5, B: 1e-3}, rng, QUIET) for value in (1, 1024)]
    [crossing] = crossings_in(points)
    assert crossing.low is not None and crossing.high is not None
    assert crossing.low <= 100.1 and crossing.high >= 99.9


def test_points_next_to_each_other_leave_only_the_step_between_them() -> None:
    [crossing] = crossings_in(quiet({A: (1e-5, 3e-5), B: (1.7e-4, 5e-6)}, (1, 6, 7, 100)))
    assert crossing.low is not None and crossing.high is not None
    assert 6 < crossing.low <= 6.401 <= crossing.high < 7


def crossing_lines(rng: np.random.Generator) -> tuple[float, dict[str, tuple[float, float]]]:
    """A size, and the costs of two lines that cross there."""
    true = 10 ** rng.uniform(0.4, 3.2)
    fixed, steep = 10 ** rng.uniform(-5, -4), 10 ** rng.uniform(-6.5, -4)
    flat = steep * 10 ** rng.uniform(-3, -0.2)
    return true, {A: (fixed, steep), B: (fixed + (steep - flat) * true, flat)}


def intervals_of(points: list[Point]) -> list[tuple[float, float]]:
    """Intervals of the sizes at which the two lines cross."""
    return [
        (crossing.low, crossing.high)
        for crossing in crossings_in(points)
        if {crossing.a, crossing.b} == {A, B} and crossing.low is not None and crossing.high is not None
    ]


def test_intervals_contain_the_true_size_as_often_as_they_say_and_refining_narrows_them() -> None:
    """Pairs with a known crossing, before and after points are added inside the interval."""
    count = 100
    held: list[bool] = []
    refined: list[bool] = []
    widths: list[float] = []
    narrower: list[float] = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        true, latencies = crossing_lines(rng)
        latencies["map_fn.graph"] = (1e-3, 2 * latencies[A][1])
        model = costs.MODELS[seed % len(costs.MODELS)]
        points = costs.points(GRID, latencies, rng, model)
        if first := intervals_of(points):
            held.append(any(low <= true <= high for low, high in first))
            low, high = first[0]
            widths.append(high / low)
            inside = {math.floor(low), round(math.sqrt(low * high)), math.ceil(high)} - {0, *GRID}
            points += costs.points(inside, latencies, rng, model)
            if again := intervals_of(points):
                refined.append(any(low <= true <= high for low, high in again))
                narrower.append(again[0][1] / again[0][0])
    # Some cross at so small an angle that the grid does not tell on which side who is faster.
    assert len(refined) >= 0.92 * count
    # Of 95 %, fewer are seen in one of two hundred cases.
    assert sum(held) >= 0.89 * len(held)
    assert sum(refined) >= 0.89 * len(refined)
    assert np.median(widths) < 1.25
    assert np.median(narrower) < np.median(widths)


def test_intervals_are_right_with_one_process_far_from_a_crossing_and_more_beside_it() -> None:
    held: list[bool] = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        true, latencies = crossing_lines(rng)
        below = max(value for value in GRID if value <= true)
        beside = (below, GRID[GRID.index(below) + 1])
        points = [
            costs.point(
                value, {slug: fixed + each * value for slug, (fixed, each) in latencies.items()}, rng,
                costs.MODELS[seed % len(costs.MODELS)], processes=3 if value in beside else 1,
            )
            for value in GRID
        ]  # fmt: skip
        if crossings := intervals_of(points):
            held.append(any(low <= true <= high for low, high in crossings))
    assert len(held) >= 85
    assert sum(held) >= 0.89 * len(held)


def test_an_interval_follows_the_spread_between_processes() -> None:
    latencies = {A: (1e-5, 3e-5), B: (1.6e-3, 5e-6)}
    widths = []
    for process in (0.01, 0.1):
        [crossing] = crossings_in(
            costs.points(GRID, latencies, np.random.default_rng(1), costs.Model(process=process, disturbed_share=0.0))
        )
        assert crossing.low is not None and crossing.high is not None
        widths.append(math.log(crossing.high / crossing.low))
    assert widths[1] > 3 * widths[0]


def test_one_odd_process_widens_its_own_interval_and_not_those_of_others() -> None:
    rng = np.random.default_rng(0)
    points = [costs.point(value, {A: 1e-3, B: 1e-3}, rng, QUIET, processes=2 if value == 16 else 1) for value in GRID]
    odd, other = points[2].measurements
    slow = replace(odd.replicas[1], samples_s=[2 * each for each in odd.replicas[1].samples_s])
    points[2] = replace(points[2], measurements=[replace(odd, replicas=[odd.replicas[0], slow]), other])
    levels = point_levels(points)
    low, high = levels[2].by_slug[A].interval(0.95)
    assert high / low > 2
    far = [levels[place].by_slug[A].interval(0.95) for place in (0, 1, 3, 4, 5, 6)]
    assert all(high / low < 1.5 for low, high in far)


def test_one_that_is_always_faster_is_said_to_be() -> None:
    points = quiet({A: (1e-4, 3e-5), B: (9e-5, 5e-6)})
    leading = [Point(at=each.at, measurements=each.measurements, ranking=[[A, B]]) for each in points]
    [crossing] = crossings_in(leading)
    assert (crossing.a, crossing.b, crossing.value) == (B, A, None)
    assert crossing.none == f"{B} is faster throughout the range"


def test_one_that_was_not_measured_everywhere_is_compared_where_it_was() -> None:
    points = quiet({A: (1e-4, 3e-5), B: (9e-5, 5e-6)})
    cut = [
        Point(at=each.at, measurements=each.measurements[: None if each.at["batch"] < 300 else 1], ranking=[[A, B]])
        for each in points
    ]
    [crossing] = crossings_in(cut)
    assert crossing.none == f"{B} is faster from batch 1 to 256, where both were measured"


def test_two_that_cannot_be_told_apart_tie() -> None:
    points = costs.points(GRID, {A: (1e-4, 3e-5), B: (1e-4, 3e-5)}, np.random.default_rng(3))
    leading = [Point(at=each.at, measurements=each.measurements, ranking=[[A, B]]) for each in points]
    [crossing] = crossings_in(leading)
    assert crossing.none == "they tie throughout the range"


def test_those_that_never_lead_have_no_crossovers() -> None:
    points = quiet({A: (1e-5, 1e-6), B: (1e-3, 1e-3), "map_fn.graph": (2e-3, 1e-6)})
    assert crossings_in(points) == []


def test_a_pair_that_changes_its_order_twice_has_two_crossovers() -> None:
    rng = np.random.default_rng(0)
    points = [
        costs.point(value, {A: 1e-3 * value, B: 1e-3 * value * factor}, rng, QUIET)
        for value, factor in ((1, 2.0), (10, 0.5), (100, 2.0))
    ]
    first, second = crossings_in(points)
    assert (first.a, first.b, second.a, second.b) == (A, B, B, A)
    assert first.high < second.low


def test_over_a_swept_option_a_strategy_that_does_not_have_it_is_a_level() -> None:
    rng = np.random.default_rng(0)
    axis = Axis(kind="option", name="chunk", values=[1, 4, 16, 64], scale="log")
    points = []
    for value in axis.values:
        latencies = {f"chunked.graph?chunk={value}": 1e-3 * (1 + 8 / value)}
        if value == 1:
            latencies["map_fn.graph"] = 3e-3
        points.append(costs.point(value, latencies, rng, QUIET, name="chunk"))
    [crossing] = crossovers(evidence(points, [axis]), Analysis())
    assert (crossing.a, crossing.b, crossing.axis) == ("map_fn.graph", "chunked.graph", "chunk")
    assert crossing.low is not None and crossing.high is not None
    # 1 + 8/chunk = 3 at 4, where they are equal.
    assert 1 < crossing.low <= 4.0 <= crossing.high < 16


def test_one_that_a_swept_option_does_not_concern_leads_where_its_level_does() -> None:
    """At 64 only ``chunked`` was measured, and comes first of one; `map_fn`'s level from 1 is lower still."""
    rng = np.random.default_rng(0)
    axis = Axis(kind="option", name="chunk", values=[1, 64], scale="log")
    points = [
        costs.point(1, {"chunked.graph?chunk=1": 2e-3, "map_fn.graph": 3e-3}, rng, QUIET, name="chunk"),
        costs.point(64, {"chunked.graph?chunk=64": 9e-3}, rng, QUIET, name="chunk"),
    ]
    [crossing] = crossovers(evidence(points, [axis]), Analysis())
    assert (crossing.a, crossing.b) == ("chunked.graph", "map_fn.graph")
    verdict = findings.verdict(sweep_run(axis, points))
    assert verdict.startswith("chunked.graph is fastest with chunk 1: 2.00 ms [")
    assert "; map_fn.graph takes 1.50 × [" in verdict and verdict.endswith("] as long.")


def dial(latencies: dict[int, float], default: int, model: costs.Model = QUIET, **flat: float) -> Run:
    """A sweep of `map_fn`'s option, whose default stands in no slug; ``flat`` strategies do not have it."""
    rng, values = np.random.default_rng(4), sorted(latencies)
    axis = Axis(kind="option", name="parallel_iterations", values=values, scale="log")
    points = []
    for value in values:
        others = {f"{mapper}.graph": seconds for mapper, seconds in flat.items()} if value == values[0] else {}
        point = costs.point(value, {"map_fn.graph": latencies[value], **others}, rng, model, name=axis.name)
        points.append(replace(point, measurements=[
            replace(item, options={axis.name: value} if item.mapper == "map_fn" and value != default else {})
            for item in point.measurements
        ]))  # fmt: skip
    return sweep_run(axis, points)


def test_the_best_value_is_named_though_it_is_the_default_which_stands_in_no_slug() -> None:
    verdict = findings.verdict(dial({1: 3e-3, 10: 1e-3, 32: 2e-3}, default=10))
    assert verdict.startswith("map_fn.graph is fastest with parallel_iterations 10: 1.00 ms [")
    assert "; map_fn.graph with parallel_iterations 32 takes 2.00 × [" in verdict, "the next value, if nobody else is"


def test_values_of_an_option_that_cannot_be_told_apart_tie_and_so_do_other_strategies() -> None:
    noisy = costs.Model(process=0.05, sample=0.02, disturbed_share=0.0)
    run = dial({1: 3e-3, 10: 1e-3, 32: 1.01e-3}, 10, noisy, vectorized_map=1.02e-3, batched=2e-3)
    verdict = findings.verdict(run)
    # In the order of their latencies, and nobody as the one that is fastest.
    tied, _, behind = verdict.partition(" tie: ")
    names = {"map_fn.graph with parallel_iterations 10 and 32", "vectorized_map.graph"}
    assert names in ({tied.removesuffix(f" and {last}"), last} for last in names) and "fastest" not in verdict
    assert "ms; batched.graph takes " in behind and behind.endswith("] as long."), verdict
    # What the sentence sets apart, the crossovers do not call a tie.
    sides = {each.none for each in crossovers(evidence(run.points, run.axes), run.analysis)}
    assert sides and all("they tie" in (each or "") or "ties at" in (each or "") for each in sides), sides
    some = dial(dict.fromkeys((1, 2, 4, 8, 16, 32), 1e-3), 10, noisy)
    assert " with parallel_iterations 1, 2, 4, 8, 16 and 32, which tie: " in findings.verdict(some)
    assert " values)" not in findings.verdict(some), "where values between may not tie, all are named"
    assert "(12 values), which tie" in findings.verdict(dial(dict.fromkeys(range(1, 13), 1e-3), 10, noisy))


def test_of_ties_and_of_places_where_one_is_faster_the_shorter_list_is_named() -> None:
    rng = np.random.default_rng(0)
    noisy = costs.Model(process=0.03, disturbed_share=0.0)
    points = []
    for value in GRID:
        factor = 3.0 if value in (1, 4096) else 1.0
        point = costs.point(value, {A: 1e-3 * factor, B: 1e-3}, rng, noisy)
        points.append(replace(point, ranking=[[A, B]]))
    [crossing] = crossings_in(points)
    assert crossing.none == f"{B} is faster at batch 1, 4,096; otherwise they tie throughout the range"


def test_a_point_between_those_of_the_grid_does_not_say_who_leads() -> None:
    """It holds the pair that crosses there, and not the strategy that leads."""
    rng = np.random.default_rng(0)
    pair = {A: (1e-3, 3e-5), B: (1.1e-3, 5e-6)}
    points = costs.points((1, 16), {**pair, "map_fn.graph": (1e-5, 1e-6)}, rng, QUIET)
    between = costs.points((4,), pair, rng, QUIET)
    run = findings.analyse(sweep_run(costs.axis((1, 16)), [points[0], *between, points[1]]))
    assert run.verdict == "map_fn.graph is fastest at every point that was measured."
    cells = {name: cells for name, *cells in sweep_table.latencies(run)}
    assert [cell.endswith("*") for cell in cells["map_fn.graph"]] == [True, False, True]
    assert not any(cell.endswith("*") for cell in (*cells[A], *cells[B]))
    known = replace(synthetic.sweep(), axes=[costs.axis((1, 100))])
    assert [known.points[index].at["batch"] for index in sweep_front.offered(known)] == [1, 100]


def test_a_map_has_no_crossovers() -> None:
    axis = costs.axis(GRID)
    assert crossovers(evidence(quiet({A: (1e-5, 3e-5), B: (1.6e-4, 5e-6)}), [axis, axis]), Analysis()) == []
