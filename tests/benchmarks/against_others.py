"""The same functions timed by Mapbench, pyperf and `timeit`, in alternation: idle, and beside a busy process.

``python -m tests.benchmarks.against_others [--turns 3] [--processes 4]``; about 25 minutes.

Functions that are not compiled are shown, and held to nothing: TensorFlow records Python's frames with each eager op,
and below a call pyperf has more of them than the others.

The busy process has a core of its own, and what is timed has the others. The machine gives it another share of itself
then, so not the latencies are compared but their ratios to one of the functions, as each tool sees them.
"""

import argparse
import contextlib
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from measure import text
from measure.comparison import Settings
from measure.runner import Runner
from tests.benchmarks import common, others
from tests.benchmarks.common import Case, Figure, say

LIMIT, AIM = 0.05, 0.03
TOOLS = ("Mapbench", "pyperf", "timeit")
_SMALL = {"batch": 96, "height": 32, "width": 32, "channels": 1}
_TINY = {"batch": 1, "height": 8, "width": 8, "channels": 1}


@dataclass(frozen=True)
class Function:
    """A strategy of a case, with about how long a call takes."""

    name: str
    case: Case
    slug: str


FUNCTIONS = (
    Function("30 µs, eager", Case("image_sqrt", _SMALL), "batched.eager"),
    Function("0.1 ms, XLA", Case("image_sqrt", _TINY), "batched.xla"),
    Function("0.2 ms, graph", Case("image_sqrt", _TINY), "batched.graph"),
    Function("1 ms, XLA", Case("outer_product", {"batch": 90, "side": 16}), "batched.xla"),
    Function("1 ms, graph", Case("image_sqrt", {"batch": 300}), "batched.graph"),
    Function("50 ms, graph", Case("per_example_gradients", {"batch": 4_000}), "map_fn.graph"),
)
COMPILED = {each.name for each in FUNCTIONS if not each.slug.endswith(".eager")}
# The function that the others are divided by beside a busy process.
REFERENCE = "0.2 ms, graph"

# Function → tool → seconds per call, one median for each turn.
Medians = dict[str, dict[str, list[float]]]


def measure(runner: Runner, function: Function, tool: str, processes: int) -> float:
    """Seconds per call: the median as one tool gives it, over as many processes."""
    if tool == "Mapbench":
        run = common.compare(runner, function.case.request([function.slug]))
        latency = run.measurement(function.slug).latency
        if latency is None:
            raise RuntimeError(f"{function.name}: {run.measurement(function.slug).error}")
        return latency.median_s
    script = function.case.script(function.slug)
    if tool == "pyperf":
        values = others.pyperf(script, processes).values_s
    else:
        values = [others.timeit(script) for _ in range(processes)]
    return statistics.median(value for each in values for value in each)


def turns(runner: Runner, functions: Sequence[Function], count: int, processes: int) -> Medians:
    """Each tool once per function and turn; which of them begins moves on from turn to turn."""
    found: Medians = {function.name: {tool: [] for tool in TOOLS} for function in functions}
    for turn in range(count):
        for function in functions:
            first = turn % len(TOOLS)
            for tool in (*TOOLS[first:], *TOOLS[:first]):
                found[function.name][tool].append(measure(runner, function, tool, processes))
            shown = ", ".join(f"{tool} {text.seconds(found[function.name][tool][-1])}" for tool in TOOLS)
            say(f"turn {turn + 1} of {count}: {function.name}: {shown}")
    return found


def latencies(found: Medians) -> dict[str, dict[str, float]]:
    """Function → tool → median over turns, seconds."""
    return {name: {tool: statistics.median(values) for tool, values in tools.items()} for name, tools in found.items()}


def ratios(found: Medians, reference: str) -> dict[str, dict[str, float]]:
    """Function → tool → median over turns of the latency over that of ``reference`` by the same tool in that turn."""
    return {
        name: {
            tool: statistics.median(a / b for a, b in zip(values, found[reference][tool], strict=True))
            for tool, values in tools.items()
        }
        for name, tools in found.items()
        if name != reference
    }


def off(by_tool: Mapping[str, float], tool: str) -> float:
    """How far Mapbench's figure is from another tool's, as a share of it, without sign."""
    return abs(by_tool["Mapbench"] / by_tool[tool] - 1)


def agreement(condition: str, by_function: Mapping[str, Mapping[str, float]]) -> list[Figure]:
    return [
        Figure(
            f"{condition}, {name}: Mapbench and {tool} differ by",
            off(by_tool, tool),
            *((LIMIT, AIM) if name in COMPILED else (None, None)),
            show=text.percent,
        )
        for name, by_tool in by_function.items()
        for tool in TOOLS[1:]
    ]


def rows(condition: str, found: Medians) -> list[tuple[str, ...]]:
    lines = []
    for name, tools in latencies(found).items():
        shown = [text.seconds(tools[tool]) for tool in TOOLS]
        spread = ", ".join(f"{max(values) / min(values) - 1:.1%}" for values in found[name].values())
        factors = [f"{tools['Mapbench'] / tools[tool]:.3f}" for tool in TOOLS[1:]]
        lines.append((condition, name, *shown, *factors, spread))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="turns of all tools (3)")
    parser.add_argument("--processes", type=int, default=4, help="processes of pyperf, and of timeit, in each turn (4)")
    parser.add_argument("--functions", nargs="+", choices=[each.name for each in FUNCTIONS], help="only these")
    parser.add_argument("--only", choices=("idle", "busy"), help="only one of the two conditions")
    arguments = parser.parse_args()
    chosen = [each for each in FUNCTIONS if not arguments.functions or each.name in arguments.functions]
    reference = REFERENCE if any(each.name == REFERENCE for each in chosen) else chosen[0].name
    common.start("Mapbench against pyperf and timeit")
    lines, found = [], []
    with common.own_folders():
        for condition in ("idle", "busy"):
            if arguments.only not in (None, condition):
                continue
            with contextlib.ExitStack() as stack:
                if condition == "busy":
                    every = common.cores()
                    stack.enter_context(common.busy(every[-1:]))
                    stack.callback(os.sched_setaffinity, 0, every)
                    os.sched_setaffinity(0, every[:-1] or every)  # children inherit it
                runner = stack.enter_context(common.engine(Settings(probes=False, process_peaks_s=0.0)))
                medians = turns(runner, chosen, arguments.turns, arguments.processes)
            lines += rows(condition, medians)
            if condition == "idle":
                found += agreement(condition, latencies(medians))
            else:
                found += agreement(f"busy, ratio to {reference}", ratios(medians, reference))
    head = ("machine", "call", *TOOLS, *(f"Mapbench / {tool}" for tool in TOOLS[1:]), "spread over turns")
    print(f"{common.table(head, lines)}\n\n{common.figures(found)}")


if __name__ == "__main__":
    main()
