"""The explanation of a strategy's call, asked of TensorFlow in a process that measures nothing else.

The figures go back to the runner; what is too much for a run's file (graph, program, trace) is left in a folder, as
the files `measure.model.why.ARTIFACTS`.
"""

import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from measure.model.why import GRAPH, HLO, MOST_ROWS, OTHER, TRACE, Explained, Fusion, Graph, Ran
from measure.subject import hlo, profile, profiler, trace
from measure.subject.profile import Share
from measure.subject.traced import Traced, compiles_element, traced

# Enough calls for a median and for a share of threads that means something, and no more than a moment.
_PLAIN_S = 0.2
_MOST_CALLS = 200
# What is looked at is not among the first calls, and not one that something else disturbed.
REPEATED_S, _MOST_WARM, _MOST_WATCHED = 0.2, 5, 5
# A thread that ran for less of the time only woke up.
_BUSY_SHARE = 0.01
# Rows of a table of kinds, and fusions that are named.
_MOST_KINDS = 40
_MOST_TEXT = 4_000_000
_MOST_NODES = 50_000


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
    """Call the strategy ``slug`` a few times and say what happened; leaves its artifacts in ``folder``. Calls are
    repeated while they take no longer than ``repeated_s`` together."""
    of_element = mode != "xla" and compiles_element(slug)

    def call() -> None:
        outputs = module.strategy(module.elems)
        synchronise()
        del outputs

    with traced(keep_graphs=True) as first, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as traces:
        begun = time.perf_counter()
        if mode == "xla" or of_element:
            call()  # compiling leaves hundreds of thousands of events
            profiler.start(traces, on_gpu=on_gpu)
        else:
            # The executor leaves an op that has often been quick out of the trace. It decides so by calls that are
            # not traced: therefore the first call is traced as well.
            profiler.start(traces, on_gpu=on_gpu)
            call()
        named = len(first.names)
        if time.perf_counter() - begun < repeated_s:
            _repeat(call, _MOST_WARM, repeated_s)
        warm = len(first.names) - named
        with traced(keep_graphs=True) as again:
            watched = _repeat(lambda: _watched(call), _MOST_WATCHED, repeated_s)
            profiler.stop()
        seen = trace.read(profiler.space(traces))
    figures = profile.profile(seen)
    (folder / TRACE).write_bytes(trace.chrome(seen, slug))
    call_s, cores, threads = _plain(call)
    graphs = _graphs(module, mode, again if again.names else first)
    nodes = "\n\n".join(_node_list(name, definition) for name, definition in graphs)
    if nodes:
        (folder / GRAPH).write_text(_cut(nodes), encoding="utf-8")
    program, compiled_in = _program(module, folder, of_element=of_element) if mode == "xla" or of_element else (None, 0)
    fusions = tuple(Fusion(name=fusion.name, ops=fusion.ops) for fusion in program.fusions) if program else ()
    others = program.others if program else ()
    count = getattr(module.strategy, "experimental_get_tracing_count", None)
    return Explained(
        call_s=call_s,
        profiled_s=figures.call_s,
        traces_first=named,
        traces_warm=warm,
        traces_per_call=len(again.names) / watched,
        tracing_count=count() if count is not None else None,
        building_s=figures.building_s,
        graph=_facts(graphs),
        op_count=sum(share.count for share in figures.ops),
        ops=_most_of(figures.ops),
        in_ops_s=figures.in_ops_s,
        kernel_count=sum(share.count for share in figures.kernels),
        kernels=_most_of(figures.kernels),
        in_kernels_s=figures.in_kernels_s,
        in_streams_s=figures.in_streams_s,
        python_s=figures.python_s,
        waiting_s=figures.waiting_s,
        op_threads=figures.threads,
        threads=threads,
        cores=cores,
        loops=program.loops if program else None,
        compiled_in=compiled_in,
        fusion_count=len(fusions),
        fused_ops=sum(len(fusion.ops) for fusion in fusions),
        fusions=_largest(fusions),
        other_instructions=[Ran(name=name, count=number) for name, number in Counter(others).most_common(_MOST_KINDS)],
        of_element=of_element,
    )


def _program(module: ModuleType, folder: Path, *, of_element: bool) -> tuple[hlo.Program | None, int]:
    """XLA's program, of the strategy or of the element function that it compiles by itself, and how many inputs' values
    are compiled in; leaves its text in ``folder``. None where that of an element function is not to be had."""
    import tensorflow as tf

    function, values = module.strategy, module.elems
    try:
        if of_element:
            function, values = module.fn, tf.nest.map_structure(lambda leaf: leaf[0], values)
        text = hlo.without_paths(str(function.experimental_get_compiler_ir(values)(stage="optimized_hlo")))
    except (tf.errors.OpError, AttributeError, LookupError, TypeError, ValueError):
        if not of_element:
            raise
        return None, 0  # a batch of none, or something that only the strategy knows how to call
    (folder / HLO).write_text(_cut(text), encoding="utf-8")
    program = hlo.parse(text)
    return program, max(0, len(function.get_concrete_function(values).inputs) - program.inputs)


def _most_of(shares: Iterable[Share]) -> list[Ran]:
    """Rows of what took longest; what is beyond the last row but one is summed up in the last."""
    rows = [Ran(name=share.name[:200], count=share.count, seconds=share.seconds) for share in shares]
    if len(rows) <= MOST_ROWS:
        return rows
    kept, rest = rows[: MOST_ROWS - 1], rows[MOST_ROWS - 1 :]
    return [*kept, Ran(name=OTHER, count=sum(row.count for row in rest), seconds=sum(row.seconds for row in rest))]


def _largest(fusions: tuple[Fusion, ...]) -> list[Fusion]:
    most = sorted(fusions, key=lambda fusion: -len(fusion.ops))[:_MOST_KINDS]
    return [Fusion(name=fusion.name[:200], ops=fusion.ops[:100]) for fusion in most]


def _watched(call: Callable[[], None]) -> None:
    with profiler.marked():
        call()


def _repeat(call: Callable[[], None], most: int, repeated_s: float) -> int:
    """Call once or, where that is quick, a few times; how often."""
    begun = time.perf_counter()
    for count in range(1, most + 1):
        call()
        if time.perf_counter() - begun > repeated_s:
            return count
    return most


def _plain(call: Callable[[], None]) -> tuple[float, float | None, int | None]:
    """Median seconds of calls that nobody watches, how many cores they kept busy, and on how many threads."""
    times: list[float] = []
    before = _thread_times()
    begun = time.perf_counter()
    while not times or (time.perf_counter() - begun < _PLAIN_S and len(times) < _MOST_CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    whole_s = time.perf_counter() - begun
    after = _thread_times()
    if before is None or after is None:
        return statistics.median(times), None, None
    busy = [after[thread] - before.get(thread, 0.0) for thread in after]
    return statistics.median(times), sum(busy) / whole_s, sum(thread_s > _BUSY_SHARE * whole_s for thread_s in busy)


def _thread_times() -> dict[str, float] | None:
    """Seconds that each thread of this process has run; None anywhere but on Linux."""
    ran_s = {}
    for path in Path("/proc/self/task").glob("*/schedstat"):
        try:
            ran_s[path.parent.name] = int(path.read_text().split()[0]) / 1e9
        except (OSError, IndexError, ValueError):  # the thread has just ended
            continue
    return ran_s or None


# --- graphs ----------------------------------------------------------------------------------------------------------


def _graphs(module: ModuleType, mode: str, tracing: Traced) -> list[tuple[str, Any]]:
    """Names and definitions of the graphs that a call runs; of several that were traced alike, the last one."""
    if mode != "eager":
        return [("strategy", module.strategy.get_concrete_function(module.elems).graph.as_graph_def(add_shapes=True))]
    by_name = {str(graph.name): graph for graph in tracing.graphs}
    return [(name, graph.as_graph_def(add_shapes=True)) for name, graph in by_name.items()]


def _nodes(definition: Any) -> Iterator[Any]:
    yield from definition.node
    for function in definition.library.function:
        yield from function.node_def


def _facts(graphs: list[tuple[str, Any]]) -> Graph | None:
    if not graphs:
        return None
    kinds = Counter(node.op for _, definition in graphs for node in _nodes(definition))
    return Graph(
        nodes=kinds.total(),
        top_nodes=sum(len(definition.node) for _, definition in graphs),
        functions=sum(len(definition.library.function) for _, definition in graphs),
        by_op=[Ran(name=name, count=count) for name, count in kinds.most_common(_MOST_KINDS)],
    )


def _node_list(name: str, definition: Any) -> str:
    """A graph as people read it: a line for each node, then the functions that it calls."""
    parts = [_lines(f"graph {name}", definition.node)]
    parts += [
        _lines(f"function {function.signature.name}", function.node_def) for function in definition.library.function
    ]
    return "\n\n".join(parts)


def _lines(title: str, nodes: Any) -> str:
    lines = [f"{title}: {len(nodes)} nodes"]
    for node in nodes[:_MOST_NODES]:
        shapes = [
            "[" + ", ".join("?" if side.size < 0 else str(side.size) for side in shape.dim) + "]"
            for shape in node.attr["_output_shapes"].list.shape
        ]
        lines.append(f"  {node.name} = {node.op}({', '.join(node.input)}) {' '.join(shapes)}".rstrip())
    if len(nodes) > _MOST_NODES:
        lines.append(f"  … and {len(nodes) - _MOST_NODES:,} more nodes")
    return "\n".join(lines)


def _cut(text: str) -> str:
    if len(text) <= _MOST_TEXT:
        return text
    return f"{text[:_MOST_TEXT]}\n… and {len(text) - _MOST_TEXT:,} more signs"
