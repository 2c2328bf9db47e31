"""The bound of a run: what cannot end within it by forecast is refused beforehand, with what can."""

import re
from dataclasses import replace
from typing import Any

from measure.model import bound, forecast
from measure.model.request import Request, case_of, parse

LOOP: dict[str, Any] = {"workload": "square", "size": {"batch": 1_000_000}, "strategies": "loop.eager", "budget_s": 1}


def forecast_s(asked: Request) -> float:
    return forecast.forecast_run(case_of(asked), asked.strategies, asked.budget_s).seconds


def said(asked: Request) -> str:
    sentence = bound.check(asked, bound.of_comparison)
    assert sentence is not None
    return sentence


def test_what_cannot_end_in_time_is_refused_with_the_nearest_batch_and_budget_that_can():
    batch, budget_s = (int(found) for found in re.findall(r"=(\d+)", said(parse(LOOP))))
    for size, can_end in [(batch, True), (batch + 1, False)]:
        assert (bound.check(parse({**LOOP, "size": {"batch": size}}), bound.of_comparison) is None) == can_end
    for seconds, can_end in [(budget_s, True), (budget_s - 1, False)]:
        assert (bound.check(parse({**LOOP, "budget_s": seconds}), bound.of_comparison) is None) == can_end


def test_a_hosted_server_offers_no_budget_and_whoever_takes_longest_is_named():
    asked = parse({"workload": "python_sum", "strategies": "all"})
    sentence = bound.check(asked, lambda budget_s: 100.0)
    assert sentence is not None and "100 s" in sentence and "budget" not in sentence
    left_out = sentence.partition("without ")[2].rstrip(".").replace(" and ", ", ").split(", ")
    fewer = replace(asked, strategies=tuple(slug for slug in asked.strategies if slug not in left_out))
    assert len(fewer.strategies) == len(asked.strategies) - len(left_out) and forecast_s(fewer) <= 100.0
    fewer = replace(fewer, strategies=(*fewer.strategies, left_out[-1]))
    assert forecast_s(fewer) > 100.0, "no more are named than have to be left out"
    one = parse({"workload": "python_sum", "size": {"batch": 1}, "strategies": "loop.xla"})
    assert str(bound.check(one, lambda budget_s: 0.1)).endswith("; smaller sizes may."), "nothing helps"
