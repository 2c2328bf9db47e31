"""Sweeps over two axes: which cells are measured, and what is seen of them meanwhile."""

from measure.engine.bench import Settings
from measure.engine.record import View
from measure.model.run_file import encode
from measure.store import imports
from measure.sweep.request import SweepRequest
from measure.sweep.sweep import Sweep
from tests.engine import QUICK
from tests.measure.sweep.common import RUN_ID, Sized, asked, swept, taking

FAST, SLOW = "batched.eager", "loop.eager"


def map_of(batches: list[int], sides: list[int]) -> SweepRequest:
    axes = [{"name": "batch", "values": batches}, {"name": "side", "values": sides}]
    return asked(FAST, SLOW, axes=axes, workload="outer_product")


def test_a_map_fills_from_its_corners_shows_itself_filling_and_infers_what_lies_between() -> None:
    views = list[View]()
    subjects = Sized(seconds=taking(loop=lambda n: 0.02))
    run = Sweep(RUN_ID, map_of([8, 16, 32, 64], [2, 3, 4, 5]), subjects, views.append).run()
    measured = [point for point in run.points if point.measurements]
    inferred = [point for point in run.points if not point.measurements]
    assert len(measured) == 5 and len(inferred) == 11, "one winner everywhere: corners and the middle"
    for point in inferred:
        assert (point.status, point.ranking) == ("skipped", [[FAST]])
        assert point.reason == f"inferred: all around it {FAST} wins" and "inferred" in point.verdict
    assert {(8, 2), (8, 5), (64, 2), (64, 5)} <= {tuple(point.at.values()) for point in measured}
    assert imports.read(encode(run)) == run == views[-1].run
    shown = list(dict.fromkeys(tuple(point.status for point in view.run.points) for view in views))
    done = [statuses.count("complete") for statuses in shown]
    assert done == sorted(done) and set(done) == {0, 1, 2, 3, 4, 5}, "each cell is seen as soon as it is measured"
    first = next(statuses for statuses in shown if "complete" in statuses)
    assert first[0] == "complete" and first.count("waiting") == 15, "nothing is inferred yet"


def test_no_cell_of_a_map_is_won_by_one_process_of_what_may_lead() -> None:
    settings = Settings(most_processes=QUICK)
    run = swept(map_of([64, 128], [2, 3]), Sized(seconds=taking(loop=lambda n: 0.012)), settings=settings)
    assert all(len(each.replicas) >= 2 for point in run.points for each in point.measurements)
