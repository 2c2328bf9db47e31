"""Figures and words of a sweep's points: the verdict, and how points are settled at an early end."""

from msgspec.structs import replace

from measure.model.run import Point
from measure.sweep import findings
from tests import synthetic


def test_the_verdict_names_the_crossing_the_winner_everywhere_or_the_map():
    line = synthetic.sweep()
    assert line.verdict.startswith("vectorized_map.graph overtakes loop.eager at batch 3 [")
    large = [point for point in line.points if point.at["batch"] >= 10]
    assert findings.verdict(replace(line, points=large, crossovers=[])) == (
        "vectorized_map.graph is fastest at every point that was measured."
    )
    undecided = [replace(each, value=None, low=None, high=None, none="they tie") for each in line.crossovers]
    assert findings.verdict(replace(line, crossovers=undecided)) == (
        "loop.eager is fastest at batch 1, vectorized_map.graph at batch 1,000; "
        "where one overtakes another is not decided."
    )
    back = [*line.points[:3], replace(line.points[0], at={"batch": 1_000})]
    assert findings.verdict(replace(line, points=back, crossovers=undecided)) == (
        "loop.eager is fastest at batch 1 and 1,000, but not everywhere between; "
        "where one overtakes another is not decided."
    )
    assert synthetic.winners().verdict == "vectorized_map.graph leads at 6, loop.eager leads at 3 of 9 points."
    assert findings.verdict(replace(line, points=[])).startswith("Nothing was ranked")


def test_a_sweep_that_ends_early_settles_its_points_and_keeps_what_they_have():
    line = synthetic.sweep()
    points = [*line.points[:2], replace(line.points[2], status="running"), Point(at={"batch": 1_000})]
    closed = findings.close(replace(line, points=points), "interrupted", "the machine went away", line.created)
    assert [point.status for point in closed.points] == ["complete", "complete", "interrupted", "interrupted"]
    for now, before in zip(closed.points[:2], points[:2], strict=True):
        # Intervals are of the spread over all points, of which there is one less.
        assert [item.replicas for item in now.measurements] == [item.replicas for item in before.measurements]
        assert (now.ranking, now.limit) == (before.ranking, before.limit)
    assert closed.points[2].measurements[1].latency is not None
    assert closed.points[3].reason == "the machine went away" and closed.status == "interrupted"
