"""Forecasts are near what was measured elsewhere, and are held against the budget that a comparison or a sweep has."""

import csv
import re
from typing import Any

import pytest

import strategies
import workloads
from measure.run import deadline, fit, forecast
from measure.run.request import ALLOCATOR_WAITS_S, DEFAULT_BUDGET_S, case_of, forecast_of, parse
from tests.engine import ROOT
from tests.sweeps import asked, batch
from workloads.case import Case

GIB = 2**30
LOOP: dict[str, Any] = {"workload": "square", "size": {"batch": 300_000}, "strategies": "loop.eager", "budget_s": 2}

# 248 strategies of the first three workloads in float32, measured on 2 cores of an x86 server with TensorFlow 2.21: the
# peak and the events by the profiler, in a process of its own; the first call and a median of calls in another.
MEASURED = ROOT / "tests/data/forecast_measured.csv"


def test_more_elements_never_take_less() -> None:
    """Nor is any array made for a forecast: the largest sizes have one."""
    for workload in workloads.all():
        largest = {parameter.name: parameter.most for parameter in workload.sizes}
        for strategy in strategies.all_strategies(workload):
            few, many, most = (
                forecast.estimate(Case(workload, size, "float32"), strategy)
                for size in (*({**workload.default_size(), "batch": batch} for batch in (10, 1_000)), largest)
            )
            # A sum over the batch is as large for many elements as for few.
            assert few.peak_bytes < many.peak_bytes + (workload.output is not None)
            assert few.latency_s < many.latency_s < most.latency_s
            assert few.first_call_s < many.first_call_s
            assert 0 < few.events <= many.events


def test_forecasts_are_near_what_was_measured() -> None:
    """At least nine in ten are within the factor, for every mapper and mode."""
    factors = {"peak_bytes": 2.0, "first_call_s": 3.5, "latency_s": 3.5}
    near: dict[tuple[str, str], list[bool]] = {}
    with MEASURED.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            size = {name: int(value) for name, value in (pair.split("=") for pair in row["size"].split())}
            estimate = forecast.estimate(Case(workloads.get(row["workload"]), size, "float32"), row["strategy"])
            for quantity, factor in factors.items():
                times = getattr(estimate, quantity) / float(row[quantity])
                near.setdefault((quantity, row["strategy"]), []).append(1 / factor <= times <= factor)
    assert len(near) == 3 * 12 and sum(map(len, near.values())) == 3 * 248
    assert [key for key, right in near.items() if sum(right) < 0.9 * len(right)] == []


def test_a_budget_below_what_is_needed_before_the_first_sample_is_refused_with_what_is_enough() -> None:
    sentence = deadline.check(parse(LOOP))
    assert sentence is not None
    assert sentence.startswith("A budget of 2.00 s is too short: before the first sample this needs ")
    (budget_s,) = (int(digits) for digits in re.findall(r"=(\d+)", sentence))
    for seconds, is_enough in [(budget_s, True), (budget_s - 1, False)]:
        assert (deadline.check(parse({**LOOP, "budget_s": seconds})) is None) == is_enough


def test_where_no_budget_is_given_it_leaves_time_for_samples() -> None:
    usual, slow = parse({"workload": "square"}), parse({"workload": "pixel_loop"})
    assert usual.budget_s == DEFAULT_BUDGET_S
    needed_s = forecast.forecast_run(case_of(slow), slow.strategies).needed_s
    assert DEFAULT_BUDGET_S < needed_s + 4 <= slow.budget_s < needed_s + 5
    assert deadline.check(slow) is None


def test_a_run_is_forecast_for_the_machine_as_busy_as_it_is_and_at_most() -> None:
    auto, fixed = parse({"workload": "square"}), parse({"workload": "square", "budget_s": 12})
    quiet, busy = forecast_of(auto), forecast_of(auto, slowdown=1.7)
    assert auto.max_budget_s == 60.0 and not fixed.max_budget_s
    assert busy.needed_s == pytest.approx(1.7 * quiet.needed_s)
    assert 12 < quiet.seconds < busy.seconds < 60 < quiet.max_seconds < busy.max_seconds < 67
    assert forecast_of(fixed).max_seconds == forecast_of(fixed).seconds == quiet.seconds
    limited = parse({"workload": "square", "memory_limit_mib": 64})
    assert forecast_of(limited).max_seconds == quiet.max_seconds + ALLOCATOR_WAITS_S
    assert deadline.of_comparison(auto) == 1.5 * quiet.max_seconds


def test_by_forecast_a_sweep_ends_within_its_budget_and_leaves_out_what_cannot_be_measured_in_time() -> None:
    for budget_s in (5.0, 300.0):
        request = asked("loop.eager", "batched.graph", axes=batch(1, 10**4, 10**5, 10**6), budget_s=budget_s)
        ahead = fit.forecast_sweep(request, 64 * GIB)
        assert ahead.seconds <= budget_s and ahead.points
        assert f"a budget of {budget_s:.0f} s is short for all of it" in ahead.too_long
    short = asked("loop.eager", "batched.graph", axes=batch(1, 100), budget_s=30.0)
    assert not fit.forecast_sweep(short, 64 * GIB).too_long
    ahead = fit.forecast_sweep(asked("loop.eager", axes=batch(10, 1_000_000), budget_s=5.0), 64 * GIB)
    ((at, reason),) = ahead.skipped
    assert at == {"batch": 1_000_000} and [point.at for point in ahead.points] == [{"batch": 10}]
    assert reason.startswith("This cannot end in time: it takes at least ")
