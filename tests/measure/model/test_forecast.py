"""Forecasts are exact where the mechanism is known, and near what was measured elsewhere."""

import csv
import dataclasses
from pathlib import Path

import pytest

import strategies
import workloads
from measure.model import fit, forecast
from strategies import planning
from strategies.spec import MODES
from workloads.case import Case
from workloads.spec import Workload

# 248 strategies of the first three workloads in float32, measured on 2 cores of an x86 server with TensorFlow 2.21: the
# peak and the events by the profiler, in a process of its own; the first call and a median of calls in another.
MEASURED = Path(__file__).parents[2] / "data/forecast_measured.csv"

OUTER = workloads.get("outer_product")
# 100 matrices of 32 × 32 float32 make 100 · 32⁴ · 4 bytes.
LARGE = Case(OUTER, {"batch": 100, "side": 32}, "float32")
LARGE_OUTPUT = 419_430_400


def test_the_largest_size_is_forecast_without_making_any_array() -> None:
    for workload in workloads.all():
        size = {parameter.name: parameter.most for parameter in workload.sizes}
        for strategy in strategies.all_strategies(workload):
            assert forecast.estimate(Case(workload, size, "float32"), strategy).latency_s > 0


@pytest.mark.parametrize(
    ("slug", "factor"),
    [
        ("loop.eager", 2),
        ("loop.graph", 2),
        ("loop.xla", 2),
        ("map_fn.eager", 2),
        ("map_fn.graph", 2),
        ("map_fn.xla", 1),
        ("vectorized_map.xla", 1),
        ("batched.eager", 1),
        ("batched.graph", 1),
        ("batched.xla", 1),
    ],
)
def test_peaks_of_the_outer_product_are_whole_outputs(slug: str, factor: int) -> None:
    assert forecast.estimate(LARGE, slug).peak_bytes == factor * LARGE_OUTPUT


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_vectorised_outer_products_need_little_scratch(mode: str) -> None:
    peak = forecast.estimate(LARGE, f"vectorized_map.{mode}").peak_bytes
    assert LARGE_OUTPUT < peak < LARGE_OUTPUT + 10_000


def test_plan_holds_what_the_workload_and_the_strategy_say() -> None:
    case = Case(workloads.get("per_example_gradients"), {"batch": 10, "features": 32}, "float32")
    plan = planning.plan(case, "map_fn.graph?parallel_iterations=4")
    assert (plan.mode, plan.batch, plan.input_leaves, plan.output_leaves) == ("graph", 10, 2, 2)
    assert (plan.input_bytes, plan.output_bytes) == (1_320, 1_320)
    assert plan.batched_temporary_bytes == 10 * case.cost.batched_temporary_bytes
    assert dict(plan.options) == {"parallel_iterations": 4}
    assert dict(planning.plan(case, "map_fn.graph").options) == {"parallel_iterations": 10}


def test_iterations_in_flight_hold_their_temporaries() -> None:
    """Where temporaries outweigh the copy of the output, each parallel iteration adds its own."""
    cost = dataclasses.replace(OUTER.cost(side=4), temporary_bytes=1_000_000)
    case = Case(dataclasses.replace(OUTER, cost=lambda: cost), {"batch": 8, "side": 4}, "float32")
    output = 8 * 4**4 * 4
    for parallel, in_flight in ((1, 1), (4, 4), (10, 8)):
        estimate = forecast.estimate(case, f"map_fn.graph?parallel_iterations={parallel}")
        assert estimate.peak_bytes == output + in_flight * 1_000_000
    assert forecast.estimate(case, "map_fn.xla").peak_bytes == output + 1_000_000


@pytest.mark.parametrize("workload", workloads.all(), ids=workloads.names())
def test_more_elements_never_take_less(workload: Workload) -> None:
    for strategy in strategies.all_strategies(workload):
        few, many = (
            forecast.estimate(Case(workload, {**workload.default_size(), "batch": batch}, "float32"), strategy)
            for batch in (10, 1_000)
        )
        # A sum over the batch is as large for many elements as for few.
        assert few.peak_bytes < many.peak_bytes or (workload.output is not None and few.peak_bytes <= many.peak_bytes)
        assert few.latency_s < many.latency_s
        assert few.first_call_s < many.first_call_s
        assert 0 < few.events <= many.events


def test_a_budget_caps_the_visits_of_a_run_but_for_the_first_ones_and_a_third_of_it_for_the_ranking() -> None:
    workload = workloads.get("image_sqrt")
    case = Case(workload, workload.default_size(), "float32")
    chosen = [strategy.slug for strategy in strategies.all_strategies(workload)]
    free = forecast.forecast_run(case, chosen)
    once, capped, ample = (forecast.forecast_run(case, chosen, budget_s) for budget_s in (0.0, 1.5, 1e4))
    assert once.seconds + 1.5 / 3 == pytest.approx(capped.seconds) and capped.seconds < free.seconds
    assert ample == free
    assert set(free.per_strategy) == set(chosen)
    assert free.peak_bytes == capped.peak_bytes


def test_a_visit_takes_its_first_call_and_what_it_is_sampled_for_at_least_three_calls() -> None:
    assert forecast.visit_s(0.5, 1e-4) == pytest.approx((0.1 + 0.5) / 2 + 0.06 + 0.06), "two first calls at a time"
    assert forecast.visit_s(0.5, 2.0) == pytest.approx((0.1 + 0.5) / 2 + 2.0 + 3 * 2.0)
    assert forecast.visit_s(5.0, 1e-4) == pytest.approx(0.1 + 5.0 + 0.06 + 0.06), "a long one has no company"


def test_a_run_needs_more_than_its_largest_strategies_and_the_reference() -> None:
    both = forecast.forecast_run(LARGE, ["loop.eager", "map_fn.graph"])
    # Two memory subjects at a time, twice the output each, beside a float64 reference of twice the output.
    assert 6 * LARGE_OUTPUT < both.peak_bytes < 6 * LARGE_OUTPUT + 2 * (forecast.PROCESS_BYTES + 1_000_000)
    one = forecast.forecast_run(LARGE, ["batched.xla"])
    assert one.peak_bytes < 3 * LARGE_OUTPUT + forecast.PROCESS_BYTES + 1_000_000
    assert one.seconds < both.seconds


def test_a_process_is_forecast_to_take_what_was_seen_of_one() -> None:
    seen_bytes = 97 * 2**20  # the most of all workloads and strategies, beside their tensors
    case = Case(OUTER, {"batch": 1, "side": 4}, "float32")
    assert forecast.together_bytes(case, [0]) > seen_bytes
    assert fit.needed_bytes(case, ["batched.graph"]) > seen_bytes


def within(forecast_value: float, measured: float, factor: float) -> bool:
    return measured / factor <= forecast_value <= measured * factor


@pytest.mark.parametrize(
    ("quantity", "factor"), [("peak_bytes", 1.5), ("first_call_s", 3.0), ("latency_s", 3.0), ("events", 3.0)]
)
def test_forecasts_are_near_what_was_measured(quantity: str, factor: float) -> None:
    """At least nine in ten are within the factor, for every mapper and mode and overall."""
    hits: dict[str, list[bool]] = {}
    with MEASURED.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            size = {name: int(value) for name, value in (pair.split("=") for pair in row["size"].split())}
            estimate = forecast.estimate(Case(workloads.get(row["workload"]), size, "float32"), row["strategy"])
            hit = within(getattr(estimate, quantity), float(row[quantity]), factor)
            hits.setdefault(row["strategy"], []).append(hit)
    cells = {f"{mapper}.{mode}" for mapper in ("loop", "map_fn", "vectorized_map", "batched") for mode in MODES}
    assert set(hits) == cells
    every = [hit for cell in hits.values() for hit in cell]
    assert len(every) == 248 and sum(every) >= 0.97 * len(every)
    assert all(sum(cell) >= 0.9 * len(cell) for cell in hits.values())
