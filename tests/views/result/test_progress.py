"""A page takes little from what it watches: what has not changed is not made anew."""

import pytest
from msgspec.structs import replace

from measure.store.store import Snapshot
from tests import synthetic
from tests.pages import RUN_ID, FakeClient, calm, open_page
from views.charts import latency_memory_error
from views.result import progress


def test_a_comparison_is_drawn_anew_when_it_has_ended_and_a_sweep_with_results_now_and_then() -> None:
    for run, has_picture in ((synthetic.partial(2), True), (synthetic.sweep(), False)):
        drawn = Snapshot(run, "running", version=1)
        with_more = replace(drawn, version=2)
        assert not progress.is_outdated(drawn, drawn, 600.0)
        assert not progress.is_outdated(drawn, with_more, 5.0)
        assert progress.is_outdated(drawn, with_more, 31.0) is not has_picture
        assert progress.is_outdated(drawn, replace(with_more, state="finished"), 0.0)
    drawn = Snapshot(replace(synthetic.sweep(), points=synthetic.sweep().points[:1]), "running", version=1)
    assert progress.is_outdated(drawn, replace(drawn, version=2), 0.0), "its first line is shown at once"


def test_a_picture_is_made_anew_with_results_and_while_samples_are_taken_now_and_then(
    fake: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, frame = [], latency_memory_error.frame
    monkeypatch.setattr(latency_memory_error, "frame", lambda *of: made.append(1) or frame(*of))
    run = synthetic.partial(2, RUN_ID)
    fake.show(run, "running")
    app = calm(open_page(run=RUN_ID).run())
    assert len(made) == 1
    for elapsed_s, count in ((6.1, 2), (9.0, 2), (12.1, 3)):
        fake.show(run, "running", round_number=3, elapsed_s=elapsed_s)
        app = calm(app.run())
        assert len(made) == count and len(app.get("progress")) == len(app.get("vega_lite_chart")) == 1
