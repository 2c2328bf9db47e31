"""The forecast of a sweep, and what of it is left out beforehand."""

from measure.sweep import needs
from measure.sweep.request import parse_sweep
from tests.measure.sweep.common import asked, batch

GIB = 2**30
LOOP, BATCHED = "loop.eager", "batched.graph"


def test_the_budget_is_shared_so_that_every_point_gets_its_minimum() -> None:
    request = asked(LOOP, BATCHED, axes=[{"name": "batch", "range": "1:1000000"}], budget_s=30.0)
    plan = needs.plan(request, 64 * GIB)
    left_out = {at: sorted(reasons) for at, reasons in plan.left_out.items() if reasons}
    largest = needs.key({"batch": 1_000_000})
    assert left_out[largest] == [LOOP], "what takes longest is left out"
    assert needs.key({"batch": 1}) not in left_out
    assert all(BATCHED not in slugs for slugs in left_out.values()), "no point is left empty"
    assert plan.forecast.seconds <= 30.0
    [said] = plan.forecast.strategies_left_out()
    assert said.startswith(f"{LOOP} is not run at batch ") and "batch 1,000,000" in said


def test_what_takes_longest_goes_first_and_leaves_no_hole_in_a_line() -> None:
    def cells(**by_value: dict[str, float]) -> dict[needs.At, dict[str, float]]:
        return {(("n", int(name[1:])),): each for name, each in by_value.items()}

    def left_out(costs_s: dict[needs.At, dict[str, float]], allowed_s: float) -> list[tuple[int, str]]:
        return [(where[0][1], slug) for where, slug in needs.over_budget(costs_s, (), allowed_s)]

    line = cells(n1={"a": 1.0}, n2={"a": 2.0}, n3={"a": 9.0}, n4={"a": 30.0})
    assert left_out(line, 20.0) == [(4, "a")] and left_out(line, 50.0) == []
    assert left_out(cells(n1={"a": 30.0}, n2={"a": 60.0}), 20.0) == [], "two points stay"
    # Where b takes less, a's cell goes; and then that beyond, where a is the quickest and would not be dear.
    hole = cells(n1={"a": 1.0}, n2={"a": 5.0, "b": 4.0}, n3={"a": 6.0})
    assert left_out(hole, 16.5) == [(3, "a")] and left_out(hole, 10.0) == [(3, "a"), (2, "a")]


def test_what_exceeds_the_memory_limit_is_not_run_and_the_peak_is_of_what_is() -> None:
    raw = {
        "workload": "outer_reduce", "size": {"side": 16}, "strategies": ["map_fn.graph", "vectorized_map.graph"],
        "axes": [{"name": "batch", "range": "1:100000"}], "budget_s": 3600.0,
    }  # fmt: skip
    free = needs.forecast_sweep(parse_sweep(raw), 20 * GIB)
    limited = needs.forecast_sweep(parse_sweep({**raw, "memory_limit_mib": 500}), 20 * GIB)
    marked = {at["batch"]: said for at, slug, said in limited.left_out if slug == "vectorized_map.graph"}
    assert 100_000 in marked and 1 not in marked and "500 MiB" in marked[100_000]
    assert not [slug for _, slug, _ in limited.left_out if slug == "map_fn.graph"]
    assert limited.peak_bytes < 2 * GIB < free.peak_bytes


def test_points_that_cannot_fit_or_end_in_time_are_known_beforehand() -> None:
    request = parse_sweep({"workload": "outer_product", "axes": batch(10, 1_000_000), "size": {"side": 32}})
    ((at, reason),) = needs.forecast_sweep(request, 8 * GIB).skipped
    assert at == {"batch": 1_000_000} and "This cannot fit" in reason
    request = asked(LOOP, axes=batch(500_000, 1_000_000), budget_s=5.0)
    free = needs.forecast_sweep(request, 64 * GIB)
    assert free.seconds > 60 * 5.0 and free.skipped == [], "two points stay, though they take much longer"
    one = needs.forecast_sweep(request, 64 * GIB, bound_s=0.5 * free.seconds)
    ((at, reason),) = one.skipped
    assert at == {"batch": 1_000_000} and one.seconds <= 0.5 * free.seconds
    assert reason.startswith("This cannot end in time: ") and "is the largest that can" in reason
