"""Shared by the benchmarks: cases, an engine in folders of its own, loads, and tables of figures with limits."""

import contextlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure.engine.bench import Settings
from measure.engine.explanation import Keep
from measure.engine.record import View
from measure.local import Local
from measure.machine import environment, load
from measure.making import Making, Publish
from measure.model import text
from measure.model.request import Request, case_of, parse
from measure.model.run import Run
from measure.recording import Measuring
from strategies import script

ROOT = Path(__file__).resolve().parent.parent.parent
_MACHINE = (
    *("cpu_model", "cores_granted", "memory_total_bytes", "os", "python", "tensorflow", "numpy"),
    *("load_of_others_cores",),
)
_PACKAGES = ("streamlit", "pyperf")
# Ends with its parent, so that no benchmark that is killed leaves a load behind.
_BUSY = """
import os, sys
parent = os.getppid()
os.sched_setaffinity(0, {int(sys.argv[1])})
print("busy", flush=True)
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@dataclass(frozen=True)
class Problem:
    """A workload at a size to be measured; what ``size`` leaves out has its default."""

    workload: str
    size: Mapping[str, int]

    def __str__(self) -> str:
        return " ".join([self.workload, *(f"{name}={value}" for name, value in self.size.items())])

    def request(self, strategies: str | Sequence[str] = "default", **more: Any) -> Request:
        return parse({"workload": self.workload, "size": self.size, "strategies": strategies, **more})

    def script(self, slug: str) -> str:
        """The whole script of a strategy, the very text that a subject runs."""
        return script.build(case_of(self.request()), slug)


@dataclass(frozen=True)
class Figure:
    """A figure beside what it may be: at most ``limit``, or at least, where ``at_least``. ``show`` gives its unit."""

    name: str
    value: float
    limit: float | None = None
    aim: float | None = None
    show: Callable[[float], str] = text.seconds
    at_least: bool = False

    def verdict(self) -> str:
        if self.limit is None:
            return ""
        if self.aim is not None and self._holds(self.aim):
            return "reaches the aim"
        return "within the limit" if self._holds(self.limit) else "OUTSIDE THE LIMIT"

    def _holds(self, bound: float) -> bool:
        return self.value >= bound if self.at_least else self.value <= bound

    def row(self) -> tuple[str, ...]:
        sign = "≥ " if self.at_least else "≤ "
        bounds = [f"{sign}{self.show(bound)}" if bound is not None else "" for bound in (self.limit, self.aim)]
        return (self.name, self.show(self.value), *bounds, self.verdict())


def figures(items: Iterable[Figure]) -> str:
    return table(("figure", "measured", "limit", "aim", ""), [item.row() for item in items])


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns of text, as wide as they need to be."""
    lines = [tuple(head), *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def short(value: float) -> str:
    return f"{value:.3g}"


def whole_seconds(value_s: float) -> str:
    return f"{value_s:.2f} s"


def start(title: str) -> None:
    """Print what is measured, and on which machine."""
    others = round(load.Watch().cores_of_others(least_s=0.5), 2)
    facts = {**environment.collect(start_method="fork"), environment.LOAD_OF_OTHERS: others}
    labels = {fact.key: fact for fact in environment.FACTS}
    parts = [f"{labels[key].label}: {labels[key].show(facts[key])}" for key in _MACHINE if facts[key] is not None]
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            parts.append(f"{package}: {importlib.metadata.version(package)}")
    print(f"{title}\n{'; '.join(parts)}\n", flush=True)


def say(message: str) -> None:
    """Progress, apart from the table."""
    print(f"[{time.strftime('%H:%M:%S')}] {message}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def own_folders() -> Iterator[Path]:
    """A folder for runs, a lock and scratch files that nobody else uses, for this process and its children."""
    names = ("MAPBENCH_HOME", "MAPBENCH_LOCK")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory(prefix="mapbench-benchmark-") as folder:
        os.environ.update(dict(zip(names, (f"{folder}/home", f"{folder}/measure.lock"), strict=True)))
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


@contextlib.contextmanager
def engine(settings: Settings | None = None) -> Iterator[Local]:
    """What measures in this process, with its host ready."""
    local = Local("a benchmark", settings=settings)
    try:
        local.host()
        yield local
    finally:
        local.close()


# Takes the seconds since the request, how the run stands, and whether it has ended.
Look = Callable[[float, View, bool], None]


def compare(local: Local, request: Request, look: Look = lambda at_s, view, ended: None) -> Run:
    """Run one comparison to its end."""
    begun = time.perf_counter()

    def make(making: Making, run_id: str, publish: Publish, keep: Keep) -> Measuring:
        return making.comparison(run_id, request, publish)

    run = local.measure(make, lambda view: look(time.perf_counter() - begun, view, False)).run
    look(time.perf_counter() - begun, View(run, {}), True)
    if run.status in ("interrupted", "cancelled"):
        raise RuntimeError(f"{request.workload} was {run.status}: {run.stop_reason}")
    return run


@dataclass
class Milestones:
    """Seconds from the request until the first outcome (memory and correctness of a strategy) was there to be seen,
    until the verdict was, and until the end, which the process peaks make later."""

    first_outcome_s: float | None = None
    verdict_s: float | None = None
    end_s: float | None = None

    def look(self, at_s: float, view: View, ended: bool) -> None:
        if self.first_outcome_s is None and any(item.memory and item.correctness for item in view.run.measurements):
            self.first_outcome_s = at_s
        # After the last turn everything is done, until a process peak is measured.
        if self.verdict_s is None and view.run.verdict and set(view.stages.values()) <= {"done", "process peak"}:
            self.verdict_s = at_s
        if ended:
            self.end_s = at_s


def cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


@contextlib.contextmanager
def busy(on: Iterable[int]) -> Iterator[None]:
    """One process that computes without end on each of these cores."""
    with contextlib.ExitStack() as stack:
        for core in on:
            process = subprocess.Popen([sys.executable, "-c", _BUSY, str(core)], stdout=subprocess.PIPE)
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
        yield


# The workloads whose default comparisons are timed: one elementwise, one bound by memory, one of many small ops.
DEFAULT_WORKLOADS = ("image_sqrt", "outer_product", "per_example_gradients")
