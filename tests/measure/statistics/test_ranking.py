"""Ranks with ties and the sentence of the verdict."""

import math

import pytest
from msgspec.structs import replace

from measure.judge import advice
from measure.judge.analysis import analyse
from measure.judge.verdict import verdict
from measure.model.run import Analysis, Control, Measurement, Memory, Run
from measure.statistics import ranking
from measure.statistics.intervals import Level
from tests.samples import constant, measurement, run_of


def level(seconds: float, relative_error: float = 0.005) -> Level:
    return Level(math.log(seconds), relative_error**2, 8.0, 5)


def test_strategies_that_differ_clearly_are_ranked_and_those_that_do_not_tie() -> None:
    levels = {"slow": level(5e-3), "a": level(1e-3), "b": level(1.004e-3), "c": level(1.3e-3)}
    assert ranking.Order(levels, Analysis(), 0.0).groups() == [["a", "b"], ["c"], ["slow"]]


def test_differences_under_the_resolution_are_ties_however_significant() -> None:
    levels = {"a": level(1e-3, 1e-5), "b": level(1.04e-3, 1e-5)}
    assert ranking.Order(levels, Analysis(), 0.03).groups() == [["a"], ["b"]]
    assert ranking.Order(levels, Analysis(), 0.05).groups() == [["a", "b"]]


def test_the_more_strategies_are_compared_the_more_a_difference_has_to_show() -> None:
    # Two standard errors of the difference and a half: significant as the only comparison, not as one of eleven.
    a, b = level(1e-3), level(1e-3 * math.exp(2.5 * 0.005 * math.sqrt(2)))
    assert ranking.Order({"a": a, "b": b}, Analysis(), 0.0).groups() == [["a"], ["b"]]
    others = {f"slow{index}": level(1.0 * 2**index) for index in range(9)}
    assert ranking.Order({"a": a, "b": b, **others}, Analysis(), 0.0).groups()[0] == ["a", "b"]


def test_a_leader_is_not_named_while_another_may_be_as_fast_though_one_between_them_is_slower() -> None:
    levels = {"a": level(1e-3, 1e-3), "b": level(1.1e-3, 1e-3), "noisy": level(1.2e-3, 0.12), "far": level(5e-3)}
    assert ranking.Order(levels, Analysis(), 0.0).groups() == [["a", "noisy"], ["b"], ["far"]]


def test_a_difference_within_a_range_that_holds_none_is_chance() -> None:
    # As the only two they would differ; as the middle two of four whose ends do not differ, they do not.
    low, high = level(1e-3, 0.01), level(1e-3 * math.exp(2.6 * 0.01 * math.sqrt(2)), 0.01)
    between = {"low": low, "high": high}
    assert ranking.Order(between, Analysis(), 0.0).separated("high", "low")
    ends = {"first": level(0.99e-3, 0.05), "last": level(1.05e-3, 0.05)}
    assert not ranking.Order({**between, **ends}, Analysis(), 0.0).separated("high", "low")


def test_two_that_are_shown_to_differ_by_less_than_the_margin_tie() -> None:
    levels = {"a": level(1e-3, 1e-4), "b": level(1.02e-3, 1e-4)}
    assert ranking.Order(levels, Analysis(margin=0.03), 0.0).groups() == [["a", "b"]]
    assert ranking.Order(levels, Analysis(margin=0.01), 0.0).groups() == [["a"], ["b"]]


def test_memory_within_a_hundredth_keeps_the_order_wherever_it_lies() -> None:
    for least in range(900, 1_100, 7):
        assert ranking.by_memory(["a", "b"], {"a": least + least // 120, "b": least}) == ["a", "b"]
        assert ranking.by_memory(["a", "b"], {"a": least + least // 80, "b": least}) == ["b", "a"]


def test_memory_breaks_ties_beyond_a_hundredth() -> None:
    peaks = {"a": 1_000, "b": 500, "c": 1_001}
    assert ranking.by_memory(["c", "a", "b"], peaks) == ["b", "c", "a"]
    assert ranking.by_memory(["unknown", "a"], peaks) == ["a", "unknown"]
    a = with_memory(measurement("a.graph", constant(1.000e-3, TIGHT)), 2**21, 2**20)
    b = with_memory(measurement("b.graph", constant(1.0002e-3, TIGHT)), 2**20, 0)
    assert analysed(a, b).ranking == [["b.graph", "a.graph"]]


def with_memory(item: Measurement, peak_bytes: int, temporary_bytes: int) -> Measurement:
    memory = Memory(
        peak_bytes=peak_bytes,
        output_bytes=peak_bytes - temporary_bytes,
        temporary_bytes=temporary_bytes,
        input_bytes=0,
        captured_bytes=0,
        method="events",
    )
    return replace(item, memory=memory)


def analysed(*items: Measurement) -> Run:
    return analyse(run_of(*items))


TIGHT = [1.001, 1.0, 1.0, 1.0005, 1.0]


def test_the_verdict_names_the_winner_its_interval_its_lead_and_its_memory() -> None:
    fast = with_memory(measurement("batched.graph", constant(1.42e-3, TIGHT)), 100 * 2**20, 0)
    slow = measurement("loop.eager", constant(52.5e-3, TIGHT))
    sentence = verdict(analysed(slow, fast))
    assert sentence == (
        "batched.graph is fastest: 1.42 ms [1.39, 1.45], 37 × ahead of loop.eager; it needs 100.0 MiB of memory."
    )
    near = measurement("loop.eager", constant(1.6e-3, TIGHT))
    assert ", 13 % ahead of loop.eager; " in verdict(analysed(near, fast))


def test_the_verdict_names_no_winner_among_ties_but_the_one_that_needs_the_least_memory() -> None:
    a = with_memory(measurement("a.graph", constant(1.000e-3, TIGHT)), 2**21, 2**20)
    b = with_memory(measurement("b.graph", constant(1.0002e-3, TIGHT)), 2**20, 0)
    sentence = verdict(analysed(a, b))
    assert "fastest" not in sentence
    assert sentence == (
        "Two strategies tie within 4 %: b.graph and a.graph, at 1.00 ms; "
        "of these b.graph needs the least memory, 1.00 MiB."
    )


def tied(processes: list[float], seconds: float, resolution: float | None = None) -> str:
    """The verdict on a strategy of 1 ms and one of so many seconds, both with these processes."""
    run = analysed(measurement("a.graph", constant(1e-3, processes)), measurement("b.graph", constant(seconds, TIGHT)))
    control = None if resolution is None else Control(strategy="a.graph", ratio=1, low=1, high=1, resolution=resolution)
    return verdict(replace(run, control=control, ranking=[["a.graph", "b.graph"]]))


def test_a_tie_says_within_what_share_as_far_as_the_run_can_tell() -> None:
    assert "tie within 4 %: a.graph and b.graph, at 1.00 ms" in tied(TIGHT, 1.0002e-3, 0.001)
    # 2.5 % apart, give or take 3 %: processes of one differ, and both have their variance moderated.
    assert "tie within 6 %: a.graph and b.graph, at 1.00 to 1.03 ms" in tied([0.99, 1.0, 1.0101, 1.02, 1.03], 1.025e-3)
    # What the run cannot resolve, it cannot call closer.
    assert "tie within 7 %: " in tied(TIGHT, 1.0002e-3, 0.065)
    assert "tie, since this run cannot tell them apart: " in tied(TIGHT, 1.0002e-3, 0.11)
    noisy = tied([0.85, 0.92, 1.0, 1.1, 1.2], 1.14e-3)
    assert noisy == (
        "Two strategies tie, since this run cannot tell them apart: a.graph and b.graph, at 921 µs to 1.14 ms."
    )


def test_a_winner_is_called_the_fastest_of_those_that_are_right_only() -> None:
    wrong = measurement("wrong.xla", constant(1e-2, TIGHT), outcome="wrong")
    sentence = verdict(analysed(wrong, measurement("right.graph", constant(1e-3, TIGHT))))
    assert sentence.startswith("right.graph takes 1.00 ms [")


def test_the_verdict_says_of_a_leader_that_it_was_compiled_for_the_timed_values() -> None:
    warning = advice.compiled_values(1e-3, 0.0125)
    assert warning is not None
    fast = replace(measurement("fast.xla", constant(1.0e-3, TIGHT)), warnings=[warning])
    slow = measurement("slow.graph", constant(2.0e-3, TIGHT))
    said = "fast.xla reuses a program that was made for the timed values: with others a call takes 12.5 ms."
    assert verdict(analysed(fast)).endswith(f" {said}")
    assert "reuses" not in verdict(analysed(fast, slow))


@pytest.mark.parametrize(("slow_s", "ranking"), [
    (2e-3, [["slow.graph"], ["fast.xla"], ["loop.eager"]]),
    (20e-3, [["slow.graph"], ["fast.xla"], ["loop.eager"]]),
    (1.0002e-3, [["slow.graph"], ["fast.xla"], ["loop.eager"]]),
])  # fmt: skip
def test_what_is_quick_with_the_timed_values_alone_has_no_first_rank(slow_s: float, ranking: list[list[str]]) -> None:
    warning = advice.compiled_values(1e-3, 0.0125)
    assert warning is not None
    fast = replace(measurement("fast.xla", constant(1.0e-3, TIGHT)), warnings=[warning])
    slow, slowest = measurement("slow.graph", constant(slow_s, TIGHT)), measurement("loop.eager", constant(0.1, TIGHT))
    run = analysed(slowest, fast, slow)
    assert run.ranking == ranking
    assert "ahead" not in verdict(run), "the next is ahead with the values that were timed"


def test_calls_that_are_three_times_as_long_with_other_values_cost_no_rank() -> None:
    warning = advice.compiled_values(1e-3, 0.0035)
    assert warning is not None, "a warning it is"
    fast = replace(measurement("fast.xla", constant(1.0e-3, TIGHT)), warnings=[warning])
    assert analysed(fast, measurement("slow.graph", constant(2.0e-3, TIGHT))).ranking[0] == ["fast.xla"]


def test_a_single_strategy_is_not_called_the_fastest() -> None:
    assert verdict(analysed(measurement("a.graph", constant(1e-3, TIGHT)))).startswith("a.graph takes 1.00 ms [")


def test_a_wrong_strategy_has_a_latency_and_no_rank() -> None:
    wrong = measurement("wrong.xla", constant(1e-4, TIGHT), outcome="wrong")
    run = analysed(wrong, measurement("right.graph", constant(1e-3, TIGHT)))
    assert run.ranking == [["right.graph"]]
    assert run.measurement("wrong.xla").latency is not None
    assert "wrong.xla" not in run.verdict


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        (["cancelled", "not_run"], "Nothing was measured"),
        (["wrong"], "No strategy is right, so none is ranked"),
        (["failed", "timeout"], "No strategy could be measured"),
    ],
)
def test_the_verdict_says_why_nothing_is_ranked(outcomes: list[str], words: str) -> None:
    items = [measurement(f"m{index}.graph", [], outcome=outcome) for index, outcome in enumerate(outcomes)]
    assert words in verdict(run_of(*items))
