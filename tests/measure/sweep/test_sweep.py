"""Sweeps along one axis: what is looked at closely, and what becomes of points that are not."""

from collections.abc import Callable

import numpy as np
import pytest

from measure import runner
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.engine.record import View
from measure.model.request import RequestError
from measure.sweep import continuing
from measure.sweep.sites import AT_POINT
from measure.sweep.sweep import Sweep
from tests import costs
from tests.deadlines import RUN_S
from tests.engine import QUICK
from tests.hanging import BOUND_S, OVER, Hanging, stopped_clock
from tests.measure.sweep.common import RUN_ID, Sized, asked, batch, by_value, item, processes, size_of, swept, taking
from tests.subjects import Message, Subjects, error

RISES, STAYS, BEHIND = "loop.eager", "batched.eager", "map_fn.eager"
# The one is overtaken by the other at 6.3.
CROSSING = taking(loop=lambda n: 1.6e-5 * n**3, batched=lambda n: 0.004, map_fn=lambda n: 0.02)
RunOn = Callable[[Subjects], runner.Runner]


def test_lines_cross_and_the_crossing_is_refined_where_it_is_and_nowhere_else() -> None:
    views = list[View]()
    subjects = Sized(seconds=CROSSING)
    run = Sweep(RUN_ID, asked(RISES, STAYS, BEHIND, axes=batch(1, 4, 16)), subjects, views.append).run()
    assert (run.status, run.kind) == ("complete", "sweep") and run == views[-1].run and run.environment["cores_granted"]
    timed = [tuple(sum(each.latency is not None for each in p.measurements) for p in view.run.points) for view in views]
    assert any(now[:2] == (1, 1) for now in timed), "the first line is seen before the first points are complete"
    points = by_value(run)
    assert list(points) == sorted(points) and all(point.status == "complete" for point in run.points)
    assert all(each.memory and each.correctness.ok for point in run.points for each in point.measurements)
    crossover = next(each for each in run.crossovers if each.value is not None)
    assert (crossover.a, crossover.b) == (RISES, STAYS)
    assert crossover.low <= 6.3 <= crossover.high < 1.5 * crossover.low
    assert run.verdict.startswith(f"Fastest: {RISES} below batch ")
    added = [point for value, point in points.items() if value not in (1, 4, 16)]
    assert added and all(4 < point.at["batch"] < 16 for point in added)
    for point in added:
        assert {each.strategy: len(each.replicas) for each in point.measurements} == {RISES: AT_POINT, STAYS: AT_POINT}
    assert [processes(points[1], slug) for slug in (RISES, STAYS, BEHIND)] == [2, 1, 1], "so that a spread is known"
    for value in (4, 16):
        assert [processes(points[value], slug) for slug in (RISES, STAYS, BEHIND)] == [AT_POINT, AT_POINT, 1]


def test_leaders_that_tie_get_more_processes() -> None:
    run = swept(asked(RISES, STAYS, BEHIND, axes=batch(1, 2)), Sized(seconds=taking(map_fn=lambda n: 0.02)))
    for point in run.points:
        assert {*point.ranking[0]} == {STAYS, RISES}
        assert min(processes(point, RISES), processes(point, STAYS)) >= AT_POINT > processes(point, BEHIND) == 1


def test_values_of_an_option_that_lead_are_sampled_together_in_more_processes() -> None:
    axes = [{"kind": "option", "name": "chunk", "values": [1, 2, 3, 4]}]
    slugs = {chunk: f"chunked.eager?chunk={chunk}" for chunk in (1, 2, 3, 4)}
    latencies_s = dict(zip(slugs.values(), (0.2, 0.08, 0.08, 0.2), strict=True)) | {STAYS: 0.4}
    subjects = Subjects(latencies_s=latencies_s)
    run = swept(asked("chunked.eager", STAYS, axes=axes), subjects)
    points = by_value(run)
    assert [processes(points[chunk], slug) for chunk, slug in slugs.items()] == [3, AT_POINT, AT_POINT, 1]
    of_2, of_3 = ([each.rounds[0] for each in item(points[chunk], slugs[chunk]).replicas] for chunk in (2, 3))
    assert of_2[1:] == of_3[1:] and max(of_2[0], of_3[0]) < of_2[1], "in the same rounds"
    assert {*subjects.turns[-4:]} == {slugs[2], slugs[3]}
    assert run.status == "complete" and {point.status for point in run.points} == {"complete"}
    assert run.verdict.startswith("chunked.eager is fastest with chunk 2 and 3, which tie: ")
    assert "continued" not in {warning.code for warning in run.warnings}


def test_a_point_that_stands_out_from_both_its_neighbours_gets_a_second_opinion() -> None:
    rng = np.random.default_rng(0)
    seconds = {1: 4e-3, 2: 4e-3, 4: 9e-3, 8: 4e-3}
    points = [costs.point(n, {STAYS: each}, rng, processes=1) for n, each in seconds.items()]
    run = swept(asked(STAYS, axes=batch(*seconds)), Sized(seconds=taking(batched=lambda n: 4e-3)), taken=points)
    assert [processes(point, STAYS) for point in run.points] == [1, 1, AT_POINT, 1]
    assert run.points[2].measurements[0].replicas[0] == points[2].measurements[0].replicas[0]


@pytest.mark.parametrize("outcome", ["timeout", "out_of_memory"])
def test_what_was_too_much_at_a_point_is_not_run_at_larger_ones(outcome: str) -> None:
    class Failing(Sized):
        def _usual(self, spec):
            is_too_much = spec.role == "memory" and spec.name == RISES and size_of(spec)["batch"] >= 4
            return [error(outcome)] if is_too_much else super()._usual(spec)

    subjects = Failing()
    run = swept(asked(RISES, STAYS, axes=batch(1, 4, 8)), subjects)
    assert [item(point, RISES).outcome for point in run.points] == ["ok", outcome, "not_run"]
    assert "batch=4" in item(run.points[2], RISES).error.message
    assert (RISES, 8) not in subjects.started("memory")
    assert [point.ranking for point in run.points[1:]] == [[[STAYS]]] * 2 and run.status == "complete"


def test_a_sweep_that_runs_out_of_time_says_which_points_it_has_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("measure.engine.dialogue.Dialogues.now_s", property(lambda _: now[0]))

    class Slow(Sized):
        def send(self, subject: int, message: Message) -> None:
            now[0] += 1.0
            super().send(subject, message)

    run = swept(
        asked(STAYS, axes=batch(1, 2, 3, 4, 5, 6), budget_s=20.0), Slow(), settings=Settings(most_processes=QUICK)
    )
    statuses = [point.status for point in run.points]
    left = statuses.count("budget")
    assert run.status == "budget" and statuses == ["complete"] * (6 - left) + ["budget"] * left and 0 < left < 6
    assert run.points[0].measurements[0].latency is not None
    assert f"before {left} of the points" in run.stop_reason and "continue the sweep" in run.points[-1].reason


def test_a_sweep_ends_where_its_time_is_over_and_what_that_cut_short_can_be_continued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, request = stopped_clock(monkeypatch), asked(STAYS, RISES, axes=batch(2, 4, 8))
    subjects = Hanging(clock=clock, at="memory", slug=RISES, which=2, latencies_s={RISES: 0.02, STAYS: 0.001})
    run = swept(request, subjects, settings=Settings(most_processes=QUICK, bound_s=BOUND_S, timeout_floor_s=2.0))
    assert (run.status, run.stop_reason) == ("budget", f"{OVER} before 2 of the points")
    assert [point.status for point in run.points] == ["complete", "budget", "budget"]
    assert subjects.living == [] and subjects.hung == [len(subjects.specs)], "nothing is started after that"
    assert item(run.points[1], RISES).outcome == "timeout" and continuing.is_open(run)


def test_a_sweep_that_a_person_stops_ends_with_the_points_it_has() -> None:
    def stop(view: View) -> None:
        if view.run.points[0].status == "complete":
            sweep.stop()

    sweep = Sweep(RUN_ID, asked(STAYS, axes=batch(*range(1, 13))), Subjects(), stop)
    run = sweep.run()
    statuses = [point.status for point in run.points]
    assert run.status == "budget" and statuses[0] == "complete" and statuses[-1] == "budget"
    assert "a person stopped" in run.stop_reason and f"{statuses.count('budget')} of the points" in run.stop_reason
    assert run.verdict and continuing.is_open(run)


def test_a_point_that_cannot_fit_is_marked_and_not_run(run_on: RunOn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("measure.machine.environment.available_memory", lambda *_: 2**30)
    run = swept(asked(STAYS, axes=batch(1, 4, 100_000_000)), Subjects())
    assert [point.status for point in run.points] == ["complete", "complete", "skipped"]
    assert run.points[2].reason.startswith("This cannot fit") and not run.points[2].measurements
    with pytest.raises(RequestError, match="This cannot fit"):
        run_on(Subjects()).submit_sweep(asked(STAYS, axes=batch(90_000_000, 100_000_000)))


def test_a_sweep_is_measured(host: HostLauncher) -> None:
    run = swept(asked(STAYS, axes=batch(2, 300)), host, settings=Settings(most_processes=QUICK, timeout_floor_s=RUN_S))
    points = by_value(run)
    assert {2, 300} <= set(points) and {point.status for point in run.points} == {"complete"}
    for value, point in points.items():
        for each in point.measurements:
            assert (each.outcome, each.correctness.ok, each.memory.output_bytes) == ("ok", True, 4 * value)
            assert each.replicas and each.latency.low_s <= each.latency.median_s <= each.latency.high_s
    assert run.environment["tensorflow"]
