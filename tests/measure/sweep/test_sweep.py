"""Sweeps along one axis and over two: in which order points are measured, and what becomes of those that are not."""

from collections.abc import Callable

import pytest

from measure.engine.bench import Settings
from measure.engine.record import View
from measure.model.request import RequestError
from measure.model.run import Point
from measure.model.run_file import encode
from measure.pool.host_launcher import HostLauncher
from measure.store import imports
from measure.sweep import continuing
from measure.sweep.sweep import CLOSE, Sweep
from tests.deadlines import RUN_S
from tests.engine import QUICK, Own
from tests.hanging import Clock, Slow
from tests.measure.sweep.common import RUN_ID, Sized, asked, batch, by_value, item, size_of, swept, taking
from tests.subjects import Subjects, error

RISES, STAYS, BEHIND = "loop.eager", "batched.eager", "map_fn.eager"
# The one is overtaken by the other at 6.3.
CROSSING = taking(loop=lambda n: 1.6e-5 * n**3, batched=lambda n: 0.004, map_fn=lambda n: 0.02)
RunOn = Callable[[Subjects], Own]


def begun(views: list[View]) -> list[tuple[int, ...]]:
    """The places of points in the order in which they were begun."""
    order: dict[tuple[int, ...], None] = {}
    for view in views:
        order |= {tuple(point.at.values()): None for point in view.run.points if point.status == "running"}
    return list(order)


def test_ends_come_first_and_a_crossing_is_refined_by_points_between_of_the_two_that_cross() -> None:
    views = list[View]()
    run = Sweep(RUN_ID, asked(RISES, STAYS, BEHIND, axes=batch(1, 4, 16)), Sized(seconds=CROSSING), views.append).run()
    assert (run.status, run.kind) == ("complete", "sweep") and run == views[-1].run and run.environment["cores_granted"]
    assert begun(views)[:3] == [(1,), (16,), (4,)]
    points = by_value(run)
    assert list(points) == sorted(points) and all(point.status == "complete" for point in run.points)
    assert all(each.memory and each.correctness.ok for point in run.points for each in point.measurements)
    crossover = next(each for each in run.crossovers if each.value is not None)
    assert (crossover.a, crossover.b) == (RISES, STAYS)
    assert crossover.low <= 6.3 <= crossover.high < CLOSE * CLOSE * crossover.low
    assert run.verdict.startswith(f"Fastest: {RISES} below batch ")
    added = [point for value, point in points.items() if value not in (1, 4, 16)]
    assert added and all(4 < point.at["batch"] < 16 for point in added)
    assert all({each.strategy for each in point.measurements} == {RISES, STAYS} for point in added)


def test_no_crossing_far_above_the_lead_is_refined() -> None:
    seconds = taking(loop=lambda n: 1.6e-4 * n**3, batched=lambda n: 0.001, map_fn=lambda n: 0.04)
    run = swept(asked(RISES, STAYS, BEHIND, axes=batch(2, 4, 16)), Sized(seconds=seconds))
    assert list(by_value(run)) == [2, 4, 16]


def test_values_of_an_option_are_points_and_what_it_does_not_concern_is_measured_once() -> None:
    axes = [{"kind": "option", "name": "chunk", "values": [1, 2, 3, 4]}]
    slugs = [f"chunked.eager?chunk={chunk}" for chunk in (1, 2, 3, 4)]
    latencies_s = dict(zip(slugs, (0.2, 0.08, 0.08, 0.2), strict=True)) | {STAYS: 0.4}
    run = swept(asked("chunked.eager", STAYS, axes=axes), Subjects(latencies_s=latencies_s))
    assert [[each.strategy for each in point.measurements] for point in run.points] == [
        [slugs[0], STAYS], *([slug] for slug in slugs[1:])
    ]  # fmt: skip
    assert run.status == "complete" and {point.status for point in run.points} == {"complete"}
    assert run.verdict.startswith("chunked.eager is fastest with chunk 2 and 3, which tie: ")


def test_every_cell_of_a_map_is_measured_corners_first() -> None:
    views = list[View]()
    axes = [{"name": "batch", "values": [8, 16, 32]}, {"name": "side", "values": [2, 3, 4]}]
    request = asked(RISES, STAYS, axes=axes, workload="outer_product")
    subjects = Sized(seconds=taking(loop=lambda n: 0.02 if n > 8 else 0.001))
    run = Sweep(RUN_ID, request, subjects, views.append).run()
    assert [point.status for point in run.points] == ["complete"] * 9 and not run.crossovers
    assert [point.ranking[0] for point in run.points] == [[RISES]] * 3 + [[STAYS]] * 6
    assert {*begun(views)[:4]} == {(8, 2), (8, 4), (32, 2), (32, 4)}
    assert imports.read(encode(run)) == run == views[-1].run


@pytest.mark.parametrize("outcome", ["timeout", "out_of_memory"])
def test_what_was_too_much_at_a_point_is_not_run_at_larger_ones(outcome: str) -> None:
    class Failing(Sized):
        def _usual(self, spec):
            is_too_much = spec.role == "memory" and spec.name == RISES and size_of(spec)["batch"] >= 4
            return [error(outcome)] if is_too_much else super()._usual(spec)

    subjects = Failing()
    run = swept(asked(RISES, STAYS, axes=batch(1, 2, 4, 6, 8)), subjects)
    assert [item(point, RISES).outcome for point in run.points] == ["ok", "ok", outcome, "not_run", outcome]
    assert item(run.points[3], RISES).error.message.endswith("at batch 4 already")
    assert (RISES, 6) not in subjects.started("memory")
    assert [point.ranking for point in run.points[2:]] == [[[STAYS]]] * 3 and run.status == "complete"


def test_a_sweep_ends_when_it_was_said_to_and_its_points_that_were_not_reached_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = asked(STAYS, RISES, BEHIND, axes=batch(1, 2, 3, 4, 5, 6), budget_s=20.0)
    for times, hangs in ((3.0, None), (20.0, None), (1.0, RISES)):
        clock = Clock(monkeypatch)
        subjects = Slow(clock=clock, times=times, hangs=lambda step, slug, hangs=hangs: slug == hangs)
        run = swept(request, subjects)
        assert clock.now_s <= 1.5 * 20.0 + 0.5 and subjects.living == []
        assert {each.outcome for point in run.points for each in point.measurements} <= {"ok", "not_run", "timeout"}
        assert times == 20.0 or run.points[0].ranking, "the first point is measured"
        left = [point for point in run.points if point.status == "budget"]
        assert run.status == ("budget" if left else "complete") and continuing.is_open(run)
        assert all("time budget was spent" in point.reason for point in left)
        assert left or times != 20.0


def test_a_sweep_that_a_person_stops_ends_with_the_points_it_has() -> None:
    def stop(view: View) -> None:
        if view.run.points[0].status == "complete":
            sweep.stop()

    sweep = Sweep(RUN_ID, asked(STAYS, axes=batch(*range(1, 13))), Subjects(), stop)
    run = sweep.run()
    statuses = [point.status for point in run.points]
    assert run.status == "budget" and statuses[0] == "complete" and statuses[1] == "budget"
    assert "a person stopped" in run.stop_reason and f"{statuses.count('budget')} of the points" in run.stop_reason
    assert run.verdict and continuing.is_open(run)


def test_a_host_that_is_lost_interrupts_the_sweep_which_has_what_was_measured() -> None:
    class Lost(Sized):
        def start(self, spec, events):
            self.answers = {"memory": lambda _: [{"event": "lost"}]} if size_of(spec).get("batch") == 4 else {}
            return super().start(spec, events)

    run = swept(asked(STAYS, axes=batch(1, 4)), Lost())
    assert [point.status for point in run.points] == ["complete", "interrupted"] and run.status == "interrupted"


def test_a_point_that_cannot_fit_is_marked_and_not_run(run_on: RunOn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("measure.machine.environment.available_memory", lambda *_: 2**30)
    run = swept(asked(STAYS, axes=batch(1, 4, 100_000_000)), Subjects())
    assert [point.status for point in run.points] == ["complete", "complete", "skipped"]
    assert run.points[2].reason.startswith("This cannot fit") and not run.points[2].measurements
    with pytest.raises(RequestError, match="This cannot fit"):
        run_on(Subjects()).submit_sweep(asked(STAYS, axes=batch(90_000_000, 100_000_000)))


def test_points_of_an_earlier_run_are_not_measured_again() -> None:
    before = swept(asked(STAYS, axes=batch(1, 2, 4)), Sized())
    taken: list[Point] = before.points[:2]
    subjects = Sized()
    run = swept(asked(STAYS, axes=batch(1, 2, 4)), subjects, taken=taken)
    assert subjects.started("memory") == [(STAYS, 4)] and run.status == "complete"
    assert [each.replicas for each in run.points[1].measurements] == [each.replicas for each in taken[1].measurements]


def test_a_sweep_is_measured(host: HostLauncher) -> None:
    run = swept(asked(STAYS, axes=batch(2, 300)), host, settings=Settings(most_processes=QUICK, timeout_floor_s=RUN_S))
    points = by_value(run)
    assert {2, 300} <= set(points) and {point.status for point in run.points} == {"complete"}
    for value, point in points.items():
        for each in point.measurements:
            assert (each.outcome, each.correctness.ok, each.memory.output_bytes) == ("ok", True, 4 * value)
            assert each.replicas and each.latency.low_s <= each.latency.median_s <= each.latency.high_s
    assert run.environment["tensorflow"]
