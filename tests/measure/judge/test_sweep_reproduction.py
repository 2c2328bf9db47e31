"""The answer of a sweep that was measured again about the first one, on made-up samples."""

import numpy as np
from msgspec.structs import replace

from measure.judge import analysis, sweep_analysis, sweep_reproduction
from measure.run.run import Request, Run
from tests import costs

VALUES = (1, 4, 16, 64, 256)
# Slug → (seconds per call, seconds per element): they cross at 20.
CROSSING = {"a.eager": (1e-4, 2e-5), "b.eager": (4e-4, 5e-6)}


def sweep(seed: int, model: costs.Model = costs.MODELS[0], costs_s: costs.Costs = CROSSING) -> Run:
    request = Request(
        workload="square", size={"batch": 1}, dtype="float32", device="CPU:0", strategies=list(costs_s), budget_s=60.0
    )
    run = Run(
        id="0" * 24, kind="sweep", created="", status="complete", request=request, axes=[costs.axis(VALUES)],
        points=costs.points(VALUES, costs_s, np.random.default_rng(seed), model),
    )  # fmt: skip
    bodies = [analysis.analyse(sweep_analysis.comparison(run, point)) for point in run.points]
    points = [sweep_analysis.settled(point, body) for point, body in zip(run.points, bodies, strict=True)]
    return sweep_analysis.analyse(replace(run, points=points))


def test_the_same_costs_are_reproduced_and_hardly_ever_refuted() -> None:
    pairs = [(seed, model) for seed in range(6) for model in costs.MODELS]
    answers = [sweep_reproduction.compare(sweep(seed, model), sweep(1000 + seed, model)) for seed, model in pairs]
    outcomes = [answer.outcome for answer in answers]
    assert outcomes.count("refuted") <= 1 and outcomes.count("reproduced") >= 12, outcomes
    said = next(answer for answer in answers if answer.outcome == "reproduced")
    assert "at 5 of 5 points the same strategies lead" in said.sentence
    assert [at for at, _ in said.points] == [{"batch": value} for value in VALUES]


def test_other_costs_are_refuted_where_the_leader_is_another_one() -> None:
    first = sweep(0)
    answer = sweep_reproduction.compare(
        first, sweep(1, costs_s={"a.eager": CROSSING["b.eager"], "b.eager": CROSSING["a.eager"]})
    )
    assert answer.outcome == "refuted" and "at 0 of 5 points the same strategies lead" in answer.sentence
    assert "beyond chance, at batch 1, batch 4" in answer.sentence


def test_one_that_goes_on_with_anothers_samples_continues_it() -> None:
    first, again = sweep(0), sweep(1)
    assert not sweep_reproduction.continues(again, first)
    assert sweep_reproduction.continues(first, replace(first, points=first.points[:2]))
    assert sweep_reproduction.continues(first, replace(first, points=[])), (
        "nothing was measured, so nothing is repeated"
    )
