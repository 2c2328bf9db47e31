"""Ranks with ties and the sentence of the verdict."""

import math

from msgspec.structs import replace

from measure.judge import ranking
from measure.judge.analysis import analyse
from measure.judge.findings import findings
from measure.judge.intervals import Level
from measure.judge.verdict import verdict
from measure.run.run import Analysis, Control, Measurement, Run
from tests.samples import constant, measurement, memory, run_of


def level(seconds: float, relative_error: float = 0.005) -> Level:
    return Level(math.log(seconds), relative_error**2, 8.0)


def test_strategies_that_differ_clearly_are_ranked_and_those_that_do_not_tie() -> None:
    levels = {"slow": level(5e-3), "a": level(1e-3), "b": level(1.004e-3), "c": level(1.3e-3)}
    assert ranking.Order(levels, Analysis()).groups() == [["a", "b"], ["c"], ["slow"]]


def test_the_more_strategies_are_compared_the_more_a_difference_has_to_show() -> None:
    # Two standard errors of the difference and a half: significant as the only comparison, not as one of eleven.
    a, b = level(1e-3), level(1e-3 * math.exp(2.5 * 0.005 * math.sqrt(2)))
    assert ranking.Order({"a": a, "b": b}, Analysis()).groups() == [["a"], ["b"]]
    others = {f"slow{index}": level(1.0 * 2**index) for index in range(9)}
    assert ranking.Order({"a": a, "b": b, **others}, Analysis()).groups()[0] == ["a", "b"]


def test_all_up_to_the_slowest_that_may_be_as_fast_tie_so_that_ranks_are_in_the_order_of_latencies() -> None:
    levels = {"a": level(1e-3, 1e-3), "b": level(1.1e-3, 1e-3), "noisy": level(1.2e-3, 0.12), "far": level(5e-3)}
    assert ranking.Order(levels, Analysis()).groups() == [["a", "b", "noisy"], ["far"]]


def test_the_resolution_is_the_least_difference_that_is_told_between_the_two_fastest() -> None:
    fast, next_error, far = level(1e-3, 0.01), 0.03, level(1.0)
    told = ranking.Order({"a": fast, "b": level(1.1e-3, next_error), "far": far}, Analysis()).resolution
    for times, leaders in ((1.01, ["a"]), (0.99, ["a", "b"])):
        order = ranking.Order({"a": fast, "b": level(1e-3 * (1 + told * times), next_error), "far": far}, Analysis())
        assert order.groups()[0] == leaders
    assert ranking.Order({"a": fast}, Analysis()).resolution == 0.0
    assert ranking.Order({}, Analysis()).groups() == []


def test_memory_breaks_ties_beyond_a_hundredth() -> None:
    peaks = {"a": 1_000, "b": 500, "c": 1_009}
    assert ranking.by_memory(["c", "a", "b"], peaks) == ["b", "c", "a"]
    assert ranking.by_memory(["unknown", "a"], peaks) == ["a", "unknown"]
    a = with_memory(measurement("a.graph", constant(1.000e-3, TIGHT)), 2**21)
    b = with_memory(measurement("b.graph", constant(1.0002e-3, TIGHT)), 2**20)
    assert analysed(a, b).ranking == [["b.graph", "a.graph"]]


def with_memory(item: Measurement, peak_bytes: int) -> Measurement:
    return replace(item, memory=memory(peak_bytes))


def analysed(*items: Measurement) -> Run:
    return analyse(run_of(*items))


TIGHT = [1.001, 1.0, 1.0, 1.0005, 1.0]


def test_the_verdict_has_the_factor_first_and_no_winner_among_ties() -> None:
    fast = with_memory(measurement("batched.graph", constant(1.42e-3, TIGHT)), 100 * 2**20)
    slow, near = (measurement("loop.eager", constant(seconds, TIGHT)) for seconds in (52.5e-3, 1.4202e-3))
    assert analysed(slow, fast).verdict == (
        "37 × [35, 39]: batched.graph is ahead of loop.eager. It takes 1.42 ms here today, ± 5 %, and 100.0 MiB "
        "of memory."
    )
    tie = analysed(fast, with_memory(near, 2**20)).verdict
    assert (
        tie == "Tie within 7 %: loop.eager and batched.graph, at 1.42 ms. Of these loop.eager needs 1.00 MiB of "
        "memory, the least."
    )


def test_a_tie_that_the_run_cannot_resolve_is_not_called_closer() -> None:
    run = analysed(measurement("a.graph", constant(1e-3, TIGHT)), measurement("b.graph", constant(1.0002e-3, TIGHT)))
    for resolution, words in ((0.001, "Tie within 7 %"), (0.085, "Tie within 9 %"), (0.21, "Cannot tell apart")):
        control = Control(strategy="a.graph", ratio=1, low=1, high=1, resolution=resolution)
        assert verdict(findings(replace(run, control=control))).startswith(words), resolution


def test_a_wrong_strategy_has_a_latency_and_no_rank() -> None:
    wrong = measurement("wrong.xla", constant(1e-4, TIGHT), outcome="wrong")
    run = analysed(wrong, measurement("right.graph", constant(1e-3, TIGHT)))
    assert run.ranking == [["right.graph"]] and run.measurement("wrong.xla").latency is not None
    assert run.verdict.startswith("right.graph takes 1.00 ms here today, ± "), "one alone is not called the fastest"
