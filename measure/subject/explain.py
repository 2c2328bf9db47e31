"""The explanation of a strategy's call, asked of TensorFlow in a process that measures nothing else: what is traced,
which ops and kernels run and for how long, and what XLA makes of it.

The figures go back to the engine; what is too much for a run's file (graph, program, trace) is left in a folder, as
the files `measure.run.why.ARTIFACTS`.
"""

import gzip
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from measure.run.why import GRAPH, HLO, MOST_ROWS, TRACE, Explained, Graph, Ran
from measure.subject.profiler import Event, profiled
from measure.subject.tracing import compiles_element, traced

# Of calls that are repeated: they take no longer than this together, and are no more than so many.
REPEATED_S, _MOST_WATCHED, _MOST_PLAIN = 0.2, 10, 200
_MOST_EVENTS = 100_000

_PS_PER_S, _PS_PER_US = 1e12, 1e6


def explain(
    module: ModuleType,
    mode: str,
    slug: str,
    folder: Path,
    synchronise: Callable[[], None],
    *,
    on_gpu: bool,
) -> Explained:
    """Call the strategy ``slug`` a few times and return what happened; leaves its artifacts in ``folder``."""
    of_element = mode != "xla" and compiles_element(slug)
    compiles = mode == "xla" or of_element

    def call() -> None:
        outputs = module.strategy(module.elems)
        synchronise()
        del outputs

    def watched() -> None:
        with profile.call():
            call()

    with traced() as first:
        if compiles:
            call()  # compiling leaves hundreds of thousands of events
        with profiled(on_gpu=on_gpu) as profile:
            if not compiles:
                # The executor leaves an op that has often been quick out of the trace. It decides so by calls that are
                # not traced: therefore the first call is traced as well.
                call()
            with traced() as again:
                watched_s = _repeat(watched, _MOST_WATCHED)
    called = profile.quickest_call()
    events = list(profile.events(lambda _, start_ps: called.start_ps <= start_ps <= called.end_ps))
    (folder / TRACE).write_bytes(chrome(called, events, slug))
    graph = program = None
    if mode != "eager":
        graph = module.strategy.get_concrete_function(module.elems).graph.as_graph_def()
        (folder / GRAPH).write_text(_text(graph), encoding="utf-8")
    if mode == "xla":
        ir = module.strategy.experimental_get_compiler_ir(module.elems)
        program = without_paths(ir(stage="optimized_hlo"))
        (folder / HLO).write_text(program, encoding="utf-8")
    return Explained(
        call_s=statistics.median(_repeat(call, _MOST_PLAIN)),
        traces_first=first.functions - again.functions,
        traces_per_call=again.functions / len(watched_s),
        graph=None if graph is None else _facts(graph),
        loops=None if program is None else _count(program, "while"),
        fusion_count=0 if program is None else _count(program, "fusion"),
        of_element=of_element,
        **figures(called, events),
    )


def _repeat(call: Callable[[], None], most: int) -> list[float]:
    """Call at least once; the seconds of the calls."""
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
_EAGER_RUN = "KernelAndDeviceFunc::Run"
_ASYNC = "ExecutorState::ProcessAsync::Start"
_BUILDING = "tf.function-graph_building"
# What encloses other kernels of XLA's, and what a GPU does beside kernels.
_NO_KERNEL = re.compile(r"(while|conditional|call)(\.\d+)?$|Memcpy|Memset")


def figures(called: Event, events: Iterable[Event]) -> dict[str, Any]:
    """The fields of `Explained` that the events of a call give. On a GPU's plane a line of the device is a stream of
    kernels; on the host XLA traces each kernel with the statistic ``hlo_op``."""
    by_line: dict[int, list[Event]] = {}
    for event in sorted(events, key=lambda event: (event.start_ps, -event.duration_ps)):
        by_line.setdefault(event.line, []).append(event)
    ops: list[tuple[str, Event]] = []
    kernels: list[Event] = []
    streams: list[Event] = []
    for own in by_line.values():
        if own[0].plane.startswith("/device:"):
            streams += own if own[0].line_name.startswith("Stream") else []
        else:
            ops += _ops(own)
            kernels += [event for event in own if "hlo_op" in event.stats]
    streams = [event for event in streams if not _NO_KERNEL.match(event.name)]
    kernels = [event for event in kernels if not _NO_KERNEL.match(event.name)] + streams
    waits = [event for name, event in ops if name == _WAITING]
    ops = [(name, event) for name, event in ops if not _CONTAINER.fullmatch(name) and name != _WAITING]
    calling = by_line.get(called.line, [])
    building = [event for event in calling if event.name == _BUILDING]
    inside = [event for event in calling if event.name.startswith(("TFE_", "Eager"))]
    call_s = called.duration_ps / _PS_PER_S
    return {
        "profiled_s": call_s,
        "building_s": _union_s(building),
        "op_count": len(ops),
        "ops": _table(ops),
        "in_ops_s": _union_s(event for _, event in ops),
        "kernel_count": len(kernels),
        "kernels": _table((event.name, event) for event in kernels),
        "in_kernels_s": _union_s(kernels),
        "in_streams_s": _union_s(streams),
        "python_s": max(0.0, call_s - _union_s([*inside, *building])),
        "waiting_s": _union_s(waits),
    }


def _ops(own: list[Event]) -> Iterator[tuple[str, Event]]:
    """The type of each op that ran on a thread, with the event that lasts as long. The executor traces an op as
    ``name:Type``, and eager execution as ``EagerLocalExecute: Type`` around the kernel's run, or around that of a
    function, whose ops are traced by themselves."""
    eager = ""
    for event in own:
        if event.name.startswith(_EAGER):
            eager = event.name.removeprefix(_EAGER)
        elif event.name == _EAGER_RUN and eager:
            if not eager.startswith("__"):
                yield eager.lstrip("_"), event
            eager = ""
        elif event.name == _ASYNC and event.stats.get("kernel_type"):
            yield str(event.stats["kernel_type"]).lstrip("_"), event
        elif op := _GRAPH_OP.fullmatch(event.name):
            yield op[1], event


def _union_s(events: Iterable[Event]) -> float:
    """The seconds during which at least one of the events lasted."""
    total = reached = 0
    for start, end in sorted((event.start_ps, event.end_ps) for event in events):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total / _PS_PER_S


def _table(ran: Iterable[tuple[str, Event]]) -> list[Ran]:
    """Rows by name, of those that took longest."""
    lengths: dict[str, list[int]] = {}
    for name, event in ran:
        lengths.setdefault(name[:200], []).append(event.duration_ps)
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


def _facts(graph: Any) -> Graph:
    functions = [function.node_def for function in graph.library.function]
    kinds = Counter(node.op for nodes in (graph.node, *functions) for node in nodes)
    rows = [Ran(name=name, count=count) for name, count in kinds.most_common(MOST_ROWS)]
    return Graph(nodes=kinds.total(), top_nodes=len(graph.node), functions=len(functions), by_op=rows)


def _text(graph: Any) -> str:
    """The graph as people read it: a line for each node, then the functions that it calls."""
    parts = [("graph", graph.node)]
    parts += [(f"function {function.signature.name}", function.node_def) for function in graph.library.function]
    lines = []
    for title, nodes in parts:
        lines += [f"{title}: {len(nodes)} nodes"]
        lines += [f"  {node.name} = {node.op}({', '.join(node.input)})" for node in nodes]
    return "\n".join(lines)


def without_paths(program: str) -> str:
    """A program without the places in source files that its instructions come from: these name folders."""
    return _STACK_FRAMES.sub("", _SOURCE.sub("", str(program)))


def _count(program: str, opcode: str) -> int:
    """The number of instructions of a kind that is not nested in fusions."""
    return len(re.findall(rf"^\s+(?:ROOT )?\S+ = .*?\s{opcode}\(", program, re.MULTILINE))
