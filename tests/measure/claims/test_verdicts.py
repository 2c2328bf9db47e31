"""Verdicts on claims: synthetic evidence gives each of those that a claim can have, and words tell the figures."""

import json
import re
import sys
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
from measure.claims.spec import QUESTIONS, Claim, Compare, Said, Script, Seen, Swept
from measure.claims.verdicts import judge
from measure.machine import environment
from measure.model.run import Evidence, Warning
from measure.model.script_end import ScriptEnd
from tests.claims import ENDS, compared, evidence, item, run, swept

ALL = known.all_claims()
GPU = {"gpus": ["A GPU"]}
PAIR = Compare("square", ("a.graph", "b.graph"), {"batch": 10})
LINE = Swept("square", ("a.graph", "b.graph"), "batch", (1, 10, 100, 1_000))
SCRIPT = Script("report(x=1)")


def claim_of(*tests: Any, **changes: Any) -> Claim:
    return Claim(id="x", question="speed", sentence="So.", said=(Said("seed 1"),), tests=tests, **changes)


def sees(test: Any, found: Evidence) -> Seen:
    """What one predicate sees, by way of a verdict: figures that are missing are said."""
    (seen,) = judge(claim_of(test), {test.need.key: found}, {}).seen
    return Seen(seen.truth, seen.words)


def of_pair(*items: Any) -> Evidence:
    return Evidence(need=PAIR.key, run=compared(PAIR, items))


def of_script(error: str = "", **figures: Any) -> Evidence:
    return Evidence(need=SCRIPT.key, script=ScriptEnd(source="", figures=figures, error=error))


# --- claims that are known here --------------------------------------------------------------------------------------


def test_every_claim_is_whole_and_can_hold_and_not_hold():
    assert known.broken() == {} and len({claim.id for claim in ALL}) == len(ALL) >= 2
    for claim in ALL:
        assert claim.question in QUESTIONS and claim.said and claim.tests and claim.id.isidentifier()
        yes, no = (evidence(claim.tests, [truth] * len(claim.tests)) for truth in ("yes", "no"))
        assert judge(claim, yes, GPU).word == "holds", claim.id
        assert judge(claim, no, GPU).word == "does not hold", claim.id


def test_no_claim_is_told_where_its_figures_are_missing():
    for claim in ALL:
        assert judge(claim, {}, GPU).word == "cannot tell", claim.id
        reasons = {need.key: Evidence(need=need.key, reason="it does not fit") for need in claim.needs}
        verdict = judge(claim, reasons, GPU)
        assert verdict.word == "cannot tell" and "does not fit" in verdict.sentence, claim.id
        seen = judge(claim, {need.key: failed(need) for need in claim.needs}, GPU).seen
        told = [each.truth for test, each in zip(claim.tests, seen, strict=True) if not isinstance(test, ENDS)]
        assert set(told) <= {"unknown"}, claim.id


def failed(need: Any) -> Evidence:
    if isinstance(need, Script):
        return Evidence(need=need.key, script=ScriptEnd(source=need.source, error="line 1: ValueError: no"))
    items = [item(slug, outcome="failed", words="no such kernel") for slug in need.strategies]
    if isinstance(need, Compare):
        return Evidence(need=need.key, run=compared(need, items))
    whole = evidence([Grows(need, need.strategies[0], most=1.0)], ["yes"])[need.key].run
    return Evidence(need=need.key, run=swept(need, [replace(point, measurements=items) for point in whole.points]))


def test_a_claim_depends_on_its_cases_and_is_refuted_by_any_test_where_it_has_one():
    quick, thrifty = Faster(PAIR, "a.graph", "b.graph"), MoreMemory(PAIR, "a.graph", "b.graph")
    found = evidence([quick, thrifty], ["yes", "no"])
    assert judge(claim_of(quick, thrifty), found, {}).word == "does not hold"
    cases = [type(test)(**{**vars(test), "when": when}) for test, when in ((quick, "in time"), (thrifty, "in memory"))]
    verdict = judge(claim_of(*cases), found, {})
    assert verdict.word == "depends" and "In time" in verdict.sentence and "in memory" in verdict.sentence
    near = {PAIR.key: of_pair(item("a.graph"), item("b.graph"))}
    assert "What would tell: an interval without" in judge(claim_of(quick), near, {}).sentence
    ended = replace(of_script("it took more than 9 s"), script=ScriptEnd(source="", error="too long", ended=True))
    assert judge(claim_of(Runs(SCRIPT)), {SCRIPT.key: ended}, {}).word == "cannot tell", "somebody ended it"


def test_a_claim_says_what_the_machine_lacks():
    here = environment.collect(start_method="fork", threads=None, tensorflow={})
    for needs, place, lacks in (
        ({"needs_gpu": True}, {}, "GPU"),
        ({"needs_gpu": True}, GPU, ""),
        ({"needs_cores": 2}, {"cores_granted": 1.0}, "2 cores"),
        ({"needs_cores": 2}, {"cores_granted": 2.0}, ""),
        ({"needs_linux": True}, {"os": "macOS"}, "Linux"),
        ({"needs_linux": True}, {"os": here["os"]}, ""),
    ):
        verdict = judge(claim_of(Runs(SCRIPT), **needs), {}, place)
        assert (verdict.word == "cannot be tried here") is bool(lacks) and lacks in verdict.sentence, needs
    claim = next(claim for claim in ALL if claim.needs_gpu)
    found = evidence(claim.tests, ["yes"] * len(claim.tests))
    assert verdicts.of_run(claim, run([claim], found, gpus=False)).word == "cannot be tried here"
    assert verdicts.of_run(claim, run([claim], found)).word == "holds"


# --- predicates one by one -------------------------------------------------------------------------------------------


def test_a_predicate_says_what_its_figures_say():
    for test in (
        Faster(PAIR, "a.graph", "b.graph", by=2.0),
        AsFast(PAIR, "a.graph", "b.graph"),
        MoreMemory(PAIR, "a.graph", "b.graph", figure="temporary_bytes"),
        Ends(PAIR, "a.graph", "unsupported", "no converter"),
        Warned(PAIR, "a.graph", "fallback"),
        Runs(SCRIPT),
        Fails(SCRIPT, "out of range"),
        Figure(SCRIPT, "count", "{value} traces", least=3, most=5),
        QuickerBy(SCRIPT, "one", "other", by=1.5),
        AsQuick(SCRIPT, "one", "other"),
        FasterAlong(LINE, "a.graph", "b.graph"),
        Grows(LINE, "a.graph", least=0.5, most=1.5),
    ):
        for truth in ("yes", "no"):
            seen = sees(test, *evidence([test], [truth]).values())
            assert seen.truth == truth and seen.words and "nan" not in seen.words, (test, seen)


def test_times_need_an_interval_beyond_a_threshold_or_within_a_share():
    for b, truth in ((2.6, "yes"), (2.0, "unknown"), (1.2, "no"), (0.5, "no")):
        seen = sees(Faster(PAIR, "a.graph", "b.graph", by=2.0), of_pair(item("a.graph", 1.0), item("b.graph", b)))
        assert seen.truth == truth and seen.words.startswith(f"b.graph takes {b:#.3g} × [")
    for b, truth in ((1.05, "yes"), (1 / 1.05, "yes"), (1.15, "unknown"), (1.35, "no"), (0.7, "no")):
        assert (
            sees(AsFast(PAIR, "a.graph", "b.graph"), of_pair(item("a.graph", 1.0), item("b.graph", b))).truth == truth
        )
    missing = sees(AsFast(PAIR, "a.graph", "b.graph"), of_pair(item("a.graph")))
    assert missing == Seen("unknown", "b.graph was not measured")


def test_an_end_has_an_outcome_and_words_and_a_warning_its_message():
    for outcome, words, truth in (
        ("unsupported", "no CONVERTER for it", "yes"),
        ("unsupported", "another reason", "no"),
        ("failed", "no converter", "no"),
        ("ok", "", "no"),
        ("timeout", "no converter", "unknown"),
    ):
        found = of_pair(item("a.graph", outcome=outcome, words=words))
        assert sees(Ends(PAIR, "a.graph", "unsupported", "no converter"), found).truth == truth
    warned = item("a.graph", warnings=[Warning(code="fallback", message="It falls back to a loop.")])
    found = of_pair(warned, item("b.graph", outcome="failed", words="x"))
    assert sees(Warned(PAIR, "a.graph", "fallback"), found) == Seen("yes", "a.graph: It falls back to a loop.")
    assert sees(Warned(PAIR, "a.graph", "retraces"), found).truth == "no"
    assert sees(Warned(PAIR, "b.graph", "fallback"), found).truth == "unknown"


def test_figures_of_a_script_are_numbers_within_bounds_and_its_samples_several_and_positive():
    test = Figure(SCRIPT, "count", "{value} traces", least=3, most=5)
    for value, truth in (
        (3, "yes"),
        (5, "yes"),
        (5.5, "no"),
        (True, "unknown"),
        ("many", "unknown"),
        (None, "unknown"),
    ):
        assert sees(test, of_script(count=value)).truth == truth, value
    assert sees(test, of_script(other=1)) == Seen("unknown", "its script reported no count")
    for samples in ([], [1.0] * 4, [1.0, 0.0, 1.0, 1.0, 1.0], "text", [1.0, "x", 1.0, 1.0, 1.0]):
        seen = sees(QuickerBy(SCRIPT, "one", "other"), of_script(one=[1.0] * 5, other=samples))
        assert seen == Seen("unknown", "its script took no samples of other")
    found = of_script("line 3: ValueError: out of range")
    assert sees(Fails(SCRIPT, "OUT of range"), found) == Seen("yes", "it fails: line 3: ValueError: out of range")
    assert sees(Fails(SCRIPT, "another"), found).truth == sees(Runs(SCRIPT), found).truth == "no"
    strange = judge(claim_of(Fails(SCRIPT, "x")), {SCRIPT.key: of_script("a\x1b[31m\n\n  b\u202ec")}, {})
    assert strange.sentence == "It fails: a[31m bc.", "words of figures command no terminal"


def test_an_interval_of_samples_narrows_with_their_number_and_is_the_middle_half_of_few():
    def interval(samples: list[float]) -> tuple[float, float]:
        of = sampled_ratio(of_script(a=samples, b=[1.0] * len(samples)), "a", "b")
        return of.low, of.high

    few = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    first, _, third = quantiles(few, n=4)
    assert interval(few) == pytest.approx((first, third))
    low, high = interval(few * 6)
    assert first < low < 1.3 < high < third


# --- sweeps ----------------------------------------------------------------------------------------------------------


def line(a: list[float], b: list[float]) -> Evidence:
    """A sweep with these seconds at its values."""
    whole = evidence([FasterAlong(LINE, "a.graph", "b.graph")], ["yes"])[LINE.key].run
    points = [
        replace(point, measurements=[item("a.graph", at_a), item("b.graph", at_b)])
        for point, at_a, at_b in zip(whole.points, a, b, strict=True)
    ]
    return Evidence(need=LINE.key, run=replace(whole, points=points))


def test_the_place_where_it_turns_is_said_with_its_interval():
    test, place = FasterAlong(LINE, "a.graph", "b.graph"), r"batch \d+ \[\d+, \d+\]"
    for a, b, words in (
        ([4, 3, 2, 1], [1, 2, 3, 4], f"from {place} on; b.graph takes 0.250 × "),
        ([1, 2, 3, 4], [4, 3, 2, 1], f"up to {place}; "),
        ([1, 4, 4, 1], [4, 1, 1, 4], f"up to {place} and from {place} on; "),
    ):
        seen = sees(test, line(a, b))
        assert seen.truth == "mixed" and re.match(words, seen.words), seen
    # By how much it turns is known at the values alone.
    seen = sees(FasterAlong(LINE, "a.graph", "b.graph", by=2.0), line([4, 3, 1, 1], [1, 2, 3, 4]))
    assert seen.truth == "mixed" and seen.words.startswith("from between batch 10 and 100 on; ")
    seen = sees(test, line([1, 1, 1, 1], [2, 2, 1, 2]))
    assert seen.truth == "unknown" and seen.words.endswith("at batch 100 the two cannot be told apart")


def test_a_sweep_with_too_few_values_says_nothing():
    found, memory = line([1] * 4, [2] * 4), MemoryGrows(LINE, "a.graph", least=0.85)
    short = replace(found, run=replace(found.run, points=found.run.points[:1]))
    for test in (FasterAlong(LINE, "a.graph", "b.graph"), Grows(LINE, "a.graph", least=1)):
        assert sees(test, short).truth == "unknown"
        assert sees(test, replace(found, run=compared(PAIR, [item("a.graph")]))).truth == "unknown", "it is no sweep"
    whole = evidence([memory], ["yes"])[LINE.key]
    assert sees(memory, whole).truth == "yes"
    assert sees(memory, replace(whole, run=replace(whole.run, points=whole.run.points[1:]))).truth == "unknown"


# --- what is broken, and whole runs ----------------------------------------------------------------------------------


def test_a_broken_predicate_costs_its_claim_the_verdict_and_no_more():
    class Broken(Runs):
        def see(self, evidence: Evidence) -> Seen:
            raise ZeroDivisionError("division by zero")

    verdict = judge(claim_of(Runs(SCRIPT), Broken(SCRIPT)), {SCRIPT.key: of_script()}, {})
    assert verdict.word == "cannot tell" and "(ZeroDivisionError: division by zero)" in verdict.sentence


def test_one_bad_file_of_claims_breaks_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = """
from measure.claims.predicates import Runs
from measure.claims.spec import Claim, Said, Script

CLAIMS = (Claim(id={!r}, question={!r}, sentence="So.", said=(Said("seed 1"),), tests=(Runs(Script("")),)),)
"""
    sources = {
        "a_good": whole.format("good", "limits"),
        "b_twice": whole.format("good", "speed"),
        "c_syntax": "CLAIMS = (",
        "d_question": whole.format("odd", "why"),
        "f_last": whole.format("last", "speed"),
    }
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(known, "__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setattr(known, "__path__", [str(tmp_path)])
    monkeypatch.setattr(known, "_read", known._read.__wrapped__)
    try:
        assert [claim.id for claim in known.all_claims()] == ["last", "good"], "by question"
        assert list(known.broken()) == ["b_twice.py", "c_syntax.py", "d_question.py"]
    finally:
        for name in sources:
            sys.modules.pop(f"{known.__name__}.{name}", None)


def test_verdicts_are_counted_and_stand_in_a_table():
    claim = ALL[0]
    yes = evidence(claim.tests, ["yes"] * len(claim.tests))
    whole = replace(run([claim, ALL[1]], yes), claims=[claim.id, ALL[1].id, "strange"])
    assert tries.summary(whole) == "Of 3 claims 1 holds, 1 cannot be told and 1 is not known here."
    shown = table.render(whole)
    assert f"HOLDS  {claim.id}" in shown and "NOT KNOWN HERE  strange" in shown and QUESTIONS[claim.question] in shown
    grid = table.markdown(whole)[-1]
    assert "| **holds** |" in grid and "| strange | **not known here** |" in grid
    listed = table.listed()
    assert all(f"{each.id} (" in listed for each in ALL)
    assert [each["id"] for each in json.loads(json.dumps(table.listing()))] == [each.id for each in ALL]
