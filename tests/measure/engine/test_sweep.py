"""Sweeps along one axis and over two: in which order points are measured, and what becomes of those that are not."""

import pytest

from measure.engine.bench import Settings
from measure.engine.record import View
from measure.engine.sweep import Sweep, is_open
from measure.run.encoding import encode
from measure.store import imports
from tests.hanging import Clock, Slow
from tests.subjects import LOST, Subjects, error, measured
from tests.sweeps import RUN_ID, Sized, asked, batch, by_value, item, size_of, swept, taking

RISES, STAYS, BEHIND = "loop.eager", "batched.eager", "map_fn.eager"
# The one is overtaken by the other at 6.3.
CROSSING = taking(loop=lambda n: 1.6e-5 * n**3, batched=lambda n: 0.004, map_fn=lambda n: 0.02)


def begun(views: list[View]) -> list[tuple[int, ...]]:
    """The places of points in the order in which they were begun."""
    order: dict[tuple[int, ...], None] = {}
    for view in views:
        order |= {tuple(point.at.values()): None for point in view.run.points if point.status == "running"}
    return list(order)


def test_ends_come_first_and_a_crossing_has_its_interval() -> None:
    views = list[View]()
    run = Sweep(RUN_ID, asked(RISES, STAYS, BEHIND, axes=batch(1, 4, 16)), Sized(seconds=CROSSING), views.append).run()
    assert (run.status, run.kind) == ("complete", "sweep") and run == views[-1].run and run.environment["cores_granted"]
    assert begun(views) == [(1,), (16,), (4,)]
    assert list(by_value(run)) == [1, 4, 16] and all(point.status == "complete" for point in run.points)
    assert all(each.memory and each.correctness.ok for point in run.points for each in point.measurements)
    crossover = next(each for each in run.crossovers if each.value is not None)
    assert (crossover.a, crossover.b) == (RISES, STAYS) and crossover.low <= 6.3 <= crossover.high
    assert run.verdict.startswith(f"Fastest: {RISES} below batch ")


def test_values_of_an_option_are_points_and_what_it_does_not_concern_is_measured_once() -> None:
    axes = [{"kind": "option", "name": "chunk", "values": [1, 2, 3, 4]}]
    slugs = [f"chunked.eager?chunk={chunk}" for chunk in (1, 2, 3, 4)]
    latencies_s = dict(zip(slugs, (0.2, 0.08, 0.08, 0.2), strict=True)) | {STAYS: 0.4}
    run = swept(asked("chunked.eager", STAYS, axes=axes), Subjects(latencies_s=latencies_s))
    assert [[each.strategy for each in point.measurements] for point in run.points] == [
        [slugs[0], STAYS], *([slug] for slug in slugs[1:])
    ]  # fmt: skip
    assert run.status == "complete" and {point.status for point in run.points} == {"complete"}
    assert run.verdict.startswith("2-way tie within ") and (
        "chunked.eager with chunk 2 and chunked.eager with chunk 3" in run.verdict
    )


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
    def answer(spec):
        is_too_much = spec.name == RISES and size_of(spec)["batch"] >= 4
        return [error(outcome)] if is_too_much else measured()

    subjects = Sized(answers={"memory": answer})
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
        assert run.status == ("budget" if left else "complete") and is_open(run) == (hangs is None)
        assert all("time budget was spent" in point.reason for point in left)
        assert left or times != 20.0


def test_a_strategy_that_takes_longer_than_its_point_has_does_not_take_the_time_of_others() -> None:
    subjects = Sized()
    run = swept(asked(RISES, STAYS, axes=batch(1, 100, 1_000_000), budget_s=30), subjects)
    assert {point.status for point in run.points} == {"complete"}
    assert item(run.points[-1], RISES).error.type == "TimeOver" and item(run.points[-1], STAYS).outcome == "ok"
    assert (RISES, 100) in subjects.started("memory") and (RISES, 1_000_000) not in subjects.started("memory")


def test_a_sweep_that_a_person_stops_ends_with_the_points_it_has() -> None:
    def stop(view: View) -> None:
        if view.run.points[0].status == "complete":
            sweep.stop()

    sweep = Sweep(RUN_ID, asked(STAYS, axes=batch(*range(1, 13))), Subjects(), stop)
    run = sweep.run()
    statuses = [point.status for point in run.points]
    assert run.status == "budget" and statuses[0] == "complete" and statuses[1] == "budget"
    assert "a person stopped" in run.stop_reason and f"{statuses.count('budget')} of the points" in run.stop_reason
    assert run.verdict and is_open(run)


def test_a_host_that_is_lost_interrupts_the_sweep_which_has_what_was_measured() -> None:
    def answer(spec):
        return [LOST] if size_of(spec)["batch"] == 4 else measured()

    run = swept(asked(STAYS, axes=batch(1, 4)), Sized(answers={"memory": answer}))
    assert [point.status for point in run.points] == ["complete", "interrupted"] and run.status == "interrupted"


def test_a_point_that_cannot_fit_is_marked_and_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("measure.machine.environment.available_memory", lambda *_: 2**30)
    run = swept(asked(STAYS, axes=batch(1, 4, 100_000_000)), Subjects())
    assert [point.status for point in run.points] == ["complete", "complete", "skipped"]
    without_room = swept(asked(STAYS, axes=batch(1, 4)), Subjects(), settings=Settings(most_bytes=0))
    assert {point.status for point in without_room.points} == {"skipped"}
    assert run.points[2].reason.startswith("This cannot fit") and not run.points[2].measurements
