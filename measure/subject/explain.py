"""The explanation of a strategy's call, asked of TensorFlow in a process that measures nothing else: what is traced,
which ops and kernels run and for how long, and what XLA makes of it.

The figures go back to the engine; what is too much for a run's file (graph, program, trace) is left in a folder, as
the files `measure.model.why.ARTIFACTS`.
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

from measure.model.why import CONTAINERS, GRAPH, HLO, MOST_ROWS, OTHER, TRACE, Explained, Graph, Ran
from measure.subject.profiler import Event, Profile, profiled
from measure.subject.tracing import Traced, compiles_element, traced

# Of calls that are repeated: they take no longer than this together, and are no more than so many.
REPEATED_S, _MOST_WARM, _MOST_WATCHED, _MOST_PLAIN = 0.2, 5, 5, 200
_MOST_TEXT = 4_000_000
MOST_EVENTS = 100_000

_PS_PER_S, _PS_PER_US = 1e12, 1e6


def explain(
    module: ModuleType,
    mode: str,
    slug: str,
    folder: Path,
    synchronise: Callable[[], None],
    *,
    on_gpu: bool,
    repeated_s: float = REPEATED_S,
) -> Explained:
    """Call the strategy ``slug`` a few times and return what happened; leaves its artifacts in ``folder``. Calls are
    repeated while they take no longer than ``repeated_s`` together."""
    of_element = mode != "xla" and compiles_element(slug)
    compiles = mode == "xla" or of_element

    def call() -> None:
        outputs = module.strategy(module.elems)
        synchronise()
        del outputs

    with traced(keep_graphs=True) as first:
        begun_s = time.perf_counter()
        if compiles:
            call()  # compiling leaves hundreds of thousands of events
        with profiled(on_gpu=on_gpu) as profile:
            if not compiles:
                # The executor leaves an op that has often been quick out of the trace. It decides so by calls that are
                # not traced: therefore the first call is traced as well.
                call()
            traces_first = len(first.names)
            if time.perf_counter() - begun_s < repeated_s:
                _repeat(call, _MOST_WARM, repeated_s)
            traces_warm = len(first.names) - traces_first
            with traced(keep_graphs=True) as again:

                def watched() -> None:
                    with profile.call():
                        call()

                watched_calls = _repeat(watched, _MOST_WATCHED, repeated_s)
    called, events = quickest_call(profile)
    (folder / TRACE).write_bytes(chrome(called, events, slug))
    graphs = _graphs(module, mode, again if again.names else first)
    if graphs:
        (folder / GRAPH).write_text(_cut("\n\n".join(_node_lists(graphs))), encoding="utf-8")
    program = _program(module, of_element=of_element) if compiles else None
    if program is not None:
        (folder / HLO).write_text(_cut(program), encoding="utf-8")
    plain_s: list[float] = []
    _repeat(call, _MOST_PLAIN, repeated_s, plain_s)
    return Explained(
        call_s=statistics.median(plain_s),
        traces_first=traces_first,
        traces_warm=traces_warm,
        traces_per_call=len(again.names) / watched_calls,
        graph=_facts(graphs),
        loops=None if program is None else _count(program, "while"),
        fusion_count=0 if program is None else _count(program, "fusion"),
        of_element=of_element,
        **figures(called, events),
    )


def _repeat(call: Callable[[], None], most: int, longest_s: float, taken_s: list[float] | None = None) -> int:
    """Call at least once; returns how often, and leaves seconds of the calls in ``taken_s``."""
    times_s = [] if taken_s is None else taken_s
    while len(times_s) < most and sum(times_s) < longest_s:
        start_s = time.perf_counter()
        call()
        times_s.append(time.perf_counter() - start_s)
    return len(times_s)


# --- events of one call: pure ----------------------------------------------------------------------------------------

# By which a call that is watched waits for its device: no op of the strategy's.
_WAITING = "SyncDevice"
_TYPE = re.compile(r"_?[A-Z]\w*")
_EAGER = "EagerLocalExecute: "
_EAGER_RUN = "KernelAndDeviceFunc::Run"
_ASYNC = "ExecutorState::ProcessAsync::Start"
# What a GPU does beside kernels.
_TRANSFERS = ("Memcpy", "Memset")
_BUILDING = "tf.function-graph_building"


def quickest_call(profile: Profile) -> tuple[Event, list[Event]]:
    """The quickest of the marked calls, and all events that begin in it. Raises ValueError where there is no call."""
    called = min(profile.calls(), key=lambda call: call.duration_ps)
    return called, list(profile.events(lambda _, start_ps: called.start_ps <= start_ps <= called.end_ps))


def figures(called: Event, events: Iterable[Event]) -> dict[str, Any]:
    """The fields of `Explained` that the events of a call give. The executor traces an op as ``name:Type``, eager
    execution as ``EagerLocalExecute: Type`` around the kernel's run, and XLA each kernel with the statistic ``hlo_op``;
    on a GPU's plane a line of the device is a stream of kernels."""
    by_line: dict[int, list[Event]] = {}
    for event in sorted(events, key=lambda event: (event.start_ps, -event.duration_ps)):
        by_line.setdefault(event.line, []).append(event)
    ops: list[tuple[str, Event]] = []
    kernels: list[tuple[str, Event]] = []
    streams: list[tuple[str, Event]] = []
    for own in by_line.values():
        if own[0].plane.startswith("/device:"):
            if own[0].plane.startswith("/device:GPU") and own[0].line_name.startswith("Stream"):
                streams += [(event.name, event) for event in own if not event.name.startswith(_TRANSFERS)]
        else:
            ops += _ops(own)
            kernels += [(event.name, event) for event in _innermost(own)]
    waits = [event for name, event in ops if name == _WAITING]
    ops = [(name, event) for name, event in ops if name not in CONTAINERS and name != _WAITING]
    kernels += streams
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
        "kernels": _table(kernels),
        "in_kernels_s": _union_s(event for _, event in kernels),
        "in_streams_s": _union_s(event for _, event in streams),
        "python_s": max(0.0, call_s - _union_s([*inside, *building])),
        "waiting_s": _union_s(waits),
    }


def _ops(own: list[Event]) -> Iterator[tuple[str, Event]]:
    """The type of each op that ran on a thread, with the event that lasts as long: of an eager op its kernel's run."""
    eager: tuple[str, Event] | None = None
    for event in own:
        if eager and (event.name == _EAGER_RUN or event.start_ps >= eager[1].end_ps or event.name.startswith(_EAGER)):
            ran = event.name == _EAGER_RUN and event.start_ps < eager[1].end_ps
            yield eager[0], event if ran else eager[1]
            eager = None
        if event.name.startswith(_EAGER):
            kind = event.name.removeprefix(_EAGER)
            if _TYPE.fullmatch(kind):  # others are functions, whose ops are traced by themselves
                eager = kind.lstrip("_"), event
        elif event.name == _ASYNC and event.stats.get("kernel_type"):
            yield str(event.stats["kernel_type"]).lstrip("_"), event
        else:
            name, _, kind = event.name.rpartition(":")
            if name and not name.endswith(":") and " " not in name and _TYPE.fullmatch(kind):
                yield kind.lstrip("_"), event
    if eager:
        yield eager


def _innermost(own: list[Event]) -> list[Event]:
    """XLA's kernels of one thread that enclose no other: a loop is no kernel beside those of its body."""
    innermost: list[Event] = []
    for event in own:
        if "hlo_op" in event.stats:
            while innermost and innermost[-1].end_ps >= event.end_ps:
                innermost.pop()
            innermost.append(event)
    return innermost


def _union_s(events: Iterable[Event]) -> float:
    """The seconds during which at least one of the events lasted."""
    total = reached = 0
    for start, end in sorted((event.start_ps, event.end_ps) for event in events):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total / _PS_PER_S


def _table(ran: Iterable[tuple[str, Event]]) -> list[Ran]:
    """Rows by name, of what took longest first; what is beyond the last row but one is summed up in the last."""
    lengths: dict[str, list[int]] = {}
    for name, event in ran:
        lengths.setdefault(name[:200], []).append(event.duration_ps)
    rows = [Ran(name=name, count=len(own), seconds=sum(own) / _PS_PER_S) for name, own in lengths.items()]
    rows.sort(key=lambda row: (-row.seconds, -row.count, row.name))
    if len(rows) <= MOST_ROWS:
        return rows
    rest = rows[MOST_ROWS - 1 :]
    summed = Ran(name=OTHER, count=sum(row.count for row in rest), seconds=sum(row.seconds for row in rest))
    return [*rows[: MOST_ROWS - 1], summed]


def chrome(called: Event, events: Iterable[Event], title: str, most: int = MOST_EVENTS) -> bytes:
    """The call as compressed JSON in the Trace Event Format, which Perfetto and Chrome open.

    Times are in microseconds from the start of the call. Of more than ``most`` events the first are kept.
    """
    ordered = sorted(events, key=lambda event: event.start_ps)
    first = ordered[:most]
    planes = {plane: number for number, plane in enumerate(dict.fromkeys(event.plane for event in first), 1)}
    lines = {event.line: event for event in first}
    names = [("process_name", number, 0, f"{title} {plane}") for plane, number in planes.items()]
    names += [("thread_name", planes[event.plane], line, event.line_name) for line, event in lines.items()]
    trace: list[dict[str, Any]] = [
        {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
        for kind, process, thread, name in names
    ]
    trace += [
        {
            "ph": "X", "name": event.name, "pid": planes[event.plane], "tid": event.line,
            "ts": (event.start_ps - called.start_ps) / _PS_PER_US, "dur": event.duration_ps / _PS_PER_US,
            "args": {name: value for name, value in event.stats.items() if not isinstance(value, bytes)},
        }
        for event in first
    ]  # fmt: skip
    document = {"displayTimeUnit": "ns", "traceEvents": trace, "otherData": {"events left out": len(ordered[most:])}}
    return gzip.compress(msgspec.json.encode(document), 6, mtime=0)


# --- graph and program -----------------------------------------------------------------------------------------------

_SOURCE = re.compile(r' (?:source_file="[^"]*"|source_line=\d+|source_end_line=\d+|source_column=\d+)')
_STACK_FRAMES = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)*\n?", re.MULTILINE)


def _graphs(module: ModuleType, mode: str, tracing: Traced) -> dict[str, Any]:
    """Definitions of the graphs that a call runs, by name; of several that were traced alike, the last one."""
    if mode != "eager":
        return {"strategy": module.strategy.get_concrete_function(module.elems).graph.as_graph_def(add_shapes=True)}
    return {str(graph.name): graph.as_graph_def(add_shapes=True) for graph in tracing.graphs}


def _facts(graphs: dict[str, Any]) -> Graph | None:
    if not graphs:
        return None
    functions = [function for definition in graphs.values() for function in definition.library.function]
    top = [node.op for definition in graphs.values() for node in definition.node]
    kinds = Counter([*top, *(node.op for function in functions for node in function.node_def)])
    rows = [Ran(name=name, count=count) for name, count in kinds.most_common(MOST_ROWS)]
    return Graph(nodes=kinds.total(), top_nodes=len(top), functions=len(functions), by_op=rows)


def _node_lists(graphs: dict[str, Any]) -> Iterator[str]:
    """Each graph as people read it: a line for each node, then the functions that it calls."""
    for name, definition in graphs.items():
        yield _lines(f"graph {name}", definition.node)
        for function in definition.library.function:
            yield _lines(f"function {function.signature.name}", function.node_def)


def _lines(title: str, nodes: Any) -> str:
    lines = [f"{title}: {len(nodes)} nodes"]
    for node in nodes:
        shapes = (
            "[" + ", ".join("?" if side.size < 0 else str(side.size) for side in shape.dim) + "]"
            for shape in node.attr["_output_shapes"].list.shape
        )
        lines.append(f"  {node.name} = {node.op}({', '.join(node.input)}) {' '.join(shapes)}".rstrip())
    return "\n".join(lines)


def _program(module: ModuleType, *, of_element: bool) -> str | None:
    """XLA's optimised program of the strategy, or of the element function that it compiles by itself, as text; None
    where that of an element function is not to be had."""
    import tensorflow as tf

    if not of_element:
        return without_paths(module.strategy.experimental_get_compiler_ir(module.elems)(stage="optimized_hlo"))
    try:
        element = tf.nest.map_structure(lambda leaf: leaf[0], module.elems)
        return without_paths(module.fn.experimental_get_compiler_ir(element)(stage="optimized_hlo"))
    except (tf.errors.OpError, AttributeError, LookupError, TypeError, ValueError):
        return None  # a batch of none, or something that only the strategy knows how to call


def without_paths(program: str) -> str:
    """A program without the places in source files that its instructions come from: these name folders."""
    return _STACK_FRAMES.sub("", _SOURCE.sub("", str(program)))


def _count(program: str, opcode: str) -> int:
    """The number of instructions of a kind that is not nested in fusions."""
    return len(re.findall(rf"^\s+(?:ROOT )?\S+ = .*?\s{opcode}\(", program, re.MULTILINE))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}\n… and {len(text) - _MOST_TEXT:,} more signs"
