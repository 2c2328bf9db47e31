"""What calls with new values trace and compile anew: counted, never inferred from times."""

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from measure.subject import profiler
from measure.subject.messages import Anew
from measure.subject.traced import traced

# The span in a profile that XLA leaves once for each program that it compiles for a processor.
_COMPILED = "CpuCompiler::RunBackend"
NOTHING = Anew(traces=0, compilations=0)


def anew(call: Callable[[Any], Any], elems: Any, *, compiles: bool) -> Anew:
    """Count what each call with new values traces, and with ``compiles`` what XLA compiles for a processor in it.

    Of two such calls the lesser count; the second is made only where the first counts something, since what happens
    once is no matter of values. Nothing is counted where the strategy fails with them: nobody asked it to take them.
    """
    try:
        first = _counted(call, _others(elems, 1), compiles)
        if first == NOTHING:
            return NOTHING
        second = _counted(call, _others(elems, 2), compiles)
    except Exception:
        return NOTHING
    return Anew(min(first.traces, second.traces), min(first.compilations, second.compilations))


def _counted(call: Callable[[Any], Any], elems: Any, compiles: bool) -> Anew:
    with traced() as traces:
        compilations = 0
        if compiles:
            compilations = _compilations(lambda: call(elems))
        else:
            call(elems)
    return Anew(len(traces.names), compilations)


def _others(elems: Any, shift: int) -> Any:
    """The elements in another order, each floating-point number ``shift`` steps of its precision nearer to zero, so
    that it stays in any range that it was in."""
    import tensorflow as tf

    def rolled(leaf: Any) -> Any:
        join = np.concatenate if isinstance(leaf, np.ndarray) else tf.concat
        return join([leaf[shift:], leaf[:shift]], axis=0)

    def nearer(leaf: Any) -> Any:
        if not tf.as_dtype(leaf.dtype).is_floating:
            return leaf
        values = np.asarray(leaf)
        for _ in range(shift):
            values = np.nextafter(values, values.dtype.type(0))
        return values if isinstance(leaf, np.ndarray) else tf.constant(values)

    return tf.nest.map_structure(nearer, tf.nest.map_structure(rolled, elems), expand_composites=True)


def _compilations(call: Callable[[], Any]) -> int:
    with tempfile.TemporaryDirectory(prefix="mapbench-", ignore_cleanup_errors=True) as folder:
        profiler.start(folder)
        try:
            call()
        finally:
            profiler.stop()
        planes = profiler.space(folder).planes
    return sum(
        plane.event_metadata[event.metadata_id].name == _COMPILED
        for plane in planes
        for line in plane.lines
        for event in line.events
    )
