"""The findings of a comparison: rows, who leads, and how sure that is; headline, word and table say one thing."""

import itertools
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from measure.judge import answer, levels, reproduction, warnings
from measure.judge import findings as judged
from measure.judge.analysis import analyse, close
from measure.judge.findings import NOTHING_TOLD, TELLING, Findings, findings, front, open_question
from measure.judge.levels import has_samples
from measure.judge.verdict import verdict
from measure.output import export, table
from measure.run.encoding import decode, encode
from measure.run.run import TIME_OVER, Error, Measurement, OutcomeName, Run, Warning
from tests import synthetic
from tests.samples import FACTORS, constant, measurement, memory, run_of
from tests.simulation import Model, interfered, simulate

STEADY, NOISY = [1.001, 1.0, 1.0, 1.0005, 1.0], [0.55, 0.8, 1.0, 1.4, 2.0]


def timed(factors: list[float] = STEADY, /, **seconds: float) -> Run:
    """A comparison of strategies with one process for each of ``factors``; ``mapper__mode`` and seconds of a call."""
    items = []
    for name, value in seconds.items():
        mapper, _, mode = name.partition("__")
        items.append(replace(measurement(f"{mapper}.{mode}", constant(value, factors)), mapper=mapper, mode=mode))
    return asked_for(analyse(run_of(*items)))


def asked_for(run: Run) -> Run:
    """The run with a request for just what it holds."""
    slugs = [item.strategy for item in run.measurements if item.twin_of is None]
    return replace(run, request=replace(synthetic.run().request, strategies=slugs, budget_s=9.0))


def with_more(run: Run, *items: Measurement) -> Run:
    return asked_for(close(replace(run, measurements=[*run.measurements, *items]), "budget", "spent", "now"))


def untimed(slug: str, outcome: OutcomeName = "not_run", error: str = "", *, has_memory: bool = False) -> Measurement:
    item = replace(measurement(slug, []), outcome=outcome, memory=memory(1) if has_memory else None)
    return replace(item, error=Error(type=error, message="no")) if error else item


def few_samples(slug: str, seconds: float, processes: int, slices: int) -> Measurement:
    """A strategy with this many processes, each with this many slices."""
    return replace(measurement(slug, [[seconds] * slices] * processes), mapper=slug.partition(".")[0])


def test_of_very_many_leaders_no_pair_is_compared_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    run = timed(**{f"s{number}__graph": 1e-3 * 1.001**number for number in range(4)})
    ends = [findings(run).ratio(a.strategy, b.strategy) for a, b in itertools.permutations(run.measurements, 2)]
    assert findings(run).apart == pytest.approx(max(end.high for end in ends if end) - 1, rel=1e-12)
    monkeypatch.setattr(judged, "ratio", counting := mock.Mock(side_effect=levels.ratio))
    items = [replace(run.measurements[0], strategy=f"s{number}.graph") for number in range(300)]
    findings(replace(run, measurements=items, ranking=[[item.strategy for item in items]]))
    assert counting.call_count <= len(items)


def test_rows_are_in_the_order_of_the_latency_shown_right_ones_before_wrong_ones_before_the_others() -> None:
    rows = findings(synthetic.run(), "loop.eager").rows
    assert [row.slug for row in rows[:4]] == ["batched.xla", "batched.graph", "vectorized_map.xla", "batched.eager"]
    assert [row.rank for row in rows[:6]] == [1, 1, 3, 3, 5, 6]
    assert rows[11].slug == "dataset.graph" and rows[11].outcome == "wrong" and rows[11].rank is None
    assert {row.outcome for row in rows[12:]} == {"timeout", "out_of_memory", "failed", "unsupported", "cancelled"}
    assert not any("#twin" in row.slug for row in rows), "twins are no rows"
    assert findings(run_of()).rows == [], "a run with nothing in it yet"


def test_a_factor_is_the_baselines_latency_over_its_own_with_its_interval() -> None:
    run = synthetic.run()
    found = findings(run, "loop.eager")
    fast, base = found.row("batched.xla"), found.row("loop.eager")
    assert fast.factor.ratio == pytest.approx(base.median_s / fast.median_s)
    assert fast.factor.low < fast.factor.ratio < fast.factor.high and base.factor.ratio == 1.0
    assert fast.of_limit == pytest.approx(fast.median_s / run.limit.seconds)


def test_the_baseline_is_what_is_wanted_or_usual_or_first_however_well_it_was_timed() -> None:
    for wanted, chosen in ((("map_fn.xla",), "map_fn.xla"), (("gone", None), "map_fn.graph"), ((), "map_fn.graph")):
        assert findings(synthetic.run(), *wanted).baseline == chosen
    run = timed(batched__graph=0.1, map_fn__xla=0.2, vectorized_map__graph=0.3)
    assert findings(run).baseline == "batched.graph", "and not the slowest"
    for item, why in (
        (untimed("map_fn.graph"), "map_fn.graph was not timed"),
        (untimed("map_fn.graph", "failed", "ValueError"), "map_fn.graph failed"),
        (replace(timed(map_fn__graph=0.4).measurements[0], outcome="wrong"), "map_fn.graph is wrong"),
        (few_samples("map_fn.graph", 5.0, 1, 9), "map_fn.graph has too few samples"),
    ):
        found = findings(with_more(run, item))
        assert found.baseline == "map_fn.graph" and found.baseline_problem == why
        assert {row.factor for row in found.rows} == {None} and f"No speedup: {why}." in verdict(found)
    assert findings(synthetic.run()).baseline_problem == ""


def test_a_ratio_needs_five_slices_and_two_processes_of_either_side() -> None:
    for processes, slices, is_told in ((2, 3, True), (1, 9, False), (2, 2, False), (5, 1, True)):
        run = with_more(
            timed(batched__graph=1e-3, map_fn__graph=2e-3), few_samples("loop.eager", 9e-3, processes, slices)
        )
        found = findings(run, "loop.eager")
        assert (found.row("batched.graph").factor is not None) == (
            found.ratio("loop.eager", "batched.graph") is not None
        )
        assert (found.row("batched.graph").factor is not None) == is_told and found.missing == []
        near = findings(with_more(run, few_samples("loop.graph", 2.9e-3, processes, slices)))
        assert (near.missing == ["loop.graph"]) != is_told, "it may be faster: other programs make samples longer"
        assert near.row("loop.graph").rank is None or is_told


def test_a_strategy_that_was_not_timed_keeps_its_rough_latency_in_gray_and_out_of_ratios() -> None:
    rough = replace(untimed("loop.graph", error=TIME_OVER), rough_s=4.96e-4)
    found = findings(with_more(timed(batched__graph=1e-3, map_fn__graph=2e-3), rough))
    row = found.row("loop.graph")
    assert (row.latency, row.rough_s, row.factor, row.rank) == ("~500 µs", 4.96e-4, None, None)
    head, *cells = table.cells(found)
    assert "~500 µs" in [line[head.index("latency")] for line in cells]
    assert found.missing == ["loop.graph"] and found.ratio("loop.graph", "batched.graph") is None
    assert rough.rough_s == decode(encode(found.run)).measurement("loop.graph").rough_s
    timed_ = replace(timed(batched__graph=1e-3).measurements[0], rough_s=9.0)
    assert findings(with_more(timed(loop__eager=1.0), timed_)).row("batched.graph").rough_s is None


def test_an_open_question_is_what_more_samples_may_answer() -> None:
    usual = timed(batched__graph=1e-3, map_fn__graph=2e-3)
    near, tie = (
        timed(FACTORS, batched__graph=1e-3, map_fn__graph=1.04e-3),
        timed(map_fn__graph=1e-3, loop__graph=1.06e-3),
    )
    for run, question in (
        (usual, ""),
        (with_more(usual, untimed("loop.xla")), "loop.xla is not timed yet"),
        (with_more(usual, untimed("loop.xla", "failed", "ValueError")), ""),
        (
            with_more(timed(batched__graph=1e-3), few_samples("map_fn.graph", 0.1, 1, 3)),
            "map_fn.graph needs more samples",
        ),
        (timed(NOISY, batched__graph=1e-3, map_fn__graph=1.4e-3), "samples are too noisy"),
        (near, ""),
    ):
        assert open_question(findings(run), equal=0.05) == question, run.verdict
    assert findings(tie).word == "tie" and open_question(findings(tie)) == ""
    assert open_question(findings(tie), equal=0.05) == "2 strategies may be the fastest"


def test_the_largest_error_is_relative_to_the_scale_of_the_result() -> None:
    """A value that cancels out is off by 1e38 ULP and right: its error is small beside the others."""
    run = synthetic.run()
    item = run.measurement("batched.xla")
    allowed = {"relative": 1e-6, "absolute": 2e-6}
    leaf = replace(item.correctness.leaves[0], max_abs=4e-7, max_rel=3e38, max_ulp=9.9e38)

    def with_tolerance(allowed: dict[str, Any]) -> Run:
        checked = replace(item.correctness, leaves=[replace(leaf, tolerance=allowed)])
        return replace(run, measurements=[replace(item, correctness=checked)])

    for of_elsewhere in ({"relative": "x", "absolute": 2e-6}, {"relative": 1e-6, "absolute": {"a": 1}}):
        assert findings(with_tolerance(of_elsewhere)).row("batched.xla").max_of_scale == leaf.max_rel
    run = with_tolerance(allowed)
    assert findings(run).row("batched.xla").max_of_scale == pytest.approx(2e-7)
    assert "2.00e-07" in table.render(run) and "ULP" not in table.render(run)


def test_a_strategy_that_was_not_run_has_its_stage_only_while_the_run_goes_on() -> None:
    run = synthetic.run()
    item = replace(run.measurements[0], outcome="not_run", stage="waiting")
    for finished, status in ((None, "waiting"), (run.finished, "not timed")):
        (row,) = findings(replace(run, finished=finished, measurements=[item], ranking=[])).rows
        assert row.status == status


def test_the_word_says_how_sure_it_is() -> None:
    clear = timed(batched__graph=1e-3, map_fn__graph=2.2e-3)
    tie = timed(batched__graph=1e-3, map_fn__graph=1.0002e-3, loop__eager=5e-3)
    blurred = timed([0.85, 0.92, 1.0, 1.1, 1.2], batched__graph=1e-3, map_fn__graph=1.1e-3)
    alone = timed(batched__graph=1e-3)
    for run, word in (
        (clear, "clear"),
        (tie, "tie"),
        (blurred, "cannot tell"),
        (timed(NOISY, batched__graph=1e-3, map_fn__graph=1.4e-3), "too noisy"),
        (timed(NOISY, batched__graph=1e-3, map_fn__graph=1.4e-3, loop__eager=1.0), "too noisy"),
        (timed(NOISY, batched__graph=1e-3, map_fn__graph=2.05e-3, loop__eager=1.0), "too noisy"),
        (timed([1.0], batched__graph=1e-3, map_fn__graph=3e-3), "too short"),
        (timed([1.0], batched__graph=1e-3, map_fn__graph=1.0), "too short"),
        (with_more(clear, untimed("loop.xla")), "cannot tell"),
        (alone, "no choice"),
        (with_more(alone, untimed("loop.xla", "failed", "ValueError")), "no choice"),
        (asked_for(analyse(run_of(untimed("loop.xla", "failed", "ValueError")))), "nothing"),
    ):
        assert findings(run).word == word, run.verdict


def test_a_run_that_can_tell_nothing_says_so_with_the_load_that_was_counted_before_any_advice() -> None:
    run = timed(NOISY, batched__graph=1e-3, map_fn__graph=1.4e-3)
    busy = replace(run, warnings=[warnings.warning("busy_during", cores=1.0)], environment={"cores_granted": 2.0})
    found = findings(busy)
    assert verdict(found) == "Too noisy to rank: other programs used 1.0 of 2 cores. Run again."
    assert found.take is None and answer.others(found) == []


def test_of_a_tie_the_one_with_the_least_memory_is_taken_and_more_time_would_settle_it() -> None:
    tied = timed(batched__graph=1e-3, map_fn__graph=1.0002e-3, loop__eager=5e-3)
    peaks = {"batched.graph": 2_000, "map_fn.graph": 1_000, "loop.eager": 1_000}
    tied = analyse(
        replace(tied, measurements=[replace(m, memory=memory(peaks[m.strategy])) for m in tied.measurements])
    )
    found = findings(tied)
    assert found.take.slug == "map_fn.graph" and "needs the least memory, 1000 B" in verdict(found)
    assert answer.settling(found) is None, "before a full minute the run itself goes on"
    minute = replace(tied, status="budget", request=replace(tied.request, max_budget_s=60.0))
    settling = answer.settling(findings(minute))
    assert set(settling.strategies) == {"batched.graph", "map_fn.graph"} and settling.budget_s == 120.0
    assert not settling.max_budget_s, "as long as it says"
    assert answer.settling(findings(minute), 60.0).budget_s == 60.0, "as a server allows"
    elsewhere = replace(minute, request=replace(minute.request, workload="elsewhere"))
    assert answer.settling(findings(elsewhere)) is None, "it cannot be measured here"


def test_peaks_that_read_differently_are_not_called_the_same() -> None:
    tied = timed(batched__graph=1e-3, map_fn__graph=1.0002e-3)
    sizes = (578 * 1024, 576 * 1024)
    items = [replace(item, memory=memory(size)) for item, size in zip(tied.measurements, sizes, strict=True)]
    assert verdict(findings(analyse(replace(tied, measurements=items)))).endswith("They need 576.0 KiB to 578.0 KiB.")


def test_who_could_have_won_and_was_not_timed_is_missing() -> None:
    run = timed(batched__graph=1e-3, map_fn__graph=2e-3)
    for other, may_lead in (
        (untimed("loop.xla", "cancelled"), True),
        (untimed("loop.xla"), True),
        (untimed("loop.xla", error=TIME_OVER), True),
        (untimed("loop.xla", error="Forecast"), False),
        (untimed("loop.xla", "timeout", "Timeout"), False),
        (untimed("loop.xla", "timeout", "Timeout", has_memory=True), True),
        (untimed("loop.xla", "failed", "ValueError", has_memory=True), False),
        (untimed("loop.xla", "out_of_memory"), False),
        (untimed("loop.xla", "wrong", has_memory=True), False),
    ):
        found = findings(replace(run, measurements=[*run.measurements, other]))
        assert (found.missing == ["loop.xla"]) == may_lead, other.outcome
        assert ("loop.xla" in verdict(found)) == may_lead
    missing = [untimed(f"{mapper}.xla") for mapper in ("loop", "map_fn", "batched", "vectorized_map")]
    found = findings(with_more(run, *missing))
    assert "loop.xla, map_fn.xla, batched.xla and 1 more were not timed" in verdict(found)
    minute = findings(replace(found.run, request=replace(found.run.request, max_budget_s=60.0)))
    assert set(answer.settling(minute).strategies) == {row.slug for row in found.rows}


def test_other_modes_and_less_memory_would_change_it() -> None:
    run = timed(batched__xla=1e-3, batched__graph=1.5e-3, vectorized_map__graph=1.8e-3, loop__eager=9e-3)
    peaks = [4_000, 4_000, 1_000, 1_000]
    items = [replace(item, memory=memory(peak)) for item, peak in zip(run.measurements, peaks, strict=True)]
    eager, graph, thrifty = answer.others(findings(analyse(replace(run, measurements=items))))
    assert "loop.eager, 9.00 ms" in eager and "batched.graph, 1.50 ms" in graph
    assert "vectorized_map.graph, 1000 B and 1.8 ms" in thrifty


def test_of_another_mode_all_that_tie_are_named_but_no_chunk_that_is_the_whole_batch() -> None:
    run = timed(batched__eager=1e-3, chunked__graph=1.5e-3, batched__graph=1.5005e-3, vectorized_map__graph=1.501e-3)
    run = replace(run, request=replace(run.request, size={"batch": 100}))
    for chunk, names in ((100, "batched.graph and vectorized_map.graph"), (10, "chunked.graph, batched.graph and")):
        chosen = Warning(code="chosen", message="", values={"chunk": chunk})
        items = [replace(m, warnings=[chosen] * (m.mapper == "chunked")) for m in run.measurements]
        (sentence,) = answer.others(findings(replace(run, measurements=items)))
        assert sentence.startswith(f"In a graph: {names}") and sentence.endswith(" 1.50 ms (tie).")


def test_an_untold_run_says_what_there_is() -> None:
    run = synthetic.run()
    for outcomes, begins in (
        (("failed", "unsupported"), "No strategy could be measured. Each row says why."),
        (("wrong", "wrong"), "No strategy produced correct results"),
        (("not_run", "cancelled"), "No latency was measured before the run ended. Memory and correctness are shown."),
        (
            ("out_of_memory", "not_run"),
            "No latency was measured before the run ended. Memory and correctness are shown.",
        ),
    ):
        items = [replace(item, outcome=word) for item, word in zip(run.measurements, outcomes, strict=False)]
        late = replace(run, ranking=[], measurements=items, status="budget", stop_reason="the machine is slow")
        assert ("the machine is slow" in verdict(findings(late))) == begins.startswith("No latency"), "the reason"
        assert verdict(findings(replace(run, ranking=[], measurements=items))).startswith(begins), outcomes
    items = [replace(item, outcome="not_run", memory=None) for item in run.measurements]
    nothing = verdict(findings(replace(run, ranking=[], measurements=items)))
    assert nothing == "Nothing was measured before the run ended."


def test_the_front_is_what_nothing_beats_in_both_latency_and_memory() -> None:
    figures = {
        "b": (2, 64_000), "b#twin": (1.9, 64_000), "wrong": (1, 1), "ties": (2.01, 30_000), "alike": (2.02, 29_900),
        "c": (8, 4_000), "slower": (9, 3_980), "a": (40, 1_000), "d": (50, 3_000),
    }  # fmt: skip
    items = []
    for slug, (seconds, peak) in figures.items():
        outcome, twin_of = "wrong" if slug == "wrong" else "ok", "b" if "#" in slug else None
        item = measurement(slug, constant(seconds, STEADY), outcome=outcome, twin_of=twin_of)
        items.append(replace(item, memory=memory(peak)))
    found = findings(analyse(run_of(*items, untimed("none", "out_of_memory"))))
    assert [[row.slug for row in tied] for tied in front(found)] == [["ties", "alike"], ["c"], ["a"]]


def runs() -> Iterator[Run]:
    """Comparisons of every kind: near and far, quiet and noisy, of few and of many, short, busy, with failures."""
    models = (Model(0.01), Model(0.03), Model(0.12, 0.1), Model(0.5, 0.3))
    spacings = (1.0, 1.02, 1.15, 3.0)
    for seed, (model, spacing, count) in enumerate(itertools.product(models, spacings, (1, 2, 7))):
        latencies_s = {f"s{number}.graph": 1e-3 * spacing**number for number in range(count)}
        items = simulate(latencies_s, model, seed).measurements
        items = [replace(item, memory=memory(1_000 + 400 * (place % 3))) for place, item in enumerate(items)]
        yield asked_for(analyse(run_of(*items)))
        yield with_more(analyse(run_of(*items)), untimed("late.xla"), untimed("bad.xla", "failed", "ValueError"))
        single = [replace(item, replicas=item.replicas[:1]) for item in items]
        yield asked_for(analyse(replace(run_of(*single), warnings=[warnings.warning("busy_during", cores=1.2)])))
        busy = analyse(replace(run_of(*items), warnings=[warnings.warning("busy_during", cores=1.4)]))
        yield asked_for(busy)
        few = few_samples("few.xla", 4e-3 * spacing, 1 + seed % 3, 1 + seed % 4)
        yield with_more(busy, few, replace(untimed("late.xla"), rough_s=5e-4))
    for seed in range(4):
        yield asked_for(analyse(run_of(*interfered({"a.graph": 1e-3, "b.graph": 1.2e-3, "map_fn.graph": 8e-3}, seed))))
    yield asked_for(analyse(run_of(untimed("a.graph", "failed", "ValueError"))))
    yield timed(FACTORS, batched__graph=1e-3, map_fn__graph=1.012e-3)


def contradictions(found: Findings) -> Iterator[str]:
    words, named = verdict(found), [row.slug for row in found.leaders]
    ranked = found.ranked
    head, *cells = table.cells(found)
    if [row.slug for row in ranked] != sorted((row.slug for row in ranked), key=lambda slug: found.row(slug).median_s):
        yield "rows are not in the order of the figure shown"
    if [row.rank for row in ranked] != sorted(row.rank for row in ranked):
        yield "ranks are not in the order of the rows"
    if [line[head.index("rank")] for line in cells] != [str(row.rank or "–") for row in found.rows]:
        yield "the table has other ranks than the rows"
    if found.tells and any(slug not in words for slug in named[:3]):
        yield "the headline does not name who leads"
    named_ = any(row.slug in words for row in found.rows) and found.word != "too short"
    if not found.tells and (named_ or any(row.rank for row in found.rows) or answer.others(found)):
        yield "advice of a run that can tell nothing"
    if (found.word == "clear") != (" is fastest: " in words and "Not decided" not in words):
        yield "the word and the headline differ on how clear it is"
    if found.word == "clear" and (len(named) > 1 or found.leaders[0].processes < 2 or found.missing):
        yield "clear, of a tie or a single process, or with somebody missing"
    if found.word == "tie" and (len(named) < 2 or "-way tie " not in words or found.missing):
        yield "a tie that is none"
    if "-way tie " in words and (found.apart is None or found.apart > TELLING):
        yield "a tie of what differs by more than a tie may"
    if found.word == "cannot tell" and "Cannot tell" not in words and "Not decided" not in words:
        yield "no doubt in the headline"
    if found.apart is not None and (found.word == "too noisy") != (found.apart > NOTHING_TOLD):
        yield "too noisy by another rule than all others"
    ratios = [row.slug for row in found.rows if row.factor]
    if any(not has_samples(found.run.measurement(slug)) for slug in (*ratios, *[found.baseline] * bool(ratios))):
        yield "a ratio of too few samples"
    if "× " in words and not ratios and (found.following is None or found.following.slug not in found.levels):
        yield "a ratio in the headline alone"
    if any(words not in form for form in (table.render(found.run), export.markdown(found.run))):
        yield "the terminal or Markdown has another verdict"
    if found.following and any(row.median_s > found.following.median_s for row in found.leaders):
        yield "the next is faster than a leader"
    if any(found.row(slug).rank for slug in found.missing):
        yield "ranked and missing"


def test_headline_word_rows_and_table_do_not_contradict_each_other() -> None:
    words = set()
    for run in runs():
        found = findings(run)
        words.add(found.word)
        assert list(contradictions(found)) == [], verdict(found)
    assert words == {"clear", "tie", "cannot tell", "too noisy", "too short", "no choice", "nothing"}


def test_a_verdict_is_reproduced_only_by_a_run_that_says_the_same_of_itself() -> None:
    outcomes = set()
    every = [*runs()]
    for first, second in [*itertools.pairwise(every), *((run, run) for run in every)]:
        found = [findings(run) for run in (first, second)]
        outcome = reproduction.compare(first, second).outcome
        outcomes.add(outcome)
        leaders = [{row.slug for row in of.leaders} for of in found]
        if outcome == "reproduced":
            assert all(of.is_usable for of in found) and leaders[0] == leaders[1]
        if outcome == "refuted":
            assert all(of.tells for of in found) and leaders[0] != leaders[1]
    assert {"reproduced", "unknown"} <= outcomes
