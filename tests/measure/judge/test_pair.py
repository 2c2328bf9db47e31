"""Two runs: was the verdict reproduced, and what changed? What is planted is found, chance and pace are no change."""

import pytest
from msgspec.structs import replace

from measure.judge import pair, reproduction, warnings
from measure.judge.analysis import analyse
from measure.output import pair_table
from measure.run.run import Code, Run
from tests import synthetic
from tests.samples import memory
from tests.simulation import Model, simulate

CLOSE = {"a.graph": 1.00e-3, "b.graph": 1.30e-3, "c.graph": 2.0e-3, "d.graph": 2.6e-3}


def a_run(latencies_s: dict[str, float], seed: int) -> Run:
    """A comparison of strategies with these true latencies."""
    result = simulate(latencies_s, Model(), seed)
    return analyse(replace(synthetic.partial(0), measurements=result.measurements, ranking=[], verdict=""))


def test_a_clear_verdict_is_reproduced_also_by_a_machine_that_is_slower_at_everything():
    for slower in (1, 3):
        answer = reproduction.compare(a_run(CLOSE, 3), a_run({slug: slower * each for slug, each in CLOSE.items()}, 4))
        assert answer.outcome == "reproduced"


def test_a_leader_that_does_not_work_here_refutes_it_and_nothing_in_common_leaves_it_unknown():
    first, again = a_run(CLOSE, 3), a_run(CLOSE, 4)
    answer = reproduction.compare(first, replace(again, ranking=again.ranking[1:]))
    assert answer.outcome == "refuted" and "a.graph" in answer.sentence
    # One that ended before it was timed says nothing of it.
    untimed = [replace(item, outcome="not_run") if item.strategy == "a.graph" else item for item in again.measurements]
    early = replace(again, ranking=again.ranking[1:], measurements=untimed)
    assert reproduction.compare(first, early).outcome == "undecided"
    for ranking in ([], [["z.graph"]]):
        assert reproduction.compare(first, replace(again, ranking=ranking)).outcome == "unknown"


def test_another_leader_beyond_chance_refutes_it():
    answer = reproduction.compare(a_run(CLOSE, 3), a_run(CLOSE | {"b.graph": 0.5e-3}, 4))
    assert answer.outcome == "refuted" and "b.graph" in answer.sentence


def test_leaders_that_differ_by_chance_alone_or_in_part_leave_it_open_and_so_does_a_run_that_tells_nothing():
    first, again = a_run(CLOSE, 3), a_run(CLOSE, 4)
    (a, b), others = ("a.graph", "b.graph"), [["c.graph"], ["d.graph"]]
    for ranking in ([[b], [a], *others], [[a, b], *others]):
        assert reproduction.compare(first, replace(again, ranking=ranking)).outcome == "undecided"
    tie, other = replace(first, ranking=[[a, b], *others]), replace(again, ranking=[[b, "c.graph"], [a], ["d.graph"]])
    assert reproduction.compare(tie, other).outcome == "undecided"
    near = a_run(CLOSE | {b: 1.01e-3}, 3), a_run(CLOSE | {b: 0.99e-3}, 4)
    assert reproduction.compare(*near).outcome == "reproduced"
    apart = replace(again, ranking=[[a, "d.graph"], [b], ["c.graph"]])  # no two that differ by a factor tie
    assert reproduction.compare(first, apart).outcome == "unknown"


FIRST, SLOWER = a_run(CLOSE, 3), a_run(CLOSE | {"b.graph": 1.8e-3}, 4)


def test_only_two_conclusive_runs_that_agree_on_the_lead_reproduce_a_verdict():
    late = {"outcome": "not_run", "replicas": []}
    items = [replace(item, **late) if item.strategy == "b.graph" else item for item in FIRST.measurements]
    short = analyse(replace(FIRST, measurements=items))
    for runs, why in (
        ((FIRST, short), "the later run is inconclusive: b.graph was not timed."),
        ((short, FIRST), "the earlier run is inconclusive: b.graph was not timed."),
        ((FIRST, SLOWER), "the lead over b.graph went from 1.3"),
    ):
        answer = reproduction.compare(*runs)
        assert answer.outcome == "undecided" and f": a.graph was fastest in both runs; {why}" in answer.sentence


def test_runs_are_named_by_time_and_a_ratio_has_one_interval():
    made = pair.of(FIRST, replace(SLOWER, created="2025-01-15T10:00:00+02:00"))  # 90 minutes before the other
    head, *lines = pair_table.cells(made)
    assert head[1:4] == ["later", "earlier", "earlier / later"]
    ratio = next(line[3] for line in lines if line[0] == "a.graph")
    first, *others = pair_table.sentences(made)
    assert (
        first.startswith("The earlier verdict was ") and f" a.graph takes {ratio} as long in the earlier run." in first
    )
    assert others == [
        "Slower in the earlier run, relative to a.graph: b.graph.",
        "All intervals hold together with 95% confidence.",
    ]


def changed(second, **of) -> dict[str, str]:
    """The words on each strategy."""
    made = pair.of(FIRST, second, **of)
    return {line[0]: line[-1] for line in pair_table.cells(made)[1:]}


def test_a_slower_machine_is_no_change_and_a_slower_strategy_is_one():
    assert set(changed(a_run({slug: 3 * each for slug, each in CLOSE.items()}, 4)).values()) == {""}
    second = a_run(CLOSE | {"b.graph": 2 * CLOSE["b.graph"]}, 4)
    assert changed(second) == dict.fromkeys(CLOSE, "") | {"b.graph": "slower"}
    # Relative to it, all others are faster.
    assert changed(second, baseline="b.graph") == dict.fromkeys(CLOSE, "faster") | {"b.graph": ""}
    text = pair_table.render(pair.of(FIRST, second))
    assert "relative to a.graph" in text and "Slower in the later run, relative to a.graph: b.graph." in text


def test_memory_values_and_scripts_are_compared_and_a_strategy_of_one_run_stands_alone():
    def with_item(run, slug, **more):
        items = [replace(item, **more) if item.strategy == slug else item for item in run.measurements]
        return replace(run, measurements=items)

    first = with_item(FIRST, "c.graph", memory=memory(1000), code=Code(source="", sha256="1"))
    second = with_item(a_run(CLOSE, 4), "c.graph", memory=memory(1100), code=Code(source="", sha256="1"))
    second = with_item(second, "d.graph", outcome="wrong")
    second = replace(second, measurements=[item for item in second.measurements if item.strategy != "b.graph"])
    made = pair.of(first, second)
    lines = {line[0]: line[-1] for line in pair_table.cells(made)[1:]}
    assert lines == {"a.graph": "", "b.graph": "", "c.graph": "more memory", "d.graph": "another outcome"}
    assert [change.strategy for change in made.changes if change.same_code] == ["c.graph"]


def test_only_what_differs_is_named_of_what_was_asked_and_of_the_machine():
    second = replace(
        FIRST, request=replace(FIRST.request, threads=1), environment={**FIRST.environment, "python": "3.99"}
    )
    facts = pair.of(FIRST, second).facts
    assert [fact[0] for fact in facts] == ["threads", "python"] and facts[1][2] == "3.99"
    assert pair.of(FIRST, FIRST).facts == []
    calm, near, far = (replace(FIRST, environment={"load_of_others_cores": cores}) for cores in (0.1, 0.3, 0.5))
    busy = replace(near, warnings=[warnings.warning("busy_during", cores=1.5)])
    assert pair.of(calm, near).facts == []
    assert pair.of(calm, far).facts == [("load of others", "0.1 cores", "0.5 cores")]
    assert pair.of(calm, busy).facts == [("load of others", "0.1 cores", "1.5 cores")]
    assert "another case, " in pair_table.sentences(pair.of(FIRST, second))[0]
    assert "reproduced" in pair_table.sentences(pair.of(FIRST, replace(second, request=FIRST.request)))[0]


def test_runs_that_cannot_be_compared_are_refused_with_a_sentence():
    for other, words in ((synthetic.sweep(), "is a sweep"), (synthetic.partial(3), "no strategy in common")):
        with pytest.raises(ValueError, match=words):
            pair.of(FIRST, other)
    with pytest.raises(ValueError, match=r"z\.graph is not timed and right in both runs: "):
        pair.of(FIRST, FIRST, baseline="z.graph")
    untimed = replace(FIRST, measurements=[replace(item, replicas=[], latency=None) for item in FIRST.measurements])
    made = pair.of(FIRST, replace(untimed, ranking=[]))
    assert made.baseline is None and "no strategy is timed and right in both" in " ".join(pair_table.sentences(made))
