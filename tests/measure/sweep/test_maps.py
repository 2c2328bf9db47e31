"""Sweeps over two axes, measured."""

from dataclasses import replace as changed

from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.engine.record import View
from measure.model.run_file import encode
from measure.store import imports
from measure.sweep.request import parse_sweep
from measure.sweep.sweep import Sweep
from tests.engine import QUICK


def test_a_map_fills_from_its_corners_shows_itself_filling_and_infers_what_lies_between(host: HostLauncher):
    strategies = ["batched.eager", "loop.eager"]
    axes = [{"name": "batch", "values": [8, 16, 32, 64]}, {"name": "side", "values": [2, 3, 4, 5]}]
    raw = {"workload": "outer_product", "strategies": strategies, "budget_s": 300.0, "axes": axes}
    views = list[View]()
    settings = Settings(rules=QUICK, probes=False, process_peaks_s=0.0)
    run = Sweep("0" * 24, parse_sweep(raw), host, views.append, settings=settings).run()
    measured = [point for point in run.points if point.measurements]
    inferred = [point for point in run.points if not point.measurements]
    assert len(measured) == 5 and len(inferred) == 11, "one winner everywhere: corners and the middle"
    for point in inferred:
        assert point.status == "skipped" and point.ranking == [["batched.eager"]]
        assert point.reason == "inferred: all around it batched.eager wins" and "inferred" in point.verdict
    assert {(8, 2), (8, 5), (64, 2), (64, 5)} <= {tuple(point.at.values()) for point in measured}
    assert imports.read(encode(run)) == run == views[-1].run
    shown = list(dict.fromkeys(tuple(point.status for point in view.run.points) for view in views))
    done = [statuses.count("complete") for statuses in shown]
    assert done == sorted(done) and set(done) == {0, 1, 2, 3, 4, 5}, "each cell is seen as soon as it is measured"
    assert all(statuses.count("running") <= 1 for statuses in shown)
    first = next(statuses for statuses in shown if "complete" in statuses)
    assert first[0] == "complete" and first.count("waiting") == 15, "nothing is inferred yet"
    skipped = [statuses.count("skipped") for statuses in shown]
    assert set(range(12)) <= set(skipped) and max(done[: skipped.index(1)]) == 5


def test_no_cell_of_a_map_is_won_by_one_process_of_what_may_lead(host: HostLauncher):
    strategies = ["batched.eager", "loop.eager"]
    axes = [{"name": "batch", "values": [64, 128]}, {"name": "side", "values": [2, 3]}]
    raw = {"workload": "outer_product", "strategies": strategies, "budget_s": 300.0, "axes": axes}
    settings = Settings(rules=changed(QUICK, doubted=2, doubted_within=1e9), probes=False, process_peaks_s=0.0)
    run = Sweep("0" * 24, parse_sweep(raw), host, lambda view: None, settings=settings).run()
    measured = [item for point in run.points for item in point.measurements]
    # What ties would get more processes anyway, and the loop does not.
    assert len(measured) == 4 * 2 and min(len(item.replicas) for item in measured) == 2
