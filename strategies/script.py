"""Puts the whole script of a strategy together from the sources of its workload and mapper.

The text is at once what a person copies and what a subject runs: a subject executes it under a module name other than
``__main__`` and takes ``elems``, ``strategy`` and, where there are any, ``variables`` from it.
"""

import ast
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import strategies
from strategies import chunks, loop, own_script
from strategies.conversions import converted, in_float64, is_ragged, result_converters, tensors
from strategies.layout import ScriptError, docstring, imports, join, keywords, pool, settings, signature, some_of
from strategies.spec import ELEMENT, Strategy
from workloads.case import Case
from workloads.sources import helpers_of, source_of
from workloads.spec import map_leaves

_DECORATORS = {"eager": "", "graph": "@tf.function\n", "xla": "@tf.function(jit_compile=True)\n"}

_MAIN = """\
if __name__ == "__main__":
    outputs = strategy(elems)
    for leaf in tf.nest.flatten(outputs):
        print(leaf.dtype.name, leaf.shape)
"""


def build(
    case: Case,
    strategy: Strategy | str,
    *,
    threads: int | None = None,
    memory_limit_mib: int | None = None,
    allocator: str = "pool",
) -> str:
    """Return the script that makes the inputs and maps the workload's function over them.

    It needs TensorFlow and NumPy. ``threads`` is the size of TensorFlow's pools of threads. ``allocator``: ``pool`` has
    freed memory stay in the process, ``default`` leaves it to TensorFlow and the C library. Raises `ScriptError` where
    two functions of it have the same name.
    """
    strategy = strategies.parse(strategy) if isinstance(strategy, str) else strategy
    mapper = strategies.mapper(strategy.mapper)
    arrays = mapper.arrays or mapper.element == "numpy_element"
    chosen = {**chunks.chosen(case, strategy, memory_limit_mib), **strategy.options}
    functions, data, blocks = _mapped(case, strategy, chosen)
    made, makers = _elements(case, arrays=mapper.arrays)
    if case.workload.variables:
        variables = _call(case, case.workload.variables)
        made.append(f"variables = {variables if arrays else f'tuple(map(tf.Variable, {variables}))'}")
    modules, lines = pool(case.device, arrays=arrays) if allocator == "pool" else ([], [])
    title = f"{mapper.title}, {strategy.mode} ({strategy.slug})"
    return join(
        docstring(case, title, case.device),
        imports(modules) if case.workload.own is None else own_script.imports(case, modules),
        settings(case.device, threads, lines),
        *_sources(case, [*makers, *functions]),
        "\n".join([*made, *data]),
        *blocks,
        _MAIN,
    )


def _elements(case: Case, *, arrays: bool = False) -> tuple[list[str], list[Callable[..., Any]]]:
    """The lines that make what is mapped over, tensors or ``arrays``, and the functions that they call beside the
    workload's."""
    if case.workload.own is not None:
        return own_script.data(case), []
    made = _call(case, case.workload.inputs)
    if arrays:
        return [f"elems = {made}"], []
    has_rows = is_ragged(case.call(case.workload.element_input))
    line = f"elems = tf.nest.map_structure({'tensors' if has_rows else 'tf.constant'}, {made})"
    return [line], [tensors] if has_rows else []


def _mapped(
    case: Case, strategy: Strategy, chosen: dict[str, Any], *, wide: bool = False
) -> tuple[list[Callable[..., Any]], list[str], list[str]]:
    """How elements are mapped with the chosen options: the functions that take part, the lines of further data, and the
    blocks that define ``strategy``. ``wide``: results are made float64."""
    mapper, workload = strategies.mapper(strategy.mapper), case.workload
    start = f"{_DECORATORS[strategy.mode]}def strategy(elems):\n"
    if mapper.apply is None:
        rewrite = workload.rewrites[str(mapper.rewrite)]
        further = [keywords({name: value}) for name, value in chosen.items()]
        return [rewrite], [], [f"{start}    return {_mapped_call(case, rewrite, 'elems', further)}"]
    output = case.call(workload.element_output)
    apply = mapper.apply_ragged if is_ragged(output) and mapper.apply_ragged else mapper.apply
    element = workload.element if mapper.element == "element" else workload.numpy_element
    if ELEMENT in chosen:
        element = workload.elements[chosen.pop(ELEMENT)]
    assert element is not None
    changes = result_converters(output) if mapper.element == "element" else []
    if wide:
        changes.insert(0, own_script.in_float64)
        output = map_leaves(lambda leaf: replace(leaf, dtype="float64") if "float" in leaf.dtype else leaf, output)
    decorator = _DECORATORS["graph"] if mapper.compiled else ""
    if chosen.pop("jit_compile", False):
        decorator = _DECORATORS["xla"]
    fn, data, blocks = element.__name__, [], []
    if decorator or workload.variables or case.keywords(element) or changes:
        fn = "fn" if workload.own is None else own_script.WRAPPER
        called = converted(_mapped_call(case, element, "x"), changes)
        blocks.append(f"{decorator}def {fn}(x):\n    return {called}")
    arguments = [fn, "elems"]
    if "signature" in inspect.signature(apply).parameters:
        data.append(signature(output))
        arguments.append("signature")
    if chosen:
        arguments.append(keywords(chosen))
    call, functions = f"{apply.__name__}({', '.join(arguments)})", [*changes, element, apply]
    if workload.use is None:
        blocks.append(f"{start}    return {call}")
    else:
        functions.append(workload.use)
        used = _mapped_call(case, workload.use, "mapped, elems")
        blocks.append(f"{start}    def mapped(elems):\n        return {call}\n\n    return {used}")
    return functions, data, blocks


def _sources(case: Case, functions: Iterable[Callable[..., Any]]) -> list[str]:
    """The sources of these functions, after that of what makes the data: the workload's, or a person's own code."""
    workload = case.workload
    if workload.own is None:
        makers = filter(None, (workload.inputs, workload.variables))
        return list(map(source_of, _with_helpers([*makers, *functions])))
    given = (workload.element, *workload.rewrites.values())
    further = _with_helpers(function for function in functions if function not in given)
    return [own_script.code(case), *map(source_of, (*own_script.HELPERS, *further))]


# --- right results ---------------------------------------------------------------------------------------------------


def build_reference(case: Case) -> str:
    """Return the script that computes the float64 reference.

    Executed, it has ``elems``, ``variables`` (but for a function of a person's own), ``reference_output`` (float64
    arrays), and ``compared``, the numbers of the elements that it computes, where these are not all. That of a workload
    with a ``reference`` or a rewrite ``numpy`` needs only NumPy (and ml_dtypes where the dtype is bfloat16).
    """
    if case.workload.own is not None:
        return _reference_of_own(case)
    right = case.workload.reference or case.workload.rewrites.get("numpy")
    return _reference_by_element(case) if right is None else _reference_in_numpy(case, right)


def compared(case: Case) -> int:
    """Return the number of elements whose results are compared: all, or `MOST_COMPARED` from the first to the last,
    where they are computed one after the other."""
    workload = case.workload
    if workload.own is not None:
        return own_script.compared(case)
    at_once = workload.reference or workload.use or "numpy" in workload.rewrites
    return case.batch if at_once else min(case.batch, own_script.MOST_COMPARED)


def _reference_in_numpy(case: Case, right: Callable[..., Any]) -> str:
    is_exact = right is case.workload.reference
    arguments = ["elems", "*variables"] if is_exact else ["in_float64(elems)", "*in_float64(variables)"]
    result = f"{right.__name__}({', '.join([*arguments, *_keyword_parts(case, right)])})"
    data = [
        f"elems = {_call(case, case.workload.inputs)}",
        f"variables = {_call(case, case.workload.variables) if case.workload.variables else '()'}",
        f"reference_output = {result if is_exact else f'in_float64({result}, integers=True)'}",
    ]
    sources = [*([] if is_exact else [source_of(in_float64)]), *_sources(case, [right])]
    return _reference_of(case, "import numpy as np", *sources, "\n".join(data))


def _reference_by_element(case: Case) -> str:
    """`tf.map_fn` of the element function, with elements, variables and results of float64; in a graph, which is ten
    times as fast for the many small ops of a gradient."""
    wide = replace(case, dtype="float64")
    functions, further, blocks = _mapped(wide, Strategy("map_fn", "graph"), {}, wide=True)
    made, makers = _elements(case)
    data = [*made, "elems = in_float64(elems)", *some_of(case.batch, compared(case))]
    if case.workload.variables:
        variables = f"in_float64(tf.nest.map_structure(tf.constant, {_call(case, case.workload.variables)}))"
        data.append(f"variables = tuple(map(tf.Variable, {variables}))")
    sources = _sources(case, [*makers, *functions])
    result = "tf.nest.map_structure(lambda leaf: np.asarray(leaf, np.float64), strategy(elems))"
    parts = ["\n".join([*data, *further]), *blocks, f"reference_output = {result}"]
    return _reference_of(case, imports([]), *sources, *parts)


def _reference_of(case: Case, modules: str, *blocks: str) -> str:
    narrow = "import ml_dtypes  # noqa: F401 - teaches NumPy bfloat16\n" if case.dtype == "bfloat16" else ""
    return join(docstring(case, "reference in float64"), f"{narrow}{modules}", "", *blocks)


def _reference_of_own(case: Case) -> str:
    result = case.call(case.workload.element_output)
    mapped = loop.map_ragged_with_loop if is_ragged(result) else own_script.slice_by_slice
    blocks = list(map(source_of, (*own_script.HELPERS, own_script.in_float64, mapped)))
    if changes := result_converters(result):
        called = converted(_mapped_call(case, case.workload.element, "x"), changes)
        blocks += [*map(source_of, changes), f"def {own_script.WRAPPER}(x):\n    return {called}"]
    data = "\n".join([*own_script.data(case), *own_script.reference(case)])
    return join(
        docstring(case, "the right results"), own_script.imports(case), "", own_script.code(case), *blocks, data
    )


def mapping(source: str) -> str:
    """Return the part of a script that maps: ``strategy``, after the functions that it calls, where these have a
    single statement; empty where a script has none."""
    functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    if "strategy" not in functions:
        return ""
    calls = [node.func for node in ast.walk(functions["strategy"]) if isinstance(node, ast.Call)]
    called = {function.id for function in calls if isinstance(function, ast.Name)}
    short = [node for name, node in functions.items() if name in called and len(node.body) == 1]
    lines, parts = source.splitlines(), []
    for node in (*short, functions["strategy"]):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        parts.append("\n".join(lines[first - 1 : node.end_lineno]))
    return "\n\n".join(parts)


# --- sources and calls -----------------------------------------------------------------------------------------------


def _call(case: Case, function: Callable[..., Any]) -> str:
    """The source of a call with everything that the function names."""
    return f"{function.__name__}({keywords(case.arguments(function))})"


def _mapped_call(case: Case, function: Callable[..., Any], arguments: str, further: Iterable[str] = ()) -> str:
    """The source of a call with tensors or arrays, then the variables, then keywords."""
    variables = ["*variables"] if case.workload.variables else []
    return f"{function.__name__}({', '.join([arguments, *variables, *_keyword_parts(case, function), *further])})"


def _keyword_parts(case: Case, function: Callable[..., Any]) -> list[str]:
    """The source of each keyword that a function that is handed tensors or arrays names after its ``*``."""
    return [keywords({name: value}) for name, value in case.keywords(function).items()]


def _with_helpers(chosen: Iterable[Callable[..., Any]]) -> list[Callable[..., Any]]:
    """The chosen functions, each after those of its file that it calls; each function once."""
    ordered: dict[str, Callable[..., Any]] = {}
    for function in (one for caller in chosen for one in (*helpers_of(caller), caller)):
        if ordered.setdefault(function.__name__, function) is not function:
            raise ScriptError(f"two functions of one script are named {function.__name__!r}: rename one of them")
    return list(ordered.values())
