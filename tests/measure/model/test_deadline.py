"""The least budget of a comparison: what has no time for a sample by forecast is refused, with what is enough."""

import re
from typing import Any

from msgspec.structs import replace

from measure.model import deadline, forecast
from measure.model.request import DEFAULT_BUDGET_S, case_of, parse

LOOP: dict[str, Any] = {"workload": "square", "size": {"batch": 300_000}, "strategies": "loop.eager", "budget_s": 2}


def test_a_budget_below_what_is_needed_before_the_first_sample_is_refused_with_what_is_enough() -> None:
    said = deadline.check(parse(LOOP), None)
    assert said is not None and said.startswith("A budget of 2.00 s is too short: before the first sample this needs ")
    budget_s, batch = (int(found) for found in re.findall(r"=(\d+)", said))
    for seconds, is_enough in [(budget_s, True), (budget_s - 1, False)]:
        assert (deadline.check(parse({**LOOP, "budget_s": seconds}), None) is None) == is_enough
    for size, is_enough in [(batch, True), (batch + 1, False)]:
        assert (deadline.check(parse({**LOOP, "size": {"batch": size}}), None) is None) == is_enough
    hosted = deadline.check(parse(LOOP), budget_s - 1)
    assert hosted is not None and "budget=" not in hosted, "no budget that may not be asked for"


def test_whoever_takes_longest_is_named() -> None:
    asked = parse({"workload": "python_sum", "strategies": "all", "budget_s": 150})
    said = deadline.check(asked, None)
    assert said is not None
    left_out = said.partition("without ")[2].rstrip(".").replace(" and ", ", ").split(", ")
    fewer = replace(asked, strategies=[slug for slug in asked.strategies if slug not in left_out])
    assert len(fewer.strategies) == len(asked.strategies) - len(left_out) and deadline.check(fewer, None) is None
    fewer = replace(fewer, strategies=[*fewer.strategies, left_out[-1]])
    assert deadline.check(fewer, None) is not None, "no more are named than have to be left out"
    one = replace(parse({"workload": "python_sum", "size": {"batch": 1}, "strategies": "loop.xla"}), budget_s=0.1)
    assert str(deadline.check(one, 0.5)).endswith("fewer strategies or smaller sizes may be measured."), "nothing helps"


def test_where_no_budget_is_given_it_leaves_time_for_samples() -> None:
    usual, slow = parse({"workload": "square"}), parse({"workload": "pixel_loop"})
    assert usual.budget_s == DEFAULT_BUDGET_S
    needed_s = forecast.forecast_run(case_of(slow), slow.strategies).seconds
    assert DEFAULT_BUDGET_S < needed_s + 4 <= slow.budget_s < needed_s + 5
    assert deadline.check(slow, None) is None
