"""Two strategies of a sweep that somebody asks about: where they cross, by how much one is faster, or why it cannot be
told."""

import numpy as np
import pytest
from msgspec.structs import replace

from measure.model.run import Run
from measure.sweep import findings, pairs
from measure.sweep.evidence import evidence
from measure.sweep.pairs import Answer
from tests import costs, synthetic

GRID = (1, 4, 16, 64, 256, 1024)
FAST, SLOW, STEEP, LOOP = "batched.graph", "map_fn.graph", "while_loop.graph", "loop.eager"
# The two slowest cross at 30, and the fastest is far below them throughout.
COSTS = {FAST: (1e-5, 1e-7), SLOW: (1e-3, 2e-6), STEEP: (4e-4, 2.2e-5), LOOP: (2e-3, 4e-6)}


def sweep(model: costs.Model = costs.QUIET, run_costs: costs.Costs = COSTS) -> Run:
    points = costs.points(GRID, run_costs, np.random.default_rng(0), model)
    return findings.analyse(replace(synthetic.sweep(), axes=[costs.axis(GRID)], points=points))


def ask(run: Run, one: str, other: str) -> Answer:
    return pairs.ask(run, one, other, evidence(run.points, run.axes))


def test_two_that_do_not_lead_have_their_crossing_with_its_interval():
    run = sweep()
    assert not any({each.a, each.b} == {SLOW, STEEP} for each in run.crossovers), "neither leads anywhere"
    answer = ask(run, SLOW, STEEP)
    [crossing] = answer.crossings
    assert (crossing.a, crossing.b) == (STEEP, SLOW)
    assert crossing.low is not None and crossing.high is not None and crossing.low <= 30 <= crossing.high
    assert answer.sentence.startswith(f"{SLOW} overtakes {STEEP} at batch ") and answer.sentence.endswith("].")
    turned = ask(run, STEEP, SLOW)
    assert turned == Answer(f"The other way around: {answer.sentence}", answer.crossings)


def test_two_that_do_not_cross_are_told_apart_by_their_factors():
    assert ask(sweep(), LOOP, SLOW) == Answer(
        f"They do not cross between batch 1 and 1,024: {SLOW} is 2.00 × faster throughout."
    )
    assert ask(sweep(), SLOW, FAST).sentence == (
        f"They do not cross between batch 1 and 1,024: {FAST} is 27 × to 99 × faster throughout."
    )


def test_two_that_tie_are_not_told_apart_and_where_they_tie_is_counted():
    noisy = costs.Model(process=0.1, disturbed_share=0.0)
    run = sweep(noisy, {FAST: (1e-3, 1e-6), SLOW: (1e-3, 1e-6)})
    assert ask(run, FAST, SLOW) == Answer("It cannot be told: they tie between batch 1 and 1,024.")
    run = sweep(noisy, {FAST: (1e-3, 1e-6), SLOW: (1e-3, 1e-5)})
    said = ask(run, SLOW, FAST).sentence
    assert said.startswith(f"No crossing can be told between batch 1 and 1,024: {FAST} is ")
    assert said.endswith(" × faster at 3 of 6 points, and they tie at 3.")


def test_it_says_why_it_cannot_be_told():
    run = sweep()
    failed = synthetic.failure("while_loop", "graph", "timeout", "no answer")
    points = [
        replace(point, measurements=[failed if item.strategy == STEEP else item for item in point.measurements])
        for point in run.points
    ]
    assert ask(replace(run, points=points), STEEP, LOOP) == Answer(
        f"It cannot be told: {STEEP} has no latency (timed out)."
    )
    halves = [
        replace(point, measurements=[item for item in point.measurements if item.strategy != name])
        for point, name in zip(run.points, (SLOW, SLOW, SLOW, LOOP, LOOP, LOOP), strict=True)
    ]
    assert ask(replace(run, points=halves), SLOW, LOOP).sentence == (
        "It cannot be told: they were never measured at the same batch."
    )
    halves[3] = run.points[3]
    assert ask(replace(run, points=halves), SLOW, LOOP).sentence == (
        f"It cannot be told: both were measured at batch 64 only, where {SLOW} is 2.00 × faster."
    )
    assert ask(run, LOOP, LOOP).sentence == "Choose two different strategies."


def test_what_the_run_says_of_a_pair_is_said_again():
    run = synthetic.sweep()
    [known] = [each for each in run.crossovers if {each.a, each.b} == {LOOP, "vectorized_map.graph"}]
    moved = replace(known, value=40.5, low=30.5, high=50.5)
    assert ask(replace(run, crossovers=[moved]), "vectorized_map.graph", LOOP) == Answer(
        f"vectorized_map.graph overtakes {LOOP} at batch 41 [31, 51].", (moved,)
    )


def test_the_first_pair_is_the_one_that_the_verdict_names():
    assert pairs.first(synthetic.sweep()) == ("vectorized_map.graph", LOOP)
    run = sweep()
    assert run.verdict == f"{FAST} is fastest at every point that was measured."
    assert pairs.first(run) == (SLOW, FAST), "else of the two fastest at the last point"
    assert pairs.first(synthetic.winners()) is None and pairs.offered(synthetic.winners()) == []
    alone = [replace(point, measurements=point.measurements[:1]) for point in run.points]
    assert pairs.first(replace(run, points=alone)) is None
    unranked = [replace(point, ranking=[], measurements=point.measurements) for point in run.points]
    assert pairs.first(replace(run, points=unranked)) == (SLOW, FAST)


@pytest.mark.parametrize("flat", ["map_fn.graph", "chunked.graph"])
def test_over_an_option_one_that_does_not_have_it_is_a_level(flat: str):
    axis = replace(costs.axis((1, 4, 16, 64)), kind="option", name="chunk")
    rng = np.random.default_rng(0)
    points = []
    for value in axis.values:
        latencies = {f"chunked.graph?chunk={value}": 1e-3 * (1 + 8 / value)}
        if value == 1:
            latencies |= {"map_fn.graph": 3e-3, "vectorized_map.graph": 5e-4}
        points.append(costs.point(value, latencies, rng, costs.QUIET, name="chunk"))
    run = findings.analyse(replace(synthetic.sweep(), axes=[axis], points=points))
    assert pairs.offered(run) == ["chunked.graph", "map_fn.graph", "vectorized_map.graph"]
    crossing = ask(run, "chunked.graph", "map_fn.graph")
    assert crossing.sentence.startswith("chunked.graph overtakes map_fn.graph at chunk ")
    assert ask(run, flat, "vectorized_map.graph").sentence.startswith("They do not cross between chunk 1 and 64")
