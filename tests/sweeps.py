"""Sweeps of simulated subjects, whose calls take what a function of the strategy and of the sizes says."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from measure.engine.bench import Settings
from measure.engine.sweep import Sweep
from measure.run.run import Measurement, Point, Run
from measure.run.sweep_request import SweepRequest, parse_sweep
from measure.subject.messages import Spec
from tests.engine import QUICK
from tests.subjects import Subjects

RUN_ID = "0" * 24


def asked(*strategies: str, axes: Any, **more: Any) -> SweepRequest:
    return parse_sweep({"workload": "square", "strategies": list(strategies), "axes": axes, "budget_s": 300.0, **more})


def batch(*values: int) -> list[dict[str, Any]]:
    return [{"name": "batch", "values": list(values)}]


def size_of(spec: Spec) -> dict[str, int]:
    """The sizes that the head of a subject's script names."""
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", spec.script.partition(", dtype")[0])}


@dataclass
class Sized(Subjects):
    """Subjects whose calls take ``seconds(slug, **sizes)``."""

    seconds: Callable[..., float] = lambda slug, **size: 0.005

    def _call_s(self, spec: Spec) -> float:
        return self.seconds(spec.name, **size_of(spec))

    def started(self, role: str) -> list[tuple[str, int]]:
        """Strategy and batch of the subjects of a role, in the order in which they were started."""
        return [(spec.name, size_of(spec)["batch"]) for spec in self.specs if spec.role == role]


def taking(**seconds: Callable[[int], float]) -> Callable[..., float]:
    """Seconds of a call as a function of the batch, by mapper."""
    return lambda slug, batch=0, **size: seconds.get(slug.partition(".")[0], lambda _: 0.005)(batch)


def swept(request: SweepRequest, subjects: Subjects, **more: Any) -> Run:
    more.setdefault("settings", Settings(most_processes=QUICK))
    return Sweep(RUN_ID, request, subjects, lambda view: None, **more).run()


def item(point: Point, slug: str) -> Measurement:
    return next(item for item in point.measurements if item.strategy == slug)


def by_value(run: Run) -> Mapping[int, Point]:
    """The points of a sweep along one axis."""
    return {next(iter(point.at.values())): point for point in run.points}
