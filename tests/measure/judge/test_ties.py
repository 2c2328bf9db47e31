"""Ties whose intervals lie apart: each of the reasons that the ranking has, from made-up runs."""

from msgspec.structs import replace

from measure.judge import ties
from measure.model.run import Run
from tests import synthetic

TIE = [["batched.xla", "batched.graph", "batched.eager"]]  # 1.42, 1.44 and 1.51 ms


def tied(resolution: float, margin: float = 0.01) -> Run:
    run = synthetic.run(unhappy=False)
    assert run.control is not None
    control, analysis = replace(run.control, resolution=resolution), replace(run.analysis, margin=margin)
    return replace(run, ranking=TIE, control=control, analysis=analysis)


def test_a_tie_of_intervals_that_lie_apart_has_its_reason() -> None:
    for resolution, margin, reason in (
        (0.12, 0.01, "differing by less than the 12 % that this run can tell"),
        (0.001, 0.2, "differing by less than 20 %"),
        (0.001, 0.01, "too few processes to separate so many strategies"),
    ):
        assert ties.apart(tied(resolution, margin)) == {"batched.eager": reason}
