"""Ties whose intervals lie apart: each of the reasons that the ranking has, from made-up runs."""

import pytest
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


@pytest.mark.parametrize(
    ("resolution", "margin", "reason"),
    [
        (0.12, 0.01, "differing by less than the 12 % that this run can tell"),
        (0.001, 0.2, "differing by less than 20 %"),
        (0.001, 0.01, "too few processes to separate so many strategies"),
    ],
)
def test_a_tie_of_intervals_that_lie_apart_has_its_reason(resolution: float, margin: float, reason: str) -> None:
    assert ties.apart(tied(resolution, margin)) == {"batched.eager": reason}


def test_intervals_that_meet_need_no_reason() -> None:
    assert ties.apart(replace(tied(0.12), ranking=[["batched.xla", "batched.graph"], ["batched.eager"]])) == {}


def test_one_process_has_no_interval_to_lie_apart() -> None:
    run = tied(0.12)
    items = [
        replace(item, replicas=item.replicas[:1]) if item.strategy == "batched.eager" else item
        for item in run.measurements
    ]
    assert ties.apart(replace(run, measurements=items)) == {}


def test_a_file_that_ranks_what_has_no_samples_is_taken() -> None:
    run = tied(0.12)
    bare = [replace(item, replicas=[], latency=None) for item in run.measurements]
    assert ties.apart(replace(run, measurements=bare)) == ties.apart(replace(run, measurements=[])) == {}
