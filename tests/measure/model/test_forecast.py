"""Forecasts are exact where the mechanism is known, and near what was measured elsewhere."""

import csv
from pathlib import Path

import strategies
import workloads
from measure.model import forecast
from workloads.case import Case

# 248 strategies of the first three workloads in float32, measured on 2 cores of an x86 server with TensorFlow 2.21: the
# peak and the events by the profiler, in a process of its own; the first call and a median of calls in another.
MEASURED = Path(__file__).parents[2] / "data/forecast_measured.csv"

OUTER = workloads.get("outer_product")
# 100 matrices of 32 × 32 float32 make 100 · 32⁴ · 4 bytes.
LARGE = Case(OUTER, {"batch": 100, "side": 32}, "float32")
LARGE_OUTPUT = 419_430_400


def test_peaks_of_the_outer_product_are_whole_outputs() -> None:
    twice = ("loop.eager", "loop.graph", "loop.xla", "map_fn.eager", "map_fn.graph")
    once = ("map_fn.xla", "vectorized_map.xla", "batched.eager", "batched.graph", "batched.xla")
    for factor, slugs in ((2, twice), (1, once)):
        for slug in slugs:
            assert forecast.estimate(LARGE, slug).peak_bytes == factor * LARGE_OUTPUT, slug


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
    """At least nine in ten are within the factor, for every mapper and mode; a few events more or less decide nothing.
    `python -m tests.measure.model.test_forecast` prints how far each one is off."""
    off = times_off()
    assert len(off) == 3 * 12 and sum(map(len, off.values())) == 3 * 248
    factors = {"peak_bytes": 2.0, "first_call_s": 3.5, "latency_s": 3.5}
    for (quantity, strategy), times in off.items():
        near = [1 / factors[quantity] <= each <= factors[quantity] for each in times]
        assert sum(near) >= 0.9 * len(near), (quantity, strategy)


def times_off() -> dict[tuple[str, str], list[float]]:
    """(Quantity, strategy) → forecast over measured, for each row of the table."""
    off: dict[tuple[str, str], list[float]] = {}
    with MEASURED.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            size = {name: int(value) for name, value in (pair.split("=") for pair in row["size"].split())}
            estimate = forecast.estimate(Case(workloads.get(row["workload"]), size, "float32"), row["strategy"])
            for quantity in ("peak_bytes", "first_call_s", "latency_s"):
                times = getattr(estimate, quantity) / float(row[quantity])
                off.setdefault((quantity, row["strategy"]), []).append(times)
    return off


if __name__ == "__main__":
    for (quantity, strategy), times in sorted(times_off().items()):
        print(f"{quantity:13} {strategy:21} {min(times):5.2f} to {max(times):5.2f} times what was measured")
