"""Tracing: which functions TensorFlow traces while something runs, and what a strategy compiles by itself."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from measure.model import slugs


@dataclass
class Traced:
    """``names`` of all functions traced so far; ``graphs`` of those that were not traced for another one."""

    names: list[str] = field(default_factory=list)
    graphs: list[Any] = field(default_factory=list)


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
        if keep_graphs and depth == 0:
            collected.graphs.append(graph)
        return graph

    func_graph.func_graph_from_py_func = watching
    try:
        yield collected
    finally:
        func_graph.func_graph_from_py_func = original


def compiles_element(slug: str) -> bool:
    """True if an option of the strategy has its element function compiled with XLA, whatever its mode."""
    return slugs.options(slug).get("jit_compile") == "true"
