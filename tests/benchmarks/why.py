"""The reasons of the whole grid, and some of them beside an independent count: ``python -m tests.benchmarks.why``.

``--grid`` explains every workload × mapper × mode at small sizes and fails where a strategy that works has no figures,
or any strategy no sentence. (What oneDNN corrupts may die while it is explained, and its sentence says so.)
``--cases`` counts what ran in a case for each mechanism by other means than the profiler's trace, and fails where the
counts differ: what Python hands to TensorFlow, the step statistics of a session that runs the same graph, the
instructions of XLA's program. What is called from Python is also timed by a clock around the calls that Python makes
into TensorFlow: it fails where the share of the time outside of these differs by more than 10 points from the
explanation's (the least disturbed of three), unless the clock's own quickest calls differ by more than that among
themselves.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import workloads
from measure.engine import explaining, stages
from measure.engine.bench import Bench, Settings
from measure.engine.host_launcher import HostLauncher
from measure.engine.launcher import Launcher
from measure.judge import reasons
from measure.model import why
from measure.model.request import parse
from measure.model.run import Run
from strategies import script
from tests import grid
from tests.benchmarks import common
from workloads.case import Case

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
    ("polynomial", "dataset.graph", 50),
    ("polynomial", "chunked.graph?chunk=8", 50),
    ("polynomial", "batched.xla", 50),
    ("per_example_gradients", "vectorized_map.xla", 50),
)

# What the independent traces are named by.
HANDED, EXECUTED, ENTRY = "ops that Python hands over", "ops executed", "instructions of ENTRY"
OUTSIDE = "share outside of TensorFlow by a clock, in the quickest calls"
# How far a share of time may be from the clock's, and the clock's quickest calls from each other.
_POINTS = 0.10
# Explanations of which the quickest is judged.
_JUDGED = 3
# Nodes that compute nothing: which of them an executor meets depends on how a loop is lowered, and the profiler leaves
# out those whose kernels say themselves that they are not expensive (``OpKernel::IsExpensive``).
_PLUMBING = frozenset((
    *("NoOp", "Const", "EagerConst", "Arg", "Retval", "Identity", "Placeholder", "While", "StatelessWhile"),
    *("PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "Case", "StatelessCase"),
    *("Reshape", "ExpandDims", "EnsureShape", "Enter", "Exit", "Merge", "Switch", "LoopCond", "NextIteration"),
))  # fmt: skip

# Run in a fresh interpreter with the strategy's script on stdin: counts without the profiler, as JSON.
_COUNTER = r"""
import json, sys, time, types
asked = json.loads(sys.stdin.readline())
from measure.subject.roles import load
module = load(asked["script"], "independent")
import re
import tensorflow as tf
from collections import Counter
from tensorflow.python.eager import context
from tensorflow.python.framework import op_callbacks

seen = Counter()
def callback(op_type, inputs, attrs, outputs, op_name=None, graph=None):
    if graph is None:
        seen[op_type] += 1

if asked["mode"] != "xla":
    context.enable_run_metadata()
module.strategy(module.elems)
# Functions as they are executed, after the optimisation of their graphs.
functions = []
if asked["mode"] != "xla":
    functions = [each.post_optimization_graph for each in context.export_run_metadata().function_graphs]
    context.disable_run_metadata()
module.strategy(module.elems)
report = {}
if asked["mode"] == "eager":
    op_callbacks.add_op_callback(callback)
    module.strategy(module.elems)
    op_callbacks.remove_op_callback(callback)
    for name in [name for name in seen if name.startswith("__inference")]:
        (function,) = functions  # without loops: each of its nodes is executed once
        assert seen.pop(name) == 1 and not any(node.op == "Merge" for node in function.node)
        seen.update(node.op for node in function.node)
    report["ops that Python hands over"] = dict(seen)
    # The time in TensorFlow by a clock around the calls that Python makes into it, whatever they call in turn.
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.framework import constant_op, ops
    inside = [0.0, 0, 0]
    def timed(function):
        def wrapper(*args, **kwargs):
            inside[2] += 1
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                inside[2] -= 1
                if not inside[2]:
                    inside[0] += time.perf_counter() - start
                    inside[1] += 1
        return wrapper
    for name in ("TFE_Py_FastPathExecute", "TFE_Py_Execute"):
        setattr(pywrap_tfe, name, timed(getattr(pywrap_tfe, name)))
    # A constant is made by calling a class, which others ask whether something is an instance of.
    class Timed(type):
        made = staticmethod(timed(ops.EagerTensor))
        def __call__(cls, *args, **kwargs):
            return Timed.made(*args, **kwargs)
        def __instancecheck__(cls, value):
            return isinstance(value, ops.EagerTensor)
    constant_op.ops = types.ModuleType("ops")
    constant_op.ops.__dict__.update({**vars(ops), "EagerTensor": Timed("EagerTensor", (), {})})
    calls = []
    for _ in range(60):
        inside[:] = [0.0, 0, 0]
        start = time.perf_counter()
        module.strategy(module.elems)
        whole = time.perf_counter() - start
        calls.append((whole, 1 - inside[0] / whole))
    # The profiler's call is the quickest of a few as well: others were disturbed.
    report[asked["outside"]] = [round(share, 3) for _, share in sorted(calls)[:6]]
    report["calls into TensorFlow"] = inside[1]
elif asked["mode"] == "graph":
    # A session's step statistics, which the executor takes down node by node.
    (function,) = functions
    library = {each.signature.name: each for each in function.library.function}
    v1, inputs, outputs = tf.compat.v1, {}, []
    for node in function.node:
        if node.op in ("_Arg", "_Retval"):
            kind, place = node.attr["T"].type, node.attr["index"].i
            node.attr.clear()
            if node.op == "_Arg":
                node.op, inputs[node.name + ":0"] = "Placeholder", place
                node.attr["dtype"].type = kind
            else:
                node.op = "Identity"
                node.attr["T"].type = kind
                outputs.append(node.name + ":0")
    leaves = tf.nest.flatten(module.elems)
    settings, statistics = v1.ConfigProto(), v1.RunMetadata()
    settings.graph_options.rewrite_options.disable_meta_optimizer = True  # it is optimised
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(function, name="")
        with v1.Session(graph=graph, config=settings) as session:
            fed = {name: leaves[place].numpy() for name, place in inputs.items()}
            session.run(outputs, fed, v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE), statistics)
    report["ops executed"] = dict(Counter(
        node.timeline_label.partition(" = ")[2].partition("(")[0]
        for device in statistics.step_stats.dev_stats for node in device.node_stats if " = " in node.timeline_label))
    # What tf.data calls for each slice is not in these statistics: each of its nodes is executed as often.
    for node in function.node:
        if node.op == "MapDataset":
            mapped = node.attr["f"].func.name
            slices = [leaf[0] for leaf in leaves]
            context.enable_run_metadata()
            context.context().call_function(mapped.encode(), slices, len(library[mapped].signature.output_arg))
            alone = context.export_run_metadata().function_graphs[-1].post_optimization_graph
            context.disable_run_metadata()
            assert not any(each.op in ("Merge", "While", "StatelessWhile") for each in alone.node)
            for each in alone.node:
                report["ops executed"][each.op] = report["ops executed"].get(each.op, 0) + asked["batch"]
else:
    text = module.strategy.experimental_get_compiler_ir(module.elems)(stage="optimized_hlo")
    entry = text[text.index("ENTRY"):].splitlines()[1:]
    opcodes = (re.search(r"(?:^|\s)([a-z][a-z0-9-]*)\(", line.partition(" = ")[2]) for line in entry)
    report["instructions of ENTRY"] = dict(Counter(
        opcode[1] for opcode in opcodes
        if opcode and opcode[1] not in ("parameter", "constant", "tuple", "bitcast", "get-tuple-element")))
calls = []
for _ in range(20):
    start = time.perf_counter()
    module.strategy(module.elems)
    calls.append(time.perf_counter() - start)
report["seconds of a call"] = sorted(calls)[10]
print(json.dumps(report))
"""


def explained(launcher: Launcher, request: dict[str, Any]) -> Run:
    """A run with outcomes, memory and reasons; nothing is timed."""
    bench = Bench("0" * 24, parse(request), launcher, lambda view: None, settings=Settings(timeout_floor_s=60.0))
    with bench.opened():
        stages.compute_reference(bench)
        stages.leave_out_unsupported(bench)
        stages.measure_memory(bench, bench.record.untried())
        explaining.explain(bench, lambda *_: True)
    bench.close("complete", "explained")
    return bench.record.run


def gaps(run: Run) -> Iterator[str]:
    """Yield what lacks a sentence, or works and lacks the figures that its sentence should be of."""
    said = reasons.sentences(run)
    for item in run.measurements:
        sentence = said.get(item.strategy, "")
        if not sentence or (item.outcome == "ok" and why.known(item.why) is None):
            yield f"{run.request.workload} {item.strategy}: {sentence or 'no sentence'}"


def whole_grid(launcher: HostLauncher, names: list[str]) -> int:
    count, missing = 0, []
    for case in grid.variants():
        if names and case.workload not in names:
            continue
        run = explained(launcher, case.request())
        for sentence in reasons.sentences(run).values():
            count += 1
            print(f"{case.workload} {case.options}: {sentence}", flush=True)
        missing += gaps(run)
    print(f"\n{count} sentences, {len(missing)} gaps", *missing, sep="\n")
    return 1 if missing else 0


def disagreements(explained: why.Why, independent: dict[str, Any]) -> list[str]:
    """Where an explanation counts otherwise than the independent trace does, of all that computes, or gives Python
    another share of the time."""
    return [*_counts_differ(explained, independent), *_shares_differ(explained, independent)]


def _counts_differ(explained: why.Why, independent: dict[str, Any]) -> list[str]:
    counted = Counter({each.name: each.count for each in explained.ops if each.name not in _PLUMBING})
    for what in (HANDED, EXECUTED):
        if what in independent:
            other = Counter({name.lstrip("_"): count for name, count in independent[what].items()})
            names = sorted({*counted, *other} - _PLUMBING)
            return [f"{name}: {counted[name]}, {what}: {other[name]}" for name in names if counted[name] != other[name]]
    instructions = sum(independent[ENTRY].values())
    counts = {"kernels": explained.kernel_count, "fusions and other instructions": explained.fusion_count + sum(
        each.count for each in explained.other_instructions)}  # fmt: skip
    return [f"{name}: {count}, {ENTRY}: {instructions}" for name, count in counts.items() if count != instructions]


def outside(explained: why.Why) -> float:
    """The share of the watched call outside of what Python calls of TensorFlow's; building graphs is Python's too."""
    parts = why.spent(explained)
    return (parts.python_s + parts.building_s) / explained.profiled_s


def clock_tells(shares: list[float]) -> bool:
    return max(shares) - min(shares) <= _POINTS


def _shares_differ(explained: why.Why, independent: dict[str, Any]) -> list[str]:
    shares = independent.get(OUTSIDE)
    if not shares or not clock_tells(shares):
        return []
    middle = statistics.median(shares)
    if abs(outside(explained) - middle) <= _POINTS:
        return []
    return [f"outside of TensorFlow: {outside(explained):.0%}, by a clock: {middle:.0%}"]


def _watched_s(explained: why.Why | None) -> float:
    return explained.profiled_s if explained is not None else float("inf")


def cases(launcher: HostLauncher) -> int:
    faults = judged = 0
    for name, slug, batch in CASES:
        workload = workloads.get(name)
        size = {**grid.size(workload), "batch": batch}
        mode = slug.partition(".")[2].partition("?")[0]
        # Where a share of time is judged, the least disturbed of a few processes, as of a few calls.
        times = _JUDGED if mode == "eager" else 1
        runs = [explained(launcher, {"workload": name, "size": size, "strategies": [slug]}) for _ in range(times)]
        run = min(runs, key=lambda each: _watched_s(why.known(each.measurements[0].why)))
        explained = why.known(run.measurements[0].why)
        print(f"\n{name} batch={batch} {reasons.sentences(run)[slug]}")
        if explained is not None:
            print("  explained:  ", {each.name: each.count for each in (*explained.ops, *explained.kernels)})
            print(
                f"               {explained.op_count} ops, {explained.kernel_count} kernels, Python "
                f"{explained.python_s / explained.profiled_s:.0%}, outside of TensorFlow {outside(explained):.0%}, "
                f"a call {explained.call_s:.6f} s, {explained.fusion_count} fusions, "
                f"{dict(Counter({e.name: e.count for e in explained.other_instructions}))}"
            )
        asked = {
            "script": script.build(Case(workload, size, "float32"), slug),
            "mode": mode,
            "batch": batch,
            "outside": OUTSIDE,
        }
        answer = subprocess.run(
            [sys.executable, "-c", _COUNTER], input=json.dumps(asked) + "\n", capture_output=True, text=True,
            cwd=common.ROOT, check=True,
        )  # fmt: skip
        independent = json.loads(answer.stdout)
        for what, value in independent.items():
            print(f"  independent: {what}: {value}")
        differ = ["no figures"] if explained is None else disagreements(explained, independent)
        agree = "the counts agree"
        if shares := independent.get(OUTSIDE):
            told = clock_tells(shares)
            judged += told
            agree += " and the share of time" if told else "; the clock cannot tell the share of time"
        print("  " + (f"DIFFER: {'; '.join(differ)}" if differ else agree), flush=True)
        faults += bool(differ)
    print(f"\n{len(CASES)} cases, {judged} with a share of time that a clock can tell, {faults} that differ")
    return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", help="of the grid only these")
    parser.add_argument("--grid", action="store_true", help="explain the whole grid")
    parser.add_argument("--cases", action="store_true", help="a case for each mechanism beside an independent count")
    arguments = parser.parse_args()
    os.environ["MAPBENCH_HOSTED"] = "1"  # the project's own files only
    status = 0
    with grid.host() as launcher:
        if arguments.cases:
            status = cases(launcher)
        if arguments.grid or not arguments.cases:
            status = max(status, whole_grid(launcher, arguments.workloads))
    return status


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
