"""The five parts of the answer, on runs in which all is clear, nothing can be told, or hardly anything was measured."""

import pytest
from msgspec.structs import replace

import workloads
from measure.judge import advice, answer
from measure.judge.analysis import analyse, close
from measure.judge.verdict import unmeasured, verdict
from measure.model.run import Axis, Error, Measurement, Run
from strategies import script
from tests import synthetic
from tests.samples import constant, measurement, run_of

STEADY = [1.001, 1.0, 1.0, 1.0005, 1.0]


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


# --- what was measured -----------------------------------------------------------------------------------------------


def test_the_heading_names_the_case(run: Run) -> None:
    assert answer.heading(run) == "image_sqrt · 100×64×64×3 · float32 · CPU:0"
    limited = replace(run, request=replace(run.request, memory_limit_mib=512, threads=1, device="GPU:1"))
    assert answer.heading(limited) == "image_sqrt · 100×64×64×3 · float32 · limit 512 MiB · 1 thread · GPU:1"


def test_the_heading_of_a_sweep_names_what_is_swept(run: Run) -> None:
    swept = replace(run, kind="sweep", axes=[Axis(kind="size", name="batch", values=[1, 10, 1_000], scale="log")])
    sizes = "batch 1 to 1,000 · height 64 · width 64 · channels 3"
    assert answer.heading(swept) == f"image_sqrt · {sizes} · float32 · CPU:0"


def test_the_heading_of_a_case_that_is_not_known_here_names_its_sizes(run: Run) -> None:
    request = replace(run.request, workload="elsewhere", size={"batch": 1_000, "side": 8}, workload_options={"bits": 8})
    assert answer.heading(replace(run, request=request)) == (
        "elsewhere · batch 1,000 · side 8 · float32 · bits 8 · CPU:0"
    )


def test_a_chosen_option_of_a_workload_is_part_of_the_heading_and_a_default_is_not() -> None:
    workload, option = next((each, each.options[0]) for each in workloads.all() if each.options)
    other = next(value for value in option.values or () if value != option.default)
    request = replace(
        synthetic.run().request, workload=workload.slug, size=workload.default_size(), dtype=workload.dtypes[0]
    )
    for value, said in ((other, True), (option.default, False)):
        chosen = replace(synthetic.run(), request=replace(request, workload_options={option.name: value}))
        assert (f" · {option.name} {value} · " in answer.heading(chosen)) == said


# --- what to take ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("next_s", "ahead"), [(2.2e-3, "2.20 ×"), (1.25e-3, "25 %")])
def test_one_that_leads_is_clear_and_says_by_how_much(next_s: float, ahead: str) -> None:
    taken = answer.take(timed(batched__graph=1e-3, map_fn__graph=next_s))
    assert (taken.strategy, taken.word) == ("batched.graph", "clear")
    assert taken.reason == f"{ahead} ahead of the next" and not taken.again


def test_of_a_tie_the_one_with_the_least_memory_is_taken_and_can_be_settled() -> None:
    tied = timed(batched__graph=1e-3, map_fn__graph=1.0002e-3, loop__eager=5e-3)
    taken = answer.take(with_memory(tied, batched__graph=2**21, map_fn__graph=2**20, loop__eager=2**20))
    assert (taken.strategy, taken.word) == ("map_fn.graph", "tie")
    assert taken.reason == "two within 3 %, taken for its memory"
    assert set(taken.again) == {"batched.graph", "map_fn.graph"} and taken.budget_s == 60.0
    alike = answer.take(with_memory(tied, batched__graph=2**20, map_fn__graph=2**20, loop__eager=2**20))
    assert alike.reason.endswith("all with the same memory")


def test_a_tie_that_has_had_its_time_is_not_to_be_settled_again() -> None:
    tied = timed(batched__graph=1e-3, map_fn__graph=1.0002e-3)
    assert answer.take(replace(tied, request=replace(tied.request, budget_s=60.0))).again == ()


def test_where_a_run_cannot_tell_it_says_so_with_the_budget_that_is_enough(run: Run) -> None:
    noisy = [0.85, 0.92, 1.0, 1.1, 1.2]
    items = [measurement("batched.graph", constant(1e-3, noisy)), measurement("map_fn.graph", constant(1.1e-3, noisy))]
    blurred = asked_for(analyse(run_of(*items)))
    assert len(blurred.ranking) == 1 and blurred.control is None
    taken = answer.take(blurred)
    assert (
        taken.word == "cannot tell"
        and taken.reason == "two may be the fastest, as processes of one differ by more than they do"
    )
    coarse = answer.take(replace(blurred, control=replace(run.control, resolution=0.2)))
    assert coarse.reason == "two may be the fastest, as this run cannot tell differences under 20 %"


def test_a_single_process_of_each_asks_for_more_time() -> None:
    items = [measurement("batched.graph", constant(1e-3, [1.0])), measurement("map_fn.graph", constant(1.1e-3, [1.0]))]
    taken = answer.take(asked_for(analyse(run_of(*items))))
    assert taken.word == "cannot tell" and set(taken.again) == {"batched.graph", "map_fn.graph"}
    assert taken.budget_s == 20.0 and taken.reason.endswith("as a single process is too few")
    elsewhere = asked_for(analyse(run_of(*items)))
    elsewhere = replace(elsewhere, request=replace(elsewhere.request, workload="elsewhere"))
    assert answer.take(elsewhere).word == "cannot tell" and answer.take(elsewhere).again == ()


def untimed(slug: str, **changes: object) -> Measurement:
    return replace(measurement(slug, [], outcome="not_run"), **changes)


def test_whoever_could_have_won_and_was_not_timed_is_in_the_verdict_and_in_doubt() -> None:
    missing = [untimed(f"{mapper}.xla") for mapper in ("loop", "map_fn", "batched", "vectorized_map")]
    short = timed(batched__graph=1e-3, map_fn__graph=2e-3)
    short = asked_for(close(replace(short, measurements=[*short.measurements, *missing]), "budget", "spent", "now"))
    assert unmeasured(short) == ["loop.xla", "map_fn.xla", "batched.xla", "vectorized_map.xla"]
    said = verdict(short)
    assert said.startswith("batched.graph is fastest of the 2 that were timed: ")
    assert said.endswith(" Not timed, and perhaps faster: loop.xla, map_fn.xla, batched.xla and 1 more.")
    taken = answer.take(short)
    assert (taken.word, taken.reason) == ("cannot tell", "4 of 6 were not timed, and may be faster")
    assert set(taken.again) == set(short.request.strategies) and taken.budget_s > short.request.budget_s


@pytest.mark.parametrize(
    ("outcome", "error", "memory", "may_lead"),
    [
        ("cancelled", None, False, True),
        ("not_run", None, False, True),
        ("not_run", Error(type="Forecast", message="too large"), False, False),
        ("timeout", Error(type="Timeout", message="no answer"), False, False),
        ("timeout", Error(type="Timeout", message="no answer"), True, True),
        ("failed", Error(type="ValueError", message="no"), True, False),
        ("out_of_memory", None, False, False),
        ("wrong", None, True, False),
    ],
)
def test_who_may_lead_though_it_was_not_timed(outcome: str, error: Error | None, memory: bool, may_lead: bool) -> None:
    other = untimed("loop.xla", outcome=outcome, error=error)
    if memory:
        other = replace(other, memory=synthetic.run().measurements[0].memory)
    run = timed(batched__graph=1e-3, map_fn__graph=2e-3)
    run = replace(run, measurements=[*run.measurements, other])
    assert (unmeasured(run) == ["loop.xla"]) == may_lead


def test_one_strategy_is_no_choice_and_none_is_nothing() -> None:
    alone = timed(batched__graph=1e-3)
    assert answer.take(alone).reason == "no other was asked for"
    failed = replace(untimed("loop.xla", outcome="failed"), error=Error(type="ValueError", message="no"))
    both = asked_for(replace(alone, measurements=[*alone.measurements, failed]))
    assert (answer.take(both).word, answer.take(both).reason) == ("no choice", "no other has worked")
    nothing = asked_for(analyse(run_of(failed)))
    taken = answer.take(nothing)
    assert (taken.strategy, taken.word) == (None, "nothing")
    assert answer.against(nothing, None) == answer.costs(nothing, None) == answer.changes(nothing) == []


# --- ahead of what, at what cost, and what would change it -----------------------------------------------------------


def test_it_is_held_against_the_next_and_the_baseline() -> None:
    run = timed(batched__graph=1e-3, vectorized_map__graph=2e-3, map_fn__graph=4e-3, loop__eager=1.0)
    following, usual = answer.against(run, "map_fn.graph")
    assert (following.strategy, following.role) == ("vectorized_map.graph", "the next")
    assert (usual.strategy, usual.role) == ("map_fn.graph", "the baseline")
    assert following.ratio == pytest.approx(2.0, rel=0.01) and usual.low < usual.ratio < usual.high
    (both,) = answer.against(run, "vectorized_map.graph")
    assert (both.strategy, both.role) == ("vectorized_map.graph", "the next")
    assert [other.role for other in answer.against(run, "batched.graph")] == ["the next"], "not against itself"


def test_behind_a_tie_of_all_the_next_is_the_other_one() -> None:
    run = timed(batched__graph=1e-3, map_fn__graph=1.0002e-3)
    assert [other.strategy for other in answer.against(run, None)] == [run.ranking[0][1]]


def test_memory_is_told_beside_the_least_and_the_usual(run: Run) -> None:
    ranked = with_memory(
        timed(batched__graph=1e-3, map_fn__graph=4e-3, loop__eager=1.0),
        batched__graph=4 * 2**20, map_fn__graph=2 * 2**20, loop__eager=2**20,
    )  # fmt: skip
    assert answer.costs(ranked, "map_fn.graph")[0] == (
        "Memory: 4.00 MiB; the least is 1.00 MiB, loop.eager; map_fn.graph needs 2.00 MiB."
    )
    thrifty = with_memory(ranked, batched__graph=2**20, map_fn__graph=2 * 2**20, loop__eager=2**20)
    assert answer.costs(thrifty, None)[0] == "Memory: 1.00 MiB, no other needs less."


def test_calls_until_it_has_paid_are_told_where_another_is_cheaper_before(run: Run) -> None:
    assert run.ranking[0][0] == "batched.xla"
    (first,) = [line for line in answer.costs(run, "map_fn.graph") if line.startswith("First call: ")]
    assert first.startswith("First call: 81.0 ms; in total it is cheaper than batched.eager after ")
    assert first.endswith(" calls.")
    eager = timed(batched__eager=1e-3, map_fn__graph=2e-3)
    assert not [line for line in answer.costs(eager, None) if "cheaper" in line]


def test_lines_that_differ_from_the_baseline_are_counted(run: Run) -> None:
    assert answer.costs(run, "map_fn.graph")[-1] == "Code: 1 line differs from map_fn.graph."
    assert "Code" not in " ".join(answer.costs(run, "batched.xla")), "not from itself"
    long = replace(run.measurements[0], code=replace(run.measurements[0].code, source="x = 1\n" * 2_000))
    run = replace(run, measurements=[long, *run.measurements[1:]])
    assert "Code" not in " ".join(answer.costs(run, "map_fn.graph")), "a page waits for it"


def test_other_modes_less_memory_and_values_that_repeat_would_change_it() -> None:
    run = timed(batched__xla=1e-3, batched__graph=1.5e-3, vectorized_map__graph=1.6e-3, loop__eager=9e-3)
    run = with_memory(
        run, batched__xla=4 * 2**20, batched__graph=4 * 2**20, vectorized_map__graph=2**20, loop__eager=2**20
    )
    assert answer.changes(run) == [
        "In eager code: loop.eager, 9.00 ms.",
        "In a graph: batched.graph, 1.50 ms.",
        "For the least memory: vectorized_map.graph, 1.00 MiB and 1.60 ms.",
    ]
    warning = advice.compiled_values(1e-4, 0.05)
    assert warning is not None
    once = replace(steady("map_fn.xla", 1e-4), warnings=[warning])
    run = analyse(replace(run, measurements=[*run.measurements, once]))
    assert run.ranking[0] == ["batched.xla"]
    assert answer.changes(run)[-1] == "If the same values come again: map_fn.xla, 100 µs."


def test_the_lines_that_map_are_taken_from_the_script() -> None:
    case = answer.case_of(synthetic.run().request)
    assert script.mapping(script.build(case, "batched.xla")) == (
        "def batched(images):\n    return tf.sqrt(images)\n\n"
        "@tf.function(jit_compile=True)\ndef strategy(elems):\n    return batched(elems)"
    )
    lines = script.mapping(script.build(case, "map_fn.graph"))
    assert "return tf.map_fn(fn, elems" in lines and lines.endswith("return map_with_map_fn(element, elems, signature)")
    assert "def map_in_chunks" not in script.mapping(script.build(case, "chunked.graph"))
    assert script.mapping("elems = 1\n") == ""


def test_of_many_that_tie_the_verdict_names_five() -> None:
    seconds = {
        f"{mapper}__{mode}": 1e-3 for mapper in ("batched", "map_fn", "loop") for mode in ("eager", "graph", "xla")
    }
    run = timed(**seconds)
    assert len(run.ranking[0]) == 9
    assert " and 4 more, at 1.00 ms" in verdict(run) and verdict(run).count(".eager") < 4
