"""Sweeps that ended early go on: what is kept of them, and what is measured again."""

import hashlib
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from measure.model.request import RequestError
from measure.model.run import Error, Run
from measure.sweep import continuing, needs
from measure.sweep.needs import OVER_BUDGET
from measure.sweep.request import of_run
from tests.deadlines import ANSWER_S
from tests.engine import Own, eventually
from tests.keeping import put
from tests.measure.sweep.common import Sized, asked, batch, swept
from tests.subjects import Subjects

RISES, STAYS, BEHIND, SLOW = "loop.eager", "batched.eager", "map_fn.eager", "while_loop.eager"
OVER = Error(type=OVER_BUDGET, message="not timed here")
RunOn = Callable[[Subjects], Own]


def ended(own: Own, run_id: str) -> Run:
    assert own.wait(run_id, ANSWER_S), own.snapshot(run_id)
    return own.snapshot(run_id).run


def test_a_cancelled_sweep_keeps_what_it_has_and_is_continued_from_the_store(run_on: RunOn) -> None:
    subjects = Sized(silent=lambda slug, batch: batch >= 4)
    own, request = run_on(subjects), asked(STAYS, axes=batch(1, 2, 4, 8))
    own.begin()
    run_id = own.submit_sweep(request)
    eventually(lambda: own.snapshot(run_id).run.points[3].status == "running", "the second point is begun", ANSWER_S)
    with pytest.raises(RequestError, match="is not finished"):
        own.submit_sweep(request, continue_from=run_id)
    own.cancel(run_id)
    before = ended(own, run_id)
    assert [point.status for point in before.points] == ["complete", "cancelled", "cancelled", "cancelled"]
    assert before.status == "cancelled"
    subjects.silent = lambda slug, batch: False
    after = ended(own, own.submit_sweep(of_run(before), continue_from=run_id))
    assert (after.parent, after.status) == (before.id, "complete")
    for old, new in zip(before.points[:1], after.points[:1], strict=True):
        (known,), (taken,) = old.measurements, new.measurements
        assert (taken.memory, taken.correctness, taken.replicas) == (known.memory, known.correctness, known.replicas)
    assert subjects.started("memory").count((STAYS, 1)) == 1, "nothing is measured twice"
    elsewhere = replace(before, id="1" * 24, environment={**before.environment, "cpu_model": "Another one"})
    put(own.store, elsewhere)
    for wanted, run_id, said in (
        (asked(STAYS, axes=batch(1, 2, 4)), before.id, "was asked something else"),
        (request, elsewhere.id, "cannot be continued here: Processor was Another one"),
        (request, "2" * 24, "is not known here"),
    ):
        with pytest.raises(RequestError, match=said):
            own.submit_sweep(wanted, continue_from=run_id)


def test_a_point_where_some_lacked_time_or_were_cut_short_is_measured_again() -> None:
    request = asked(STAYS, BEHIND, axes=batch(2, 4, 8))
    run = swept(request, Sized())
    first, second, third = run.points
    lacking = replace(second.measurements[0], outcome="not_run", error=OVER, latency=None, replicas=[])
    points = [
        first,
        replace(second, measurements=[lacking, second.measurements[1]]),
        replace(third, status="cancelled"),
    ]
    cut = replace(run, points=points)
    assert continuing.is_open(cut) and not continuing.is_open(run)
    assert continuing.taken_over(cut, request, run.environment) == [first]


def test_a_sweep_whose_code_has_changed_is_not_continued() -> None:
    request = asked(STAYS, axes=batch(2, 8))
    run = swept(request, Subjects())
    assert continuing.taken_over(run, request, run.environment) == run.points
    assert needs.forecast_sweep(request, 2**36, run.points).seconds == 0.0, "nothing is left"
    first = run.points[0].measurements[0]
    other = first.code.source.replace("tf.square(x)", "x * x")
    for changes in ({"source": other}, {"source": other, "sha256": hashlib.sha256(other.encode()).hexdigest()}):
        items = [replace(first, code=replace(first.code, **changes))]
        changed = replace(run, points=[replace(run.points[0], measurements=items), run.points[1]])
        with pytest.raises(RequestError, match=f"the code of {STAYS} for square has changed"):
            continuing.taken_over(changed, request, run.environment)
