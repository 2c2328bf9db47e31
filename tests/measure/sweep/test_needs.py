"""The forecast of a sweep, and what of it is left out beforehand."""

from measure.sweep import needs
from measure.sweep.request import parse_sweep
from tests.measure.sweep.common import asked, batch

GIB = 2**30
LOOP, BATCHED = "loop.eager", "batched.graph"


def left_out(costs_s: dict[int, dict[str, float]], allowed_s: float) -> list[tuple[int, str]]:
    costs = {(("n", value),): cells for value, cells in costs_s.items()}
    return [(where[0][1], slug) for where, slug in needs.over_budget(costs, allowed_s, dict.fromkeys(costs, 0.0))]


def test_by_forecast_a_sweep_ends_within_its_budget_whatever_is_asked_for() -> None:
    for budget_s in (5.0, 30.0, 300.0):
        request = asked(LOOP, BATCHED, axes=[{"name": "batch", "range": "1:1000000"}], budget_s=budget_s)
        ahead = needs.forecast_sweep(request, 64 * GIB)
        assert ahead.seconds <= budget_s and ahead.points
    dear = [(at["batch"], slug) for at, slug, _ in needs.forecast_sweep(request, 64 * GIB).left_out]
    assert dear == [(1_000_000, LOOP)], "what takes longest is left out"
    [said] = needs.forecast_sweep(request, 64 * GIB).strategies_left_out()
    assert said.startswith(f"{LOOP}, at batch 1,000,000: not run here: ") and "300 s" in said


def test_what_takes_longest_goes_first_and_the_last_of_a_point_last() -> None:
    line = {1: {"a": 1.0}, 2: {"a": 2.0}, 3: {"a": 9.0}, 4: {"a": 30.0}}
    assert left_out(line, 20.0) == [(4, "a")] and left_out(line, 50.0) == []
    pairs = {1: {"a": 3.0, "b": 2.0}, 2: {"a": 5.0, "b": 4.0}}
    assert left_out(pairs, 12.0) == [(2, "a")] and left_out(pairs, 7.0) == [(2, "a"), (1, "a")]
    assert left_out(pairs, 5.0) == [(2, "a"), (1, "a"), (2, "b")], "and then a whole point"


def test_what_exceeds_the_memory_limit_is_not_run_and_the_peak_is_of_what_is() -> None:
    raw = {
        "workload": "outer_reduce", "size": {"side": 16}, "strategies": ["map_fn.graph", "vectorized_map.graph"],
        "axes": [{"name": "batch", "range": "1:100000"}], "budget_s": 3600.0,
    }  # fmt: skip
    free = needs.forecast_sweep(parse_sweep(raw), 20 * GIB)
    limited = needs.forecast_sweep(parse_sweep({**raw, "memory_limit_mib": 500}), 20 * GIB)
    marked = {at["batch"]: error.message for at, slug, error in limited.left_out if slug == "vectorized_map.graph"}
    assert 100_000 in marked and 1 not in marked and "500 MiB" in marked[100_000]
    assert not [slug for _, slug, _ in limited.left_out if slug == "map_fn.graph"]
    assert limited.peak_bytes < 2 * GIB < free.peak_bytes


def test_points_that_cannot_fit_or_be_measured_in_time_are_known_beforehand() -> None:
    request = parse_sweep({"workload": "outer_product", "axes": batch(10, 1_000_000), "size": {"side": 32}})
    ((at, reason),) = needs.forecast_sweep(request, 8 * GIB).skipped
    assert at == {"batch": 1_000_000} and "This cannot fit" in reason
    ahead = needs.forecast_sweep(asked(LOOP, axes=batch(10, 1_000_000), budget_s=5.0), 64 * GIB)
    ((at, reason),) = ahead.skipped
    assert at == {"batch": 1_000_000} and [point.at for point in ahead.points] == [{"batch": 10}]
    assert reason.startswith("This cannot end in time: by forecast it takes at least ") and "5 s" in reason
