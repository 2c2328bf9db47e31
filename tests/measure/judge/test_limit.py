"""The limit: roofs from made-up rates, multiples and the sentences in their place."""

from typing import Any

import pytest
from msgspec.structs import replace

import workloads
from measure.judge import limit
from measure.judge.findings import findings
from measure.run.roofline import Rates, Work
from measure.run.run import Limit
from measure.run.why import Why
from tests import synthetic
from workloads.case import Case

GIGA = 1e9
RATES = Rates(bytes_per_s=10 * GIGA, flops_per_s=100 * GIGA, op_s=8e-6, call_s=150e-6)


def of(moved: int = 0, flops: int = 0) -> Limit:
    return limit.limit(Work(read_bytes=moved // 2, written_bytes=moved // 2, flops=flops), RATES)


def test_the_highest_roof_is_the_limit_and_is_named() -> None:
    for roof, seconds, words in (
        (of(moved=100_000_000), 0.01, "10.0 ms, memory-bound: 95.4 MiB at 10 GB/s"),
        (of(flops=1_000_000_000), 0.01, "10.0 ms, compute-bound: 1,000 MFLOP at 100 GFLOP/s"),
        (of(moved=800, flops=100), 8e-6, "8.00 µs, dispatch-bound: one eager op"),
    ):
        assert roof.seconds == pytest.approx(seconds) and limit.describe(roof) == words
    assert of().bandwidth_bytes_per_s == RATES.bytes_per_s


def test_what_a_case_asks_for_is_its_bytes_and_some_of_its_elements_are_counted() -> None:
    case = Case(workloads.get("attention"), {"batch": 10, "length": 4, "width": 8}, "float64")
    work = limit.work(case)
    sequence, variables = 4 * 8 * 8, 3 * 8 * 8 * 8
    assert work.read_bytes == 10 * sequence + variables
    assert work.written_bytes == 10 * sequence
    assert (work.dtype, work.flops) == ("float64", 0)
    assert limit.few_of(case).size == {"batch": 8, "length": 4, "width": 8}
    assert limit.few_of(Case(workloads.get("outer_product"), {"batch": 10, "side": 64}, "float32")).batch == 1


def judged(seconds: float) -> Any:
    """The measurement of a strategy that takes ``seconds``, beside a limit of 10 ms."""
    run = synthetic.run(unhappy=False)
    item = replace(run.measurements[0], latency=synthetic.latency(seconds), why=Why())
    return limit.judge(replace(run, limit=of(flops=1_000_000_000), measurements=[item])).measurements[0].why


def test_a_multiple_is_latency_over_limit_and_1_for_what_the_probes_cannot_tell_from_it() -> None:
    assert judged(0.025).times_limit == pytest.approx(2.5) and not judged(0.025).limit_note
    assert judged(0.0086).times_limit == 1.0
    below = judged(0.0084)
    assert not below.times_limit and "counts the element function as it is written" in below.limit_note
    run = synthetic.run(unhappy=False)
    run = replace(run, limit=None, measurements=[replace(run.measurements[0], why=judged(0.001))])
    assert limit.judge(run).measurements[0].why == Why(), "judging anew leaves nothing of before"


def test_a_limit_says_nothing_where_dispatch_sets_it_or_a_right_strategy_beats_it() -> None:
    run = synthetic.run(unhappy=False)  # whose fastest strategy takes 1.42 ms
    run = limit.judge(replace(run, limit=replace(run.limit, seconds=0.00071, term="compute-bound")))
    assert findings(run).rows[0].of_limit == pytest.approx(2.0, rel=0.05) and limit.tells(run)
    assert not limit.tells(replace(run, limit=None))
    assert not limit.tells(replace(run, limit=replace(run.limit, term="dispatch-bound")))
    first, *others = run.measurements
    beaten = replace(first, latency=synthetic.latency(0.0007))  # by less than probes may be off
    assert not limit.tells(replace(run, measurements=[beaten, *others]))
    assert limit.tells(replace(run, measurements=[replace(beaten, outcome="wrong"), *others]))
    assert limit.tells(replace(run, measurements=[replace(beaten, twin_of="a.xla"), *others]))
