"""Functions that TensorFlow traces, ops that it cannot vectorise in them, and programs that XLA compiles, counted while
something runs: never inferred from times."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from measure.model import slugs
from measure.subject.messages import Anew
from measure.subject.profiler import profiled

NOTHING = Anew(traces=0, compilations=0)

_LOOPS = ("While", "StatelessWhile")
# The event in a profile that XLA leaves once for each program that it compiles for a processor.
_COMPILED = "CpuCompiler::RunBackend"


@dataclass
class Traced:
    """``names`` of all functions traced so far; ``graphs`` of those that were not traced for another one;
    ``fallbacks``: ops for which `tf.vectorized_map` fell back to a while loop in any of them, once each."""

    names: list[str] = field(default_factory=list)
    graphs: list[Any] = field(default_factory=list)
    fallbacks: list[str] = field(default_factory=list)


@contextlib.contextmanager
def traced(*, keep_graphs: bool = False) -> Iterator[Traced]:
    """Collect the functions that are traced meanwhile; their graphs only if asked, for they stay alive then."""
    from tensorflow.python.framework import func_graph

    collected = Traced()
    depth = 0
    original = func_graph.func_graph_from_py_func

    def watching(name: str, *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        collected.names.append(name)
        depth += 1
        try:
            graph = original(name, *args, **kwargs)
        finally:
            depth -= 1
        collected.fallbacks += [op for op in dict.fromkeys(_fallbacks(graph)) if op not in collected.fallbacks]
        if keep_graphs and depth == 0:
            collected.graphs.append(graph)
        return graph

    func_graph.func_graph_from_py_func = watching
    try:
        yield collected
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
    """True if an option of the strategy has its element function compiled with XLA, whatever its mode."""
    return slugs.options(slug).get("jit_compile") == "true"


# --- calls with new values -------------------------------------------------------------------------------------------


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
        if not compiles:
            call(elems)
            return Anew(len(traces.names), 0)
        with profiled() as profile:
            call(elems)
    return Anew(len(traces.names), sum(1 for _ in profile.events(lambda name, _: name == _COMPILED)))


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
