"""Was the verdict reproduced? What is planted in two runs is found, and chance is not taken for a change."""

from msgspec.structs import replace

from measure.judge import reproduction
from measure.judge.analysis import analyse
from measure.run.run import Run
from tests import synthetic
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
    # A tie in both, of others beside the one that leads in both: whoever took that is as right as before.
    tie, other = replace(first, ranking=[[a, b], *others]), replace(again, ranking=[[b, "c.graph"], [a], ["d.graph"]])
    assert reproduction.compare(tie, other).outcome == "undecided"
    assert reproduction.compare(tie, replace(again, ranking=[[b, a], *others])).outcome == "reproduced"
    apart = replace(again, ranking=[[a, "d.graph"], [b], ["c.graph"]])  # no two that differ by a factor tie
    assert reproduction.compare(first, apart).outcome == "unknown"
