"""Break-even points: exact on hand-made costs, right about how often they are right, and said as what they are."""

import math

import numpy as np
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from measure.judge import payoff
from measure.judge.analysis import analyse
from measure.model.run import Latency, Measurement, Replica, Run
from measure.model.run_file import decode, encode
from measure.model.why import Why
from measure.statistics import break_even, intervals
from measure.statistics.break_even import Cost, Crossing
from measure.statistics.intervals import Level
from tests.engine import ROOT
from tests.samples import FACTORS, constant, measurement, run_of


def figure(value_s: float, down: float = 1.0, up: float = 1.0) -> Latency:
    return Latency(median_s=value_s, low_s=value_s * down, high_s=value_s * up)


def cost(first_s: float, further_s: float, *, first: float = 1.0, further: float = 1.0) -> Cost:
    """With intervals from value / factor to value · factor."""
    return Cost(figure(first_s, 1 / first, first), figure(further_s, 1 / further, further))


EAGER = cost(0.002, 0.002)


def test_where_all_is_known_exactly_the_costs_are_equal_at_the_break_even_point() -> None:
    # 0.101 + (n − 1) · 0.001 = 0.002 + (n − 1) · 0.002 at n = 100.
    crossing = break_even.crossing(cost(0.101, 0.001), EAGER)
    assert crossing.pays_off == "calls"
    assert (crossing.calls, crossing.low, crossing.high) == pytest.approx((100.0, 100.0, 100.0))


def test_the_scatter_of_the_first_call_alone_moves_the_ends_in_proportion() -> None:
    crossing = break_even.crossing(cost(0.1, 0.001, first=2.0), cost(1e-12, 0.002))
    # A first call of 50 to 200 ms is paid for after 50 to 200 calls that each save 1 ms.
    assert (crossing.calls, crossing.low, crossing.high) == pytest.approx((101.0, 51.0, 201.0))


def test_the_ends_are_where_the_interval_of_the_difference_begins_and_ceases_to_hold_zero() -> None:
    ours, theirs = cost(0.1, 0.001, first=1.3, further=1.1), cost(0.003, 0.0016, first=1.2, further=1.05)
    crossing = break_even.crossing(ours, theirs)
    assert crossing.calls is not None and crossing.low is not None and crossing.high is not None
    assert 1 < crossing.low < crossing.calls < crossing.high

    def ends(calls: float) -> tuple[float, float]:
        parts = [(1, ours.first), (calls - 1, ours.further), (-1, theirs.first), (1 - calls, theirs.further)]
        value = sum(factor * each.median_s for factor, each in parts)
        reach = [[(each.low_s - each.median_s) * f, (each.high_s - each.median_s) * f] for f, each in parts]
        down, up = (math.hypot(*(pick(each) for each in reach)) for pick in (min, max))
        return value - down, value + up

    assert ends(crossing.low)[0] == pytest.approx(0.0, abs=1e-12)
    assert ends(crossing.high)[1] == pytest.approx(0.0, abs=1e-12)


def test_what_starts_later_and_runs_slower_never_breaks_even() -> None:
    assert break_even.crossing(cost(0.1, 0.003, first=3.0, further=1.1), EAGER) == Crossing("never")


def test_what_starts_no_later_and_runs_faster_is_ahead_from_the_first_call() -> None:
    assert break_even.crossing(cost(0.001, 0.001), EAGER) == Crossing("from_first")
    assert break_even.crossing(cost(0.002, 0.001), EAGER) == Crossing("from_first")
    # Where the first calls' scatter leaves open which starts earlier, it may take a few calls.
    crossing = break_even.crossing(cost(0.001, 0.001, first=4.0), EAGER)
    assert (crossing.pays_off, crossing.calls, crossing.low) == ("calls", 1.0, 1.0) and crossing.high == pytest.approx(
        3.0
    )


def test_what_starts_earlier_and_runs_slower_is_ahead_only_for_so_long() -> None:
    crossing = break_even.crossing(EAGER, cost(0.101, 0.001))
    assert (crossing.pays_off, crossing.calls) == ("until", pytest.approx(100.0))


def test_latencies_that_overlap_decide_nothing_but_how_many_calls_it_takes_at_least() -> None:
    ours, theirs = cost(0.1, 0.0019, further=1.1), cost(0.002, 0.002, further=1.1)
    crossing = break_even.crossing(ours, theirs)
    assert (crossing.pays_off, crossing.calls, crossing.high) == ("undecided", None, None)
    # At the most, a call may save what the interval of the difference reaches to.
    saves = 0.0001 + math.hypot(0.0019 - 0.0019 / 1.1, 0.0002)
    assert crossing.low == pytest.approx(1 + 0.098 / saves)
    assert break_even.crossing(cost(0.002, 0.0019, further=1.1), cost(0.1, 0.002, further=1.1)).pays_off == "from_first"
    slower = cost(0.001, 0.0021, further=1.2)
    assert break_even.crossing(slower, theirs).pays_off == "undecided", "it may fall behind"


def test_ties_do_not_overtake_each_other() -> None:
    ours, theirs = cost(0.1, 0.00099), cost(0.002, 0.001)
    assert break_even.crossing(ours, theirs).pays_off == "calls"
    assert break_even.crossing(ours, theirs, tied=True).pays_off == "undecided"
    assert break_even.crossing(theirs, ours, tied=True).pays_off == "from_first"


def with_first_calls(item: Measurement, mode: str, first_s: list[float], **options: bool) -> Measurement:
    """``first_s``: one for each replica; the strategy reports its first process'."""
    replicas = [replace(replica, first_call_s=each) for replica, each in zip(item.replicas, first_s, strict=True)]
    return replace(item, mode=mode, options=dict(options), first_call_s=first_s[0], replicas=replicas)


def run_with(*items: Measurement) -> Run:
    return analyse(run_of(*items))


def test_the_spread_of_first_calls_is_that_of_later_processes_about_their_own_mean() -> None:
    # The first call of the first process is made alone, those of the others overlap: longer, and no scatter.
    item = with_first_calls(measurement("a.xla", constant(1e-3, FACTORS)), "xla", [0.1, 0.18, 0.22, 0.2, 0.2])
    deviation, degrees = break_even.first_call_spread([item, replace(item, strategy="b.xla")])
    assert deviation == pytest.approx(np.log([0.18, 0.22, 0.2, 0.2]).std(ddof=1)) and degrees == 6
    of_one, its_degrees = break_even.first_call_spread([item])
    assert its_degrees == 7 and deviation < of_one < break_even.ASSUMED_SPREAD
    assert break_even.first_call_spread([]) == (break_even.ASSUMED_SPREAD, 4.0)


def test_a_run_compares_each_compiled_strategy_that_is_right_with_each_eager_one() -> None:
    first_s = [0.1, 0.18, 0.22, 0.2, 0.2]
    early_s = [each / 50 for each in first_s]
    items = [
        with_first_calls(measurement("fast.xla", constant(1e-3, FACTORS)), "xla", first_s),
        with_first_calls(measurement("slow.graph", constant(9e-3, FACTORS)), "graph", first_s),
        with_first_calls(measurement("jit.eager", constant(1.5e-3, FACTORS)), "eager", first_s, jit_compile=True),
        with_first_calls(measurement("one.eager", constant(2e-3, FACTORS)), "eager", early_s),
        with_first_calls(measurement("two.eager", constant(4e-3, FACTORS)), "eager", early_s),
        with_first_calls(measurement("wrong.xla", constant(1e-4, FACTORS), outcome="wrong"), "xla", first_s),
        with_first_calls(measurement("wrong.eager", constant(5e-3, FACTORS), outcome="wrong"), "eager", early_s),
        with_first_calls(measurement("late.eager", constant(5e-3, FACTORS), outcome="timeout"), "eager", early_s),
        with_first_calls(measurement("fast.xla#twin", constant(1e-3, FACTORS), twin_of="fast.xla"), "xla", first_s),
    ]
    run = run_with(*items)
    pairs = {item.strategy: [(each.against, each.pays_off) for each in item.break_even] for item in run.measurements}
    both = [("one.eager", "calls"), ("two.eager", "calls")]
    assert {slug: each for slug, each in pairs.items() if each} == {
        "fast.xla": both,
        "slow.graph": [("one.eager", "never"), ("two.eager", "never")],
        "jit.eager": both,
    }
    crossing = run.measurement("fast.xla").break_even[0]
    # The levels are those of the three faster processes of five.
    saves_s = 1e-3 * math.prod(FACTORS[:3]) ** (1 / 3)
    assert crossing.calls == pytest.approx(1 + 0.098 / saves_s, rel=1e-3)
    assert crossing.low is not None and crossing.high is not None
    # The first call may be 1.18 times as long or as short (t with 18 degrees of freedom, deviation 0.08).
    assert 0.82 < crossing.low / crossing.calls < 0.86 and 1.17 < crossing.high / crossing.calls < 1.21
    known = payoff.table(run)
    assert known.eager == ("one.eager", "two.eager") and known.compiled == ("fast.xla", "jit.eager", "slow.graph")
    assert [pair.pays_off for pair in known.cells[2]] == ["never"] * 2
    assert analyse(run) == run
    tied = break_even.pairs(replace(run, ranking=[["fast.xla", "one.eager"], ["two.eager"]]))
    assert [each.pays_off for each in tied["fast.xla"]] == ["undecided", "calls"], "the run says that they tie"


def test_older_files_stay_as_they_are_and_are_shown_with_what_they_do_not_hold() -> None:
    now = decode((ROOT / "views/example_run.json").read_bytes())
    points = {item.strategy: [replace(each, pays_off=UNSET) for each in item.break_even] for item in now.measurements}
    measurements = [replace(item, break_even=points[item.strategy]) for item in now.measurements]
    old = encode(replace(now, measurements=measurements))
    run = decode(old)
    assert encode(run) == old and b"pays_off" not in old
    cells = payoff.table(run).cells
    assert cells and all(payoff.words(pair) for pairs in cells for pair in pairs)
    assert b'"pays_off": "' in encode(analyse(run))


def test_what_is_spent_once_per_process_is_known_where_it_was_measured() -> None:
    a, b = measurement("a", []), measurement("b", [])
    assert break_even.runtime_start_s([a, b]) is None
    known = [replace(a, why=Why(runtime_start_s=0.02)), replace(b, why=Why(runtime_start_s=0.1))]
    assert break_even.runtime_start_s([*known, replace(a, why=Why(runtime_start_s=None))]) == 0.1


@pytest.mark.parametrize(("first_spread", "processes_spread"), [(0.05, 0.02), (0.3, 0.02), (0.1, 0.05)])
def test_the_interval_covers_the_true_break_even_point_about_as_often_as_it_says(
    first_spread: float, processes_spread: float
) -> None:
    # 0.2 + (n − 1) · 0.001 = 0.01 + (n − 1) · 0.0015.
    truth, repeats, covered = 1 + 0.19 / 0.0005, 2_000, 0
    rng = np.random.default_rng(20_250_115)
    for _ in range(repeats):

        def drawn(first_s: float, further_s: float) -> tuple[Measurement, Latency]:
            logs = np.log(further_s) + rng.normal(0, processes_spread, 5)
            level = Level(float(logs.mean()), float(logs.var(ddof=1)) / 5, 4.0, 5)
            first = first_s * np.exp(rng.normal(0, first_spread, 5))
            # Those of later processes take longer, since they overlap.
            replicas = [
                Replica(id=index, calls_per_sample=1, first_call_s=float(each) * (2 if index else 1))
                for index, each in enumerate(first)
            ]
            item = Measurement(strategy="s", mapper="m", mode="xla", outcome="ok", replicas=replicas)
            latency = intervals.latency(level, 0.95)
            return replace(item, first_call_s=float(first[0]), latency=latency), latency

        items = [drawn(0.2, 0.001)[0], drawn(0.01, 0.0015)[0]]
        spread = break_even.first_call_spread(items)
        ours, theirs = (break_even.cost(item, spread, 0.95) for item in items)
        assert ours is not None and theirs is not None
        crossing = break_even.crossing(ours, theirs)
        low = crossing.low if crossing.low is not None else 1.0
        high = crossing.high if crossing.high is not None else math.inf
        covered += crossing.pays_off in ("calls", "undecided") and low <= truth <= high
    assert 0.935 <= covered / repeats <= 0.985, covered / repeats
