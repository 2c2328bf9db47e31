"""The least budget of a comparison: what has no time for a sample by forecast is refused, with what is enough."""

import re
from typing import Any

from measure.run import deadline, forecast
from measure.run.request import DEFAULT_BUDGET_S, case_of, parse

LOOP: dict[str, Any] = {"workload": "square", "size": {"batch": 300_000}, "strategies": "loop.eager", "budget_s": 2}


def test_a_budget_below_what_is_needed_before_the_first_sample_is_refused_with_what_is_enough() -> None:
    sentence = deadline.check(parse(LOOP), None)
    assert sentence is not None
    assert sentence.startswith("A budget of 2.00 s is too short: before the first sample this needs ")
    (budget_s,) = (int(digits) for digits in re.findall(r"=(\d+)", sentence))
    for seconds, is_enough in [(budget_s, True), (budget_s - 1, False)]:
        assert (deadline.check(parse({**LOOP, "budget_s": seconds}), None) is None) == is_enough
    hosted = deadline.check(parse(LOOP), budget_s - 1)
    assert hosted is not None and "budget=" not in hosted, "no budget that may not be asked for"


def test_where_no_budget_is_given_it_leaves_time_for_samples() -> None:
    usual, slow = parse({"workload": "square"}), parse({"workload": "pixel_loop"})
    assert usual.budget_s == DEFAULT_BUDGET_S
    needed_s = forecast.forecast_run(case_of(slow), slow.strategies).seconds
    assert DEFAULT_BUDGET_S < needed_s + 4 <= slow.budget_s < needed_s + 5
    assert deadline.check(slow, None) is None
