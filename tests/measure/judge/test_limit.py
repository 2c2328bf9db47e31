"""The limit: roofs from made-up rates, multiples and the sentences in their place."""

import dataclasses
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import workloads
from measure.engine.host_launcher import HostLauncher
from measure.judge import limit, verdict
from measure.machine import allocator
from measure.model.request import case_of
from measure.model.roofline import Rates, Work
from measure.model.run import Limit, Run, Term
from measure.model.why import Why
from measure.output import columns, rows, table
from tests import synthetic
from tests.benchmarks.limit import AS_TIMED, LARGE, POOLED, faults, judgements, pool, rewrites_and_vectorised, variants
from tests.engine import measure, running, small_request
from views.charts import latency as latency_chart
from views.result import problems, strategy_table
from workloads.case import Case
from workloads.spec import Cost

GIGA = 1e9
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


@pytest.mark.parametrize(
    ("roof", "seconds", "term"),
    [
        (of(read=50_000_000, written=50_000_000), 0.01, "memory-bound"),
        # What is read beyond what is written is only read, and the other way round.
        (of(read=90_000_000, written=10_000_000), 0.002 + 0.004, "memory-bound"),
        (of(read=10_000_000, written=90_000_000), 0.002 + 0.016, "memory-bound"),
        (of(flops=1_000_000_000), 0.01, "compute-bound"),
        # One function after the other; arithmetic can go on beside them.
        (of(flops=100_000_000, sin=1_000_000, exp=4_000_000), 0.003, "compute-bound"),
        (of(read=400, written=400, flops=100), 8e-6, "dispatch-bound"),
        (of(), 8e-6, "dispatch-bound"),
    ],
)
def test_the_highest_roof_is_the_limit_and_is_named(roof: Limit, seconds: float, term: str) -> None:
    assert roof.seconds == pytest.approx(seconds)
    assert roof.term == term


def test_where_a_part_of_the_work_is_unknown_the_limit_is_of_bytes_alone_and_says_so() -> None:
    plain = workloads.get("per_example_gradients")

    def partly(**size: int) -> Cost:
        return Cost(flops=10**12, ops=1, functions={"sin": 10**12}, unknown=("Betainc", "Bincount"))

    size = {"batch": 1000, "features": 1000}
    asked = limit.work(Case(dataclasses.replace(plain, cost=partly), size, "float32", {}))
    roof = limit.limit(asked, RATES)
    assert (roof.term, roof.flops, roof.functions) == ("memory-bound", 0, {})
    said = limit.describe(roof)
    assert said.endswith(" GB/s (of bytes alone, since the work of Betainc, Bincount is not known)")
    run = synthetic.run(unhappy=False)
    assert said in table.render(replace(run, limit=roof))
    # A limit of all work is written as it always was.
    assert b"unknown" not in msgspec.json.encode(of(read=4)) and "alone" not in limit.describe(of(read=4))


def test_the_bandwidth_of_a_case_is_that_of_its_own_reads_and_writes() -> None:
    roof = of(read=90_000_000, written=10_000_000)
    assert roof.bandwidth_bytes_per_s * 0.006 == pytest.approx(100_000_000) == pytest.approx(roof.bytes)
    assert of().bandwidth_bytes_per_s == RATES.copy_bytes_per_s, "of nothing, a number all the same"


@pytest.mark.parametrize(
    ("roof", "sentence"),
    [
        (of(read=50_000_000, written=50_000_000), "10.0 ms, memory-bound: 95.4 MiB at 10 GB/s"),
        (of(flops=1_000_000_000), "10.0 ms, compute-bound: 1 G FLOP at 100 GFLOP/s"),
        (of(sin=3_000_000), "3.00 ms, compute-bound: 3 M sin at 1 G/s"),
        (of(), "8.00 µs, dispatch-bound: one eager op"),
    ],
)
def test_the_limit_is_told_in_a_line(roof: Limit, sentence: str) -> None:
    assert limit.describe(roof) == sentence


def test_what_a_case_asks_for_is_its_metadata_times_the_batch() -> None:
    case = Case(workloads.get("attention"), {"batch": 10, "length": 4, "width": 8}, "float64")
    work = limit.work(case)
    sequence, variables = 4 * 8 * 8, 3 * 8 * 8 * 8
    assert work.read_bytes == 10 * sequence + variables
    assert work.written_bytes == 10 * sequence
    assert work.flops == 10 * case.cost.flops
    assert work.functions == {"exp": 10 * 4**2}
    assert work.dtype == "float64"


def test_every_function_of_every_workload_is_one_that_the_probes_know() -> None:
    named = set()
    for each in workloads.all():
        for options in [{}, *({option.name: value} for option in each.options for value in option.values or ())]:
            named |= set(Case(each, each.default_size(), each.dtypes[0], options).cost.functions)
    assert named == {"sqrt", "rsqrt", "sin", "cos", "exp", "tanh"}, "let the test of the probes measure the new one"


# --- multiples --------------------------------------------------------------------------------------------------------


def judged(seconds: float, roof: Limit | None = None, slug: str = "batched.xla") -> Any:
    """The measurement of a strategy that takes ``seconds``, beside a limit of 10 ms."""
    roof = roof or of(flops=1_000_000_000)
    run = synthetic.run(unhappy=False)
    mapper, _, mode = slug.partition(".")
    item = replace(
        run.measurements[0], strategy=slug, mapper=mapper, mode=mode, latency=synthetic.latency(seconds), why=Why()
    )
    return limit.judge(replace(run, limit=roof, measurements=[item])).measurements[0]


def test_a_multiple_is_latency_over_limit() -> None:
    assert limit.multiple(judged(0.025)) == pytest.approx(2.5)
    assert limit.note(judged(0.025)) == ""


def test_what_the_probes_cannot_tell_from_the_limit_is_at_it() -> None:
    assert limit.multiple(judged(0.0086)) == 1.0
    assert limit.multiple(judged(0.0084)) is None


@pytest.mark.parametrize(
    ("slug", "roof", "part"),
    [
        ("batched.xla", None, "batched comes to the same values with less arithmetic"),
        ("map_fn.xla", None, "XLA has simplified it"),
        ("map_fn.graph", None, "not all of its arithmetic is done"),
        ("batched.eager", of(sin=1_000_000), "less arithmetic, or its `sin` is quicker than the probe's"),
        ("batched.xla", of(sin=1_000_000, exp=1), "or its `sin`, `exp` are quicker than the probe's"),
        ("map_fn.graph", of(read=50_000_000, written=50_000_000), "moves its bytes faster than the probe could"),
        ("map_fn.graph", replace(of(), seconds=0.01), "the machine was busier when it was probed"),
        ("numpy.eager", replace(of(), seconds=0.01), "starts no op of TensorFlow's"),
    ],
)
def test_below_the_limit_a_sentence_stands_in_place_of_a_figure(slug: str, roof: Limit | None, part: str) -> None:
    item = judged(0.0005, roof, slug)
    assert limit.multiple(item) is None
    assert limit.note(item).startswith("faster than the theoretical floor") and part in limit.note(item)


def test_a_mapper_of_elsewhere_needs_no_entry_here() -> None:
    run = synthetic.run(unhappy=False)
    item = replace(run.measurements[0], mapper="somebodys_own", mode="eager", latency=synthetic.latency(1e-4))
    judged_item = limit.judge(replace(run, limit=of(flops=1_000_000_000), measurements=[item])).measurements[0]
    assert "not all of its arithmetic is done" in limit.note(judged_item)


def test_judging_anew_leaves_nothing_of_before() -> None:
    item = judged(0.001)
    run = replace(synthetic.run(unhappy=False), limit=None, measurements=[item])
    assert limit.judge(run).measurements[0].why == Why()


def test_the_benchmark_of_the_grid_finds_what_has_a_figure_below_1_or_nothing_at_all() -> None:
    run = synthetic.run(unhappy=False)
    roof = of(flops=1_000_000_000)
    by_time = {0.02: "a.graph", 0.001: "b.graph", 0.0087: "c.graph"}
    items = [replace(judged(seconds, slug=slug), strategy=slug) for seconds, slug in by_time.items()]
    good = replace(run, limit=roof, measurements=items)
    assert not list(faults(good))
    bare = [replace(item, why=Why()) for item in items]
    assert len(list(faults(replace(good, measurements=bare)))) == 3
    wrong = [replace(item, why=Why(times_limit=1.5)) for item in items]
    assert [line.split()[1] for line in faults(replace(good, measurements=wrong))] == ["b.graph:"]
    below = [replace(items[0], why=Why(times_limit=0.9))]
    assert list(faults(replace(good, measurements=below))) == [f"{run.request.workload} a.graph: 0.900 ×"]
    assert len(list(faults(replace(good, limit=None)))) == 3


def test_the_benchmark_looks_at_every_variant_at_a_size_of_megabytes() -> None:
    cases = list(variants([]))
    assert {case.workload for case in cases} == set(workloads.names()) >= set(LARGE)
    assert {("per_example_gradients", model) for model in ("mlp", "cnn")} <= {
        (case.workload, *case.options.values()) for case in cases
    }
    for case in cases:
        asked = case.request(rewrites_and_vectorised(case))
        assert asked.workload_options == {**workloads.get(case.workload).default_options(), **case.options}
        work = limit.work(case_of(asked))
        # What is computed from next to nothing is bound by its arithmetic, whatever its size.
        assert work.read_bytes + work.written_bytes > 4e6 or case.workload == "repeat_sum" or case.workload not in LARGE


def test_the_benchmark_judges_what_the_app_times_apart_from_what_a_pool_would_give(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert list(judgements({AS_TIMED: [1.0, 1.3, 1.6], POOLED: [1.0, 1.2, 1.4]})) == [
        "memory-bound as timed: 3, within 1.25 ×: 1, beyond 1.5 ×: 1",
        "memory-bound with TensorFlow's pool: 3, within 1.25 ×: 2, beyond 1.5 ×: 0",
    ]
    # Only hosts that are started meanwhile have it.
    monkeypatch.delenv("TF_CPU_ALLOCATOR_USE_BFC", raising=False)
    with pool():
        assert allocator.of_processor(os.environ, onednn=True) == allocator.BFC
    assert allocator.of_processor(os.environ, onednn=True) == allocator.POOL


def test_the_benchmark_takes_another_dtype_where_there_is_one() -> None:
    cases = {case.workload: case for case in variants(["square", "random"], "float64", default=True)}
    assert list(cases) == ["square"] and cases["square"].request().dtype == "float64"
    assert str(cases["square"]) == "square float64"


# --- where it is shown ------------------------------------------------------------------------------------------------


def shown(seconds: float) -> tuple[Run, list[rows.Row]]:
    """The run whose fastest strategy takes 1.42 ms, with a limit of so many seconds."""
    run = synthetic.run(unhappy=False)
    assert run.limit is not None
    run = limit.judge(replace(run, limit=replace(run.limit, seconds=seconds, term="compute-bound")))
    return run, rows.make(run)


def test_the_table_and_the_chart_show_the_multiple_and_the_verdict_does_not() -> None:
    run, listed = shown(0.00071)
    leader = listed[0]
    assert leader.of_limit == pytest.approx(2.0, rel=0.05)
    assert "limit" not in verdict.verdict(run)
    assert strategy_table.frame(listed, run)["× floor"].min() == pytest.approx(leader.of_limit)
    frame = latency_chart.frame(listed, latency_chart.floor_of(run))
    assert frame["× theoretical floor"][0] == f"{leader.of_limit:.2f} ×" and set(frame["floor"]) == {0.00071}
    assert "dashed: theoretical floor (estimate), 710 µs, compute-bound" in latency_chart.caption(listed, run)


def test_below_the_limit_no_figure_is_shown_anywhere() -> None:
    run, listed = shown(0.0022)
    beaten = [row for row in listed if row.median_s is not None and row.median_s < 0.0022 * 0.85]
    assert beaten and all(row.of_limit is None and row.of_limit_note for row in beaten)
    assert "the limit" not in verdict.verdict(run)
    assert "× floor" not in strategy_table.frame(listed, run) and latency_chart.floor_of(run) is None
    assert "floor" not in latency_chart.caption(listed, run)
    assert not [note for note in problems.notes(listed, run) if "floor" in note]


@pytest.mark.parametrize("term", ["memory-bound", "compute-bound", ""])
def test_a_limit_says_nothing_where_dispatch_sets_it_or_a_right_strategy_beats_it(term: Term) -> None:
    run, _ = shown(0.00071)
    assert run.limit is not None
    run = replace(run, limit=replace(run.limit, term=term))
    assert limit.tells(run)
    assert not limit.tells(replace(run, limit=None))
    assert not limit.tells(replace(run, limit=replace(run.limit, term="dispatch-bound")))
    first, *others = run.measurements
    beaten = replace(first, latency=synthetic.latency(0.0007))  # by less than probes may be off
    assert not limit.tells(replace(run, measurements=[beaten, *others]))
    assert limit.tells(replace(run, measurements=[replace(beaten, outcome="wrong"), *others]))
    assert limit.tells(replace(run, measurements=[replace(beaten, twin_of="a.xla"), *others]))


def test_what_is_at_the_limit_as_far_as_probes_can_tell_is_written_so() -> None:
    run, listed = shown(0.00155)  # 1.42 ms are 0.92 of it
    leader = listed[0]
    assert leader.of_limit == 1.0
    assert latency_chart.frame(listed, run.limit)["× theoretical floor"][0] == "≈ 1 ×"
    assert next(line for line in table.body(run) if line[0] == "1")[4] == "≈ 1 ×"
    # A page shows no floor that its leader stands left of.
    assert "× floor" not in strategy_table.frame(listed, run) and latency_chart.floor_of(run) is None
    (explanation,) = (column.help for column in columns.of("page") if column.page == "× floor")
    assert "±15 %" in explanation and "theoretical floor (estimate)" in explanation


# --- what fresh pages are part of -------------------------------------------------------------------------------------

MIB = 2**20


def paged(
    largest: int = 80 * MIB, tensors: str = "C library", libc: str = "glibc 2.36", device: str = "CPU:0", **more: Any
) -> Run:
    """A run with an output so large, whose tensors and arrays are handed out by these."""
    run = synthetic.run(unhappy=False)
    roof = replace(of(read=80 * MIB, written=80 * MIB), largest_output_bytes=largest, **more)
    environment = {"allocator": libc, "tensorflow_allocator": tensors}
    return replace(run, limit=roof, environment=environment, request=replace(run.request, device=device))


def with_numpy(run: Run) -> Run:
    first = replace(run.measurements[0], strategy="numpy_batched.eager", mapper="numpy_batched", mode="eager")
    return replace(run, measurements=[first, *run.measurements[1:]])


def test_where_an_output_is_beyond_what_the_c_library_keeps_it_is_said_whose_time_has_fresh_pages() -> None:
    said = limit.fresh_pages(paged())
    assert said == (
        "An output of 80.0 MiB is beyond the 32.0 MiB that the C library keeps: fresh pages from the system are part "
        "of every strategy's time, and not of the floor."
    )
    assert said in table.render(paged()) and said in latency_chart.caption([], paged(seconds=1e-4))
    own = paged(tensors="oneDNN's pool")
    assert limit.fresh_pages(own) == "", "TensorFlow keeps what it has freed"
    assert "part of the time of NumPy's strategies (TensorFlow keeps its own)" in limit.fresh_pages(with_numpy(own))


@pytest.mark.parametrize(
    "run",
    [
        paged(largest=32 * MIB),
        paged(largest=0),  # of an earlier Mapbench
        paged(libc="jemalloc (preloaded)"),
        paged(device="GPU:0"),
        paged(tensors="BFC"),
        paged(term="compute-bound"),
        replace(paged(), limit=None),
        replace(paged(), environment={}),
    ],
)
def test_where_pages_are_not_fresh_or_do_not_matter_or_nobody_knows_nothing_is_said(run: Run) -> None:
    assert limit.fresh_pages(run) == ""


def test_of_several_outputs_the_largest_counts() -> None:
    workload = workloads.get("per_example_gradients")
    size = {"batch": 10, "features": 8}
    for options, largest in (({}, 8), ({"model": "mlp"}, 8 * 16)):
        work = limit.work(Case(workload, size, "float32", options))
        assert work.largest_output_bytes == 10 * largest * 4 < work.written_bytes
        rates = replace(RATES, functions_per_s={"tanh": GIGA})
        assert limit.limit(work, rates).largest_output_bytes == work.largest_output_bytes


_KEPT = """
import resource
import numpy as np

def faults(mib):
    numbers = np.ones(mib * 2**18, np.float32)
    for _ in range(4):
        np.negative(numbers)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.negative(numbers)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(31), faults(33))
"""


@pytest.mark.skipif("glibc" not in platform.libc_ver(), reason="the blocks that are kept are those of glibc")
def test_the_c_library_keeps_blocks_up_to_where_the_sentence_begins() -> None:
    run = subprocess.run([sys.executable, "-c", _KEPT], capture_output=True, text=True, check=True)
    below, above = map(int, run.stdout.split())
    assert below < 16 <= above, "33 MiB are more than 16 large pages"


def test_a_run_has_its_limit_and_a_probe_that_fails_costs_nothing_else(
    host: HostLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = small_request("batched.eager")
    with running(host, tmp_path, probes=True) as own:
        run = measure(own, asked)
        monkeypatch.setattr("strategies.script.build_settings", lambda device, threads: "1 / 0")
        failed = measure(own, asked)
    assert run.limit is not None
    assert run.limit.bytes == 4 * (4 * 8 + 4) + 4 * (8 + 1) + 4 * 4 * (8 + 1), "inputs, variables, gradients"
    assert all(limit.multiple(item) or limit.note(item) for item in run.measurements)
    assert failed.limit is None and failed.status == "complete" and failed.ranking == [["batched.eager"]]
    assert "division by zero" in next(warning.message for warning in failed.warnings if warning.code == "no_limit")
