"""Verdicts on claims: synthetic evidence gives each of those that a claim can have, and words tell the figures."""

import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest
from msgspec.structs import replace

from measure.claims import known, table, tries, verdicts
from measure.claims.along import FasterAlong, Grows, MemoryGrows
from measure.claims.figures import sampled_ratio
from measure.claims.predicates import (
    AsFast,
    AsQuick,
    Ends,
    Fails,
    Faster,
    Figure,
    MoreMemory,
    QuickerBy,
    Runs,
    Warned,
)
from measure.claims.spec import QUESTIONS, Claim, Compare, Said, Script, Seen, Swept, Truth
from measure.claims.verdicts import judge
from measure.machine import environment
from measure.model.run import Evidence, Measurement, Run, Warning
from measure.model.script_end import ScriptEnd
from tests.claims import ENDS, Contradiction, compared, evidence, item, run, swept, wanted

ALL = known.all_claims()
GPU = {"gpus": ["A GPU"]}
EACH = pytest.mark.parametrize("claim", ALL, ids=[claim.id for claim in ALL])


def sees(test: Any, found: Evidence) -> Seen:
    """What one predicate sees, by way of a verdict: figures that are missing are said."""
    claim = Claim(id="x", question="speed", sentence="It is so.", said=(Said("seed 1"),), tests=(test,))
    (seen,) = judge(claim, {test.need.key: found}, {}).seen
    return Seen(seen.truth, seen.words)


# --- claims that are known here ---------------------------------------------------------------------------------------


def test_no_file_of_claims_is_broken():
    assert known.broken() == {}
    assert len(ALL) >= 2 and len({claim.id for claim in ALL}) == len(ALL)


@EACH
def test_a_claim_is_whole(claim: Claim):
    assert claim.question in QUESTIONS and claim.said and claim.tests
    assert claim.sentence.endswith(".") and "\n" not in claim.sentence
    assert claim.id.isidentifier() and len(claim.id) <= 60
    if len(claim.tests) > 1:
        cases = [(test.when, type(test), getattr(test, "name", "")) for test in claim.tests]
        assert len(set(cases)) == len(cases) or not any(test.when for test in claim.tests)


@EACH
def test_a_claim_holds_where_all_of_it_is_so(claim: Claim):
    found = evidence(claim.tests, ["yes"] * len(claim.tests))
    verdict = judge(claim, found, GPU)
    assert verdict.word == "holds", verdict
    assert [seen.truth for seen in verdict.seen] == ["yes"] * len(claim.tests)
    first = verdict.sentence.partition(" ")[0]
    assert (first[0] == first[0].upper() or re.search(r"[._]", first)) and verdict.sentence[-1] in ".…"


@EACH
def test_a_claim_does_not_hold_where_none_of_it_is_so(claim: Claim):
    found = evidence(claim.tests, ["no"] * len(claim.tests))
    assert judge(claim, found, GPU).word == "does not hold"


def cases(claim: Claim) -> set[str]:
    return {test.when for test in claim.tests}


@EACH
def test_a_claim_depends_on_its_cases_and_is_refuted_by_any_test_where_it_has_one(claim: Claim):
    assert len(cases(claim)) == 1 or "" not in cases(claim), "each case has a name"
    told: list[tuple[Truth, ...]] = [
        truths
        for truths in itertools.product(("yes", "no", "mixed"), repeat=len(claim.tests))
        if ("mixed" in truths or len(set(truths)) > 1)
        and all(wanted(test, truth) for test, truth in zip(claim.tests, truths, strict=True))
    ]
    words = set()
    for truths in told:
        try:
            found = evidence(claim.tests, truths)
        except Contradiction:
            continue
        verdict = judge(claim, found, GPU)
        of_cases = {all_of(claim, truths, case) for case in cases(claim)}
        depends = "mixed" in of_cases or {"yes", "no"} <= of_cases
        assert verdict.word == ("depends" if depends else "does not hold"), truths
        if depends:
            assert claim.tests[0].when.lower() in verdict.sentence.lower(), "on what"
        words.add(verdict.word)
    assert len(claim.tests) == 1 or words, "its tests say the same: one of them is enough"
    assert len(cases(claim)) == 1 or "depends" in words


def all_of(claim: Claim, truths: tuple[Truth, ...], case: str) -> Truth:
    its = [truth for test, truth in zip(claim.tests, truths, strict=True) if test.when == case]
    return "no" if "no" in its else "mixed" if "mixed" in its else "yes"


@EACH
def test_figures_that_are_too_near_tell_nothing_and_it_is_said_what_would(claim: Claim):
    truths: list[Truth] = ["unknown" if wanted(test, "unknown") else "yes" for test in claim.tests]
    if "unknown" not in truths:
        return
    verdict = judge(claim, evidence(claim.tests, truths), GPU)
    assert verdict.word == "cannot tell"
    would = r"\. What would tell: an interval without .+ in it, as a longer or calmer run gives\.$"
    assert re.search(would, verdict.sentence)


@EACH
def test_one_strategy_that_fails_or_is_missing_leaves_open_what_is_said_of_it(claim: Claim):
    whole = evidence(claim.tests, ["yes"] * len(claim.tests))
    for test in claim.tests:
        for slug in {getattr(test, name, "") for name in ("a", "b", "strategy")} - {""}:
            run = whole[test.need.key].run
            if run is None or isinstance(test, ENDS):
                continue
            for left in (failing, without):
                found = replace(whole[test.need.key], run=left(run, slug))
                verdict = judge(claim, whole | {test.need.key: found}, GPU)
                assert verdict.seen[claim.tests.index(test)].truth == "unknown", (slug, left)
                assert verdict.word == "cannot tell"
                assert verdict.sentence.endswith(" What would tell: a run that measures it to its end.")


def failing(run: Run, slug: str) -> Run:
    fails = lambda each: item(slug, outcome="failed") if of(each) == slug else each  # noqa: E731
    points = [replace(point, measurements=[*map(fails, point.measurements)]) for point in run.points]
    return replace(run, measurements=[*map(fails, run.measurements)], points=points)


def without(run: Run, slug: str) -> Run:
    others = lambda items: [each for each in items if of(each) != slug]  # noqa: E731
    points = [replace(point, measurements=others(point.measurements)) for point in run.points]
    return replace(run, measurements=others(run.measurements), points=points)


def of(measurement: Measurement) -> str:
    """The strategy without a swept option."""
    slug, _, rest = measurement.strategy.partition("?")
    kept = [part for part in rest.split("&") if part and part.partition("=")[0] not in measurement.options]
    return "?".join([slug, *(["&".join(kept)] if kept else [])])


@EACH
def test_a_script_that_somebody_ended_says_nothing(claim: Claim):
    whole = evidence(claim.tests, ["yes"] * len(claim.tests))
    for key, found in whole.items():
        if found.script is not None:
            end = replace(found.script, error="it took more than 9 s and was ended", ended=True)
            verdict = judge(claim, whole | {key: replace(found, script=end)}, GPU)
            assert verdict.word == "cannot tell"
            assert "was not run to its end: it took more than 9 s and was ended" in verdict.sentence


@EACH
def test_nothing_is_told_where_nothing_is_measured(claim: Claim):
    verdict = judge(claim, {}, GPU)
    assert (verdict.word, {seen.truth for seen in verdict.seen}) == ("cannot tell", {"unknown"})
    assert "t was not measured" in verdict.sentence
    reasons = {need.key: Evidence(need=need.key, reason="it does not fit") for need in claim.needs}
    verdict = judge(claim, reasons, GPU)
    assert verdict.word == "cannot tell" and "t does not fit" in verdict.sentence


@EACH
def test_nothing_is_told_of_figures_where_a_strategy_or_a_script_fails(claim: Claim):
    found = {need.key: failed(need) for need in claim.needs}
    verdict = judge(claim, found, GPU)
    for test, seen in zip(claim.tests, verdict.seen, strict=True):
        if not isinstance(test, ENDS):
            assert seen.truth == "unknown", (test, seen)
    if not any(isinstance(test, ENDS) for test in claim.tests):
        assert verdict.word == "cannot tell"


def failed(need: Any) -> Evidence:
    if isinstance(need, Script):
        return Evidence(need=need.key, script=ScriptEnd(source=need.source, error="line 1: ValueError: no"))
    items = [item(slug, outcome="failed", words="no such kernel") for slug in need.strategies]
    if isinstance(need, Compare):
        return Evidence(need=need.key, run=compared(need, items))
    whole = evidence([Grows(need, need.strategies[0], most=1.0)], ["yes"])[need.key].run
    assert whole is not None
    return Evidence(need=need.key, run=swept(need, [replace(point, measurements=items) for point in whole.points]))


@EACH
def test_a_claim_about_gpus_cannot_be_tried_without_one(claim: Claim):
    needs = replace_claim(claim, needs_gpu=True)
    verdict = judge(needs, {}, {})
    assert (verdict.word, verdict.seen) == ("cannot be tried here", ())
    assert judge(needs, {}, GPU).word == "cannot tell"


def replace_claim(claim: Claim, **changes: Any) -> Claim:
    return Claim(**{name: getattr(claim, name) for name in Claim.__dataclass_fields__} | changes)


@pytest.mark.parametrize(
    ("needs", "place", "lacks"),
    [
        ({"needs_cores": 2}, {"cores_granted": 1.0}, "It needs 2 cores, and here are 1."),
        ({"needs_cores": 2}, {"cores_granted": 2.0}, ""),
        ({"needs_cores": 2}, {}, ""),
        ({"needs_linux": True}, {"os": "macOS"}, "It needs Linux, which tells of the threads"),
        ({"needs_linux": True}, {"os": "Ubuntu 24.04.1 LTS"}, ""),
        ({"needs_linux": True}, environment.collect(start_method="fork", threads=None, tensorflow={}), ""),
    ],
)
def test_a_claim_says_what_the_machine_lacks(needs: dict[str, Any], place: dict[str, Any], lacks: str):
    verdict = judge(replace_claim(ALL[0], needs_gpu=False, **needs), {}, place)
    assert (verdict.word == "cannot be tried here") is bool(lacks) and verdict.sentence.startswith(lacks)


def test_the_machine_of_the_run_says_whether_there_is_a_gpu():
    claim = replace_claim(ALL[0], needs_gpu=True)
    found = evidence(claim.tests, ["yes"] * len(claim.tests))
    assert verdicts.of_run(claim, run([claim], found, gpus=False)).word == "cannot be tried here"
    assert verdicts.of_run(claim, run([claim], found)).word == "holds"


# --- predicates one by one --------------------------------------------------------------------------------------------

PAIR = Compare("square", ("a.graph", "b.graph"), {"batch": 10})
LINE = Swept("square", ("a.graph", "b.graph"), "batch", (1, 10, 100, 1_000))
SCRIPT = Script("report(x=1)")
EVERY = (
    Faster(PAIR, "a.graph", "b.graph", by=2.0),
    AsFast(PAIR, "a.graph", "b.graph"),
    MoreMemory(PAIR, "a.graph", "b.graph", by=2.0),
    MoreMemory(PAIR, "a.graph", "b.graph", figure="temporary_bytes"),
    Ends(PAIR, "a.graph"),
    Ends(PAIR, "a.graph", "unsupported", "no converter"),
    Warned(PAIR, "a.graph", "fallback"),
    Runs(SCRIPT),
    Fails(SCRIPT, "out of range"),
    Figure(SCRIPT, "count", "{value} traces", least=3, most=5),
    QuickerBy(SCRIPT, "one", "other", by=1.5),
    AsQuick(SCRIPT, "one", "other"),
    FasterAlong(LINE, "a.graph", "b.graph"),
    Grows(LINE, "a.graph", least=0.5, most=1.5),
)
TRUTHS: tuple[Truth, ...] = ("yes", "no", "unknown", "mixed")


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("test", EVERY, ids=lambda test: type(test).__name__)
def test_a_predicate_says_what_its_figures_say(test: Any, truth: Truth):
    if not wanted(test, truth):
        with pytest.raises(Contradiction):
            evidence([test], [truth])
        return
    (found,) = evidence([test], [truth]).values()
    seen = sees(test, found)
    assert seen.truth == truth, seen
    assert seen.words and "nan" not in seen.words


@pytest.mark.parametrize(
    ("a", "b", "truth", "words"),
    [
        (1.0, 2.6, "yes", "b.graph takes 2.60 × [2.5"),
        (1.0, 2.0, "unknown", "b.graph takes 2.00 × [1.9"),
        (1.0, 1.2, "no", "b.graph takes 1.20 × [1.1"),
        (2.0, 1.0, "no", "b.graph takes 0.500 × [0.4"),
    ],
)
def test_faster_needs_an_interval_beyond_its_threshold(a: float, b: float, truth: Truth, words: str):
    found = Evidence(need=PAIR.key, run=compared(PAIR, [item("a.graph", a), item("b.graph", b)]))
    seen = sees(Faster(PAIR, "a.graph", "b.graph", by=2.0), found)
    assert seen.truth == truth and seen.words.startswith(words) and seen.words.endswith("] the time of a.graph")


@pytest.mark.parametrize(
    ("b", "truth"), [(1.0, "yes"), (1.1, "yes"), (1 / 1.1, "yes"), (1.15, "unknown"), (1.25, "no"), (0.8, "no")]
)
def test_as_fast_needs_an_interval_within_its_share(b: float, truth: Truth):
    found = Evidence(need=PAIR.key, run=compared(PAIR, [item("a.graph", 1.0), item("b.graph", b)]))
    assert sees(AsFast(PAIR, "a.graph", "b.graph"), found).truth == truth


def test_memory_is_said_in_bytes_with_its_kind():
    peak = evidence([MoreMemory(PAIR, "a.graph", "b.graph")], ["yes"])[PAIR.key]
    assert sees(MoreMemory(PAIR, "a.graph", "b.graph"), peak).words.startswith("peak of ")
    temporary = MoreMemory(PAIR, "a.graph", "b.graph", figure="temporary_bytes")
    seen = sees(temporary, evidence([temporary], ["yes"])[PAIR.key])
    assert seen.words.startswith("temporary bytes of ") and " in a.graph, " in seen.words
    without = Evidence(need=PAIR.key, run=compared(PAIR, [item("a.graph"), item("b.graph")]))
    assert sees(temporary, without) == Seen("unknown", "a.graph ended as ok, so its memory is not known")


@pytest.mark.parametrize("test", EVERY[:4], ids=lambda test: type(test).__name__)
@pytest.mark.parametrize("outcome", ["wrong", "failed", "out_of_memory", "timeout", "not_run"])
def test_figures_of_a_strategy_that_is_not_right_say_nothing(test: Any, outcome: str):
    items = [item("a.graph"), item("b.graph", outcome=outcome, words="it has a reason")]
    found = Evidence(need=PAIR.key, run=compared(PAIR, items))
    seen = sees(test, found)
    assert seen.truth == "unknown"
    if not isinstance(test, MoreMemory):
        assert seen.words == f"b.graph ended as {outcome.replace('_', ' ')}: it has a reason"
    missing = sees(test, Evidence(need=PAIR.key, run=compared(PAIR, items[:1])))
    assert missing == Seen("unknown", "b.graph was not measured") or isinstance(test, MoreMemory)


@pytest.mark.parametrize(
    ("outcome", "words", "truth"),
    [
        ("unsupported", "no CONVERTER for it", "yes"),
        ("unsupported", "another reason", "no"),
        ("failed", "no converter", "no"),
        ("ok", "", "no"),
        ("timeout", "no converter", "unknown"),
        ("cancelled", "", "unknown"),
    ],
)
def test_an_end_has_an_outcome_and_words(outcome: str, words: str, truth: Truth):
    found = Evidence(need=PAIR.key, run=compared(PAIR, [item("a.graph", outcome=outcome, words=words)]))
    assert sees(Ends(PAIR, "a.graph", "unsupported", "no converter"), found).truth == truth


def test_a_warning_is_said_with_its_message():
    warned = item("a.graph", warnings=[Warning(code="fallback", message="It falls back to a loop.")])
    found = Evidence(need=PAIR.key, run=compared(PAIR, [warned, item("b.graph", outcome="failed", words="x")]))
    assert sees(Warned(PAIR, "a.graph", "fallback"), found) == Seen("yes", "a.graph: It falls back to a loop.")
    assert sees(Warned(PAIR, "a.graph", "retraces"), found) == Seen("no", "a.graph: no warning retraces")
    assert sees(Warned(PAIR, "b.graph", "fallback"), found) == Seen("unknown", "b.graph ended as failed")


@pytest.mark.parametrize(
    ("value", "truth", "words"),
    [
        (3, "yes", "3 traces"),
        (5, "yes", "5 traces"),
        (5.5, "no", "5.50 traces"),
        (12_000, "no", "12,000 traces"),
        (True, "unknown", "the script's figure count is True, which is no number"),
        ("many", "unknown", "the script's figure count is 'many', which is no number"),
        (None, "unknown", "the script's figure count is None, which is no number"),
    ],
)
def test_a_figure_is_a_number_within_bounds(value: Any, truth: Truth, words: str):
    found = Evidence(need=SCRIPT.key, script=ScriptEnd(source="", figures={"count": value}))
    assert sees(Figure(SCRIPT, "count", "{value} traces", least=3, most=5), found) == Seen(truth, words)
    other = sees(Figure(SCRIPT, "other", "{value}", least=0), found)
    assert other == Seen("unknown", "its script reported no other")


@pytest.mark.parametrize("samples", [[], [1.0] * 4, [1.0, 0.0, 1.0, 1.0, 1.0], "text", [1.0, "x", 1.0, 1.0, 1.0]])
def test_samples_are_several_and_positive(samples: Any):
    found = Evidence(need=SCRIPT.key, script=ScriptEnd(source="", figures={"one": [1.0] * 5, "other": samples}))
    assert sees(QuickerBy(SCRIPT, "one", "other"), found) == Seen("unknown", "its script took no samples of other")


def test_a_script_says_why_it_failed():
    found = Evidence(need=SCRIPT.key, script=ScriptEnd(source="", error="line 3: ValueError: out of range"))
    assert sees(Fails(SCRIPT, "OUT of range"), found) == Seen("yes", "it fails: line 3: ValueError: out of range")
    assert sees(Fails(SCRIPT, "another"), found).truth == "no"
    assert sees(Runs(SCRIPT), found) == Seen("no", "it fails: line 3: ValueError: out of range")
    assert sees(Figure(SCRIPT, "x", "{value}", least=0), found).words.startswith("its script failed: line 3")


# --- sweeps -----------------------------------------------------------------------------------------------------------


def line(a: list[float], b: list[float], need: Swept = LINE) -> Evidence:
    """A sweep with these seconds at its values."""
    whole = evidence([FasterAlong(need, "a.graph", "b.graph")], ["yes"])[need.key].run
    assert whole is not None
    points = [
        replace(point, measurements=[item("a.graph", at_a), item("b.graph", at_b)])
        for point, at_a, at_b in zip(whole.points, a, b, strict=True)
    ]
    return Evidence(need=need.key, run=replace(whole, points=points))


def test_the_place_where_it_turns_is_said_with_its_interval():
    test, found = FasterAlong(LINE, "a.graph", "b.graph"), line([4, 3, 2, 1], [1, 2, 3, 4])
    seen = sees(test, found)
    assert seen.truth == "mixed" and re.match(r"from batch \d\d \[\d\d, \d\d\] on; b.graph takes 0.250 × ", seen.words)
    assert " at batch 1 and 4.00 × " in seen.words and seen.words.endswith("at batch 1,000 the time of a.graph")
    falls = sees(test, replace(line([1, 2, 3, 4], [4, 3, 2, 1]), need=LINE.key))
    assert re.match(r"up to batch \d\d \[\d\d, \d\d\]; ", falls.words)


def test_by_how_much_it_turns_is_said_by_the_values_around():
    seen = sees(FasterAlong(LINE, "a.graph", "b.graph", by=2.0), line([4, 3, 1, 1], [1, 2, 3, 4]))
    assert seen.truth == "mixed" and seen.words.startswith("from between batch 10 and 100 on; ")
    seen = sees(FasterAlong(LINE, "a.graph", "b.graph", by=2.0), line([4, 1, 1, 1], [1, 2, 2, 4]))
    assert seen.truth == "mixed" and seen.words.startswith("from between batch 1 and 1,000 on; ")
    seen = sees(FasterAlong(LINE, "a.graph", "b.graph", by=2.0), line([1, 4, 4, 1], [4, 1, 1, 4]))
    assert seen.truth == "mixed" and seen.words.startswith("at batch 1 and 1,000; ")


def test_where_it_turns_twice_both_places_are_said():
    seen = sees(FasterAlong(LINE, "a.graph", "b.graph"), line([1, 4, 4, 1], [4, 1, 1, 4]))
    places = r"up to batch \d+ \[\d+, \d+\] and from batch \d+ \[\d+, \d+\] on; "
    assert seen.truth == "mixed" and re.match(places, seen.words), seen.words


def test_a_value_at_which_two_cannot_be_told_apart_leaves_it_open():
    seen = sees(FasterAlong(LINE, "a.graph", "b.graph"), line([1, 1, 1, 1], [2, 2, 1, 2]))
    assert seen.truth == "unknown" and seen.words.endswith("at batch 100 the two cannot be told apart")


def test_where_it_turns_is_known_of_two_that_do_not_lead():
    found = line([4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0])
    assert found.run is not None
    points = [
        replace(point, measurements=[*point.measurements, item("c.graph", 0.01)], ranking=[["c.graph"]])
        for point in found.run.points
    ]
    led = replace(found, run=replace(found.run, points=points))
    assert re.match(r"from batch \d\d \[\d\d, \d\d\] on; ", sees(FasterAlong(LINE, "a.graph", "b.graph"), led).words)


def test_a_sweep_with_fewer_than_two_values_says_nothing():
    found = line([1] * 4, [2] * 4)
    assert found.run is not None
    short = replace(found, run=replace(found.run, points=found.run.points[:1]))
    words = "a.graph and b.graph were not both timed at two values of batch"
    assert sees(FasterAlong(LINE, "a.graph", "b.graph"), short) == Seen("unknown", words)
    assert sees(Grows(LINE, "a.graph", least=1), short).words == "a.graph was timed at fewer than three values of batch"
    other = replace(found, run=compared(PAIR, [item("a.graph")]))
    assert sees(Grows(LINE, "a.graph", least=1), other) == Seen("unknown", "it is no sweep over batch")


def test_memory_grows_over_the_whole_axis_or_nothing_is_said():
    test = MemoryGrows(LINE, "a.graph", least=0.85)
    found = evidence([test], ["yes"])[LINE.key]
    assert found.run is not None and sees(test, found).truth == "yes"
    for points in (found.run.points[:-1], found.run.points[1:]):
        seen = sees(test, replace(found, run=replace(found.run, points=points)))
        assert seen == Seen("unknown", "the memory of a.graph is not known at batch 1 and 1,000")


@pytest.mark.parametrize(
    ("exponent", "truth"), [(1.0, "yes"), (0.45, "no"), (1.6, "no"), (1.5, "unknown"), (0.5, "unknown")]
)
def test_growth_is_an_exponent_within_bounds(exponent: float, truth: Truth):
    seconds = [1e-3, *(1e-6 * value**exponent for value in (10, 100, 1_000))]  # a fixed cost at the least
    seen = sees(Grows(LINE, "a.graph", least=0.5, most=1.5), line(seconds, [1] * 4))
    assert seen.truth == truth
    assert seen.words.startswith(f"from batch 100 to 1,000 the time of a.graph grows as batch^{exponent:.2f}")
    assert (", ± 0.0" in seen.words) is (truth == "unknown")


def test_a_strategy_that_a_swept_option_does_not_concern_is_the_same_all_along():
    need = Swept("square", ("chunked.graph", "b.graph"), "chunk", (1, 8, 64), of_option=True)
    whole = evidence([FasterAlong(need, "chunked.graph", "b.graph")], ["yes"])[need.key].run
    assert whole is not None
    points = [
        replace(
            point,
            measurements=[
                item(f"chunked.graph?chunk={chunk}", seconds, options={"chunk": chunk}),
                *([item("b.graph", 1.0)] if chunk == 1 else []),
            ],
        )
        for point, chunk, seconds in zip(whole.points, need.values, (4.0, 0.5, 0.25), strict=True)
    ]
    seen = sees(
        FasterAlong(need, "chunked.graph", "b.graph"), Evidence(need=need.key, run=replace(whole, points=points))
    )
    assert seen.truth == "mixed" and re.match(r"from chunk \d \[\d, \d\] on; ", seen.words), seen


# --- what is broken ---------------------------------------------------------------------------------------------------


def test_a_broken_predicate_costs_its_claim_the_verdict_and_no_more():
    class Broken(Runs):
        def see(self, evidence: Evidence) -> Seen:
            raise ZeroDivisionError("division by zero")

    claim = Claim(id="x", question="speed", sentence="So.", said=(), tests=(Runs(SCRIPT), Broken(SCRIPT)))
    verdict = judge(claim, evidence([Runs(SCRIPT)], ["yes"]), {})
    assert verdict.word == "cannot tell"
    assert verdict.sentence == "It runs to its end; its predicate is broken (ZeroDivisionError: division by zero)."


def test_a_predicate_that_no_evidence_can_be_made_for_is_named():
    class New(Runs):
        pass

    with pytest.raises(AssertionError, match=r"no evidence can be made for New: give it a function in WANTED"):
        wanted(New(SCRIPT), "yes")


def test_words_of_figures_command_no_terminal():
    found = Evidence(need=SCRIPT.key, script=ScriptEnd(source="", error="a\x1b[31m\n\n  b\u202ec"))
    claim = Claim(id="x", question="speed", sentence="So.", said=(), tests=(Fails(SCRIPT, "x"),))
    assert judge(claim, {SCRIPT.key: found}, {}).sentence == "It fails: a[31m bc."


@pytest.fixture
def other_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that takes the place of the claims that are known."""
    for name in [name for name in sys.modules if name.startswith(f"{known.__name__}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(known, "__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setattr(known, "__path__", [str(tmp_path)])
    forget()
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(f"{known.__name__}.")]:
        del sys.modules[name]
    forget()


def forget() -> None:
    next(each for each in vars(known).values() if hasattr(each, "cache_clear")).cache_clear()


FILE = """
from measure.claims.predicates import Runs
from measure.claims.spec import Claim, Said, Script

CLAIMS = (
    Claim(id={id!r}, question={question!r}, sentence="It runs.", said=(Said("seed 1"),), tests=(Runs(Script("")),)),
)
"""


def test_one_bad_file_breaks_nothing_else(other_known: Path):
    for name, source in {
        "a_good": FILE.format(id="good", question="limits"),
        "b_twice": FILE.format(id="good", question="speed"),
        "c_syntax": "CLAIMS = (",
        "d_question": FILE.format(id="odd", question="why"),
        "e_empty": "",
        "f_last": FILE.format(id="last", question="speed"),
    }.items():
        (other_known / f"{name}.py").write_text(source, encoding="utf-8")
    assert [claim.id for claim in known.all_claims()] == ["last", "good"], "by question"
    reasons = known.broken()
    assert list(reasons) == ["b_twice.py", "c_syntax.py", "d_question.py", "e_empty.py"]
    assert reasons["b_twice.py"] == "ValueError: the id 'good' is another claim's"
    assert reasons["c_syntax.py"].startswith("SyntaxError: ")
    assert "question 'why' is not one of speed, memory" in reasons["d_question.py"]
    assert reasons["e_empty.py"].startswith("AttributeError: ")
    assert known.get("odd") is None and known.get("last") is not None


# --- whole runs -------------------------------------------------------------------------------------------------------


def test_verdicts_are_counted():
    claim = ALL[0]
    yes, no = (evidence(claim.tests, [truth] * len(claim.tests)) for truth in ("yes", "no"))
    assert tries.summary(run([claim], yes)) == "Of 1 claim 1 holds."
    assert tries.summary(run([claim], no)) == "Of 1 claim 1 does not."
    two = run([claim, ALL[1]], yes)
    assert tries.summary(two) == "Of 2 claims 1 holds and 1 cannot be told."
    strange = replace(two, claims=[claim.id, "strange", "stranger"])
    assert tries.summary(strange) == "Of 3 claims 1 holds and 2 are not known here."
    assert tries.summary(run([], {})) == "No claim was tried."
    assert tries.close(replace(two, finished=None), "interrupted", "it ended", "2025-01-15T09:35:00Z").verdict


def test_a_table_has_all_claims_by_question_and_those_that_are_not_known():
    claim = ALL[0]
    whole = replace(run([claim], evidence(claim.tests, ["yes"] * len(claim.tests))), claims=[claim.id, "strange"])
    shown = table.render(whole)
    assert f"HOLDS  {claim.id}" in shown and "NOT KNOWN HERE  strange" in shown
    assert QUESTIONS[claim.question] in shown and shown.endswith(tries.summary(whole))
    grid = table.markdown(whole)[-1]
    assert "| **holds** |" in grid and "| strange | **not known here** |" in grid


def test_the_list_has_every_claim_with_what_it_takes():
    shown = table.listed()
    assert all(f"{claim.id} (" in shown for claim in ALL) and "Trying all of them (--all) takes about" in shown
    listing = json.loads(json.dumps(table.listing()))
    assert [each["id"] for each in listing] == [claim.id for claim in ALL]
    assert listing[0]["said"][0]["where"] == ALL[0].said[0].where and listing[0]["seconds"] > 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("map_fn.graph takes 2 × the time of loop.graph", "map_fn.graph takes 2 × the time of loop.graph."),
        ("tf.map_fn traces once", "tf.map_fn traces once."),
        ("`RandomFlip`: no loops", "`RandomFlip`: no loops."),
        ("it runs to its end", "It runs to its end."),
        ("eager: one trace", "Eager: one trace."),
    ],
)
def test_a_sentence_begins_with_a_capital_letter_unless_with_a_name(words: str, sentence: str):
    test = Runs(Script("pass"))
    assert verdicts._sentence([test], [Seen("yes", words)]) == sentence


def test_an_interval_of_samples_narrows_with_their_number_and_is_the_middle_half_of_few():
    def interval(samples: list[float]) -> tuple[float, float]:
        end = ScriptEnd(source="", figures={"a": samples, "b": [1.0] * len(samples)})
        of = sampled_ratio(Evidence(need="x", script=end), "a", "b")
        return of.low, of.high

    few = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    first, _, third = quantiles(few, n=4)
    assert interval(few) == pytest.approx((first, third))
    low, high = interval(few * 6)
    assert first < low < 1.3 < high < third
