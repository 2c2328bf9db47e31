"""A page takes little from what it watches: it is drawn anew at the end, and else seldom."""

from msgspec.structs import replace

from measure.store.store import Snapshot
from tests import synthetic
from views.result import progress


def test_a_comparison_is_drawn_anew_when_it_has_ended_and_a_sweep_with_results_now_and_then() -> None:
    for run, has_picture in ((synthetic.partial(2), True), (synthetic.sweep(), False)):
        drawn = Snapshot(run, "running", version=1)
        with_more = replace(drawn, version=2)
        assert not progress.is_outdated(drawn, drawn, 600.0)
        assert not progress.is_outdated(drawn, with_more, 5.0)
        assert progress.is_outdated(drawn, with_more, 31.0) is not has_picture
        assert progress.is_outdated(drawn, replace(with_more, state="finished"), 0.0)


def test_a_sweep_without_a_line_shows_its_first_one_at_once() -> None:
    run = synthetic.sweep()
    drawn = Snapshot(replace(run, points=run.points[:1]), "running", version=1)
    assert progress.is_outdated(drawn, replace(drawn, version=2), 0.0)
