"""Why a strategy is as fast as it is: what happened in a call, and the sentence that ties it to the measured gap.

The figures are of a process that only explains (`measure.why_subject`) and lie in a run's ``why``. The sentences are
pure functions of a run. The keys of ``why`` are those of `Why`; nothing else may be in it.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from measure import advice, statistics, text
from measure.run import Measurement, Run
from measure.trace import Share

# What an explanation leaves beside its figures, under the names of its files.
GRAPH, HLO, TRACE = "graph.txt", "hlo.txt", "trace.json.gz"
ARTIFACTS = (GRAPH, HLO, TRACE)

MOST_ARTIFACT_BYTES = 16 * 2**20

# The longest reason for having no figures.
MOST_NOTE = 2_000
_MOST_ROWS = 60
OTHER = "other"

_Name = Annotated[str, Meta(max_length=200)]
_Seconds = Annotated[float, Meta(ge=0.0, le=1e9)]
_Count = Annotated[int, Meta(ge=0, le=2**53)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what ``why`` is made of."""


class Ran(_Part, frozen=True, kw_only=True):
    """How often an op, a kernel, a node or an instruction occurs, and for how many seconds it ran in all."""

    name: _Name
    count: _Count
    seconds: _Seconds = 0.0


class Graph(_Part, frozen=True, kw_only=True):
    """The traced graph: ``nodes`` in all, of which ``top_nodes`` are not in a library function."""

    nodes: _Count
    top_nodes: _Count
    functions: _Count
    by_op: Annotated[list[Ran], Meta(max_length=_MOST_ROWS)] = []


class Fusion(_Part, frozen=True, kw_only=True):
    """Instructions that XLA made one kernel of: their opcodes."""

    name: _Name
    ops: Annotated[tuple[_Name, ...], Meta(max_length=100)] = ()


_COMPARISONS_OWN = ("runtime_start_s", "times_limit", "limit_note")


class Why(_Part, frozen=True, kw_only=True):
    """What happened in one steady call.

    ``call_s``: median of calls that nobody watched, in the same process; ``profiled_s``: the call that was traced, of
    which are all other seconds. ``traces_first``: functions traced by the first call; ``traces_per_call``: by each
    further one; ``tracing_count``: as ``experimental_get_tracing_count`` has it after all calls. ``building_s``: time
    of a call that building graphs took. ``in_ops_s``: how long at least one op ran, ``in_kernels_s``: likewise one of
    XLA's or a GPU's kernels. ``python_s``: time that the calling thread spent outside of TensorFlow's runtime.
    ``op_threads``: threads of the host on which ops or kernels began; ``threads``: those that were busy in calls that
    nobody watched; ``cores``: their processor time over wall-clock time. ``loops``: while loops that XLA left;
    ``compiled_in``: inputs whose values are part of XLA's program, which serves no others; ``other_instructions``:
    those outside of fusions. ``note``: why there are no figures. ``runtime_start_s``: what TensorFlow spent once in the
    first timed process; ``times_limit``: the latency over the limit's, and ``limit_note`` why it has no such multiple.
    A comparison knows these three without explaining anything.
    """

    call_s: _Seconds = 0.0
    profiled_s: _Seconds = 0.0
    traces_first: _Count = 0
    traces_per_call: _Count = 0
    tracing_count: _Count | None = None
    building_s: _Seconds = 0.0
    graph: Graph | None = None
    op_count: _Count = 0
    ops: Annotated[list[Ran], Meta(max_length=_MOST_ROWS)] = []
    in_ops_s: _Seconds = 0.0
    kernel_count: _Count = 0
    kernels: Annotated[list[Ran], Meta(max_length=_MOST_ROWS)] = []
    in_kernels_s: _Seconds = 0.0
    python_s: _Seconds = 0.0
    op_threads: _Count = 0
    threads: _Count | None = None
    cores: Annotated[float, Meta(ge=0.0, le=1e6)] | None = None
    fallbacks: Annotated[list[_Name], Meta(max_length=_MOST_ROWS)] = []
    loops: _Count | None = None
    compiled_in: _Count = 0
    fusion_count: _Count = 0
    fused_ops: _Count = 0
    fusions: Annotated[list[Fusion], Meta(max_length=_MOST_ROWS)] = []
    other_instructions: Annotated[list[Ran], Meta(max_length=_MOST_ROWS)] = []
    note: Annotated[str, Meta(max_length=MOST_NOTE)] = ""
    runtime_start_s: _Seconds | None = None
    times_limit: _Seconds | None = None
    limit_note: Annotated[str, Meta(max_length=MOST_NOTE)] = ""


def read(raw: dict[str, Any]) -> Why:
    """What a measurement's ``why`` says. ValueError with a sentence where it is not valid."""
    try:
        return msgspec.convert(raw, Why)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def known(item: Measurement) -> Why | None:
    """The figures of a measurement, or None where there are none, or none that are valid."""
    if not item.why:
        return None
    try:
        found = read(item.why)
    except ValueError:
        return None
    return found if found.profiled_s > 0 else None


def written(found: Why, before: dict[str, Any] | None = None) -> dict[str, Any]:
    """As it stands in a run; ``before``: what stood there, of which is kept what an explanation does not know."""
    raw: dict[str, Any] = msgspec.to_builtins(found)
    return raw | {name: (before or {})[name] for name in _COMPARISONS_OWN if name in (before or {})}


def artifacts(folder: Path) -> dict[str, bytes]:
    """What a subject has left in its folder, by name; what is larger than it can have meant to is left out."""
    return {
        name: path.read_bytes()
        for name in ARTIFACTS
        if (path := folder / name).is_file() and path.stat().st_size <= MOST_ARTIFACT_BYTES
    }


def most_of(shares: Iterable[Share], most: int = _MOST_ROWS) -> list[Ran]:
    """Those that took longest; what is beyond ``most`` rows is one row."""
    rows = [Ran(name=share.name[:200], count=share.count, seconds=share.seconds) for share in shares]
    if len(rows) <= most:
        return rows
    rest = rows[most - 1 :]
    last = Ran(name=OTHER, count=sum(row.count for row in rest), seconds=sum(row.seconds for row in rest))
    return [*rows[: most - 1], last]


def fallbacks(said: Iterable[str]) -> list[str]:
    """The ops for which tf.vectorized_map fell back to a while loop, from what TensorFlow said."""
    return [
        str(op)
        for warning in advice.of_strategy(list(said), 0)
        if warning.code == "falls_back"
        for op in warning.values["ops"]
    ][:_MOST_ROWS]


# --- sentences -------------------------------------------------------------------------------------------------------

_DATASET = re.compile(r"Dataset(V\d+)?$|^DatasetToSingleElement$")
_PYTHON_OPS = ("PyFunc", "EagerPyFunc", "PyFuncStateless")
_LOOPS = ("While", "StatelessWhile")
# Ops that write what is there already into one tensor.
_COPIES = re.compile(r"(TensorListStack|TensorListConcat|Pack|ConcatV2|concat|stack)$")
_MOST = 0.5
# Kinds of instructions that a sentence names.
_MOST_KINDS = 3
# A copy of the output is not worth a word where pages and small buffers weigh as much.
_LEAST_BYTES = 64 * 1024
_WRONG = "; its values differ from the reference"
_OUTCOMES = {
    "failed": "failed",
    "out_of_memory": "ran out of memory",
    "timeout": "did not finish in its time",
    "cancelled": "was cancelled",
    "not_run": "has not run",
}


def sentences(run: Run) -> dict[str, str]:
    """One sentence for each strategy of the run: what its call consists of, and what the fastest one does instead."""
    levels = statistics.levels(run.measurements).by_slug
    best = run.measurement(run.ranking[0][0]) if run.ranking else None
    found = {}
    for item in run.measurements:
        if item.twin_of:
            continue
        ratio = None
        if best is not None and item is not best and item.strategy in levels and best.strategy in levels:
            ratio = statistics.ratio(levels[item.strategy], levels[best.strategy], run.analysis.confidence)
        found[item.strategy] = sentence(item, run.request.size.get("batch", 0), best, ratio)
    return found


def sentence(item: Measurement, batch: int, best: Measurement | None, ratio: statistics.Ratio | None) -> str:
    """What a strategy's call consists of, its memory, and the gap to the fastest, in one sentence."""
    slug = f"`{item.strategy}`"
    if item.outcome == "unsupported":
        return f"{slug} cannot run: {_reason(item)}."
    why = known(item)
    if why is None and item.outcome in _OUTCOMES:
        reason = _reason(item)
        return f"{slug} {_OUTCOMES[item.outcome]}, so there is no steady call to explain{reason and f': {reason}'}."
    if why is None:
        note = str(item.why.get("note") or "").rstrip(".")
        said = f"could not be explained: {note}" if note else "has not been explained yet"
        return f"{slug} {said}{_WRONG if item.outcome == 'wrong' else ''}."
    parts = filter(None, (f"{slug} {mechanism(item, why, batch)}", copies(item), _gap(best, ratio)))
    return f"{'; '.join(parts)}{_WRONG if item.outcome == 'wrong' else ''}."


def _reason(item: Measurement) -> str:
    return item.error.message.rstrip(". ") if item.error is not None else ""


def _gap(best: Measurement | None, ratio: statistics.Ratio | None) -> str:
    if best is None or ratio is None:
        return ""
    if ratio.low <= 1 <= ratio.high:
        gap = f"that cannot be told apart from `{best.strategy}`"
    else:
        low, high = (text.factor(value).removesuffix(" ×") for value in (ratio.low, ratio.high))
        gap = f"that takes {text.factor(ratio.ratio)} [{low}, {high}] as long as `{best.strategy}`"
    why = known(best)
    runs = _count(why.kernel_count, "kernel") if why and why.kernel_count else _count(why.op_count, "op") if why else ""
    return f"{gap} with its {runs}" if runs else gap


def work(why: Why) -> str:
    """What runs in a call, as a noun: «one fusion of 3 ops, one pass over memory», «300 ops», «1 kernel»."""
    if why.loops is not None:
        return _program(why)
    return _count(why.op_count, "op") if why.op_count else _count(why.kernel_count, "kernel")


def mechanism(item: Measurement, why: Why, batch: int) -> str:
    """What takes the time of a call, as a predicate."""
    if not why.op_count and not why.kernel_count:
        slices = f", slice by slice for {batch} slices" if item.mapper == "numpy" and batch else ""
        return f"spends all of its time in Python and NumPy{slices}: no op of TensorFlow's runs"
    if why.fallbacks:
        ops = ", ".join(f"`{op}`" for op in why.fallbacks)
        then = _traces(why) if why.traces_per_call else _runs(why) if why.loops is None else _compiled(why)
        return f"falls back to a while loop for {ops}, which `tf.vectorized_map` cannot vectorise, and {then}"
    if why.traces_per_call:
        return _traces(why)
    if any(row.name in _PYTHON_OPS for row in why.ops):
        return _leaves_tensorflow(why)
    if any(_DATASET.search(row.name) for row in why.ops):
        return _pipeline(why, batch)
    if why.loops is not None:
        return _compiled(why)
    if item.mode == "eager":
        return _from_python(why)
    return _in_a_graph(item, why, batch)


def _traces(why: Why) -> str:
    functions = "a function" if why.traces_per_call == 1 else f"{why.traces_per_call} functions"
    return (
        f"traces {functions} anew in every call: {_watched_share(why.building_s, why)} of its time goes into "
        f"building graphs, and {_watched_share(_work_s(why), why)} into {work(why)}"
    )


def _leaves_tensorflow(why: Why) -> str:
    rows = [row for row in why.ops if row.name in _PYTHON_OPS]
    calls, seconds = sum(row.count for row in rows), sum(row.seconds for row in rows)
    times = "once" if calls == 1 else f"{calls:,} times"
    return (
        f"leaves TensorFlow {times} in a call, by `{rows[0].name}`: NumPy takes {_share(seconds, why)} of the time, "
        f"and the other {_count(why.op_count - calls, 'op')} and the way there and back the rest"
    )


def _pipeline(why: Why, batch: int) -> str:
    elements = f" and handing over {_count(batch, 'element')}" if batch else ""
    return (
        f"runs a `tf.data` pipeline: making it{elements} takes {_share(_whole_s(why) - _work_s(why), why)} of the "
        f"time, and {work(why)} the rest"
    )


def _from_python(why: Why) -> str:
    inside_s = _work_s(why)
    between_s = max(0.0, why.profiled_s - why.python_s - inside_s)
    mean = text.seconds(sum(row.seconds for row in why.ops) / why.op_count) if why.op_count else ""
    ops = f"{_count(why.op_count, 'op')} of {mean} each" if why.op_count > 1 else f"1 op of {mean}"
    if inside_s >= _MOST * why.profiled_s:
        return (
            f"spends {_watched_share(inside_s, why)} of its time in {_count(why.op_count, 'op')}, {_mostly(why)}"
            f"{_on_threads(why)}"
        )
    where = "between" if why.op_count > 1 else "around"
    return (
        f"spends {_watched_share(why.python_s, why)} of its time in Python, and {_watched_share(between_s, why)} in "
        f"starting ops, {where} {ops}"
    )


def _in_a_graph(item: Measurement, why: Why, batch: int) -> str:
    loops = why.graph is not None and any(row.name in _LOOPS for row in why.graph.by_op)
    if loops:
        return f"runs a while loop in its graph: {_runs(why, verb='')}"
    if item.mapper in ("loop", "loop_compiled") and why.graph is not None and batch > 1:
        return f"has {batch} unrolled copies of the function in a graph of {why.graph.nodes:,} nodes, and {_runs(why)}"
    return _runs(why)


def _runs(why: Why, verb: str = "runs ") -> str:
    """So many ops, how much of the time they take, and where the rest goes."""
    inside_s = _work_s(why)
    if not why.op_count or inside_s >= _MOST * _whole_s(why):
        share = f"{_share(inside_s, why)} of its time"
        if why.op_count == 1:
            return f"{verb}{work(why)}, {_mostly(why)}, which takes {share}{_on_threads(why)}"
        return f"{verb}{work(why)}, which take {share}, {_mostly(why)}{_on_threads(why)}"
    between = "scheduling them and calling the function" if why.op_count > 1 else "calling the function"
    mean = text.seconds(sum(row.seconds for row in why.ops) / why.op_count)
    each = f"of {mean} each" if why.op_count > 1 else f"of {mean}"
    return f"{verb}{work(why)} {each}, and spends {_share(_whole_s(why) - inside_s, why)} on {between}"


def _compiled(why: Why) -> str:
    outside = max(0.0, _whole_s(why) - why.in_kernels_s)
    loop = ", in a loop that XLA kept" if why.loops else ""
    if why.kernel_count and why.in_kernels_s < _MOST * _whole_s(why):
        cost = f"{_share(outside, why)} of its time is the fixed cost of a call"
    else:
        takes = "it takes" if why.kernel_count == 1 else "they take"
        cost = f"{takes} {_share(why.in_kernels_s, why)} of its time{_on_threads(why)}" if why.kernel_count else ""
    return ": ".join(filter(None, (f"runs {_program(why)}{loop}{_compiled_in(why)}", cost)))


def _compiled_in(why: Why) -> str:
    """What makes a program look quicker than it would be with values that come and go."""
    if not why.compiled_in:
        return ""
    inputs = "an input" if why.compiled_in == 1 else f"{why.compiled_in} inputs"
    return f", with the values of {inputs} compiled in, so that the program serves no others"


def _program(why: Why) -> str:
    """What XLA made of it: «one fusion of 3 ops, one pass over memory»."""
    others = sum(row.count for row in why.other_instructions)
    kinds = ", ".join(f"`{row.name}`" for row in why.other_instructions[:_MOST_KINDS])
    if why.fusion_count == 1 and not others and not why.loops:
        return f"one fusion of {_count(why.fused_ops, 'op')}{_fused(why)}, one pass over memory"
    parts = []
    if why.fusion_count:
        parts.append(f"{_count(why.fusion_count, 'fusion')} of {_count(why.fused_ops, 'op')}")
    if others:
        parts.append(f"{_count(others, 'further instruction' if parts else 'instruction')} ({kinds})")
    program = " and ".join(parts) or "a program without work of its own"
    return f"{program}, {_count(why.kernel_count, 'kernel')} a call" if why.kernel_count else program


def _fused(why: Why) -> str:
    """The kinds of what a fusion is of, those that occur most often first: « (`multiply`, `add`)»."""
    kinds = [f"`{kind}`" for kind, _ in Counter(why.fusions[0].ops if why.fusions else ()).most_common()]
    more = ", …" if len(kinds) > _MOST_KINDS else ""
    return f" ({', '.join(kinds[:_MOST_KINDS])}{more})" if kinds else ""


def _on_threads(why: Why) -> str:
    """For what is mostly work: how much of the machine does it."""
    if not why.threads:
        return ""
    if why.threads == 1 or why.cores is None:
        return f", on {_count(why.threads, 'thread')}"
    return f", on {why.threads} threads that keep {why.cores:.1f} cores busy"


def copies(item: Measurement) -> str:
    """«peaks at 2.00 × its output because `TensorListStack` copies it», where the memory says so."""
    memory = item.memory
    if memory is None or memory.output_bytes < _LEAST_BYTES or memory.peak_bytes < 1.4 * memory.output_bytes:
        return ""
    peak = f"it peaks at {text.factor(memory.peak_bytes / memory.output_bytes)} its output"
    holders = [(row.op.partition(" (")[0].rsplit("/", 1)[-1], row.bytes) for row in memory.at_peak]
    for name, size in holders:
        if _COPIES.search(name) and 0.9 <= size / memory.output_bytes <= 1.1:
            return f"{peak} because `{name}` copies it"
    if holders and holders[0][0]:
        return f"{peak}, of which `{holders[0][0]}` holds {text.size(holders[0][1])}"
    return peak


def _work_s(why: Why) -> float:
    return max(why.in_ops_s, why.in_kernels_s)


def _mostly(why: Why) -> str:
    rows = why.ops or why.kernels
    if not rows:
        return ""
    share = "most of it in " if len(rows) > 1 else "all of it in " if rows[0].count > 1 else ""
    return f"{share}`{rows[0].name}`"


def _whole_s(why: Why) -> float:
    """A call that nobody watched; where one that was watched took less, others were disturbed by something else."""
    return min(why.call_s, why.profiled_s)


def _share(part_s: float, why: Why) -> str:
    """Of a call that nobody watched: watching makes what is between ops longer, the ops themselves hardly."""
    return _percent(part_s, _whole_s(why))


def _watched_share(part_s: float, why: Why) -> str:
    """Of the call in which the part was seen, for what is between ops."""
    return _percent(part_s, why.profiled_s)


def _percent(part_s: float, whole_s: float) -> str:
    return text.percent(min(1.0, max(0.0, part_s / whole_s))) if whole_s else "–"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
