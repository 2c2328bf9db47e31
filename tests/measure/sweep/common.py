"""Requests of sweeps in short, and looks at a point, for their tests."""

from typing import Any

from measure import runner
from measure.engine.host_launcher import HostLauncher
from measure.model.run import Point, Run
from measure.model.run_file import encode
from measure.store import imports
from measure.subject.messages import Spec
from measure.sweep.needs import key
from measure.sweep.request import SweepRequest, parse_sweep
from measure.sweep.sweep import Sweep
from tests.engine import DEADLINE_S

GIB = 2**30


def asked(*strategies: str, axes: Any, **more: Any) -> SweepRequest:
    return parse_sweep({"workload": "square", "strategies": list(strategies), "axes": axes, "budget_s": 300.0, **more})


def batch(*values: int) -> list[dict[str, Any]]:
    return [{"name": "batch", "values": list(values)}]


def processes(point: Point, slug: str) -> int:
    return next(len(item.replicas) for item in point.measurements if item.strategy == slug)


def outcome(point: Point, slug: str) -> str:
    return next(item.outcome for item in point.measurements if item.strategy == slug)


class Counting:
    """A launcher that notes which subjects it starts."""

    def __init__(self, launcher: HostLauncher) -> None:
        self._launcher = launcher
        self.started: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)

    def start(self, spec: Spec, *more: Any) -> int:
        self.started.append((spec.role, spec.name))
        return self._launcher.start(spec, *more)


def finished(own: runner.Runner, run_id: str) -> Run:
    assert own.wait(run_id, DEADLINE_S), own.snapshot(run_id)
    snapshot = own.snapshot(run_id)
    assert snapshot is not None and snapshot.state == "finished" and not snapshot.fault, snapshot
    assert own.store.load(run_id) == snapshot.run == imports.read(encode(snapshot.run))
    return snapshot.run


def taken_up(host: HostLauncher, request: SweepRequest, points: list[Point]) -> tuple[Run, list[Point]]:
    """A sweep all of whose grid was measured before, and the points that it adds."""
    run = Sweep("0" * 24, request, host, lambda view: None, taken=points).run()
    asked_for = {key(at) for at in request.points()}
    return run, [point for point in run.points if key(point.at) not in asked_for]
