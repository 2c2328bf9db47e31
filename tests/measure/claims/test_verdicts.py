"""Verdicts on claims: made-up evidence gives each of those that a claim can have, and words tell the figures."""

import dataclasses
import json
import re
from typing import Any

from msgspec.structs import replace

from measure.claims import known, table, tries, verdicts
from measure.claims.predicates import (
    AsFast,
    Ends,
    Fails,
    FallsBack,
    Faster,
    Figure,
    Grows,
    MoreMemory,
    Runs,
)
from measure.claims.spec import QUESTIONS, Claim, Compare, Script, Seen, Swept
from measure.claims.verdicts import judge
from measure.machine import environment
from measure.model.run import Evidence, Warning
from tests.claims import compared, evidence, item, of_one_test, run, script, swept, timed

ALL = known.all_claims()
GPU = {"gpus": ["A GPU"]}
PAIR = Compare("square", ("a.graph", "b.graph"), {"batch": 10})
LINE = Swept("square", ("a.graph", "b.graph"), "batch", (1, 10, 100, 1_000))
SCRIPT = Script("report(x=1)")
FASTER = Faster(PAIR, "a.graph", "b.graph", 2.0)


def claim_of(*tests: Any, **changes: Any) -> Claim:
    return Claim("x", "speed", "So.", ("seed 1",), tests, **changes)


def sees(test: Any, found: Evidence) -> Seen:
    """What one predicate sees, by way of a verdict: figures that are missing are said."""
    (seen,) = judge(claim_of(test), {test.need.key: found}, {}).seen
    return seen


# --- claims that are known here --------------------------------------------------------------------------------------


def test_every_claim_is_whole_and_every_test_of_it_can_say_yes_and_no():
    assert len({claim.id for claim in ALL}) == len(ALL) >= 2
    for claim in ALL:
        assert claim.question in QUESTIONS and claim.said and claim.tests and claim.id.isidentifier()
        for test in claim.tests:
            for yes, truth in ((True, "yes"), (False, "no")):
                seen = sees(test, evidence(test, yes))
                assert seen.truth == truth and "nan" not in seen.words, (claim.id, seen)


def test_no_claim_is_told_where_its_figures_are_missing():
    for claim in ALL:
        assert judge(claim, {}, GPU).word == "cannot tell", claim.id
        verdict = judge(
            claim, {need.key: Evidence(need=need.key, reason="it does not fit") for need in claim.needs}, GPU
        )
        assert verdict.word == "cannot tell" and "does not fit" in verdict.sentence, claim.id
        seen = judge(claim, {need.key: failed(need) for need in claim.needs}, GPU).seen
        told = [each.truth for test, each in zip(claim.tests, seen, strict=True) if not isinstance(test, Ends)]
        assert set(told) <= {"unknown"}, claim.id


def failed(need: Any) -> Evidence:
    if isinstance(need, Script):
        return script(need, error="line 1: ValueError: no")
    items = [item(slug, outcome="failed", words="no such kernel") for slug in need.strategies]
    return compared(need, items) if isinstance(need, Compare) else swept(need, dict.fromkeys(need.values, items))


def test_a_claim_depends_on_its_cases_and_is_refuted_by_any_test_where_it_has_one():
    quick, counted = FASTER, Figure(SCRIPT, "x", "{value}", 3)
    found = {PAIR.key: evidence(quick, True), SCRIPT.key: evidence(counted, False)}
    assert judge(claim_of(quick, counted), found, {}).word == "does not hold"
    cases = [dataclasses.replace(test, when=when) for test, when in ((quick, "in time"), (counted, "in traces"))]
    verdict = judge(claim_of(*cases), found, {})
    assert verdict.word == "depends" and "In time: " in verdict.sentence and "in traces: " in verdict.sentence
    ended = script(SCRIPT, error="it took more than 9 s")
    ended = replace(ended, script=replace(ended.script, ended=True))
    assert judge(claim_of(Runs(SCRIPT, "x")), {SCRIPT.key: ended}, {}).word == "cannot tell", "somebody ended it"


def test_a_threshold_that_is_that_of_all_stands_once_and_others_with_their_figures():
    other = dataclasses.replace(FASTER, a="b.graph", b="a.graph")
    found = {PAIR.key: timed(PAIR, {"a.graph": 1e-3, "b.graph": 3e-3})}
    assert judge(claim_of(FASTER, other), found, {}).sentence.count("at least 2 ×") == 1
    sentence = judge(claim_of(FASTER, dataclasses.replace(FASTER, by=4.0)), found, {}).sentence
    assert "(at least 2 × is claimed)" in sentence and "(at least 4 × is claimed)" in sentence


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
        verdict = judge(claim_of(Runs(SCRIPT, "x"), **needs), {}, place)
        assert (verdict.word == "cannot be tried here") is bool(lacks) and lacks in verdict.sentence, needs
    claim = claim_of(FASTER, needs_gpu=True)
    assert verdicts.of_run(claim, run([claim], evidence(FASTER, True), gpus=False)).word == "cannot be tried here"
    assert verdicts.of_run(claim, run([claim], evidence(FASTER, True))).word == "holds"


# --- predicates one by one -------------------------------------------------------------------------------------------


def test_times_need_an_interval_beyond_a_threshold_or_within_a_factor():
    for b, truth in ((2.6, "yes"), (2.0, "unknown"), (1.2, "no"), (0.5, "no")):
        seen = sees(FASTER, timed(PAIR, {"a.graph": 1.0, "b.graph": b}))
        assert (seen.truth, seen.threshold) == (truth, "at least 2 ×")
        assert re.match(rf"b.graph takes {b:#.3g} × \[.*\] as long as a.graph$", seen.words)
    seen = sees(dataclasses.replace(FASTER, by=1.0), timed(PAIR, {"a.graph": 4.0, "b.graph": 1.0}))
    assert (seen.truth, seen.threshold) == ("no", "less than 1 ×") and seen.words.startswith("a.graph takes 4.00 × [")
    for b, truth in ((1.5, "yes"), (0.7, "yes"), (2.0, "unknown"), (2.6, "no"), (0.4, "no")):
        assert sees(AsFast(PAIR, "a.graph", "b.graph"), timed(PAIR, {"a.graph": 1.0, "b.graph": b})).truth == truth
    missing = sees(AsFast(PAIR, "a.graph", "b.graph"), compared(PAIR, [item("a.graph")]))
    assert missing == Seen("unknown", "b.graph was not measured")


def test_times_of_a_script_need_several_processes():
    """What one process shows says little of another."""
    test = Faster(SCRIPT, "one", "other")
    for one, other, truth in (
        ([1.0], [1.4], "unknown"),
        ([1.0, 1.0, 1.0], [1.4, 1.4, 1.4], "yes"),
        ([1.0, 2.0, 4.0], [1.4, 2.8, 5.6], "yes"),
        ([1.0, 2.0, 1.0], [1.4, 1.4, 2.8], "unknown"),
    ):
        assert sees(test, script(SCRIPT, one=one, other=other)).truth == truth, (one, other)
    for samples in ("text", [1.0, "x"], [1.0, 0.0], None):
        assert sees(test, script(SCRIPT, one=[1.0], other=samples)) == Seen("unknown", "other was not timed")


def test_an_end_has_an_outcome_and_a_warning_its_message():
    for outcome, truth in (("failed", "yes"), ("ok", "no"), ("unsupported", "no"), ("timeout", "unknown")):
        found = compared(PAIR, [item("a.graph", outcome=outcome, words="no converter")])
        assert sees(Ends(PAIR, "a.graph", "failed"), found).truth == truth
    warned = item("a.graph", warnings=[Warning(code="falls_back", message="falls back, so that it is slow")])
    retraced = item("b.graph", warnings=[Warning(code="retraces", message="is traced anew")])
    found = compared(PAIR, [warned, retraced, item("c.graph", outcome="failed", words="x")])
    assert sees(FallsBack(PAIR, "a.graph"), found) == Seen("yes", "a.graph falls back")
    assert sees(FallsBack(PAIR, "b.graph"), found).truth == "no"
    assert sees(FallsBack(PAIR, "c.graph"), found).truth == "unknown"
    memory = compared(PAIR, [item("a.graph", peak_bytes=2**20), item("b.graph", peak_bytes=2**21)])
    assert sees(MoreMemory(PAIR, "b.graph", "a.graph", 2.0), memory).truth == "yes"


def test_figures_of_a_script_are_numbers_within_bounds_in_each_process_or_errors():
    test = Figure(SCRIPT, "count", "{value} traces", 3, 5)
    for value, truth in (
        (3, "yes"),
        ([3, 5], "yes"),
        (5.5, "no"),
        ([3, 6], "unknown"),
        (True, "unknown"),
        ("many", "unknown"),
        (None, "unknown"),
    ):
        assert sees(test, script(SCRIPT, count=value)).truth == truth, value
    seen = sees(dataclasses.replace(test, words="{value} s of it"), script(SCRIPT, count=4))
    assert (seen.words, seen.threshold) == ("4 s of it", "at least 3 and at most 5 s")
    assert sees(test, script(SCRIPT, other=1)) == Seen("unknown", "its script reported no count")
    found = script(SCRIPT, part="ValueError: out of range")
    assert sees(Fails(SCRIPT, "part", words="OUT of range"), found).truth == "yes"
    assert sees(Fails(SCRIPT, "part", words="another"), found).truth == sees(Runs(SCRIPT, "part"), found).truth == "no"
    strange = {SCRIPT.key: script(SCRIPT, part="a\x1b[31m\n\n  b\u202ec")}
    sentence = judge(claim_of(Fails(SCRIPT, "part")), strange, {}).sentence
    assert sentence == "It fails: a[31m bc.", "words of figures command no terminal"


def line(a: list[float], b: list[float]) -> Evidence:
    """A sweep with these seconds at its values."""
    pairs = zip(LINE.values, a, b, strict=True)
    return swept(LINE, {value: [item("a.graph", at_a), item("b.graph", at_b)] for value, at_a, at_b in pairs})


def test_the_place_where_a_sweep_turns_is_said_with_its_interval():
    test, place = Faster(LINE, "a.graph", "b.graph"), r"batch \d+ \[\d+, \d+\]"
    for a, b, words in (
        ([4, 3, 2, 1], [1, 2, 3, 4], f"from {place} on; b.graph takes 0.250 × "),
        ([1, 2, 3, 4], [4, 3, 2, 1], f"up to {place}; "),
        ([1, 4, 4, 1], [4, 1, 1, 4], f"up to {place} and from {place} on; "),
    ):
        seen = sees(test, line(a, b))
        assert seen.truth == "mixed" and re.match(words, seen.words), seen
    # By how much it turns is known at the values alone.
    seen = sees(dataclasses.replace(test, by=2.0), line([4, 3, 1, 1], [1, 2, 3, 4]))
    assert seen.truth == "mixed" and seen.words.startswith("it turns at batch between 10 and 100; ")
    assert sees(test, line([1, 1, 1, 1], [2, 2, 1, 2])).truth == "unknown"
    short = swept(LINE, {1: [item("a.graph"), item("b.graph", 9.0)]})
    for test_ in (test, Grows(LINE, "a.graph", least=1)):
        assert sees(test_, short).truth == "unknown"
        assert sees(test_, compared(PAIR, [item("a.graph"), item("b.graph")])).truth == "unknown", "it is no sweep"


# --- whole runs ------------------------------------------------------------------------------------------------------


def test_verdicts_are_counted_and_stand_in_a_table():
    claim = of_one_test()
    other = next(one for one in ALL if not {need.key for need in one.needs} & {claim.needs[0].key})
    whole = replace(run([claim, other], evidence(claim.tests[0], True)), claims=[claim.id, other.id, "strange"])
    assert tries.summary(whole) == "Of 3 claims 1 holds, 1 cannot be told and 1 is not known here."
    shown = table.render(whole)
    assert f"HOLDS  {claim.id}" in shown and "NOT KNOWN HERE  strange" in shown and QUESTIONS[claim.question] in shown
    grid = table.markdown(whole)[-1]
    assert "| **holds** |" in grid and "| strange | **not known here** |" in grid
    listed = table.listed()
    assert all(f"{each.id} (" in listed for each in ALL)
    assert [each["id"] for each in json.loads(json.dumps(table.listing()))] == [each.id for each in ALL]
