"""The time that a comparison and a sweep need by forecast, against the budget that they have."""

import re
from typing import Any

from measure.run import deadline, fit, forecast
from measure.run.request import DEFAULT_BUDGET_S, case_of, parse
from tests.sweeps import asked, batch

GIB = 2**30
LOOP: dict[str, Any] = {"workload": "square", "size": {"batch": 300_000}, "strategies": "loop.eager", "budget_s": 2}


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
    needed_s = forecast.forecast_run(case_of(slow), slow.strategies).seconds
    assert DEFAULT_BUDGET_S < needed_s + 4 <= slow.budget_s < needed_s + 5
    assert deadline.check(slow) is None


def test_by_forecast_a_sweep_ends_within_its_budget_whatever_is_asked_for() -> None:
    for budget_s in (5.0, 300.0):
        request = asked("loop.eager", "batched.graph", axes=batch(1, 10**4, 10**5, 10**6), budget_s=budget_s)
        ahead = fit.forecast_sweep(request, 64 * GIB)
        assert ahead.seconds <= budget_s and ahead.points
        assert f"a budget of {budget_s:.0f} s is short for all of it" in ahead.too_long
    short = asked("loop.eager", "batched.graph", axes=batch(1, 100), budget_s=30.0)
    assert not fit.forecast_sweep(short, 64 * GIB).too_long


def test_points_that_cannot_be_measured_in_time_are_known_beforehand() -> None:
    ahead = fit.forecast_sweep(asked("loop.eager", axes=batch(10, 1_000_000), budget_s=5.0), 64 * GIB)
    ((at, reason),) = ahead.skipped
    assert at == {"batch": 1_000_000} and [point.at for point in ahead.points] == [{"batch": 10}]
    assert reason.startswith("This cannot end in time: it takes at least ")
