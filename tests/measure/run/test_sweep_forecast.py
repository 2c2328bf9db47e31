"""The forecast of a sweep, and what of it is left out beforehand."""

from measure.run import sweep_forecast
from tests.sweeps import asked, batch

GIB = 2**30
LOOP, BATCHED = "loop.eager", "batched.graph"


def test_by_forecast_a_sweep_ends_within_its_budget_whatever_is_asked_for() -> None:
    for budget_s in (5.0, 30.0, 300.0):
        request = asked(LOOP, BATCHED, axes=[{"name": "batch", "range": "1:1000000"}], budget_s=budget_s)
        ahead = sweep_forecast.forecast_sweep(request, 64 * GIB)
        assert ahead.seconds <= budget_s and ahead.points
        assert f"a budget of {budget_s:.0f} s is short for all of it" in ahead.too_long
    assert not sweep_forecast.forecast_sweep(asked(LOOP, BATCHED, axes=batch(1, 100), budget_s=30.0), 64 * GIB).too_long


def test_points_that_cannot_be_measured_in_time_are_known_beforehand() -> None:
    ahead = sweep_forecast.forecast_sweep(asked(LOOP, axes=batch(10, 1_000_000), budget_s=5.0), 64 * GIB)
    ((at, reason),) = ahead.skipped
    assert at == {"batch": 1_000_000} and [point.at for point in ahead.points] == [{"batch": 10}]
    assert reason.startswith("This cannot end in time: it takes at least ")
