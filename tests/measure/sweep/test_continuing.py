"""Sweeps that ended early go on: what is kept of them, and what is measured again."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from measure import __main__ as command
from measure import runner
from measure.admission import Visitor
from measure.engine.bench import Settings
from measure.engine.dialogue import Dialogues
from measure.engine.host_launcher import HostLauncher
from measure.engine.record import View
from measure.machine import environment
from measure.model import text
from measure.model.processes import AT_POINT
from measure.model.request import RequestError
from measure.model.run import Correctness, Error, Memory, Point, Run
from measure.model.run_file import decode
from measure.sweep import continuing, findings, needs
from measure.sweep.comparison import PointComparison
from measure.sweep.omissions import OVER_BUDGET
from measure.sweep.request import of_run
from measure.sweep.sweep import Sweep
from tests import costs, synthetic
from tests.engine import DEADLINE_S, eventually, running
from tests.measure.sweep.common import GIB, Counting, asked, batch, finished, processes, taken_up
from tests.workloads.test_workloads import CUBE


def test_what_the_budget_left_out_can_be_continued_though_every_point_is_measured():
    run = replace(synthetic.sweep(), status="complete")
    assert not continuing.is_open(run) and continuing.is_open(replace(run, status="cancelled"))
    error = Error(type=OVER_BUDGET, message="not timed here")
    first = run.points[0]
    short = replace(first, measurements=[replace(first.measurements[0], error=error), *first.measurements[1:]])
    assert continuing.is_open(replace(run, points=[short, *run.points[1:]]))


def test_a_cancelled_sweep_keeps_what_it_has_and_is_continued_from_the_store(
    own: runner.Runner, host: HostLauncher, gate: Path, tmp_path: Path
):
    request = asked("waits.eager", axes=batch(1, 2, 4, 8))
    with running(host, tmp_path / "patient", timeout_floor_s=10 * DEADLINE_S) as patient:
        run_id = patient.submit_sweep(request, visitor=Visitor("me"))
        eventually(
            lambda: patient.snapshot(run_id).run.points[2].status == "running", "the third point is being measured"
        )
        with pytest.raises(RequestError, match="is not finished: cancel it"):
            patient.submit_sweep(request, continue_from=run_id)
        patient.cancel(run_id)
        before = finished(patient, run_id)
        assert [point.status for point in before.points] == ["complete", "complete", "cancelled", "cancelled"]
        assert before.status == "cancelled" and before.points[3].reason == "cancelled by a person"
        with pytest.raises(RequestError, match="was asked something else"):
            patient.submit_sweep(asked("waits.eager", axes=batch(1, 2, 4)), continue_from=run_id)
        gate.touch()
        after = finished(patient, patient.submit_sweep(of_run(before), continue_from=run_id))
    assert after.parent == before.id and after.status == "complete"
    for old, new in zip(before.points[:2], after.points[:2], strict=True):
        (known,), (taken,) = old.measurements, new.measurements
        assert (taken.memory, taken.correctness) == (known.memory, known.correctness), "nothing is measured twice"
        assert taken.replicas[: len(known.replicas)] == known.replicas, "more processes may be beside them"
    assert [point.status for point in after.points] == ["complete"] * 4
    elsewhere = replace(before, id="1" * 24, environment={**before.environment, "cpu_model": "Another one"})
    own.store.save(elsewhere)
    with pytest.raises(RequestError, match="cannot be continued here: Processor was Another one"):
        own.submit_sweep(of_run(elsewhere), continue_from=elsewhere.id)
    with pytest.raises(RequestError, match="is not known here"):
        own.submit_sweep(request, continue_from="2" * 24)


def test_what_the_budget_kept_from_being_timed_says_so_and_is_measured_when_continued(host: HostLauncher):
    request = asked("stays.eager", "slow.eager", axes=batch(1, 2))
    error = Error(type=OVER_BUDGET, message="the time budget was spent")
    case, views = request.comparison({"batch": 1}), list[View]()
    comparison = PointComparison("0" * 24, case, host, views.append, Dialogues(host), Settings())
    comparison.begin(time.monotonic(), {})
    comparison.finish("complete", "", error)
    comparison.end()
    body = views[-1].run
    assert [(item.outcome, item.error) for item in body.measurements] == [("not_run", error)] * 2
    points = [
        findings.settled(Point(at={"batch": 1}, status="complete"), body),
        Point(at={"batch": 2}, status="complete"),
    ]
    run = Run(id="0" * 24, kind="sweep", created="", request=body.request, axes=list(request.axes), points=points)
    assert continuing.taken_over(run, request, {}) == points[1:]


def test_of_a_point_where_some_lacked_time_or_were_cut_short_only_these_are_measured(host: HostLauncher):
    rng = np.random.default_rng(0)
    # Slug → seconds of a call; nobody overtakes anybody.
    seconds = {"stays.eager": 4e-3, "behind.eager": 2e-2, "slow.eager": 0.4, "rises.eager": 1e-3}
    request = asked(*seconds, axes=batch(2, 4))
    # So much that whoever ties with one that is measured now, on a busy machine, stands behind it all the same.
    memory = Memory(peak_bytes=GIB, output_bytes=8, temporary_bytes=1, input_bytes=8, captured_bytes=0, method="events")
    over = Error(type=OVER_BUDGET, message="not timed here")
    points = []
    for n in (2, 4):
        whole = costs.point(n, seconds, rng, processes=1)
        stays, behind, slow, rises = (
            replace(item, memory=memory, correctness=Correctness(ok=True)) for item in whole.measurements
        )
        behind = replace(behind, replicas=[replace(each, ended="cancelled") for each in behind.replicas])
        slow = replace(slow, outcome="not_run", error=over, latency=None, replicas=[])
        rises = replace(rises, outcome="not_run", error=over, latency=None, replicas=[], memory=None, correctness=None)
        points.append(replace(whole, measurements=[stays, behind, slow, rises]))
    broken = replace(points[1].measurements[0], outcome="failed", error=Error(type="E", message="it broke"))
    points[1] = replace(points[1], status="cancelled", measurements=[broken, *points[1].measurements[1:]])
    before = Run(
        id="0" * 24, kind="sweep", created="", status="cancelled", request=request.base.record(),
        axes=list(request.axes), points=points,
    )  # fmt: skip
    taken = continuing.taken_over(before, request, {})
    launcher = Counting(host)
    run = Sweep("1" * 24, request, launcher, lambda view: None, taken=taken).run()
    assert (run.status, [point.status for point in run.points]) == ("complete", ["complete"] * 2)
    one, two = run.points
    assert [name for role, name in launcher.started if role == "memory"] == ["rises.eager"] * 2
    # On a busy machine a latency may be in doubt, and gets another process.
    timed = Counter(name for role, name in launcher.started if role == "timing")
    assert timed.keys() == {"behind.eager", "slow.eager", "rises.eager"} and min(timed.values()) >= 2
    assert one.measurements[0].replicas == points[0].measurements[0].replicas
    assert (two.measurements[0].outcome, two.measurements[0].error) == ("failed", broken.error)
    assert all(item.latency is not None for point in run.points for item in point.measurements)
    assert one.measurements[2].memory == memory and one.measurements[3].memory.peak_bytes != memory.peak_bytes
    # In whatever order: calls of a busy machine take several times as long as what was taken over.
    assert sorted(slug for group in one.ranking for slug in group) == sorted(seconds)
    assert "continued" in {warning.code for warning in run.warnings}


def test_what_is_taken_over_is_kept_where_the_sweep_is_cancelled_again_before_it_comes_there(host: HostLauncher):
    request = asked("stays.eager", "slow.eager", axes=batch(2, 4))
    memory = Memory(peak_bytes=9, output_bytes=8, temporary_bytes=1, input_bytes=8, captured_bytes=0, method="events")
    whole = costs.point(4, {"stays.eager": 4e-3, "slow.eager": 0.4}, np.random.default_rng(0), processes=1)
    stays, slow = (replace(item, memory=memory, correctness=Correctness(ok=True)) for item in whole.measurements)
    part = replace(whole, status="waiting", ranking=[], measurements=[stays, replace(slow, latency=None, replicas=[])])
    sweep = Sweep("0" * 24, request, host, lambda view: None, taken=[part])
    sweep.cancel()
    point = sweep.run().points[1]
    assert point.status == "cancelled" and point.measurements[0].latency is not None
    assert [item.outcome for item in point.measurements] == ["ok", "cancelled"]
    assert point.measurements[1].memory == memory


class LeftOpen:
    """A runner that a command does not close: there is another one after it."""

    def __init__(self, own: runner.Runner) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def close(self) -> None:
        pass


def test_a_sweep_of_a_file_of_ones_own_is_continued_with_the_file_and_only_as_long_as_its_code_is_the_same(
    own: runner.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("measure.runner.Runner", lambda name: LeftOpen(own))
    monkeypatch.setattr("measure.output.export_command.kept", lambda run_id: own.store.load(run_id))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setenv("MAPBENCH_WORKLOADS", "")  # the command adds the file to these
    file = tmp_path / "cube.py"
    file.write_text(CUBE)

    def sweep(*arguments: str) -> tuple[int, str]:
        status = command.main(["sweep", *arguments, "--json", str(tmp_path / "run.json")])
        return status, capsys.readouterr().err

    status, _ = sweep("--workload-file", str(file), "--size", "batch=2:8:2", "--strategies", "loop.eager")
    assert status == command.MEASURED
    run = decode((tmp_path / "run.json").read_bytes())
    one, two = run.points
    cut = replace(run, id="c" * 24, status="cancelled", points=[one, Point(at=two.at, status="cancelled")])
    own.store.save(cut)
    monkeypatch.setenv("MAPBENCH_WORKLOADS", "")
    status, said = sweep("--continue", cut.id)
    assert status == command.INVALID and "cube" in said and "--workload-file" in said
    status, said = sweep("--continue", cut.id, "--workload-file", str(file))
    assert status == command.MEASURED, said
    left = needs.forecast_sweep(of_run(cut), environment.available_memory(), [one])
    assert f"forecast: about {text.seconds(left.seconds)}, " in said, "of what is left"
    after = decode((tmp_path / "run.json").read_bytes())
    assert after.parent == cut.id and [point.status for point in after.points] == ["complete", "complete"]
    # What is said of it borrows from the others; what was measured stays.
    (kept,), (before,) = after.points[0].measurements, one.measurements
    assert (kept.replicas, kept.memory, kept.correctness) == (before.replicas, before.memory, before.correctness)
    file.write_text(CUBE.replace("x**3", "x * x * x").replace("x ** 3", "x * x * x"))
    status, said = sweep("--continue", cut.id, "--workload-file", str(file))
    assert status == command.INVALID and "the code of loop.eager for cube has changed since it was measured" in said
    other = tmp_path / "other.py"
    other.write_text(CUBE.replace('slug="cube"', 'slug="another"'))
    status, said = sweep("--continue", cut.id, "--workload-file", str(other))
    assert status == command.INVALID and "is of the workload 'cube', not of 'another'" in said


def test_a_sweep_that_was_cancelled_while_it_refined_goes_on_with_that(host: HostLauncher):
    rng = np.random.default_rng(0)
    points = [
        costs.point(n, {"rises.eager": seconds, "stays.eager": 4e-3}, rng, processes=1)
        for n, seconds in ((4, 1.6e-3), (16, 25.6e-3))
    ]
    run, added = taken_up(host, asked("rises.eager", "stays.eager", axes=batch(4, 16)), points)
    assert added and all(4 < point.at["batch"] < 16 and processes(point, "stays.eager") >= 3 for point in added)
    assert run.status == "complete" and "and crossings are refined" in run.stop_reason
    for before, after in zip(points, (run.points[0], run.points[-1]), strict=True):
        for old, new in zip(before.measurements, after.measurements, strict=True):
            assert new.replicas[0] == old.replicas[0] and len(new.replicas) == AT_POINT, "more beside what there was"
            assert not {n for each in new.replicas[1:] for n in each.rounds} & set(old.replicas[0].rounds)
            assert (new.memory, new.correctness) == (old.memory, old.correctness)
        assert "continued" in {each.code for each in after.warnings}


def test_of_a_crossing_with_a_line_that_a_swept_option_does_not_concern_the_other_is_refined(host: HostLauncher):
    rng = np.random.default_rng(0)
    axis = {"kind": "option", "name": "chunk", "values": [1, 3]}
    points = [
        costs.point(1, {"chunked.graph?chunk=1": 9e-3, "batched.graph": 3e-3}, rng, name="chunk"),
        costs.point(3, {"chunked.graph?chunk=3": 1e-3}, rng, name="chunk"),
    ]
    points = [
        replace(point, measurements=[
            replace(item, options=point.at if item.mapper == "chunked" else {}) for item in point.measurements
        ])
        for point in points
    ]  # fmt: skip
    request = asked("chunked.graph", "batched.graph", axes=[axis], size={"batch": 8})
    _, [between] = taken_up(host, request, points)
    assert between.at == {"chunk": 2} and [item.strategy for item in between.measurements] == ["chunked.graph?chunk=2"]
