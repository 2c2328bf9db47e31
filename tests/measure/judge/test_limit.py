"""The limit: roofs from made-up rates, multiples and the sentences in their place."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import workloads
from measure.judge import limit
from measure.model.roofline import Rates, Work
from measure.model.run import Limit, Run
from measure.model.why import Why
from measure.output import rows, table
from tests import subjects, synthetic
from tests.engine import measure, running, small_request
from tests.subjects import Subjects
from views.charts import latency as latency_chart
from workloads.case import Case

GIGA, MIB = 1e9, 2**20
RATES = Rates(
    copy_bytes_per_s=10 * GIGA,
    read_bytes_per_s=20 * GIGA,
    write_bytes_per_s=5 * GIGA,
    flops_per_s=100 * GIGA,
    functions_per_s={"sin": 1 * GIGA, "exp": 2 * GIGA},
    op_s=8e-6,
    call_s=150e-6,
)


def of(read: int = 0, written: int = 0, flops: int = 0, **functions: int) -> Limit:
    return limit.limit(Work(read_bytes=read, written_bytes=written, flops=flops, functions=functions), RATES)


def test_the_highest_roof_is_the_limit_and_is_named() -> None:
    for roof, seconds, said in (
        (of(read=50_000_000, written=50_000_000), 0.01, "10.0 ms, memory-bound: 95.4 MiB at 10 GB/s"),
        # What is read beyond what is written is only read, and the other way round.
        (of(read=90_000_000, written=10_000_000), 0.002 + 0.004, "6.00 ms, memory-bound: "),
        (of(read=10_000_000, written=90_000_000), 0.002 + 0.016, "18.0 ms, memory-bound: "),
        (of(flops=1_000_000_000), 0.01, "10.0 ms, compute-bound: 1 G FLOP at 100 GFLOP/s"),
        # One function after the other; arithmetic can go on beside them.
        (of(flops=100_000_000, sin=1_000_000, exp=4_000_000), 0.003, "3.00 ms, compute-bound: "),
        (of(sin=3_000_000), 0.003, "3.00 ms, compute-bound: 3 M sin at 1 G/s"),
        (of(read=400, written=400, flops=100), 8e-6, "8.00 µs, dispatch-bound: one eager op"),
    ):
        assert roof.seconds == pytest.approx(seconds)
        assert limit.describe(roof).startswith(said)
    roof = of(read=90_000_000, written=10_000_000)
    assert roof.bandwidth_bytes_per_s * 0.006 == pytest.approx(100_000_000) == pytest.approx(roof.bytes)
    assert of().bandwidth_bytes_per_s == RATES.copy_bytes_per_s, "of nothing, a number all the same"


def test_what_a_case_asks_for_is_its_metadata_times_the_batch() -> None:
    case = Case(workloads.get("attention"), {"batch": 10, "length": 4, "width": 8}, "float64")
    work = limit.work(case)
    sequence, variables = 4 * 8 * 8, 3 * 8 * 8 * 8
    assert work.read_bytes == 10 * sequence + variables
    assert work.written_bytes == 10 * sequence
    assert work.flops == 10 * case.cost.flops
    assert work.functions == {"exp": 10 * 4**2}
    assert work.dtype == "float64"


def test_a_run_has_its_limit_and_probes_that_fail_cost_nothing_else(tmp_path: Path) -> None:
    asked = small_request("batched.eager")
    failing = Subjects(answers={"probes": lambda spec: [subjects.error(message="division by zero")]})
    found = []
    for launcher in (Subjects(), failing):
        with running(launcher, tmp_path, probes=True) as own:
            found.append(measure(own, asked))
    run, failed = found
    assert run.limit is not None
    assert run.limit.bytes == 4 * (4 * 8 + 4) + 4 * (8 + 1) + 4 * 4 * (8 + 1), "inputs, variables, gradients"
    assert all(limit.multiple(item) or limit.note(item) for item in run.measurements)
    assert failed.limit is None and failed.status == "complete" and failed.ranking == [["batched.eager"]]
    assert "division by zero" in next(warning.message for warning in failed.warnings if warning.code == "no_limit")


# --- multiples -------------------------------------------------------------------------------------------------------


def judged(seconds: float, roof: Limit | None = None, slug: str = "batched.xla") -> Any:
    """The measurement of a strategy that takes ``seconds``, beside a limit of 10 ms."""
    roof = roof or of(flops=1_000_000_000)
    run = synthetic.run(unhappy=False)
    mapper, _, mode = slug.partition(".")
    item = replace(
        run.measurements[0], strategy=slug, mapper=mapper, mode=mode, latency=synthetic.latency(seconds), why=Why()
    )
    return limit.judge(replace(run, limit=roof, measurements=[item])).measurements[0]


def test_a_multiple_is_latency_over_limit_and_1_for_what_the_probes_cannot_tell_from_it() -> None:
    assert limit.multiple(judged(0.025)) == pytest.approx(2.5) and limit.note(judged(0.025)) == ""
    assert limit.multiple(judged(0.0086)) == 1.0
    assert limit.multiple(judged(0.0084)) is None
    run = replace(synthetic.run(unhappy=False), limit=None, measurements=[judged(0.001)])
    assert limit.judge(run).measurements[0].why == Why(), "judging anew leaves nothing of before"


def test_below_the_limit_a_sentence_stands_in_place_of_a_figure() -> None:
    for slug, roof, part in (
        ("batched.xla", None, "less arithmetic"),
        ("map_fn.xla", None, "XLA has simplified it"),
        ("somebodys_own.eager", None, "not all of its arithmetic is done"),
        ("batched.xla", of(sin=1_000_000, exp=1), "or its `sin`, `exp` are quicker than the probe's"),
        ("map_fn.graph", of(read=50_000_000, written=50_000_000), "moves its bytes faster than the probe could"),
        ("map_fn.graph", replace(of(), seconds=0.01), "the machine was busier when it was probed"),
        ("numpy.eager", replace(of(), seconds=0.01), "starts no op of TensorFlow's"),
    ):
        item = judged(0.0005, roof, slug)
        assert limit.multiple(item) is None and part in limit.note(item)


def test_a_limit_says_nothing_where_dispatch_sets_it_or_a_right_strategy_beats_it() -> None:
    run = synthetic.run(unhappy=False)  # whose fastest strategy takes 1.42 ms
    run = limit.judge(replace(run, limit=replace(run.limit, seconds=0.00071, term="compute-bound")))
    assert rows.make(run)[0].of_limit == pytest.approx(2.0, rel=0.05) and limit.tells(run)
    assert not limit.tells(replace(run, limit=None))
    assert not limit.tells(replace(run, limit=replace(run.limit, term="dispatch-bound")))
    first, *others = run.measurements
    beaten = replace(first, latency=synthetic.latency(0.0007))  # by less than probes may be off
    assert not limit.tells(replace(run, measurements=[beaten, *others]))
    assert limit.tells(replace(run, measurements=[replace(beaten, outcome="wrong"), *others]))
    assert limit.tells(replace(run, measurements=[replace(beaten, twin_of="a.xla"), *others]))


# --- what fresh pages are part of ------------------------------------------------------------------------------------


def paged(faults: float, share: float) -> Run:
    """A run whose first strategy takes so many page faults a call, and spends this share of its time in the kernel."""
    run = synthetic.run(unhappy=False)
    first, *others = run.measurements
    replicas = [
        replace(each, faults=[faults] * len(each.samples_s), kernel_s=[share * seconds for seconds in each.samples_s])
        for each in first.replicas
    ]
    return replace(run, measurements=[replace(first, replicas=replicas), *others])


def test_a_strategy_whose_calls_take_many_page_faults_and_spend_time_on_them_is_named() -> None:
    run = paged(6_400, 0.2)
    said = limit.fresh_pages(run)
    assert f"{run.measurements[0].strategy} (6,400 page faults a call)." in said and said.count("page faults") == 1
    assert said in table.render(run) and said in latency_chart.caption([], run)
    assert not any(map(limit.fresh_pages, (paged(99, 0.2), paged(6_400, 0.05), synthetic.run(unhappy=False))))
