"""The reasons of the whole grid, and ten of them beside an independent count: ``python -m tests.benchmarks.why``.

``--grid`` explains every workload × mapper × mode at small sizes and fails where a strategy that works has no figures,
or any strategy no sentence. (What oneDNN corrupts may die while it is explained, and its sentence says so.)
``--cases`` counts what ran in ten cases by other means than the profiler's trace: what Python hands to TensorFlow, the
nodes of the graph that the loops run, the instructions of XLA's program, and how long the calls into TensorFlow take by
a clock around them.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import workloads
from measure import why
from measure.comparison import Comparison, Settings
from measure.dialogue import Cancelled
from measure.processes import HostLauncher
from measure.request import parse
from measure.run import Run, Status
from strategies import script
from tests import grid
from tests.benchmarks import common

# Workload, strategy, batch: every mechanism that a sentence tells of.
CASES = (
    ("polynomial", "loop.eager", 50),
    ("polynomial", "map_fn.eager", 50),
    ("polynomial", "loop.graph", 50),
    ("polynomial", "map_fn.graph", 200),
    ("outer_product", "batched.graph", 50),
    ("polynomial", "vectorized_map.eager", 50),
    ("random", "vectorized_map.graph", 5),
    ("polynomial", "numpy_function.graph", 50),
    ("polynomial", "batched.xla", 50),
    ("per_example_gradients", "vectorized_map.xla", 50),
)

# Run in a fresh interpreter with the strategy's script on stdin: counts without the profiler, as JSON.
_COUNTER = r"""
import json, sys, time
asked = json.loads(sys.stdin.readline())
from measure.subject import load
module = load(asked["script"], "independent")
import tensorflow as tf
from collections import Counter
from tensorflow.python.eager import execute
from tensorflow.python.framework import op_callbacks

seen = Counter()
def callback(op_type, inputs, attrs, outputs, op_name=None, graph=None):
    if graph is None:
        seen[op_type] += 1

module.strategy(module.elems)
module.strategy(module.elems)
found = {}
if asked["mode"] == "eager":
    op_callbacks.add_op_callback(callback)
    module.strategy(module.elems)
    op_callbacks.remove_op_callback(callback)
    found["eager ops handed over"] = dict(seen)
    # The time in TensorFlow by a clock around the calls that Python makes into it.
    from tensorflow.python import pywrap_tfe, _pywrap_tfe  # noqa
    inside = [0.0, 0]
    def timed(function):
        def wrapper(*args, **kwargs):
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                inside[0] += time.perf_counter() - start
                inside[1] += 1
        return wrapper
    for name in ("TFE_Py_FastPathExecute", "TFE_Py_Execute"):
        setattr(pywrap_tfe, name, timed(getattr(pywrap_tfe, name)))
    start = time.perf_counter()
    module.strategy(module.elems)
    whole = time.perf_counter() - start
    found["share outside of TFE_Py_* by a clock"] = round(1 - inside[0] / whole, 3)
    found["calls into TFE_Py_*"] = inside[1]
elif asked["mode"] == "graph":
    graph = module.strategy.get_concrete_function(module.elems).graph.as_graph_def()
    def kinds(nodes):
        return dict(Counter(node.op for node in nodes if node.op not in (
            "Placeholder", "Const", "Identity", "NoOp", "_Arg", "_Retval")))
    found["nodes of the graph"] = kinds(graph.node)
    found["nodes of its loops' functions"] = {
        function.signature.name.split("_const_")[0][-30:]: kinds(function.node_def)
        for function in graph.library.function}
else:
    text = module.strategy.experimental_get_compiler_ir(module.elems)(stage="optimized_hlo")
    entry = text[text.index("ENTRY"):].splitlines()[1:]
    found["instructions of ENTRY"] = dict(Counter(
        word for line in entry if "=" in line for word in [line.split("(")[0].split()[-1]]
        if word not in ("parameter", "constant", "tuple", "bitcast", "get-tuple-element")))
calls = []
for _ in range(20):
    start = time.perf_counter()
    module.strategy(module.elems)
    calls.append(time.perf_counter() - start)
found["seconds of a call"] = sorted(calls)[10]
print(json.dumps(found))
"""


class Explained(Comparison):
    """Outcomes, memory and reasons; nothing is timed."""

    def _measure(self) -> tuple[Status, str]:
        self._reference()
        self._known_limits()
        self._memory_stage(self._runnable())
        with contextlib.suppress(Cancelled):
            self._explain()
        return "complete", "explained"


def explained(launcher: HostLauncher, request: dict[str, Any]) -> Run:
    settings = Settings(process_peaks_s=0.0, timeout_floor_s=60.0)
    return Explained("grid", parse(request), launcher, lambda view: None, settings=settings, keep=lambda *_: True).run()


def gaps(run: Run) -> Iterator[str]:
    """What lacks a sentence, or works and lacks the figures that its sentence should be of."""
    said = why.sentences(run)
    for item in run.measurements:
        sentence = said.get(item.strategy, "")
        if not sentence or (item.outcome == "ok" and why.known(item) is None):
            yield f"{run.request.workload} {item.strategy}: {sentence or 'no sentence'}"


def whole_grid(launcher: HostLauncher, names: list[str]) -> int:
    count, missing = 0, []
    for case in grid.cases():
        if names and case.workload not in names:
            continue
        run = explained(launcher, case.request())
        for sentence in why.sentences(run).values():
            count += 1
            print(f"{case.workload} {case.options}: {sentence}", flush=True)
        missing += gaps(run)
    print(f"\n{count} sentences, {len(missing)} gaps", *missing, sep="\n")
    return 1 if missing else 0


def ten_cases(launcher: HostLauncher) -> None:
    for name, slug, batch in CASES:
        workload = workloads.get(name)
        size = {**grid.size(workload), "batch": batch}
        run = explained(launcher, {"workload": name, "size": size, "strategies": [slug]})
        found = why.known(run.measurements[0])
        print(f"\n{name} batch={batch} {why.sentences(run)[slug]}")
        if found is not None:
            print("  explained:  ", {each.name: each.count for each in (*found.ops, *found.kernels)})
            print(
                f"               {found.op_count} ops, {found.kernel_count} kernels, Python "
                f"{found.python_s / found.profiled_s:.0%}, a call {found.call_s:.6f} s, "
                f"{found.fusion_count} fusions, {dict(Counter({e.name: e.count for e in found.other_instructions}))}"
            )
        asked = {"script": script.build(workload, size, "float32", "CPU:0", slug), "mode": slug.partition(".")[2]}
        answer = subprocess.run(
            [sys.executable, "-c", _COUNTER], input=json.dumps(asked) + "\n", capture_output=True, text=True,
            cwd=common.ROOT, check=True,
        )  # fmt: skip
        for what, value in json.loads(answer.stdout).items():
            print(f"  independent: {what}: {value}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", help="of the grid only these")
    parser.add_argument("--grid", action="store_true", help="explain the whole grid")
    parser.add_argument("--cases", action="store_true", help="ten cases beside an independent count")
    arguments = parser.parse_args()
    os.environ["MAPBENCH_HOSTED"] = "1"  # the project's own files only
    status = 0
    with grid.host() as launcher:
        if arguments.cases:
            ten_cases(launcher)
        if arguments.grid or not arguments.cases:
            status = whole_grid(launcher, arguments.workloads)
    return status


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
