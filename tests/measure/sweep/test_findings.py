"""Figures and words of a sweep's points: the verdict, and how points are settled at an early end."""

from msgspec.structs import replace

from measure.model.run import Point
from measure.sweep import findings
from tests import synthetic


def test_the_verdict_names_the_regions_of_a_line_or_of_a_map():
    line = synthetic.sweep()
    assert line.verdict.startswith("Fastest: loop.eager below batch 3, vectorized_map.graph from 3 [")
    large = [point for point in line.points if point.at["batch"] >= 10]
    assert findings.verdict(replace(line, points=large, crossovers=[])) == (
        "vectorized_map.graph is fastest at every point that was measured."
    )
    undecided = [replace(each, value=None, low=None, high=None, none="they tie") for each in line.crossovers]
    assert findings.verdict(replace(line, crossovers=undecided)) == (
        "Fastest: loop.eager at batch 1, vectorized_map.graph from 10 to 1,000."
    )
    back = [*line.points[:3], replace(line.points[0], at={"batch": 1_000})]
    assert findings.verdict(replace(line, points=back, crossovers=undecided)) == (
        "Fastest: loop.eager at batch 1, vectorized_map.graph from 10 to 100, loop.eager at 1,000."
    )
    assert synthetic.winners().verdict == (
        "Fastest: vectorized_map.graph from batch 10 (6 of 9 cells); loop.eager at batch 1 (3)."
    )
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
