"""The bound of a sweep, with simulated subjects: points that are measured stay, and it can be continued."""

from types import SimpleNamespace

import pytest

from measure.engine.bench import Settings
from measure.model.run import Run
from measure.sweep import continuing
from measure.sweep.request import SweepRequest
from measure.sweep.sweep import Sweep
from tests.engine import QUICK
from tests.hanging import BOUND_S, OVER, Hanging, stopped_clock
from tests.measure.sweep.common import asked, batch

FAST, SLOW = "batched.eager", "loop.eager"
SETTINGS = Settings(rules=QUICK, bound_s=BOUND_S, timeout_floor_s=2.0)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    return stopped_clock(monkeypatch)


def sweep(subjects: Hanging, request: SweepRequest) -> Run:
    return Sweep("0" * 24, request, subjects, lambda view: None, settings=SETTINGS).run()


def test_a_sweep_ends_where_its_time_is_over_with_the_points_that_are_measured(clock: SimpleNamespace) -> None:
    request = asked(FAST, SLOW, axes=batch(2, 4, 8))
    subjects = Hanging(clock=clock, at="memory", slug=SLOW, which=2, latencies_s={SLOW: 0.02, FAST: 0.001})
    run = sweep(subjects, request)
    assert (run.status, run.stop_reason) == ("budget", f"{OVER} before 2 of the points")
    assert [point.status for point in run.points] == ["complete", "budget", "budget"]
    assert subjects.living == [] and subjects.hung == [len(subjects.specs)], "nothing is started after that"
    whole, cut, _ = run.points
    assert whole.ranking and {item.outcome for item in whole.measurements} == {"ok"}
    assert next(item.outcome for item in cut.measurements if item.strategy == SLOW) == "timeout"


def test_what_the_end_has_cut_short_is_measured_when_the_sweep_is_continued(clock: SimpleNamespace) -> None:
    request = asked(FAST, SLOW, axes=batch(2, 4, 8))
    run = sweep(Hanging(clock=clock, at="memory", slug=SLOW, which=2), request)
    assert continuing.is_open(run)
    kept = continuing.points_kept(run, request)
    assert [(point.status, [item.strategy for item in point.measurements]) for point in kept] == [
        ("complete", [FAST, SLOW]),
        ("waiting", [FAST]),
    ]


def test_a_sweep_whose_points_are_all_measured_is_complete(clock: SimpleNamespace) -> None:
    request = asked(FAST, SLOW, axes=batch(2, 4))
    # Those lines tie, so that more processes of them are asked for.
    run = sweep(Hanging(clock=clock, at="samples", slug=SLOW, which=4), request)
    assert run.status == "complete" and run.stop_reason.startswith("every point is measured; the time of this run")
    assert all(item.outcome == "ok" and item.latency for point in run.points for item in point.measurements)
