"""The ``why`` of a measurement: what tells, beside its figures, why a strategy is as fast as it is.

The figures of a call are of a process that only explains (`measure.subject.explain`); `measure.judge.reasons` makes
sentences of them.
"""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

# What an explanation leaves beside its figures, under the names of its files.
ARTIFACTS = GRAPH, HLO, TRACE = "graph.txt", "hlo.txt", "trace.json.gz"
MOST_ARTIFACT_BYTES = 16 * 2**20
# The longest reason for having no figures, and the most rows of a table in an explanation.
MOST_NOTE, MOST_ROWS = 2_000, 60

_Name = Annotated[str, Meta(max_length=200)]
_Seconds = Annotated[float, Meta(ge=0.0, le=1e9)]
_Factor = Annotated[float, Meta(ge=0.0, le=1e24)]
_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Note = Annotated[str, Meta(max_length=MOST_NOTE)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what ``why`` is made of."""


class Ran(_Part, frozen=True, kw_only=True):
    """An op, a kernel, a node or an instruction: how often it occurs, and for how many seconds it ran in all."""

    name: _Name
    count: _Count
    seconds: _Seconds = 0.0


class Graph(_Part, frozen=True, kw_only=True):
    """The traced graph: ``nodes`` in all, of which ``top_nodes`` are not in a library function."""

    nodes: _Count
    top_nodes: _Count
    functions: _Count
    by_op: Annotated[list[Ran], Meta(max_length=MOST_ROWS)] = []


class Fusion(_Part, frozen=True, kw_only=True):
    """Instructions that XLA made one kernel of: their opcodes."""

    name: _Name
    ops: Annotated[tuple[_Name, ...], Meta(max_length=100)] = ()


class Why(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of one steady call, which only an `Explained` strategy has, and the three last fields, which a
    comparison knows without explaining anything. What is not known is not in the file: some of earlier versions lack
    what is UNSET by default, and are written without it. All seconds but ``call_s`` are of the call that was traced."""

    call_s: _Seconds = 0.0  # median of calls that nobody watched, in the same process
    profiled_s: _Seconds = 0.0
    traces_first: _Count = 0  # functions traced before the calls that were watched
    traces_warm: _Count | UnsetType = UNSET  # of earlier versions
    traces_per_call: Annotated[float, Meta(ge=0.0, le=1e9)] = 0.0  # by the calls that were watched, on average
    tracing_count: _Count | None = None  # of earlier versions
    building_s: _Seconds = 0.0  # in which graphs were built
    graph: Graph | None = None
    op_count: _Count = 0
    ops: Annotated[list[Ran], Meta(max_length=MOST_ROWS)] = []
    in_ops_s: _Seconds = 0.0  # in which at least one op ran on the host
    kernel_count: _Count = 0
    kernels: Annotated[list[Ran], Meta(max_length=MOST_ROWS)] = []
    in_kernels_s: _Seconds = 0.0  # likewise one of XLA's or a GPU's kernels
    in_streams_s: _Seconds | UnsetType = UNSET  # one of a GPU's, whatever the host did meanwhile
    python_s: _Seconds = 0.0  # that the calling thread spent outside of TensorFlow's runtime
    waiting_s: _Seconds | UnsetType = UNSET  # that it waited for a GPU
    op_threads: _Count = 0  # this and the next two: of earlier versions
    threads: _Count | None = None
    cores: Annotated[float, Meta(ge=0.0, le=1e6)] | None = None
    fallbacks: Annotated[list[_Name], Meta(max_length=MOST_ROWS)] = []
    loops: _Count | None = None  # of XLA's program, None where there is none
    compiled_in: _Count | UnsetType = UNSET  # of earlier versions
    fusion_count: _Count = 0  # of XLA's program
    fused_ops: _Count = 0  # this and the next two: of earlier versions
    fusions: Annotated[list[Fusion], Meta(max_length=MOST_ROWS)] = []
    other_instructions: Annotated[list[Ran], Meta(max_length=MOST_ROWS)] = []
    of_element: bool | UnsetType = UNSET  # XLA compiles the element function by itself
    note: _Note = ""  # why there are no figures
    runtime_start_s: _Seconds | UnsetType | None = UNSET  # what TensorFlow spent once in the first timed process
    times_limit: _Factor | UnsetType | None = UNSET  # the latency over the limit's
    limit_note: _Note | UnsetType = UNSET  # why it has no such multiple


class Explained(Why, frozen=True, kw_only=True, omit_defaults=False):
    """The ``why`` of a strategy that somebody wanted explained, whether that gave figures or a ``note``: all of its
    fields are in the file."""

    traces_warm: _Count | UnsetType = 0
    in_streams_s: _Seconds | UnsetType = 0.0
    waiting_s: _Seconds | UnsetType = 0.0
    compiled_in: _Count | UnsetType = 0
    of_element: bool | UnsetType = False
    runtime_start_s: _Seconds | UnsetType | None = None
    times_limit: _Factor | UnsetType | None = None
    limit_note: _Note | UnsetType = ""

    def beside(self, why: Why) -> "Explained":
        """This explanation with what the comparison had before."""
        names = ("runtime_start_s", "times_limit", "limit_note")
        return replace(self, **{name: value for name in names if (value := getattr(why, name)) is not UNSET})


def explained(why: Why) -> Explained | None:
    return why if isinstance(why, Explained) and why.profiled_s > 0 else None


def artifacts(folder: Path) -> dict[str, bytes]:
    """The files that a subject has left in its folder, by name, but for those that are too large."""
    files = [path for path in folder.iterdir() if path.name in ARTIFACTS]
    return {path.name: path.read_bytes() for path in files if path.stat().st_size <= MOST_ARTIFACT_BYTES}


def shares(why: Why) -> dict[str, float]:
    """Return the shares of the call that was watched: what the host spent in ops or kernels, in dispatch (starting ops
    and scheduling them), in Python, in building graphs, and in waiting for a GPU. They do not overlap, and their sum is
    1. Watching makes what is between ops longer, so that the share of ops is a little low where there are many."""
    if not why.profiled_s:
        return {}
    ops_s = why.in_ops_s if why.in_streams_s else max(why.in_ops_s, why.in_kernels_s)
    in_ops = min(1.0, ops_s / why.profiled_s)
    others = {
        "in Python": why.python_s,
        "in building graphs": why.building_s,
        "in waiting for the GPU": why.waiting_s or 0.0,
    }
    others["in dispatch"] = max(0.0, why.profiled_s - ops_s - sum(others.values()))
    others_s = sum(others.values()) or 1.0
    return {"in ops": in_ops} | {name: (1.0 - in_ops) * part_s / others_s for name, part_s in others.items()}
