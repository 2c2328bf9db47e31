"""What happened in a call, which is why a strategy is as fast as it is.

The figures are of a process that only explains (`measure.subject.explain`) and lie in a run's ``why``, whose keys are
those of `Why`; nothing else may be in it. `measure.judge.reasons` makes sentences of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from measure.judge import advice
from measure.model.run import Measurement
from measure.subject.profile import CONTAINERS, Share

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
    which are all other seconds. ``traces_first``: functions traced by the first call; ``traces_warm``: by the few that
    followed it before one was watched; ``traces_per_call``: by each that was watched, on average; ``tracing_count``: as
    ``experimental_get_tracing_count`` has it after all calls. ``building_s``: time of a call that building graphs took.
    ``in_ops_s``: how long at least one op ran on the host, ``in_kernels_s``: likewise one of XLA's or a GPU's kernels,
    ``in_streams_s``: one of a GPU's, whatever the host did meanwhile. ``python_s``: time that the calling thread spent
    outside of TensorFlow's runtime; ``waiting_s``: time that it waited for a GPU. ``op_threads``: threads of the host
    on which ops or kernels began; ``threads``: those that were busy in calls that nobody watched; ``cores``: their
    processor time over wall-clock time. ``loops``: while loops that XLA left; ``compiled_in``: inputs whose values are
    part of XLA's program, which serves no others; ``other_instructions``: those outside of fusions; ``of_element``:
    what XLA compiled is not the strategy but its element function, by itself. ``note``: why there are no figures.
    ``runtime_start_s``: what TensorFlow spent once in the first timed process; ``times_limit``: the latency over the
    limit's, and ``limit_note`` why it has no such multiple.
    A comparison knows these three without explaining anything.
    """

    call_s: _Seconds = 0.0
    profiled_s: _Seconds = 0.0
    traces_first: _Count = 0
    traces_warm: _Count = 0
    traces_per_call: Annotated[float, Meta(ge=0.0, le=1e9)] = 0.0
    tracing_count: _Count | None = None
    building_s: _Seconds = 0.0
    graph: Graph | None = None
    op_count: _Count = 0
    ops: Annotated[list[Ran], Meta(max_length=_MOST_ROWS)] = []
    in_ops_s: _Seconds = 0.0
    kernel_count: _Count = 0
    kernels: Annotated[list[Ran], Meta(max_length=_MOST_ROWS)] = []
    in_kernels_s: _Seconds = 0.0
    in_streams_s: _Seconds = 0.0
    python_s: _Seconds = 0.0
    waiting_s: _Seconds = 0.0
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
    of_element: bool = False
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


def op_rows(why: Why) -> list[Ran]:
    """The ops of a call that are no containers of others, which explanations of a former Mapbench still hold."""
    return [row for row in why.ops if row.name not in CONTAINERS]


def op_count(why: Why) -> int:
    """How many of them a call runs."""
    return max(0, why.op_count - sum(row.count for row in why.ops if row.name in CONTAINERS))


@dataclass(frozen=True)
class Spent:
    """Where the host's time in the watched call went, in seconds: parts that do not overlap. ``on_gpu_s`` is no part
    of them: a GPU's kernels run while the host does something else, or waits."""

    python_s: float
    building_s: float
    working_s: float
    waiting_s: float
    between_s: float
    on_gpu_s: float


def spent(why: Why) -> Spent:
    """How the call that was watched divides up; what is left over, ``between_s``, went into starting ops and
    scheduling them."""
    working_s = why.in_ops_s if why.in_streams_s else max(why.in_ops_s, why.in_kernels_s)
    known_s = why.python_s + why.building_s + working_s + why.waiting_s
    return Spent(
        python_s=why.python_s,
        building_s=why.building_s,
        working_s=working_s,
        waiting_s=why.waiting_s,
        between_s=max(0.0, why.profiled_s - known_s),
        on_gpu_s=why.in_streams_s,
    )
