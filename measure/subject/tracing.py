"""TensorFlow while a strategy runs, in a process that is not timed: the events of its profiler, the functions that it
traces, ops that it cannot vectorise in them, and programs that XLA compiles; counted, never inferred from times.

The profiler writes an ``XSpace``: planes (the host, each device) of lines (threads of the host, streams of a device) of
events, which have statistics. Times of events are picoseconds from the start of their line.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from measure.run import slugs
from measure.subject.messages import Anew

# Events: a call of the strategy, and what XLA leaves once for each program that it compiles for a processor.
CALL, _COMPILED = "mapbench call", "CpuCompiler::RunBackend"
_PS_PER_NS = 1000
_LOOPS = ("While", "StatelessWhile")
NOTHING = Anew()


@dataclass(frozen=True)
class Event:
    """``line``: the number of its thread or stream in the whole profile, and ``line_name`` the name of that."""

    plane: str
    line: int
    line_name: str
    name: str
    start_ps: int
    duration_ps: int
    stats: Mapping[str, Any]

    @property
    def end_ps(self) -> int:
        return self.start_ps + self.duration_ps


@dataclass
class Profile:
    """The events of an ``XSpace``; there are none before the profiler has stopped."""

    space: Any = None

    def call(self) -> Any:
        """A context; what runs in it is a `CALL`."""
        import tensorflow as tf

        return tf.profiler.experimental.Trace(CALL)

    def events(self, wanted: Callable[[str, int], bool]) -> Iterator[Event]:
        """The events of which ``wanted(name, start_ps)`` is true; there can be a million."""
        lines = ((plane, line) for plane in self.space.planes for line in plane.lines)
        for number, (plane, line) in enumerate(lines):
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                start_ps = line.timestamp_ns * _PS_PER_NS + event.offset_ps
                if wanted(name, start_ps):
                    stats = {plane.stat_metadata[stat.metadata_id].name: _value(stat, plane) for stat in event.stats}
                    yield Event(plane.name, number, line.name, name, start_ps, event.duration_ps, stats)

    def quickest_call(self) -> Event:
        return min(self.events(lambda name, _: name == CALL), key=lambda call: call.duration_ps)


def _value(stat: Any, plane: Any) -> Any:
    """A text may be written in place, or be the key of a name that many events share."""
    kind = stat.WhichOneof("value")
    return plane.stat_metadata[stat.ref_value].name if kind == "ref_value" else getattr(stat, kind) if kind else None


@contextlib.contextmanager
def profiled(*, on_gpu: bool = False) -> Iterator[Profile]:
    """Watch the host without Python's own calls, and with ``on_gpu`` the kernels of GPUs."""
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    profile = Profile()
    options = tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=2, python_tracer_level=0, device_tracer_level=int(on_gpu)
    )
    with tempfile.TemporaryDirectory(prefix="mapbench-", ignore_cleanup_errors=True) as folder:
        tf.profiler.experimental.start(folder, options)
        try:
            yield profile
        finally:
            tf.profiler.experimental.stop()
        (file,) = Path(folder).rglob("*.xplane.pb")
        profile.space = XSpace.FromString(file.read_bytes())


# --- functions that are traced ----------------------------------------------------------------------------------------


@dataclass
class Traced:
    """The number of ``functions`` traced so far, and the ``fallbacks``: ops for which `tf.vectorized_map` fell back to
    a while loop in any of them, once each."""

    functions: int = 0
    fallbacks: list[str] = field(default_factory=list)


@contextlib.contextmanager
def traced() -> Iterator[Traced]:
    from tensorflow.python.framework import func_graph

    counted = Traced()
    original = func_graph.func_graph_from_py_func

    def watching(*args: Any, **kwargs: Any) -> Any:
        counted.functions += 1
        graph = original(*args, **kwargs)
        counted.fallbacks += [op for op in dict.fromkeys(_fallbacks(graph)) if op not in counted.fallbacks]
        return graph

    func_graph.func_graph_from_py_func = watching
    try:
        yield counted
    finally:
        func_graph.func_graph_from_py_func = original


def _fallbacks(graph: Any) -> Iterator[str]:
    """The ops of an element function that became a while loop over all elements in this graph.

    The graph tells it of every op, where TensorFlow warns of some only, and of none in a function that the element
    function calls: what the vectorisation makes of an op stands in the scope ``pfor`` and has a link to that op.
    """
    for op in graph.get_operations():
        converted = getattr(op, "_original_op", None)
        if op.type not in _LOOPS or converted is None or "/pfor/" not in op.name or converted.type in _LOOPS:
            continue
        # A TensorArray of the element function is converted by a loop over its items, each for all elements at once.
        if converted.type.startswith("TensorList") and "/map/" not in op.name:
            continue
        yield converted.type


def compiles_element(slug: str) -> bool:
    return slugs.options(slug).get("jit_compile") == "true"


def anew(call: Callable[[Any], Any], elems: Any) -> Anew:
    """Count what each call with new values traces, and what XLA compiles for a processor in it.

    Of two such calls the lesser count; the second is made only where the first counts something, since what happens
    once is no matter of values. Nothing is counted where the strategy fails with them: nobody asked it to take them.
    """
    try:
        first = _counted(call, _others(elems, 1))
        second = NOTHING if first == NOTHING else _counted(call, _others(elems, 2))
    except Exception:
        return NOTHING
    return Anew(min(first.traces, second.traces), min(first.compilations, second.compilations))


def _counted(call: Callable[[Any], Any], elems: Any) -> Anew:
    with traced() as traces, profiled() as profile:
        call(elems)
    return Anew(traces.functions, sum(1 for _ in profile.events(lambda name, _: name == _COMPILED)))


def _others(elems: Any, shift: int) -> Any:
    """The elements in another order, each floating-point number ``shift`` steps of its precision nearer to zero, so
    that it stays in any range that it was in; ragged ones as they are."""
    import tensorflow as tf

    def other(leaf: Any) -> Any:
        if isinstance(leaf, tf.RaggedTensor):
            return leaf
        values = np.roll(np.asarray(leaf), -shift, axis=0)
        for _ in range(shift if tf.as_dtype(leaf.dtype).is_floating else 0):
            values = np.nextafter(values, values.dtype.type(0))
        return values if isinstance(leaf, np.ndarray) else tf.constant(values)

    return tf.nest.map_structure(other, elems)
