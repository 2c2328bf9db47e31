"""The forecast of a sweep, and what of it is left out beforehand."""

import numpy as np

from measure.model import forecast
from measure.model.request import case_of
from measure.sweep import needs
from measure.sweep.omissions import OVER_BUDGET
from measure.sweep.request import parse_sweep
from tests import costs
from tests.measure.sweep.common import GIB, asked, batch


def test_the_budget_is_shared_so_that_every_point_gets_its_minimum():
    request = asked("loop.eager", "batched.graph", axes=[{"name": "batch", "range": "1:1000000"}], budget_s=30.0)
    plan = needs.plan(request, 64 * GIB)
    left_out = {at: sorted(reasons) for at, reasons in plan.left_out.items() if reasons}
    largest = needs.key({"batch": 1_000_000})
    assert left_out[largest] == ["loop.eager"], "what takes longest is left out"
    assert "of the sweep's 30 s" in plan.left_out[largest]["loop.eager"].message
    [said] = plan.forecast.strategies_left_out()
    assert said.startswith("loop.eager is not run at batch ") and ", batch 1,000,000: it would take about " in said
    many = needs.SweepForecast(1.0, 1, [], [({"batch": n}, "loop.eager", "too long") for n in range(1, 7)])
    assert many.strategies_left_out() == ["loop.eager is not run at 6 points, the first of them batch 1: too long"]
    assert needs.key({"batch": 1}) not in left_out
    assert all("batched.graph" not in slugs for slugs in left_out.values()), "no point is left empty"
    assert plan.forecast.seconds <= 30.0
    others = {needs.key(at) for at in request.points()} - {largest}
    alone = needs.plan(request, 64 * GIB, dict.fromkeys(others, request.base.strategies))
    assert alone.left_out.keys() == {largest} and alone.forecast.seconds <= plan.forecast.seconds
    rest = needs.plan(request, 64 * GIB, {largest: ["batched.graph"]})
    assert sorted(rest.left_out[largest]) == ["loop.eager"], "a point that has a strategy by now is not empty"
    generous = needs.plan(asked("loop.eager", "batched.graph", axes=batch(1, 1000), budget_s=3600.0), 64 * GIB)
    assert not any(generous.left_out.values()) and 0 < generous.forecast.seconds < 60


def test_a_dear_last_strategy_of_a_point_goes_before_cheaper_points_of_its_line():
    """The quickest one at 100 000, where nothing else fits, would take more than half of the budget."""
    request = parse_sweep(
        {"workload": "outer_reduce", "size": {"side": 16}, "strategies": ["map_fn.graph", "vectorized_map.graph"],
         "axes": [{"name": "batch", "range": "1:100000"}], "memory_limit_mib": 500, "budget_s": 30.0}
    )  # fmt: skip
    plan = needs.plan(request, 20 * GIB)
    over = [
        dict(at)["batch"]
        for at, each in plan.left_out.items()
        if each.get("map_fn.graph") is not None and each["map_fn.graph"].type == OVER_BUDGET
    ]
    values = [at["batch"] for at in request.points()]
    assert over and over == values[-len(over):], "no hole in the middle of a line"  # fmt: skip
    assert plan.forecast.seconds <= 30.0
    costs = {(("n", n),): {"a": cost} for n, cost in ((1, 1.0), (2, 2.0), (3, 9.0), (4, 30.0))}
    assert needs.over_budget(costs, (), 20.0) == [((("n", 4),), "a")]
    assert needs.over_budget(costs, (), 50.0) == []
    two = {(("n", 1),): {"a": 30.0}, (("n", 2),): {"a": 60.0}}
    assert needs.over_budget(two, (), 20.0) == [], "two points stay"
    # Where b takes less, a's cell goes; and then that beyond, where a is the quickest and would not be dear.
    hole = {(("n", 1),): {"a": 1.0}, (("n", 2),): {"a": 5.0, "b": 4.0}, (("n", 3),): {"a": 6.0}}
    assert needs.over_budget(hole, (), 16.5) == [((("n", 3),), "a")]
    assert needs.over_budget(hole, (), 10.0) == [((("n", 3),), "a"), ((("n", 2),), "a")]


def test_the_forecast_peak_is_of_what_is_run_and_what_exceeds_the_memory_limit_is_not():
    raw = {
        "workload": "outer_reduce", "size": {"side": 16}, "strategies": ["map_fn.graph", "vectorized_map.graph"],
        "axes": [{"name": "batch", "range": "1:100000"}], "budget_s": 3600.0,
    }  # fmt: skip
    free = needs.forecast_sweep(parse_sweep(raw), 20 * GIB)
    limited = needs.forecast_sweep(parse_sweep({**raw, "memory_limit_mib": 500}), 20 * GIB)
    marked = {at["batch"]: said for at, slug, said in limited.left_out if slug == "vectorized_map.graph"}
    assert 100_000 in marked and 1 not in marked
    assert marked[100_000].endswith(", and the memory limit is 500 MiB")
    assert not [slug for _, slug, _ in limited.left_out if slug == "map_fn.graph"]
    assert limited.peak_bytes < 2 * GIB < free.peak_bytes
    alone = needs.forecast_sweep(parse_sweep({**raw, "strategies": ["map_fn.graph"]}), 20 * GIB)
    # Within what forecasts are off by, it may fit, and then takes no more than the limit.
    small = {**raw, "axes": batch(1, 1000), "strategies": ["vectorized_map.graph"]}
    unlimited = needs.forecast_sweep(parse_sweep(small), 20 * GIB)
    largest = case_of(parse_sweep(small).comparison({"batch": 1000}))
    peak = forecast.estimate(largest, "vectorized_map.graph").peak_bytes
    limit_mib = int(peak / 1.3) // 2**20
    tight = needs.forecast_sweep(parse_sweep({**small, "memory_limit_mib": limit_mib}), 20 * GIB)
    assert not tight.left_out
    assert unlimited.peak_bytes - tight.peak_bytes == peak - limit_mib * 2**20
    short = needs.forecast_sweep(parse_sweep({**raw, "budget_s": 10.0}), 20 * GIB)
    assert short.peak_bytes < free.peak_bytes and alone.peak_bytes < free.peak_bytes


def test_the_forecast_of_a_sweep_that_is_continued_is_of_what_is_left():
    request = asked("loop.eager", "batched.graph", axes=batch(1, 10, 1000))
    whole = needs.forecast_sweep(request, 64 * GIB)
    rng = np.random.default_rng(0)
    points = costs.points((1, 1000), {"loop.eager": (1e-4, 1e-4), "batched.graph": (1e-4, 1e-6)}, rng)
    rest = needs.forecast_sweep(request, 64 * GIB, points)
    only = needs.forecast_sweep(asked("loop.eager", "batched.graph", axes=batch(9, 10)), 64 * GIB)
    assert 0 < rest.seconds < only.seconds < whole.seconds and rest.peak_bytes <= whole.peak_bytes
    assert needs.forecast_sweep(request, 64 * GIB, [*points, *costs.points((10,), {
        "loop.eager": (1e-4, 1e-4), "batched.graph": (1e-4, 1e-6)}, rng)]).seconds == 0.0  # fmt: skip


def test_a_map_takes_a_second_process_of_what_may_lead_and_half_of_its_cells():
    def seconds(*axes: tuple[str, list[int]], **size: int) -> float:
        named = [{"name": name, "values": values} for name, values in axes]
        raw = {"workload": "outer_product", "strategies": ["loop.eager", "batched.graph"], "budget_s": 3600.0}
        return needs.forecast_sweep(parse_sweep({**raw, "size": size, "axes": named}), 64 * GIB).seconds

    batches, sides = [8, 16, 32], [2, 4]
    whole_s = sum(seconds(("batch", batches), side=side) for side in sides)
    map_s = seconds(("batch", batches), ("side", sides))
    assert 0.6 * whole_s < map_s < 0.9 * whole_s


def test_points_that_cannot_fit_are_known_beforehand():
    request = parse_sweep({"workload": "outer_product", "axes": batch(10, 1_000_000), "size": {"side": 32}})
    ((at, reason),) = needs.forecast_sweep(request, 8 * GIB).skipped
    assert at == {"batch": 1_000_000} and "This cannot fit" in reason and "is the largest that fits" in reason


def test_a_forecast_is_not_clipped_to_the_budget_and_points_that_cannot_end_in_time_are_skipped():
    request = asked("loop.eager", axes=batch(500_000, 1_000_000), budget_s=5.0)
    free = needs.forecast_sweep(request, 64 * GIB)
    assert free.seconds > 60 * 5.0 and free.skipped == [], "two points stay, though they take much longer"
    one = needs.forecast_sweep(request, 64 * GIB, bound_s=0.5 * free.seconds)
    ((at, reason),) = one.skipped
    assert at == {"batch": 1_000_000} and one.seconds <= 0.5 * free.seconds
    assert reason.startswith("This cannot end in time: ") and "is the largest that can" in reason
    none = needs.forecast_sweep(request, 64 * GIB, bound_s=70.0)
    assert len(none.skipped) == 2 and none.peak_bytes == 0 == none.seconds
    nearest = int(none.skipped[0][1].partition("batch=")[2].split()[0])
    smaller = asked("loop.eager", axes=batch(1, nearest), budget_s=5.0)
    assert needs.forecast_sweep(smaller, 64 * GIB, bound_s=71.0).skipped == []
