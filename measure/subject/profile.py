"""A profile: which ops and kernels ran in a call, how often and how long. Pure.

On the host plane of a trace a line is a thread. The executor traces an op as ``name:Type``, eager execution as
``EagerLocalExecute: Type`` around the kernel's run, and XLA each kernel with the statistic ``hlo_op``; on a GPU's plane
a line of the device is a stream of kernels.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from measure.model.why import CONTAINERS
from measure.subject.trace import Span, Trace

_PS_PER_S = 1e12

# By which a call that is watched waits for its device: no op of the strategy's.
_WAITING = "SyncDevice"
_TYPE = re.compile(r"_?[A-Z]\w*")
_EAGER = "EagerLocalExecute: "
_EAGER_RUN = "KernelAndDeviceFunc::Run"
_ASYNC = "ExecutorState::ProcessAsync::Start"
# What a GPU does beside kernels.
_TRANSFERS = ("Memcpy", "Memset")
_BUILDING = "tf.function-graph_building"


@dataclass(frozen=True)
class Share:
    """The count and the total time of what ran under one name in the call."""

    name: str
    count: int
    seconds: float


@dataclass(frozen=True)
class Profile:
    """One call in figures. ``ops`` are without those that only run others. ``in_ops_s``: how long at least one op ran;
    ``in_kernels_s`` likewise, ``in_streams_s`` of kernels on a GPU alone. ``runtime_s``: how long the calling thread
    was inside TensorFlow's runtime, of which it waited ``waiting_s`` for a GPU; ``building_s``: how long it built
    graphs."""

    call_s: float
    ops: tuple[Share, ...]
    in_ops_s: float
    kernels: tuple[Share, ...]
    in_kernels_s: float
    in_streams_s: float
    runtime_s: float
    waiting_s: float
    building_s: float
    threads: int

    @property
    def python_s(self) -> float:
        return max(0.0, self.call_s - self.runtime_s - self.building_s)


def profile(trace: Trace) -> Profile:
    """The figures of the call: what ran in it, how often and how long."""
    ops: list[Span] = []
    waits: list[Span] = []
    kernels: list[Span] = []
    for _, own in _by_thread(trace.spans):
        for span in _ops(own):
            if span.name not in CONTAINERS:
                (waits if span.name == _WAITING else ops).append(span)
        kernels += _leaves(span for span in own if _is_kernel(span, trace.threads[span.thread].plane))
    on_devices = [
        span
        for span in trace.spans
        if trace.threads[span.thread].plane.startswith("/device:GPU")
        and trace.threads[span.thread].name.startswith("Stream")
        and not span.name.startswith(_TRANSFERS)
    ]
    kernels += on_devices
    calling = [span for span in trace.spans if span.thread == trace.calling_thread]
    runtime = [span for span in calling if span.name.startswith(("TFE_", "Eager"))]
    building = [span for span in calling if span.name == _BUILDING]
    runtime_s = union_s([*runtime, *building])
    building_s = union_s(building)
    return Profile(
        call_s=(trace.end_ps - trace.start_ps) / _PS_PER_S,
        ops=_shares(ops),
        in_ops_s=union_s(ops),
        kernels=_shares(kernels),
        in_kernels_s=union_s(kernels),
        in_streams_s=union_s(on_devices),
        runtime_s=runtime_s - building_s,
        waiting_s=union_s(waits),
        building_s=building_s,
        threads=len({span.thread for span in (*ops, *kernels)} - {span.thread for span in on_devices}),
    )


def union_s(spans: Iterable[Span]) -> float:
    """The seconds during which at least one of the spans lasted."""
    total = reached = 0
    for start, end in sorted((span.start_ps, span.end_ps) for span in spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total / _PS_PER_S


def _by_thread(spans: Iterable[Span]) -> Iterator[tuple[int, list[Span]]]:
    """The spans of each thread, what encloses others before them."""
    by_thread: dict[int, list[Span]] = {}
    for span in spans:
        by_thread.setdefault(span.thread, []).append(span)
    for thread, own in by_thread.items():
        yield thread, sorted(own, key=lambda span: (span.start_ps, -span.duration_ps))


def _ops(own: list[Span]) -> list[Span]:
    """The ops that ran on a thread, each named by its type; an eager op lasts as long as its kernel's run."""
    ops: list[Span] = []
    open_eager: list[tuple[Span, int]] = []  # the span, and where its op is in `ops`
    for span in own:
        while open_eager and open_eager[-1][0].end_ps <= span.start_ps:
            open_eager.pop()
        if span.name.startswith(_EAGER):
            kind = span.name.removeprefix(_EAGER)
            if _TYPE.fullmatch(kind):  # others are functions, whose ops are traced by themselves
                open_eager.append((span, len(ops)))
                ops.append(_named(span, kind))
        elif span.name == _EAGER_RUN and open_eager:
            eager, place = open_eager.pop()
            ops[place] = _named(span, eager.name.removeprefix(_EAGER))
        elif span.name == _ASYNC and span.stats.get("kernel_type"):
            ops.append(_named(span, str(span.stats["kernel_type"])))
        else:
            name, _, kind = span.name.rpartition(":")
            if name and not name.endswith(":") and " " not in name and _TYPE.fullmatch(kind):
                ops.append(_named(span, kind))
    return ops


def _named(span: Span, name: str) -> Span:
    return Span(span.thread, name.lstrip("_"), span.start_ps, span.duration_ps, {})


def _is_kernel(span: Span, plane: str) -> bool:
    return "hlo_op" in span.stats and not plane.startswith("/device:")


def _leaves(own: Iterable[Span]) -> list[Span]:
    """The spans of one thread that enclose no other: a loop is not a kernel beside those of its body."""
    leaves: list[Span] = []
    for span in own:
        while leaves and leaves[-1].start_ps <= span.start_ps and span.end_ps <= leaves[-1].end_ps:
            leaves.pop()
        leaves.append(span)
    return leaves


def _shares(spans: Iterable[Span]) -> tuple[Share, ...]:
    sums: dict[str, tuple[int, int]] = {}
    for span in spans:
        count, duration_ps = sums.get(span.name, (0, 0))
        sums[span.name] = count + 1, duration_ps + span.duration_ps
    shares = [Share(name, count, duration_ps / _PS_PER_S) for name, (count, duration_ps) in sums.items()]
    return tuple(sorted(shares, key=lambda share: (-share.seconds, -share.count, share.name)))
