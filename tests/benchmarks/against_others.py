"""The same functions timed by Mapbench, pyperf and `timeit`, in alternation: idle, and beside a busy process.

``python -m tests.benchmarks.against_others [--turns 6]``; about 24 minutes, two for each turn of a condition.

A machine that is shared changes by more between two figures than tools differ. So in each turn every tool measures each
function, one straight after the other, and they are compared within turns: what is judged is the median over turns of
Mapbench's latency over that of the other tool. Its interval rests on ranks alone (at least 95 %, however the turns
scatter) and needs six turns. `timeit` has two processes in a turn, one after Mapbench and one after pyperf: the first
over the second says how far the machine lets a tool agree with itself, and none can agree better with another.

Many short turns say more than few long ones. Most of a turn is the start of TensorFlow in processes of pyperf and
`timeit`, so pyperf has one, and looks for its number of calls in the first turn only. Mapbench has two processes and
two of its twin in place of six each, and each of them is timed as ever. The median of its samples is what is compared,
as medians are what the others give.

Functions that are not compiled are shown, and held to nothing: TensorFlow records Python's frames with each eager op,
and below a call pyperf has more of them than the others. The least that a call of a ``tf.function`` takes is 76 µs
under XLA and 120 µs in a graph (on 2 cores of an AMD EPYC), and half of that goes into finding the trace for its
arguments. A compiled call of 30 µs is one of a trace itself (``get_concrete_function``).

The busy process has a core of its own, and what is timed has the others. The machine gives it another share of itself
then, so not the latencies are compared but their ratios to one of the functions, as each tool sees them in that turn.
"""

import argparse
import contextlib
import math
import os
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy import stats

from measure.engine.bench import Settings
from measure.local import Local
from measure.model import text
from tests.benchmarks import common, others
from tests.benchmarks.common import Problem, say

LIMIT, AIM = 0.05, 0.03
CONFIDENCE = 0.95
TOOLS = ("Mapbench", "pyperf", "timeit")
AGAIN = "timeit again"
# What is measured in a turn, in this order; which comes first moves on. Both of `timeit` are as near to Mapbench.
SLOTS = ("Mapbench", "timeit", "pyperf", AGAIN)
_IMAGES = {"batch": 96, "height": 32, "width": 32, "channels": 1}
_TINY = {"batch": 1, "height": 8, "width": 8, "channels": 1}
_TRACE = '''\
"""One trace of the function under XLA, called on the whole batch past tf.function's search for it."""

from strategies.spec import Mapper


def call_trace(fn, elems):
    if not hasattr(call_trace, "trace"):
        call_trace.trace = tf.function(fn, jit_compile=True).get_concrete_function(elems)
    return call_trace.trace(elems)


MAPPER = Mapper(
    slug="trace",
    title="A trace",
    summary="one trace of the function, called on the whole batch",
    apply=call_trace,
    steps="whole",
    modes=("eager",),
)
'''


@dataclass(frozen=True)
class Function:
    """A strategy of a case, with about how long a call takes; ``compiled`` ones are held to the limit."""

    name: str
    case: Problem
    slug: str
    compiled: bool = True


FUNCTIONS = (
    Function("30 µs, eager", Problem("image_sqrt", _IMAGES), "batched.eager", compiled=False),
    Function("30 µs, XLA", Problem("image_sqrt", _TINY), "trace.eager"),
    Function("0.1 ms, XLA", Problem("image_sqrt", _TINY), "batched.xla"),
    Function("0.2 ms, graph", Problem("per_example_gradients", {"batch": 64}), "vectorized_map.graph"),
    Function("0.4 ms, XLA", Problem("image_sqrt", {"batch": 50}), "batched.xla"),
    Function("1 ms, graph", Problem("per_example_gradients", {"batch": 80}), "map_fn.graph"),
    Function("50 ms, graph", Problem("per_example_gradients", {"batch": 4_000}), "map_fn.graph"),
)
# The function that the others are divided by beside a busy process: of one thread, and too long for what a tool adds to
# a call to show.
REFERENCE = "0.4 ms, XLA"

# Function → slot → seconds per call (or a ratio of them), one for each turn.
Figures = Mapping[str, Mapping[str, Sequence[float]]]


# --- measuring -------------------------------------------------------------------------------------------------------


class Tools:
    """The tools, ready to time a function. pyperf's numbers of calls are kept from the first time."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._loops: dict[str, int] = {}

    def measure(self, function: Function, slot: str) -> float:
        """Seconds per call: the median as one tool gives it."""
        if slot == "Mapbench":
            run = common.compare(self._local, function.case.request([function.slug]))
            latency = run.measurement(function.slug).latency
            if latency is None or not isinstance(latency.typical_s, float):
                raise RuntimeError(f"{function.name}: {run.measurement(function.slug).error}")
            return latency.typical_s
        script = function.case.script(function.slug)
        if slot == "pyperf":
            result = others.pyperf(script, processes=1, loops=self._loops.get(function.name))
            self._loops[function.name] = result.loops
            return statistics.median(value for each in result.values_s for value in each)
        return statistics.median(others.timeit(script))


def turns(tools: Tools, functions: Sequence[Function], count: int) -> dict[str, dict[str, list[float]]]:
    """Time every function by each tool once a turn, by `timeit` twice."""
    figures: dict[str, dict[str, list[float]]] = {function.name: {slot: [] for slot in SLOTS} for function in functions}
    for turn in range(count):
        for number, function in enumerate(functions):
            first = (turn + number) % len(SLOTS)
            for slot in (*SLOTS[first:], *SLOTS[:first]):
                figures[function.name][slot].append(tools.measure(function, slot))
            shown = ", ".join(f"{slot} {text.seconds(figures[function.name][slot][-1])}" for slot in SLOTS)
            say(f"turn {turn + 1} of {count}: {function.name}: {shown}")
    return figures


# --- judging ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paired:
    """The median over turns of a ratio within turns, and its interval: [0, ∞) where there are too few turns."""

    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        interval = f" [{self.low:.2f}, {self.high:.2f}]" if math.isfinite(self.high) else ""
        return f"{self.ratio:.3f}{interval}"

    @property
    def off(self) -> float:
        """The distance of the median from 1."""
        return abs(self.ratio - 1)

    def within(self, share: float) -> bool:
        """True if the interval leaves it open that they differ by no more than ``share``."""
        return self.low <= 1 + share and self.high >= 1 - share


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """An interval of the median of positive numbers that holds it with at least this probability, exactly: between two
    of the values, since each is above the median as a coin falls. With too few of them (5 at 95 %), 0 to ∞."""
    ordered, count = sorted(values), len(values)
    outside = 0  # so many values on either side are left out
    while 2 * stats.binom.cdf(outside, count, 0.5) <= 1 - confidence:
        outside += 1
    return (ordered[outside - 1], ordered[-outside]) if outside else (0.0, math.inf)


def paired(first: Sequence[float], second: Sequence[float]) -> Paired:
    """``first`` over ``second``, both one for each turn."""
    ratios = [a / b for a, b in zip(first, second, strict=True)]
    return Paired(statistics.median(ratios), *median_interval(ratios))


def of_tool(slots: Mapping[str, Sequence[float]], tool: str) -> list[float]:
    """A tool's figure for each turn: where it has two, their geometric mean."""
    if tool != "timeit":
        return list(slots[tool])
    return [math.sqrt(a * b) for a, b in zip(slots["timeit"], slots[AGAIN], strict=True)]


def relative_to(figures: Figures, reference: str) -> dict[str, dict[str, list[float]]]:
    """Figures of every function but ``reference``, each over the one of ``reference`` by the same tool in that turn."""
    return {
        name: {
            slot: [a / b for a, b in zip(values, figures[reference][slot], strict=True)]
            for slot, values in slots.items()
        }
        for name, slots in figures.items()
        if name != reference
    }


def verdict(pairs: Sequence[Paired]) -> str:
    """Return what the medians say; of one outside the limit, whether its interval leaves open that it is within."""
    worst = max(pairs, key=lambda pair: pair.off)
    for share in (AIM, LIMIT):
        if worst.off <= share:
            return f"within {_percent(share)}"
    certain = not all(pair.within(LIMIT) for pair in pairs)
    return f"OUTSIDE {_percent(LIMIT)}" + ("" if certain else ", but perhaps by chance")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


@dataclass(frozen=True)
class Row:
    """A function of a table: the tools' medians, Mapbench over each other tool, `timeit` over itself. ``judged``:
    whether it is held to the limit."""

    name: str
    medians: Sequence[float]
    pairs: Sequence[Paired]
    noise: Paired
    judged: bool

    @property
    def off(self) -> float:
        return max(pair.off for pair in self.pairs)

    def cells(self, show: Callable[[float], str]) -> list[str]:
        said = verdict(self.pairs) if self.judged else "not judged"
        return [self.name, *map(show, self.medians), *map(str, self.pairs), str(self.noise), said]


def rows(figures: Figures, judged: Collection[str]) -> list[Row]:
    """A row for each function; ``judged``: the names of those that are held to the limit."""
    lines = []
    for name, slots in figures.items():
        medians = [statistics.median(of_tool(slots, tool)) for tool in TOOLS]
        pairs = [paired(of_tool(slots, "Mapbench"), of_tool(slots, tool)) for tool in TOOLS[1:]]
        lines.append(Row(name, medians, pairs, paired(slots["timeit"], slots[AGAIN]), name in judged))
    return lines


def table(title: str, lines: Sequence[Row], show: Callable[[float], str]) -> str:
    """In Markdown."""
    head = (title, *TOOLS, *(f"Mapbench / {tool}" for tool in TOOLS[1:]), f"timeit / {AGAIN}", "medians")
    cells = [head, ["---"] * len(head), *(line.cells(show) for line in lines)]
    return "\n".join(f"| {' | '.join(each)} |" for each in cells)


def summary(lines: Sequence[Row]) -> str:
    judged = [line for line in lines if line.judged]
    held = [f"{sum(line.off <= share for line in judged)} within {_percent(share)}" for share in (LIMIT, AIM)]
    return f"Of {len(judged)} rows that are judged, {' and '.join(held)}"


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(description=__doc__)
    whole.add_argument("--turns", type=int, default=6, help="turns of all tools in each condition (6)")
    whole.add_argument("--functions", nargs="+", choices=[each.name for each in FUNCTIONS], help="only these")
    whole.add_argument("--only", choices=("idle", "busy"), help="only one of the two conditions")
    return whole


def main() -> None:
    arguments = parser().parse_args()
    chosen = [each for each in FUNCTIONS if not arguments.functions or each.name in arguments.functions]
    names = [each.name for each in chosen]
    reference = REFERENCE if REFERENCE in names else names[0]
    common.start("Mapbench against pyperf and timeit")
    tables: list[str] = []
    judged: list[Row] = []
    with common.own_folders() as folder:
        path = Path(folder) / "trace.py"
        path.write_text(_TRACE, encoding="utf-8")
        os.environ["MAPBENCH_MAPPERS"] = str(path)
        for condition in ("idle", "busy"):
            if arguments.only not in (None, condition):
                continue
            with contextlib.ExitStack() as stack:
                if condition == "busy":
                    every = common.cores()
                    stack.enter_context(common.busy(every[-1:]))
                    stack.callback(os.sched_setaffinity, 0, every)
                    os.sched_setaffinity(0, every[:-1] or every)  # children inherit it
                settings = Settings(most_processes=2, probes=False, process_peaks=False)
                local = stack.enter_context(common.engine(settings))
                figures = turns(Tools(local), chosen, arguments.turns)
            compiled = [each.name for each in chosen if each.compiled]
            lines = rows(figures, compiled if condition == "idle" else ())
            tables.append(table(f"{condition}: latency", lines, text.seconds))
            judged += lines
            if condition == "busy":
                lines = rows(relative_to(figures, reference), compiled)
                tables.append(table(f"busy: latency / that of {reference}", lines, text.number))
                judged += lines
        del os.environ["MAPBENCH_MAPPERS"]
    print("\n\n".join([*tables, summary(judged)]))


if __name__ == "__main__":
    main()
