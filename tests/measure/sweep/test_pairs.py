"""Two strategies of a sweep that somebody asks about: where they cross, by how much one is faster, or why it cannot be
told."""

import numpy as np
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


def test_two_that_do_not_lead_have_their_crossing_with_its_interval() -> None:
    run = sweep()
    assert not any({each.a, each.b} == {SLOW, STEEP} for each in run.crossovers), "neither leads anywhere"
    answer = ask(run, SLOW, STEEP)
    [crossing] = answer.crossings
    assert (crossing.a, crossing.b) == (STEEP, SLOW) and crossing.low <= 30 <= crossing.high
    assert answer.sentence.startswith(f"{SLOW} overtakes {STEEP} at batch ")
    turned = ask(run, STEEP, SLOW)
    assert turned == Answer(f"The other way around: {answer.sentence}", answer.crossings)


def test_where_there_is_no_crossing_it_is_said_what_there_is() -> None:
    run = sweep()
    said = f"{SLOW} and {LOOP}: no crossing in range, {SLOW} is faster throughout the range."
    assert ask(run, LOOP, SLOW) == Answer(said)
    noisy = costs.Model(process=0.1, disturbed_share=0.0)
    tied = sweep(noisy, {FAST: (1e-3, 1e-6), SLOW: (1e-3, 1e-6)})
    assert ask(tied, FAST, SLOW).sentence.endswith("no crossing in range, they tie throughout the range.")
    assert ask(run, FAST, "map_fn.xla").sentence.endswith("one of them has no latency.")
