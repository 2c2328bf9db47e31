"""Functions that TensorFlow traces, ops that it cannot vectorise in them, and programs that XLA compiles, counted while
something runs: never inferred from times."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from measure.run import slugs
from measure.subject.messages import Anew
from measure.subject.profiler import profiled

NOTHING = Anew(traces=0, compilations=0)

_LOOPS = ("While", "StatelessWhile")
# The event in a profile that XLA leaves once for each program that it compiles for a processor.
_COMPILED = "CpuCompiler::RunBackend"


@dataclass
class Traced:
    """The number of ``functions`` traced so far, and the ``fallbacks``: ops for which `tf.vectorized_map` fell back to
    a while loop in any of them, once each."""

    functions: int = 0
    fallbacks: list[str] = field(default_factory=list)


@contextlib.contextmanager
def traced() -> Iterator[Traced]:
    """Count the functions that are traced meanwhile."""
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
    """True if an option of the strategy has its element function compiled with XLA, whatever its mode."""
    return slugs.options(slug).get("jit_compile") == "true"


def anew(call: Callable[[Any], Any], elems: Any) -> Anew:
    """Count what each call with new values traces, and what XLA compiles for a processor in it.

    Of two such calls the lesser count; the second is made only where the first counts something, since what happens
    once is no matter of values. Nothing is counted where the strategy fails with them: nobody asked it to take them.
    """
    counted: list[Anew] = []
    with contextlib.suppress(Exception):
        for shift in (1, 2):
            with traced() as traces, profiled() as profile:
                call(_others(elems, shift))
            compiled = sum(1 for _ in profile.events(lambda name, _: name == _COMPILED))
            counted.append(Anew(traces.functions, compiled))
            if counted[-1] == NOTHING:
                return NOTHING
        return Anew(min(one.traces for one in counted), min(one.compilations for one in counted))
    return NOTHING


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
