"""Tracing: which functions TensorFlow traces while something runs, what it cannot vectorise in them, and what a
strategy compiles by itself."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from measure.model import slugs

_LOOPS = ("While", "StatelessWhile")
_TOLD = re.compile(r"Using a while_loop for converting (\w+)|\b(\w+) uses a while_loop\b")


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
        collected.fallbacks += [op for op in _fallbacks(graph) if op not in collected.fallbacks]
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
    function calls: what the vectorisation makes of an op stands in the scope ``pfor`` and knows that op.
    """
    for op in graph.get_operations():
        converted = getattr(op, "_original_op", None)
        if op.type not in _LOOPS or converted is None or "/pfor/" not in op.name or converted.type in _LOOPS:
            continue
        # A TensorArray of the element function is converted by a loop over its items, each for all elements at once.
        if converted.type.startswith("TensorList") and "/map/" not in op.name:
            continue
        yield converted.type


def told_fallback(sentence: str) -> str:
    """Return the op of which TensorFlow says, in any of its wordings, that it falls back to a while loop; empty where
    the sentence is about something else.

    Source: ``python/ops/parallel_for/pfor.py``.
    """
    told = _TOLD.search(sentence)
    return (told[1] or told[2]) if told else ""


def compiles_element(slug: str) -> bool:
    """True if an option of the strategy has its element function compiled with XLA, whatever its mode."""
    return slugs.options(slug).get("jit_compile") == "true"
