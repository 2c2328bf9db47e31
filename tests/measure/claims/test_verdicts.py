"""Verdicts on claims: made-up evidence gives each of those that a claim can have, and words tell the figures."""

import dataclasses
import json
import math
import re
from typing import Any

from msgspec.structs import replace

from measure.claims import known, spec, table, verdicts
from measure.claims.spec import QUESTIONS, Claim, Compare, Ends, Fails, FallsBack, Faster, Figure, Script, Seen, as_fast
from measure.claims.tries import request_of
from measure.claims.verdicts import judge
from measure.run.run import Evidence
from tests.claims import compared, evidence, item, of_one_test, run, script, timed

ALL = known.all_claims()
GPU = {"gpus": ["A GPU"]}
PAIR = Compare("square", ("a.graph", "b.graph"), {"batch": 10})
SCRIPT = Script("report(x=1)")
FASTER = Faster(PAIR, "a.graph", "b.graph", 2.0)


def claim_of(*tests: Any, **changes: Any) -> Claim:
    return Claim("x", "speed", ("seed 1",), "So.", tests, **changes)


def sees(test: Any, measured: Evidence) -> Seen:
    """The answer of one predicate, by way of a verdict: figures that are missing are said."""
    (answer,) = judge(claim_of(test), {test.need.key: measured}, {}).seen
    return answer


def test_every_claim_can_be_measured_and_be_refuted_and_is_not_told_where_its_figures_are_missing():
    assert len({claim.id for claim in ALL}) == len(ALL) >= 2
    for claim in ALL:
        assert claim.question in QUESTIONS and claim.said and claim.tests and claim.id.isidentifier()
        for test in claim.tests:
            for yes, truth in ((True, "yes"), (False, "no")):
                answer = sees(test, evidence(test, yes))
                assert answer.truth == truth and "nan" not in answer.words, (claim.id, answer)
        assert all(isinstance(need, Script) or request_of(need) for need in claim.needs)
        refused = {need.key: Evidence(need=need.key, reason="it does not fit") for need in claim.needs}
        verdict = judge(claim, refused, GPU)
        assert judge(claim, {}, GPU).word == verdict.word == "cannot tell" and "does not fit" in verdict.sentence


def test_a_sentence_names_the_factor_that_its_tests_ask_for():
    for claim in ALL:
        for test in claim.tests:
            if isinstance(test, Faster | spec.MoreMemory) and test.by != type(test).by:
                factor = test.by if getattr(test, "most", math.inf) == math.inf else test.most
                assert f"{factor:g}×" in claim.sentence, claim.id


def test_a_claim_depends_on_its_cases_and_is_refuted_by_any_test_where_it_has_one():
    quick, counted = FASTER, Figure(SCRIPT, "x", "{value}", 3)
    measured = {PAIR.key: evidence(quick, True), SCRIPT.key: evidence(counted, False)}
    assert judge(claim_of(quick, counted), measured, {}).word == "does not hold"
    cases = [dataclasses.replace(test, when=when) for test, when in ((quick, "in time"), (counted, "in traces"))]
    verdict = judge(claim_of(*cases), measured, {})
    assert verdict.word == "depends" and "In time: " in verdict.sentence and "in traces: " in verdict.sentence


def test_a_claim_says_what_the_machine_lacks():
    claim = claim_of(FASTER, needs_gpu=True)
    for gpus, word in ((False, "cannot be tried here"), (True, "holds")):
        verdict = verdicts.of_run(claim, run([claim], evidence(FASTER, True), gpus=gpus))
        assert verdict.word == word and ("needs a GPU" in verdict.sentence) != gpus


def test_times_need_an_interval_beyond_a_threshold_or_within_a_factor():
    for b, truth in ((2.6, "yes"), (2.0, "unknown"), (1.2, "no"), (0.5, "no")):
        seen = sees(FASTER, timed(PAIR, {"a.graph": 1.0, "b.graph": b}))
        assert (seen.truth, seen.threshold) == (truth, "at least 2×")
        assert re.match(rf"b.graph takes {b:.3g}\S*× \(.*\) as long as a.graph$", seen.words)
    seen = sees(dataclasses.replace(FASTER, by=1.0), timed(PAIR, {"a.graph": 4.0, "b.graph": 1.0}))
    assert (seen.truth, seen.threshold) == ("no", "less than 1×") and seen.words.startswith("a.graph takes 4.0× (")
    for b, truth in ((1.5, "yes"), (0.7, "yes"), (2.0, "unknown"), (2.6, "no"), (0.4, "no")):
        assert sees(as_fast(PAIR, "a.graph", "b.graph"), timed(PAIR, {"a.graph": 1.0, "b.graph": b})).truth == truth
    missing = sees(as_fast(PAIR, "a.graph", "b.graph"), compared(PAIR, [item("a.graph")]))
    assert missing == Seen("unknown", "b.graph was not measured")


def test_times_of_a_script_need_several_processes():
    test = Faster(SCRIPT, "one", "other")
    for one, other, truth in (
        ([1.0, 1.0, 1.0], [1.4, 1.4, 1.4], "yes"),
        ([1.0, 2.0, 4.0], [1.4, 2.8, 5.6], "yes"),
        ([1.0, 2.0, 1.0], [1.4, 1.4, 2.8], "unknown"),
    ):
        assert sees(test, script(SCRIPT, one=one, other=other)).truth == truth, (one, other)
    for samples in ("text", [1.0, "x"], [1.0, 0.0], None, [1.0]):
        assert sees(test, script(SCRIPT, one=[1.0, 1.0], other=samples)).truth == "unknown", samples
    assert sees(test, script(SCRIPT, error="it took more than 9 s")).truth == "unknown"


def test_what_did_not_end_as_it_would_is_unknown():
    for outcome, truth in (("failed", "yes"), ("ok", "no"), ("unsupported", "no"), ("timeout", "unknown")):
        ended = compared(PAIR, [item("a.graph", outcome=outcome, words="no converter")])
        assert sees(Ends(PAIR, "a.graph", "failed"), ended).truth == truth
    assert sees(FallsBack(PAIR, "a.graph"), ended).truth == "unknown"


def test_figures_of_a_script_are_numbers_within_bounds_in_each_process_or_errors():
    test = Figure(SCRIPT, "count", "{value} traces", 3)
    for value, truth in ((3, "yes"), ([3, 5], "yes"), (2.5, "no"), ([2, 6], "unknown"), ("many", "unknown")):
        assert sees(test, script(SCRIPT, count=value)).truth == truth, value
    for most, threshold in ((math.inf, "at least 3"), (3, "exactly 3")):
        seen = sees(dataclasses.replace(test, most=most), script(SCRIPT, count=4))
        assert (seen.words, seen.threshold) == ("4 traces", threshold)
    assert sees(Figure(SCRIPT, "count", "{value}% of it", 3), script(SCRIPT, count=4)).threshold == "at least 3%"
    assert sees(test, script(SCRIPT, other=1)) == Seen("unknown", "count was not measured")
    failed = script(SCRIPT, part="ValueError: out of range")
    assert sees(Fails(SCRIPT, "part", words="OUT of range"), failed).truth == "yes"
    assert sees(Fails(SCRIPT, "part", words="another"), failed).truth == "no"
    assert sees(Fails(SCRIPT, "part", fails=False), failed).truth == "no"
    strange = {SCRIPT.key: script(SCRIPT, part="a\x1b[31m\n\n  b\u202ec")}
    sentence = judge(claim_of(Fails(SCRIPT, "part")), strange, {}).sentence
    assert sentence == "It fails: a[31m bc.", "words of figures command no terminal"


def test_verdicts_are_counted_and_stand_in_a_table():
    claim = of_one_test()
    other = next(one for one in ALL if not {need.key for need in one.needs} & {claim.needs[0].key})
    whole = replace(run([claim, other], evidence(claim.tests[0], True)), claims=[claim.id, other.id, "strange"])
    assert verdicts.summary(whole) == "Of 3 claims 1 holds, 1 cannot tell and 1 is no longer tried."
    assert all(part in table.render(whole) for part in (f"HOLDS  {claim.id}", QUESTIONS[claim.question], "no longer"))
    assert "| **holds** |" in table.markdown(whole)[-1]
    assert [row[0] for row in table.rows(whole)] == [one.id for one in ALL if one in (claim, other)]
    assert all(f"{one.id} (" in table.listed() for one in ALL)
    assert [entry["id"] for entry in json.loads(json.dumps(table.listing()))] == [one.id for one in ALL]
