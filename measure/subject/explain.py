"""The explanation of a strategy's call, asked of TensorFlow in a process that measures nothing else: what is traced,
which ops and kernels run and for how long, and what XLA makes of it.

What is too much for a run's file (graph, program, trace) is left in a folder, as `measure.run.why.ARTIFACTS`.
"""

import gzip
import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from measure.run.why import GRAPH, HLO, MOST_ROWS, TRACE, Explained, Graph, Ran
from measure.subject.messages import Spec
from measure.subject.tracing import Event, compiles_element, profiled, traced

# Of calls that are repeated: they take no longer than this together, and are no more than so many.
REPEATED_S, _MOST_WATCHED, _MOST_PLAIN = 0.2, 10, 200
_MOST_EVENTS = 100_000

_PS_PER_S, _PS_PER_US = 1e12, 1e6


def explain(module: ModuleType, call: Callable[[], Any], spec: Spec) -> Explained:
    """Call the strategy a few times and return what happened; leaves its artifacts in the folder of the spec."""
    folder, mode = Path(spec.artifacts), spec.mode
    of_element = mode != "xla" and compiles_element(spec.name)

    def watched() -> None:
        with profile.call():
            call()

    if mode == "xla" or of_element:
        call()  # compiling leaves hundreds of thousands of events
    with profiled(on_gpu=spec.device.startswith("GPU")) as profile:
        # The executor leaves an op that has often been quick out of the trace. It decides so by calls that are not
        # traced: therefore a first call is traced as well.
        call()
        with traced() as again:
            watched_s = _repeat(watched, _MOST_WATCHED)
    called = profile.quickest_call()
    events = list(profile.events(lambda _, start_ps: called.start_ps <= start_ps <= called.end_ps))
    (folder / TRACE).write_bytes(chrome(called, events, spec.name))
    graph = program = None
    if mode != "eager":
        graph, text = _read(module.strategy.get_concrete_function(module.elems).graph.as_graph_def())
        (folder / GRAPH).write_text(text, encoding="utf-8")
    if mode == "xla":
        ir = module.strategy.experimental_get_compiler_ir(module.elems)
        program = without_paths(ir(stage="optimized_hlo"))
        (folder / HLO).write_text(program, encoding="utf-8")
    return Explained(
        call_s=statistics.median(_repeat(call, _MOST_PLAIN)),
        traces_per_call=again.functions / len(watched_s),
        graph=graph,
        loops=None if program is None else _count(program, "while"),
        fusion_count=0 if program is None else _count(program, "fusion"),
        of_element=of_element,
        **figures(called, events),
    )


def _repeat(call: Callable[[], Any], most: int) -> list[float]:
    times_s: list[float] = []
    while len(times_s) < most and sum(times_s) < REPEATED_S:
        start_s = time.perf_counter()
        call()
        times_s.append(time.perf_counter() - start_s)
    return times_s


# --- events of one call: pure ----------------------------------------------------------------------------------------

# Ops that only run other ops, which are counted themselves: their time is not the time of an op.
_CONTAINER = re.compile(r"(Stateless)?(While|If|Case)|(Stateful)?PartitionedCall|For|SymbolicGradient|RemoteCall")
# By which a call that is watched waits for its device: no op of the strategy's.
_WAITING = "SyncDevice"
_GRAPH_OP = re.compile(r"[^ ]*[^ :]:_?([A-Z]\w*)")
_EAGER = "EagerLocalExecute: "
# What encloses other kernels of XLA's, and what a GPU does beside kernels.
_NO_KERNEL = re.compile(r"(while|conditional|call)(\.\d+)?$|Memcpy|Memset")


def figures(called: Event, events: Iterable[Event]) -> dict[str, Any]:
    """The fields of `Explained` that the events of a call give. On a GPU's plane a line of the device is a stream of
    kernels; on the host XLA traces each kernel with the statistic ``hlo_op``."""
    parts: dict[str, list[Event]] = defaultdict(list)
    eager: dict[int, str] = {}
    for event in sorted(events, key=lambda event: (event.start_ps, -event.duration_ps)):
        is_kernel = not _NO_KERNEL.match(event.name)
        if event.plane.startswith("/device:"):
            if is_kernel and event.line_name.startswith("Stream"):
                parts["streams"].append(event)
            continue
        if is_kernel and "hlo_op" in event.stats:
            parts["kernels"].append(event)
        if event.line == called.line and event.name == "tf.function-graph_building":
            parts["building"].append(event)
        elif event.line == called.line and event.name.startswith(("TFE_", "Eager")):
            parts["runtime"].append(event)
        op = _op(event, eager)
        if op == _WAITING:
            parts["waiting"].append(event)
        elif op and not _CONTAINER.fullmatch(op):
            parts["ops"].append(replace(event, name=op))
    kernels, call_s = parts["kernels"] + parts["streams"], called.duration_ps / _PS_PER_S
    return {
        "profiled_s": call_s,
        "building_s": _union_s(parts["building"]),
        "op_count": len(parts["ops"]),
        "ops": _table(parts["ops"]),
        "in_ops_s": _union_s(parts["ops"]),
        "kernel_count": len(kernels),
        "kernels": _table(kernels),
        "in_kernels_s": _union_s(kernels),
        "in_streams_s": _union_s(parts["streams"]),
        "python_s": max(0.0, call_s - _union_s(parts["runtime"] + parts["building"])),
        "waiting_s": _union_s(parts["waiting"]),
    }


def _op(event: Event, eager: dict[int, str]) -> str:
    """The type of the op that ran as long as an event, empty where that is no op's. The executor traces an op as
    ``name:Type``, and eager execution as ``EagerLocalExecute: Type`` around the kernel's run, or around that of a
    function, whose ops are traced by themselves. ``eager``: such a type, by the line on which its run is to come."""
    op = ""
    if event.name.startswith(_EAGER):
        eager[event.line] = event.name.removeprefix(_EAGER)
    elif event.name == "KernelAndDeviceFunc::Run":
        op = eager.pop(event.line, "")
    elif event.name == "ExecutorState::ProcessAsync::Start":
        op = str(event.stats.get("kernel_type", ""))
    elif graph_op := _GRAPH_OP.fullmatch(event.name):
        op = graph_op[1]
    return "" if op.startswith("__") else op.lstrip("_")


def _union_s(events: Iterable[Event]) -> float:
    total = reached = 0
    for start, end in sorted((event.start_ps, event.end_ps) for event in events):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total / _PS_PER_S


def _table(events: Iterable[Event]) -> list[Ran]:
    """Rows by name, of those that took longest."""
    lengths: dict[str, list[int]] = defaultdict(list)
    for event in events:
        lengths[event.name[:200]].append(event.duration_ps)
    rows = [Ran(name=name, count=len(own), seconds=sum(own) / _PS_PER_S) for name, own in lengths.items()]
    return sorted(rows, key=lambda row: (-row.seconds, -row.count, row.name))[:MOST_ROWS]


def chrome(called: Event, events: Iterable[Event], title: str) -> bytes:
    """The call as compressed JSON in the Trace Event Format, which Perfetto and Chrome open. Times are in microseconds
    from the start of the call."""
    first = sorted(events, key=lambda event: event.start_ps)[:_MOST_EVENTS]
    planes = {plane: number for number, plane in enumerate(dict.fromkeys(event.plane for event in first), 1)}
    names = {("process_name", number, 0): f"{title} {plane}" for plane, number in planes.items()}
    names |= {("thread_name", planes[event.plane], event.line): event.line_name for event in first}
    trace: list[dict[str, Any]] = [
        {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
        for (kind, process, thread), name in names.items()
    ]
    trace += [
        {
            "ph": "X", "name": event.name, "pid": planes[event.plane], "tid": event.line,
            "ts": (event.start_ps - called.start_ps) / _PS_PER_US, "dur": event.duration_ps / _PS_PER_US,
            "args": {name: value for name, value in event.stats.items() if not isinstance(value, bytes)},
        }
        for event in first
    ]  # fmt: skip
    return gzip.compress(msgspec.json.encode({"displayTimeUnit": "ns", "traceEvents": trace}), 6, mtime=0)


# --- graph and program -----------------------------------------------------------------------------------------------

_SOURCE = re.compile(r' (?:source_file="[^"]*"|source_line=\d+|source_end_line=\d+|source_column=\d+)')
_STACK_FRAMES = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)*\n?", re.MULTILINE)


def _read(graph: Any) -> tuple[Graph, str]:
    """The figures of a graph, and the graph as people read it: a line for each node, then the functions that it
    calls."""
    parts = {"graph": graph.node}
    parts |= {f"function {function.signature.name}": function.node_def for function in graph.library.function}
    lines = []
    for title, nodes in parts.items():
        lines += [f"{title}: {len(nodes)} nodes"]
        lines += [f"  {node.name} = {node.op}({', '.join(node.input)})" for node in nodes]
    kinds = Counter(node.op for nodes in parts.values() for node in nodes)
    rows = [Ran(name=name, count=count) for name, count in kinds.most_common(MOST_ROWS)]
    figures = Graph(nodes=kinds.total(), top_nodes=len(graph.node), functions=len(parts) - 1, by_op=rows)
    return figures, "\n".join(lines)


def without_paths(program: str) -> str:
    """A program without the places in source files that its instructions come from: these name folders."""
    return _STACK_FRAMES.sub("", _SOURCE.sub("", str(program)))


def _count(program: str, opcode: str) -> int:
    """The number of instructions of a kind that is not nested in fusions."""
    return len(re.findall(rf"^\s+(?:ROOT )?\S+ = .*?\s{opcode}\(", program, re.MULTILINE))
