"""The five parts of the answer, on runs in which all is clear, nothing can be told, or hardly anything was measured."""

import pytest
from msgspec.structs import replace

from measure.judge import answer
from measure.judge.analysis import analyse, close
from measure.judge.verdict import unmeasured, verdict
from measure.run.run import TIME_OVER, Axis, Error, Measurement, Run
from tests import synthetic
from tests.samples import constant, measurement, run_of

STEADY = [1.001, 1.0, 1.0, 1.0005, 1.0]
MIB = 2**20


@pytest.fixture
def run() -> Run:
    return synthetic.run(unhappy=False)


def timed(**seconds: float) -> Run:
    """A comparison of steady strategies, ``mapper__mode`` and seconds of a call."""
    items = [steady(slug.replace("__", "."), value) for slug, value in seconds.items()]
    return asked_for(analyse(run_of(*items)))


def steady(slug: str, seconds: float) -> Measurement:
    mapper, mode = slug.split(".")
    return replace(measurement(slug, constant(seconds, STEADY)), mapper=mapper, mode=mode)


def asked_for(run: Run) -> Run:
    """The run with a request for just what it holds."""
    slugs = [item.strategy for item in run.measurements if item.twin_of is None]
    return replace(run, request=replace(synthetic.run().request, strategies=slugs, budget_s=9.0))


def with_memory(run: Run, **peak_bytes: int) -> Run:
    """The run with these peaks, ranked by them."""
    usual = synthetic.run().measurements[0].memory
    assert usual is not None
    peaks = {name.replace("__", "."): peak for name, peak in peak_bytes.items()}
    items = [
        replace(item, memory=replace(usual, peak_bytes=peaks[item.strategy])) if item.strategy in peaks else item
        for item in run.measurements
    ]
    return analyse(replace(run, measurements=items))


def test_the_heading_names_the_case(run: Run) -> None:
    assert answer.heading(run) == "image_sqrt · 100×64×64×3 · float32 · CPU:0"
    limited = replace(run, request=replace(run.request, memory_limit_mib=512, threads=1, device="GPU:1"))
    assert answer.heading(limited) == "image_sqrt · 100×64×64×3 · float32 · limit 512 MiB · 1 thread · GPU:1"
    swept = replace(run, kind="sweep", axes=[Axis(kind="size", name="batch", values=[1, 10, 1_000], scale="log")])
    sizes = "batch 1 to 1,000 · height 64 · width 64 · channels 3"
    assert answer.heading(swept) == f"image_sqrt · {sizes} · float32 · CPU:0"
    request = replace(run.request, workload="elsewhere", size={"batch": 1_000, "side": 8}, workload_options={"bits": 8})
    unknown = "elsewhere · batch 1,000 · side 8 · float32 · bits 8 · CPU:0"
    assert answer.heading(replace(run, request=request)) == unknown


def test_one_that_leads_is_clear_and_says_by_how_much() -> None:
    for next_s, ahead in ((2.2e-3, "2.20 ×"), (1.25e-3, "25 %")):
        taken = answer.take(timed(batched__graph=1e-3, map_fn__graph=next_s))
        assert (taken.strategy, taken.word) == ("batched.graph", "clear")
        assert taken.reason.startswith(ahead) and not taken.again


def test_of_a_tie_the_one_with_the_least_memory_is_taken_and_can_be_settled() -> None:
    tied = timed(batched__graph=1e-3, map_fn__graph=1.0002e-3, loop__eager=5e-3)
    taken = answer.take(with_memory(tied, batched__graph=2 * MIB, map_fn__graph=MIB, loop__eager=MIB))
    assert (taken.strategy, taken.word) == ("map_fn.graph", "tie") and "7 %" in taken.reason
    assert set(taken.again) == {"batched.graph", "map_fn.graph"} and taken.budget_s == 60.0
    settled = replace(tied, request=replace(tied.request, budget_s=60.0))
    assert answer.take(settled).again == (), "it has had its time"


def test_where_a_run_cannot_tell_it_says_why_and_what_budget_is_enough(run: Run) -> None:
    noisy = [0.85, 0.92, 1.0, 1.1, 1.2]
    items = [measurement("batched.graph", constant(1e-3, noisy)), measurement("map_fn.graph", constant(1.1e-3, noisy))]
    blurred = asked_for(analyse(run_of(*items)))
    assert len(blurred.ranking) == 1 and blurred.control is None
    coarse = replace(blurred, control=replace(run.control, resolution=0.25))
    assert answer.take(blurred).word == answer.take(coarse).word == "cannot tell"
    assert "25 %" in answer.take(coarse).reason and "25 %" not in answer.take(blurred).reason
    elsewhere = replace(blurred, request=replace(blurred.request, workload="elsewhere"))
    assert answer.take(blurred).again and not answer.take(elsewhere).again, "it cannot be measured here"


def untimed(slug: str, **changes: object) -> Measurement:
    return replace(measurement(slug, [], outcome="not_run"), **changes)


def test_whoever_could_have_won_and_was_not_timed_is_in_the_verdict_and_in_doubt() -> None:
    missing = [untimed(f"{mapper}.xla") for mapper in ("loop", "map_fn", "batched", "vectorized_map")]
    short = timed(batched__graph=1e-3, map_fn__graph=2e-3)
    short = asked_for(close(replace(short, measurements=[*short.measurements, *missing]), "budget", "spent", "now"))
    assert unmeasured(short) == ["loop.xla", "map_fn.xla", "batched.xla", "vectorized_map.xla"]
    assert verdict(short).startswith("batched.graph is fastest of the 2 that were timed, ")
    assert verdict(short).endswith("loop.xla, map_fn.xla, batched.xla and 1 more.")
    taken = answer.take(short)
    assert taken.word == "cannot tell" and taken.reason.startswith("4 of 6 were not timed")
    assert set(taken.again) == set(short.request.strategies) and taken.budget_s > short.request.budget_s


def test_who_may_lead_though_it_was_not_timed() -> None:
    run = timed(batched__graph=1e-3, map_fn__graph=2e-3)
    memory = synthetic.run().measurements[0].memory
    for other, may_lead in (
        (untimed("loop.xla", outcome="cancelled"), True),
        (untimed("loop.xla"), True),
        (untimed("loop.xla", error=Error(type=TIME_OVER, message="no time")), True),
        (untimed("loop.xla", error=Error(type="Forecast", message="too large")), False),
        (untimed("loop.xla", outcome="timeout", error=Error(type="Timeout", message="no answer")), False),
        (untimed("loop.xla", outcome="timeout", error=Error(type="Timeout", message="no"), memory=memory), True),
        (untimed("loop.xla", outcome="failed", error=Error(type="ValueError", message="no"), memory=memory), False),
        (untimed("loop.xla", outcome="out_of_memory"), False),
        (untimed("loop.xla", outcome="wrong", memory=memory), False),
    ):
        found = unmeasured(replace(run, measurements=[*run.measurements, other]))
        assert (found == ["loop.xla"]) == may_lead, other.outcome


def test_one_strategy_is_no_choice_and_none_is_nothing() -> None:
    alone = timed(batched__graph=1e-3)
    failed = replace(untimed("loop.xla", outcome="failed"), error=Error(type="ValueError", message="no"))
    both = asked_for(replace(alone, measurements=[*alone.measurements, failed]))
    assert answer.take(alone).word == answer.take(both).word == "no choice"
    nothing = asked_for(analyse(run_of(failed)))
    taken = answer.take(nothing)
    assert (taken.strategy, taken.word) == (None, "nothing")
    assert answer.against(nothing, None) == answer.costs(nothing, None) == answer.changes(nothing) == []


def test_it_is_held_against_the_next_and_the_baseline() -> None:
    run = timed(batched__graph=1e-3, vectorized_map__graph=2e-3, map_fn__graph=4e-3, loop__eager=1.0)
    following, usual = answer.against(run, "map_fn.graph")
    assert (following.strategy, following.role) == ("vectorized_map.graph", "the next")
    assert (usual.strategy, usual.role) == ("map_fn.graph", "the baseline")
    assert following.ratio == pytest.approx(2.0, rel=0.01) and usual.low < usual.ratio < usual.high
    assert [other.role for other in answer.against(run, "batched.graph")] == ["the next"], "not against itself"
    tie = timed(batched__graph=1e-3, map_fn__graph=1.0002e-3)
    assert [other.strategy for other in answer.against(tie, None)] == [tie.ranking[0][1]]


def test_memory_first_call_and_lines_of_code_are_what_it_costs(run: Run) -> None:
    ranked = with_memory(
        timed(batched__graph=1e-3, map_fn__graph=4e-3, loop__eager=1.0),
        batched__graph=4 * MIB, map_fn__graph=2 * MIB, loop__eager=MIB,
    )  # fmt: skip
    memory = answer.costs(ranked, "map_fn.graph")[0]
    assert all(part in memory for part in ("4.00 MiB", "1.00 MiB, loop.eager", "map_fn.graph needs 2.00 MiB"))
    first, code = answer.costs(run, "map_fn.graph")[1:]
    assert "81.0 ms" in first and "cheaper than batched.eager after " in first
    assert code.startswith("Code: 1 line differs")
    assert "Code" not in " ".join(answer.costs(run, "batched.xla")), "not from itself"
    eager = timed(batched__eager=1e-3, map_fn__graph=2e-3)
    assert not [line for line in answer.costs(eager, None) if "cheaper" in line]


def test_other_modes_and_less_memory_would_change_it() -> None:
    run = timed(batched__xla=1e-3, batched__graph=1.5e-3, vectorized_map__graph=1.8e-3, loop__eager=9e-3)
    run = with_memory(
        run, batched__xla=4 * MIB, batched__graph=4 * MIB, vectorized_map__graph=MIB, loop__eager=MIB
    )  # fmt: skip
    eager, graph, thrifty = answer.changes(run)
    assert "loop.eager, 9.00 ms" in eager and "batched.graph, 1.50 ms" in graph
    assert "vectorized_map.graph, 1.00 MiB and 1.80 ms" in thrifty


def test_that_each_outcome_says_why_is_said_where_it_does() -> None:
    run = synthetic.run()
    for outcomes, begins in (
        (("failed", "unsupported"), "No strategy could be measured: the outcome of each says why."),
        (("wrong", "not_run"), "No strategy is right"),
        (("not_run", "cancelled"), "No latency was measured before the run ended; memory and correctness are shown."),
    ):
        items = [replace(item, outcome=word) for item, word in zip(run.measurements, outcomes, strict=False)]
        assert verdict(replace(run, ranking=[], measurements=items)).startswith(begins), outcomes
    items = [replace(item, outcome="not_run", memory=None) for item in run.measurements]
    assert verdict(replace(run, ranking=[], measurements=items)) == "Nothing was measured before the run ended."
