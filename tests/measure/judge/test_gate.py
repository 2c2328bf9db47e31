"""Gates judged from made-up samples, and written for people and for machines."""

import json
import math
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from measure.judge.analysis import analyse
from measure.judge.findings import findings
from measure.judge.gate import LEAST_PAIRS, Allowed, Result, of_run, of_runs
from measure.output import gate as output
from measure.run.run import BASE, Code, Error, Measurement, Replica, Run
from tests import synthetic
from tests.measure.judge.test_pair import CLOSE, a_run
from tests.samples import memory, run_of

ALLOWED = Allowed(0.05, 0.05)
# Pairs of processes: their two ratios to what they are said to be; and a machine whose pace is another one for each.
EXACT, NOISY = (0.999, 1.0, 1.001), (0.8, 1.0, 1.25)
PACES = (1.0, 3.0, 0.5)


def pair_of(slug: str, times: float, scatter=EXACT, **head) -> list[Measurement]:
    """A strategy whose HEAD takes ``times`` as long as its BASE: pair after pair, each in rounds of its own."""

    def side(name: str, factors: list[float], **more) -> Measurement:
        replicas = [
            Replica(id=place, calls_per_sample=1, rounds=[9 * place, 9 * place + 1], samples_s=[1e-3 * factor] * 2)
            for place, factor in enumerate(factors)
        ]
        more = {"outcome": "ok", "memory": memory(1000)} | more
        return Measurement(strategy=name, mapper="map_fn", mode="graph", replicas=replicas, **more)

    by_pair = [times * of_pair * pace for of_pair, pace in zip(scatter, PACES, strict=True)]
    return [side(slug, by_pair, **head), side(slug + BASE, [*PACES], twin_of=slug)]


def judged(*items: Measurement) -> Result:
    return of_run(run_of(*items), ALLOWED, ("main", "."))


FAILED = {"outcome": "failed", "error": Error(type="E", message="it broke")}


@pytest.mark.parametrize(
    ("times", "head", "word", "is_open"),
    [
        (1.0, {}, "within", False),
        (1.2, {}, "slower", False),
        (0.5, {}, "within", False),
        (1.05, {}, "cannot tell", True),
        (1.2, {"scatter": NOISY}, "cannot tell", True),
        (1.0, {"memory": memory(1051)}, "more memory", False),
        (1.05, {"memory": memory(1051)}, "more memory", True),
        (1.0, {"memory": memory(1050)}, "within", False),
        (1.0, {"outcome": "wrong"}, "wrong", False),
        (1.2, FAILED, "failed", False),
        (1.2, {"outcome": "not_run"}, "cannot tell", False),
    ],
)
def test_an_alarm_needs_what_is_shown_whatever_the_pace_of_the_machine(times, head, word, is_open):
    (one,) = judged(*pair_of("map_fn.graph", times, **head)).judged
    assert (one.word, one.is_open) == (word, is_open)
    assert one.ratio is not None and math.isclose(one.ratio.ratio, times, rel_tol=1e-6)


def test_the_worst_is_the_verdict_and_what_does_not_work_in_base_is_not_judged():
    good, bad = pair_of("a.graph", 1.0), pair_of("b.graph", 1.2)
    broken = [replace(item, **FAILED) for item in pair_of("c.graph", 1.0)]
    open_ = pair_of("d.graph", 1.0, NOISY)
    assert [judged(*items).word for items in (good, good + bad, good + broken, broken, good + open_)] == [
        "within", "slower", "within", "cannot tell", "cannot tell",
    ]  # fmt: skip
    assert judged(*broken, *good).judged[0].word == "not judged"
    lone = [replace(item, replicas=item.replicas[: LEAST_PAIRS - 1]) for item in good]
    assert judged(*lone).judged[0].ratio is None and judged(*lone).word == "cannot tell"
    alone, beside = judged(*open_).judged[0].ratio, judged(*open_, *bad).judged[0].ratio
    assert alone and beside and beside.low < alone.low, "all intervals hold together"


def coded(latencies_s: dict[str, float], seed: int, *changed: str) -> Run:
    """A run whose strategies have the code of all others like it but for those whose code has ``changed``."""
    run = a_run(latencies_s, seed)
    codes = [Code(source="", sha256=f"{item.strategy in changed}") for item in run.measurements]
    pairs = zip(run.measurements, codes, strict=True)
    items = [replace(item, code=code, memory=memory(1000)) for item, code in pairs]
    return replace(run, id=f"{seed:024x}", measurements=items)


FIRST, SLOW = coded(CLOSE, 3), {slug: (6 if slug == "b.graph" else 2) * each for slug, each in CLOSE.items()}


def test_runs_are_compared_by_their_ratios_to_a_baseline_whose_code_is_the_same():
    second, allowed = coded(SLOW, 4, "b.graph"), Allowed(0.3, 0.05)
    second = replace(second, environment={"cpu_model": "none\x1b[2J\nWithin"})
    result = of_runs(FIRST, second, allowed)
    assert [note for note in result.notes if note.endswith("none[2J Within in HEAD")]
    words = {one.name: one.word for one in result.judged}
    assert words == dict.fromkeys(CLOSE, "within") | {"a.graph": "not judged", "b.graph": "slower"}
    assert of_runs(FIRST, second, Allowed(1e-4, 0.05), baseline="c.graph").judged[0].word == "cannot tell"
    assert of_runs(FIRST, second, allowed, leader=True).word == "within"
    changed = [of_runs(FIRST, coded(SLOW, 4, "a.graph"), allowed, leader=leader) for leader in (False, True)]
    assert all((one.word, "in one run" in one.reason) == ("cannot tell", True) for of in changed for one in of.judged)


@pytest.mark.parametrize(("mode", "peak", "word"), [("graph", 1500, "cannot tell"), ("graph", 1501, "more memory"),
                                                    ("eager", 1060, "more memory")])  # fmt: skip
def test_a_peak_that_may_differ_by_chance_is_no_alarm_where_it_was_measured_once(mode, peak, word):
    items = [replace(item, mode=mode, memory=memory(peak)) for item in FIRST.measurements]
    result = of_runs(FIRST, replace(FIRST, measurements=items), Allowed(10.0, 0.05))
    assert {one.word for one in result.judged} == {word} == {result.word}


@pytest.mark.parametrize(
    ("name", "value"), [("size", {"batch": 2}), ("dtype", "float64"), ("device", "GPU:0"), ("workload", "w")]
)
def test_runs_of_other_cases_are_refused(name, value):
    with pytest.raises(ValueError, match=f"different cases: {'title' if name == 'workload' else name}; a gate"):
        of_runs(FIRST, replace(FIRST, request=replace(FIRST.request, **{name: value})), ALLOWED)


_BROKEN = {
    "outcome": "failed",
    "error": Error(type="E", message=synthetic.HOSTILE + "\x00\x1b[2J\ufffe" + " and" * 999),
}
MIXED = judged(
    *pair_of("a.graph", 1.0),
    *pair_of("b.graph", 1.2),
    *pair_of("c.graph", 1.0, NOISY),
    *pair_of("d.graph", 1.0, **_BROKEN),
)


def test_junit_has_a_test_case_for_each_strategy():
    suite = ElementTree.fromstring(output.as_junit(MIXED).encode())
    assert suite.attrib == {"name": "mapbench gate", "tests": "4", "failures": "2", "skipped": "1"}
    assert [[(part.tag, part.get("message", "")[:7]) for part in case] for case in suite] == [
        [], [("failure", "slower,")], [("skipped", "cannot ")], [("failure", "failed,")],
    ]  # fmt: skip
    message = str(suite[3][0].get("message"))
    assert synthetic.HOSTILE in message and message.endswith(" …") and len(message) < 400


def test_markdown_and_text_say_the_same_and_json_has_every_figure():
    text, written = output.render(MIXED), output.as_markdown(MIXED)
    assert text.startswith("Worse: b.graph: slower, 1.20× (1.19–1.21) as long") and "\x1b" not in text
    assert written.count("\n| ") == 6 and "<img" not in written.replace("\\<img", "")
    document = json.loads(output.as_json(MIXED, 4, "0" * 24))
    assert (document["verdict"], document["exit_status"], document["run"]) == ("failed", 4, "0" * 24)
    slower = document["strategies"][1]
    assert slower["ratio"]["low"] > 1.05 and slower["base"]["peak_bytes"] == 1000


def test_a_strategy_of_base_is_no_control_and_has_no_rank():
    run = analyse(run_of(*pair_of("a.graph", 1.0), *pair_of("b.graph", 1.2)))
    assert run.control is None and sorted(slug for group in run.ranking for slug in group) == ["a.graph", "b.graph"]
    assert [row.slug for row in findings(run).rows] == ["a.graph", "b.graph"]
