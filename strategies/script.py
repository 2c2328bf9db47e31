"""Puts the whole script of a strategy together from the sources of its workload and mapper.

The text is at once what a person copies and what a subject runs: a subject executes it under a module name other than
``__main__`` and takes ``elems``, ``strategy`` and, where there are any, ``variables`` from it.
"""

import ast
import builtins
import dis
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

import strategies
from strategies import chunks, loop, own_script
from strategies.conversions import converted, in_float64, is_ragged, result_converters, tensors
from strategies.layout import ScriptError, docstring, imports, join, keywords, layout, pool, settings, tensor_spec
from strategies.spec import ELEMENT, Mapper, Strategy
from workloads.case import Case
from workloads.spec import Workload

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
    the sources do not fit together or use what the script does not have.
    """
    strategy = strategies.parse(strategy) if isinstance(strategy, str) else strategy
    mapper, workload = strategies.mapper(strategy.mapper), case.workload
    if lacking := strategies.missing(mapper, workload, strategy.element):
        raise ScriptError(f"{mapper.slug} needs {lacking}, which {workload.slug} does not have")

    arrays = mapper.arrays or mapper.element == "numpy_element"
    converters: list[Callable[..., Any]] = []
    if workload.own is not None:
        data = own_script.data(case)
    else:
        made, ragged = _call(case, workload.inputs), is_ragged(case.call(workload.element_input))
        converters += [tensors] if ragged and not mapper.arrays else []
        as_tensors = f"tf.nest.map_structure({'tensors' if ragged else 'tf.constant'}, {made})"
        data = [layout(f"elems = {made if mapper.arrays else as_tensors}")]
    if workload.variables:
        made = _call(case, workload.variables)
        data.append(layout(f"variables = {made if arrays else f'tuple(map(tf.Variable, {made}))'}"))
    blocks: list[str] = []
    chosen = {**chunks.chosen(case, strategy, memory_limit_mib), **strategy.options}
    output = case.call(workload.element_output)
    apply = mapper.apply_ragged if is_ragged(output) and mapper.apply_ragged else mapper.apply
    if apply is None:
        used = [workload.rewrites[str(mapper.rewrite)]]
        further = [keywords({name: value}) for name, value in chosen.items()]
        body = layout(f"return {_mapped_call(case, used[0], 'elems', further)}", 4)
    else:
        element = _element(workload, mapper, chosen.pop(ELEMENT, None))
        used = [element, apply]
        decorator = _decorator(mapper, bool(chosen.pop("jit_compile", False)))
        fn, changes = element.__name__, result_converters(output) if mapper.element == "element" else []
        if decorator or workload.variables or case.keywords(element) or changes:
            inner = layout(f"return {converted(_mapped_call(case, element, 'x'), changes)}", 4)
            converters += changes
            fn = "fn" if workload.own is None else own_script.WRAPPER
            blocks.append(f"{decorator}def {fn}(x):\n{inner}")
        arguments = [fn, "elems"]
        if "signature" in inspect.signature(apply).parameters:
            data.append(layout(f"signature = {tensor_spec(output)}"))
            arguments.append("signature")
        if chosen:
            arguments.append(keywords(chosen))
        call = f"{apply.__name__}({', '.join(arguments)})"
        if workload.use is None:
            body = layout(f"return {call}", 4)
        else:
            used.append(workload.use)
            inner = layout(f"return {call}", 8)
            body = f"    def mapped(elems):\n{inner}\n\n    return {_mapped_call(case, workload.use, 'mapped, elems')}"
    blocks.append(f"{_DECORATORS[strategy.mode]}def strategy(elems):\n{body}")

    head = docstring(case, f"{mapper.title}, {strategy.mode} ({strategy.slug})", case.device)
    modules, lines = pool(case.device, arrays=arrays) if allocator == "pool" else ([], [])
    set_up, rest = settings(case.device, threads, lines), ("\n".join(data), *blocks, _MAIN)
    if workload.own is not None:
        sources = [own_script.code(case), *map(_source, own_script.HELPERS)]
        sources += map(_source, _with_helpers([*converters, *([apply] if apply else [])], mapper.helpers))
        return join(head, own_script.imports(case, modules), set_up, *sources, *rest)
    used = [*_makers(workload), *converters, *used]
    sources = list(map(_source, _with_helpers(used, [*workload.helpers, *mapper.helpers])))
    script = join(head, imports(modules), set_up, *sources, *rest)
    _check_names(script, f"script of {workload.slug}", "np, tf")
    return script


def _element(workload: Workload, mapper: Mapper, name: str | None) -> Callable[..., Any]:
    """The element function that is mapped: the further one of that name, or the one that the mapper maps."""
    element = workload.element if mapper.element == "element" else workload.numpy_element
    element = element if name is None else workload.elements[name]
    assert element is not None
    return element


def _decorator(mapper: Mapper, jit_compile: bool) -> str:
    """The decorator of an element function that is a ``tf.function`` of its own; empty for any other."""
    if jit_compile:
        return _DECORATORS["xla"]
    return _DECORATORS["graph"] if mapper.compiled else ""


def mapping(source: str) -> str:
    """Return the part of a script that maps: ``strategy``, after the functions that it calls, where these have a
    single statement; empty where a script has none."""
    functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    if "strategy" not in functions:
        return ""
    called = {node.func.id for node in ast.walk(functions["strategy"])
              if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}  # fmt: skip
    short = [node for name, node in functions.items() if name in called and len(node.body) == 1]
    lines = source.splitlines()
    starts = [min([node.lineno, *(part.lineno for part in node.decorator_list)]) for node in functions.values()]
    first = dict(zip(functions, starts, strict=True))
    parts = [lines[first[node.name] - 1 : node.end_lineno] for node in (*short, functions["strategy"])]
    return "\n\n".join("\n".join(part) for part in parts)


def build_reference(case: Case) -> str:
    """Return the script that computes the float64 reference.

    That of a function of a person's own runs their code. Any other needs only NumPy (and ml_dtypes where the dtype is
    bfloat16). Executed, it has ``elems`` and ``variables`` (NumPy arrays) and ``reference_output`` (float64 arrays).
    """
    workload = case.workload
    if workload.own is not None:
        result = case.call(workload.element_output)
        mapped = loop.map_ragged_with_loop if is_ragged(result) else own_script.slice_by_slice
        sources = list(map(_source, (*own_script.HELPERS, own_script.in_float64, mapped)))
        if changes := result_converters(result):
            inner = layout(f"return {converted(_mapped_call(case, workload.element, 'x'), changes)}", 4)
            sources += [*map(_source, changes), f"def {own_script.WRAPPER}(x):\n{inner}"]
        data = [*own_script.data(case), *own_script.reference(case)]
        head = docstring(case, "the right results")
        return join(head, own_script.imports(case), "", own_script.code(case), *sources, "\n".join(data))
    modules = "import numpy as np"
    if case.dtype == "bfloat16":
        modules = f"import ml_dtypes  # noqa: F401 - teaches NumPy bfloat16\n{modules}"
    right = workload.reference or workload.rewrites["numpy"]
    in_parts = ("{}", "*{}") if workload.reference else ("in_float64({})", "*in_float64({})")
    arguments = [part.format(name) for part, name in zip(in_parts, ("elems", "variables"), strict=True)]
    result = f"{right.__name__}({', '.join([*arguments, *_keyword_parts(case, right)])})"
    data = [
        layout(f"elems = {_call(case, workload.inputs)}"),
        layout(f"variables = {_call(case, workload.variables) if workload.variables else '()'}"),
        layout(f"reference_output = {result if workload.reference else f'in_float64({result}, integers=True)'}"),
    ]
    script = join(
        docstring(case, "reference in float64"),
        modules,
        "",
        *map(_source, [] if workload.reference else [in_float64]),
        *map(_source, _with_helpers([*_makers(workload), right], workload.helpers)),
        "\n".join(data),
    )
    _check_names(script, f"reference of {workload.slug}", "np")
    return script


def _makers(workload: Workload) -> list[Callable[..., Any]]:
    """The functions that make the data: inputs, and variables where there are any."""
    return [workload.inputs, *([workload.variables] if workload.variables else [])]


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


@functools.cache
def _source(function: Callable[..., Any]) -> str:
    return textwrap.dedent(inspect.getsource(function))


def _with_helpers(
    chosen: Iterable[Callable[..., Any]], helpers: Iterable[Callable[..., Any]]
) -> list[Callable[..., Any]]:
    """The chosen functions after those helpers that they, or their helpers, use; each function once."""
    by_name: dict[str, Callable[..., Any]] = {}
    for function in (*helpers, *chosen):
        if by_name.setdefault(function.__name__, function) != function:
            raise ScriptError(f"two functions of one script are named {function.__name__!r}: rename one of them")
    ordered: dict[str, Callable[..., Any]] = {}

    def add(function: Callable[..., Any], above: tuple[str, ...]) -> None:
        if function.__name__ in ordered or function.__name__ in above:
            return
        used = globals_of(compile(_source(function), "<source>", "exec"))
        # In their own order, not that of a set, which is another one in each process: a script is known by its digest.
        for name in [helper.__name__ for helper in helpers if helper.__name__ in used]:
            add(by_name[name], (*above, function.__name__))
        ordered[function.__name__] = function

    for function in chosen:
        add(function, ())
    return list(ordered.values())


def _codes(code: CodeType) -> Iterable[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def globals_of(code: CodeType) -> set[str]:
    """Names that the code, or code nested in it, looks up outside of functions and does not bind itself."""
    names: set[str] = set()
    for part in _codes(code):
        steps = [(step.opname, step.argval) for step in dis.get_instructions(part)]
        loaded = {name for operation, name in steps if operation in ("LOAD_GLOBAL", "LOAD_NAME")}
        names |= loaded - {name for operation, name in steps if operation == "STORE_NAME"}
    return names


def _check_names(script: str, name: str, modules: str) -> None:
    code = compile(script, f"<{name}>", "exec")
    bound = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_NAME"}
    missing = sorted(globals_of(code) - bound - set(vars(builtins)) - {"__name__"})
    if missing:
        raise ScriptError(
            f"the {name} would use {', '.join(missing)}, which it does not have: "
            f"its functions may use {modules}, their arguments and the functions listed as helpers"
        )
