"""Forecasts are exact where the mechanism is known, and near what was measured elsewhere."""

import csv
from pathlib import Path

import strategies
import workloads
from measure.run import forecast
from workloads.case import Case

# 248 strategies of the first three workloads in float32, measured on 2 cores of an x86 server with TensorFlow 2.21: the
# peak and the events by the profiler, in a process of its own; the first call and a median of calls in another.
MEASURED = Path(__file__).parents[2] / "data/forecast_measured.csv"


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
