"""Shared by the benchmarks: cases, the machine and what disturbs it, and tables of figures with limits."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import psutil

from measure.machine import environment, load

ROOT = Path(__file__).resolve().parent.parent.parent
_MACHINE = (
    *("cpu_model", "cores_granted", "memory_total_bytes", "os", "python", "tensorflow", "numpy"),
    *("load_of_others_cores",),
)


@dataclass(frozen=True)
class Problem:
    """A workload at a size to be measured; what ``size`` leaves out has its default."""

    workload: str
    size: Mapping[str, int]


@dataclass(frozen=True)
class Figure:
    """A figure beside what it may be: at most ``limit``, or at least, where ``at_least``. ``show`` gives its unit."""

    name: str
    value: float
    limit: float | None = None
    show: Callable[[float], str] = "{:.2f} s".format
    at_least: bool = False

    def row(self) -> tuple[str, ...]:
        if self.limit is None:
            return (self.name, self.show(self.value), "", "")
        holds = self.value >= self.limit if self.at_least else self.value <= self.limit
        bound = ("≥ " if self.at_least else "≤ ") + self.show(self.limit)
        return (self.name, self.show(self.value), bound, "within the limit" if holds else "OUTSIDE THE LIMIT")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns of text, as wide as they need to be."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def report(figures: Iterable[Figure]) -> int:
    """Print figures beside their limits; the exit status, which is 1 if one is outside its limit."""
    rows = [figure.row() for figure in figures]
    print(table(("figure", "value", "limit", ""), rows))
    return int(any("OUTSIDE" in row[-1] for row in rows))


def start(title: str) -> None:
    """Print what is measured, and on which machine."""
    others = round(load.Watch().cores_of_others(least_s=0.5), 2)
    facts = {**environment.collect(start_method="fork"), environment.LOAD_OF_OTHERS: others}
    shown = {key: environment.shown(key, facts[key]) for key in _MACHINE if facts[key] is not None}
    parts = [f"{environment.label(key)}: {words}" for key, words in shown.items()]
    print(f"{title}\n{'; '.join(parts)}; streamlit: {metadata.version('streamlit')}\n", flush=True)


def say(message: str) -> None:
    """Progress, apart from the table."""
    print(f"[{time.strftime('%H:%M:%S')}] {message}", file=sys.stderr, flush=True)


# A look at the machine's pace: products of a matrix so small that one thread makes them, some 0.3 ms of them at a time.
_LOOK_S, _SIDE, _PRODUCTS = 0.3, 32, 64


class Disturbances:
    """What disturbed the machine from the making of this on."""

    def __init__(self) -> None:
        self._load, self._times = load.Watch(), psutil.cpu_times()
        self._paces_s: list[float] = []
        self.look()

    def look(self) -> None:
        """Time a fixed computation for a while, in this thread and while nothing is measured: neighbours on the same
        processor slow it down, and no counter of the system shows them."""
        matrix = np.ones((_SIDE, _SIDE))
        end_s = time.perf_counter() + _LOOK_S
        while (begun_s := time.perf_counter()) < end_s:
            for _ in range(_PRODUCTS):
                matrix @ matrix
            self._paces_s.append(time.perf_counter() - begun_s)

    def sentence(self) -> str:
        now = psutil.cpu_times()
        stolen_s = getattr(now, "steal", 0.0) - getattr(self._times, "steal", 0.0)
        # The best is the least but for one of twenty.
        slower = np.asarray(self._paces_s) / np.quantile(self._paces_s, 0.05)
        shares = ", ".join(f"{np.mean(slower > times):.0%} more than {times} times" for times in (1.1, 1.3, 1.5))
        return (
            f"Meanwhile {stolen_s / (sum(now) - sum(self._times)):.1%} of the processors' time was stolen, and other "
            f"programs used {self._load.cores_of_others():.2f} cores. Of the times of a fixed computation on an idle "
            f"machine, these were longer than its best: {shares}."
        )
