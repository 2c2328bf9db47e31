"""Sweeps that ended early go on: what is kept of them, and what is measured again."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from measure.engine.sweep import is_open, taken_over
from measure.run import fit
from measure.run.request import RequestError
from measure.run.run import TIME_OVER, Error, Run
from measure.run.sweep_request import of_run
from tests.deadlines import ANSWER_S, RUN_S
from tests.engine import Own, eventually, running
from tests.keeping import put
from tests.subjects import Subjects
from tests.sweeps import Sized, asked, batch, size_of, swept

STAYS = "batched.eager"
OVER = Error(type=TIME_OVER, message="not timed here")


def ended(own: Own, run_id: str) -> Run:
    assert own.wait(run_id, ANSWER_S), own.snapshot(run_id)
    return own.snapshot(run_id).run


def test_a_cancelled_sweep_keeps_what_it_has_and_is_continued_from_the_store(tmp_path: Path) -> None:
    usual = Subjects()._usual
    subjects = Sized(answers={"timing": lambda spec: [] if size_of(spec)["batch"] >= 4 else usual(spec)})
    request = asked(STAYS, axes=batch(1, 2, 4, 8))
    with running(subjects, tmp_path, timeout_floor_s=10 * RUN_S) as own:  # who is silent is never given up
        own.begin()
        run_id = own.submit(request)
        eventually(
            lambda: own.snapshot(run_id).run.points[3].status == "running", "the second point is begun", ANSWER_S
        )
        with pytest.raises(RequestError, match="is not finished"):
            own.submit(request, continue_from=run_id)
        own.cancel(run_id)
        before = ended(own, run_id)
        assert [point.status for point in before.points] == ["complete", "cancelled", "cancelled", "cancelled"]
        assert before.status == "cancelled"
        subjects.answers = {}
        after = ended(own, own.submit(of_run(before), continue_from=run_id))
        assert (after.parent, after.status) == (before.id, "complete")
        assert after.points[0].measurements[0].replicas == before.points[0].measurements[0].replicas
        assert subjects.started("memory").count((STAYS, 1)) == 1, "nothing is measured twice"
        elsewhere = replace(before, id="1" * 24, environment={**before.environment, "cpu_model": "Another one"})
        put(own.store, elsewhere)
        another = "cannot be continued here, where cpu model is .*, and was Another one: "
        for run_id, says in ((elsewhere.id, another), ("2" * 24, "is not known here")):
            with pytest.raises(RequestError, match=says):
                own.submit(request, continue_from=run_id)


def test_points_where_some_lacked_time_or_were_cut_short_or_whose_code_has_changed_are_measured_again() -> None:
    request = asked(STAYS, axes=batch(2, 4, 8, 16))
    run = swept(request, Sized())
    assert taken_over(run, request, run.environment) == run.points and not is_open(run)
    assert fit.forecast_sweep(request, 2**36, run.points).seconds == 0.0, "nothing is left"
    first, second, third, fourth = run.points
    item = first.measurements[0]
    lacking = replace(second.measurements[0], outcome="not_run", error=OVER, latency=None, replicas=[])
    code = replace(item.code, source=item.code.source.replace("tf.square(x)", "x * x"))
    points = [
        first,
        replace(second, measurements=[lacking]),
        replace(third, status="cancelled"),
        replace(fourth, measurements=[replace(item, code=code)]),
    ]
    cut = replace(run, points=points)
    assert is_open(cut) and taken_over(cut, request, run.environment) == [first]
