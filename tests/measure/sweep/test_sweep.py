"""Sweeps along one axis, measured: what is looked at closely, and what becomes of points that are not."""

from pathlib import Path

import numpy as np
import pytest

from measure import runner
from measure.engine.host_launcher import HostLauncher
from measure.model.processes import AT_POINT
from measure.model.request import RequestError
from measure.sweep import continuing, needs
from measure.sweep.omissions import OVER_BUDGET
from measure.sweep.sweep import Sweep
from tests import costs
from tests.engine import DEADLINE_S, eventually, running
from tests.measure.sweep.common import GIB, Counting, asked, batch, finished, outcome, processes, taken_up
from tests.subjects import Subjects


def test_lines_cross_and_the_crossing_is_refined_where_it_is_and_nowhere_else(own: runner.Runner):
    request = asked("rises.eager", "stays.eager", "behind.eager", axes=batch(1, 4, 16))
    run_id = own.submit_sweep(request)
    seen: list[tuple[int, ...]] = []
    crossings: set[float] = set()

    def look() -> bool:
        snapshot = own.snapshot(run_id)
        assert snapshot is not None
        crossings.update(each.value for each in snapshot.run.crossovers if each.value is not None)
        now = tuple(sum(item.latency is not None for item in point.measurements) for point in snapshot.run.points)
        if not seen or seen[-1] != now:
            seen.append(now)
        return snapshot.state == "finished"

    eventually(look, "the sweep has ended")
    run = finished(own, run_id)
    assert (run.status, run.kind) == ("complete", "sweep") and run.environment["cores_granted"]
    assert any(now[:2] == (1, 1) for now in seen), "the first line is seen before the first points are complete"
    by_value = {point.at["batch"]: point for point in run.points}
    assert list(by_value) == sorted(by_value) and {1, 4, 16} <= set(by_value)
    crossover = next(each for each in run.crossovers if each.value is not None)
    assert (crossover.a, crossover.b) == ("rises.eager", "stays.eager")
    assert crossover.low <= 6.6 and crossover.high >= 5.9 and crossover.high / crossover.low < 2
    assert run.verdict.startswith("Fastest: rises.eager below batch ") and ", stays.eager from " in run.verdict
    added = [point for value, point in by_value.items() if value not in (1, 4, 16)]
    assert added and all(4 < point.at["batch"] < 16 for point in added)
    assert all({item.strategy for item in point.measurements} == {"rises.eager", "stays.eager"} for point in added)
    assert all(processes(point, "stays.eager") >= 3 for point in added)
    assert processes(by_value[16], "behind.eager") < AT_POINT
    assert all(point.status == "complete" for point in run.points)
    assert all(item.memory and item.correctness.ok for point in run.points for item in point.measurements)
    # Where the one process at 4 was disturbed, the crossing was looked for below 4, too.
    at_one = [AT_POINT, AT_POINT, 1] if min(crossings) < 4 else [1, 1, 1]
    assert [len(item.replicas) for item in by_value[1].measurements] == at_one, "whoever made the first line too"
    beside = next(item.replicas for item in by_value[4].measurements if item.strategy == "stays.eager")
    assert len({number for process in beside for number in process.rounds}) == len(beside) >= AT_POINT, "each its round"


def test_values_of_an_option_that_lead_are_sampled_together_in_more_processes():
    axes = [{"kind": "option", "name": "level", "values": [1, 2, 3, 4]}]
    slugs = {1: "dial.eager", **{level: f"dial.eager?level={level}" for level in (2, 3, 4)}}
    latencies_s = dict(zip(slugs.values(), (0.2, 0.08, 0.08, 0.2), strict=True)) | {"slow.eager": 0.4}
    subjects = Subjects(latencies_s=latencies_s)
    run = Sweep("0" * 24, asked("dial.eager", "slow.eager", axes=axes), subjects, lambda view: None).run()
    by_level = {point.at["level"]: point for point in run.points}
    assert all(processes(by_level[level], slugs[level]) >= AT_POINT for level in (2, 3))
    assert all(processes(by_level[level], slugs[level]) < AT_POINT for level in (1, 4))
    assert processes(by_level[1], "slow.eager") < AT_POINT
    first, *_, before_last, last = zip(
        *([replicas[0], *replicas[-2:]] for level in (2, 3) for replicas in [by_level[level].measurements[0].replicas]),
        strict=True,
    )
    assert before_last[0].rounds[0] == before_last[1].rounds[0] < last[0].rounds[0] == last[1].rounds[0]
    assert max(process.rounds[-1] for process in first) < before_last[0].rounds[0]
    in_turns = subjects.visited[-4:]
    assert {*in_turns[:2]} == {*in_turns[2:]} == {slugs[2], slugs[3]}
    assert run.status == "complete" and {point.status for point in run.points} == {"complete"}
    assert run.verdict.startswith("dial.eager is fastest with level 2 and 3, which tie: ")
    assert "; slow.eager takes " in run.verdict
    assert not {"continued"} & {warning.code for warning in run.warnings}


def test_a_point_that_stands_out_from_both_its_neighbours_gets_a_second_opinion(host: HostLauncher):
    rng = np.random.default_rng(0)
    seconds = {1: 4e-3, 2: 4e-3, 4: 9e-3, 8: 4e-3}
    points = [costs.point(n, {"stays.eager": each}, rng, processes=1) for n, each in seconds.items()]
    run, added = taken_up(host, asked("stays.eager", axes=batch(*seconds)), points)
    assert not added and [processes(point, "stays.eager") for point in run.points] == [1, 1, 2, 1]
    assert run.points[2].measurements[0].replicas[0] == points[2].measurements[0].replicas[0]


def test_what_ran_into_the_time_limit_is_a_result_and_is_not_run_at_larger_points(
    own: runner.Runner, host: HostLauncher, tmp_path: Path
):
    with running(host, tmp_path / "impatient", timeout_floor_s=2.0) as impatient:
        request = asked("hangs_later.eager", "stays.eager", axes=batch(1, 4, 8))
        run = finished(impatient, impatient.submit_sweep(request))
    one, four, eight = run.points
    assert outcome(one, "hangs_later.eager") == "ok" and outcome(four, "hangs_later.eager") == "timeout"
    item = eight.measurements[0]
    assert item.outcome == "not_run"
    assert item.error.message == "not run here: at batch=4 it ran into the time limit already"
    assert [point.ranking[0] for point in (four, eight)] == [["stays.eager"]] * 2 and run.status == "complete"


def test_a_sweep_that_runs_out_of_time_says_which_points_it_has_not_reached(own: runner.Runner):
    run = finished(own, own.submit_sweep(asked("slow.eager", axes=batch(1, 2, 3, 4, 5, 6), budget_s=2.0)))
    statuses = [point.status for point in run.points]
    assert run.status == "budget" and statuses[-1] == "budget" and run.points[0].measurements[0].latency is not None
    assert "continue the sweep" in run.points[-1].reason and "of the points" in run.stop_reason


def test_a_sweep_that_a_person_stops_ends_with_the_points_it_has(own: runner.Runner):
    run_id = own.submit_sweep(asked("stays.eager", axes=batch(*range(1, 13))))

    def is_begun() -> bool:
        snapshot = own.snapshot(run_id)
        return snapshot is not None and snapshot.run.points[0].status == "complete"

    eventually(is_begun, "the first point is measured")
    own.stop(run_id)
    run = finished(own, run_id)
    statuses = [point.status for point in run.points]
    assert run.status == "budget" and statuses[0] == "complete" and statuses[-1] == "budget"
    assert run.stop_reason == f"a person stopped the sweep before {statuses.count('budget')} of the points"
    assert run.points[-1].reason == "a person stopped the sweep before this point: continue the sweep"
    assert run.verdict and continuing.is_open(run)


def test_a_point_that_cannot_fit_is_marked_and_not_run(own: runner.Runner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("measure.machine.environment.available_memory", lambda *_: GIB)
    run = finished(own, own.submit_sweep(asked("batched.eager", axes=batch(1, 4, 100_000_000))))
    assert [point.status for point in run.points] == ["complete", "complete", "skipped"]
    assert run.points[2].reason.startswith("This cannot fit") and not run.points[2].measurements
    with pytest.raises(RequestError, match="This cannot fit"):
        own.submit_sweep(asked("batched.eager", axes=batch(90_000_000, 100_000_000)))


def test_a_point_of_which_all_is_over_budget_says_so_and_can_be_continued(host: HostLauncher):
    # By forecast a point takes 30 s and more, so that three do not fit into the budget, and two stay in any case.
    request = asked("seems_slow.eager", axes=batch(1, 2, 3), budget_s=50.0)
    left_out = needs.plan(request, GIB).left_out
    assert [sorted(slugs) for slugs in left_out.values()] == [[], [], ["seems_slow.eager"]]
    launcher = Counting(host)
    run = Sweep("0" * 24, request, launcher, lambda view: None).run()
    [item] = run.points[2].measurements
    assert item.outcome == "not_run" and item.error.type == OVER_BUDGET
    assert continuing.is_open(run) and len([name for role, name in launcher.started if role == "memory"]) <= 2
    assert [point.at for point in continuing.points_kept(run, request)] == [{"batch": 1}, {"batch": 2}]


def test_a_fault_of_our_own_settles_the_points_of_a_sweep(own: runner.Runner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("measure.sweep.sweep.Sweep.run", lambda self: 1 / 0)
    run_id = own.submit_sweep(asked("stays.eager", axes=batch(1, 2)))
    assert own.wait(run_id, DEADLINE_S)
    run = own.snapshot(run_id).run
    assert own.snapshot(run_id).fault and [point.status for point in run.points] == ["interrupted"] * 2


def test_a_sweep_that_waits_in_the_queue_can_be_cancelled(own: runner.Runner):
    first = own.submit_sweep(asked("slow.eager", axes=batch(1, 2, 3)))
    second = own.submit_sweep(asked("stays.eager", axes=batch(1, 2)))
    assert own.queue() == (first, second)
    own.cancel(second)
    run = finished(own, second)
    assert run.status == "cancelled" and {point.status for point in run.points} == {"cancelled"}
    own.cancel(first)
    assert finished(own, first).status == "cancelled"


def test_a_sweep_that_ends_before_it_begins_removes_nothing(
    host: HostLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "precious").touch()
    monkeypatch.chdir(folder)
    sweep = Sweep("0" * 24, asked("stays.eager", axes=batch(1, 2)), host, lambda view: None)
    sweep.cancel()
    assert sweep.run().status == "cancelled"
    assert (folder / "precious").exists(), "what has not been made is not removed"
