"""Puts the whole script of a strategy together from the sources of its workload and mapper, or a person's own code.

The text is at once what a person copies and what a subject runs: a subject executes it under a module name other than
``__main__`` and takes ``elems``, ``strategy`` and, where there are any, ``variables`` from it.
"""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import strategies
from strategies import chunks, conversions, own_script
from strategies.conversions import is_ragged, tensors
from strategies.own_script import ScriptError
from strategies.spec import CHUNK, ELEMENT, Strategy
from workloads.case import Case
from workloads.functions import has_named
from workloads.sources import bound_by, globals_of, helpers_of, source_of
from workloads.spec import Leaf, leaves, map_leaves, type_nest

Function = Callable[..., Any]

# Of so many elements at most right results are computed, one after the other: those of 100,000 take minutes.
MOST_COMPARED = 1_000
# Inputs and imports, which the part of a script that maps leaves out.
_GIVEN = frozenset({"np", "tf", "elems", "variables"})
# Characters of a statement there: user code may hold a pickled function of some MiB.
_MOST_SHOWN = 10_000
_WIDTH = 120
_REFERENCE = "reference in float64"
_DECORATORS = {"eager": "", "graph": "@tf.function\n", "xla": "@tf.function(jit_compile=True)\n"}
_FUTURE = re.compile(r"^from __future__ import .+$", re.MULTILINE)
_MAIN = """\
if __name__ == "__main__":
    outputs = strategy(elems)
    for leaf in tf.nest.flatten(outputs):
        print(leaf.dtype.name, leaf.shape)
"""
# Freed memory stays in the process, so that no call takes page faults for its outputs.
_TENSORS_STAY = 'os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"  # before the first op: freed tensors stay in a pool'
_ARRAYS_STAY = (
    'if sys.platform == "linux":  # freed arrays too: M_MMAP_MAX and M_TRIM_THRESHOLD of malloc.h',
    "    ctypes.CDLL(None).mallopt(-4, 0)",
    "    ctypes.CDLL(None).mallopt(-1, -1)",
)


def build(
    case: Case, slug: str, *, threads: int | None = None, memory_limit_mib: int | None = None, allocator: str = "pool"
) -> str:
    """Return the script that makes the inputs and maps the workload's function over them. ``threads`` is the size of
    TensorFlow's pools of threads. ``allocator``: ``pool`` has freed memory stay in the process, ``default`` leaves it
    to TensorFlow and the C library. Raises `ScriptError` where two functions of it have the same name."""
    strategy = strategies.parse(slug)
    mapper, script = strategies.mapper(strategy.mapper), _Script(case)
    arrays = mapper.arrays or mapper.element == "numpy_element"
    kind, _, index = case.device.partition(":")
    if kind == "GPU":  # its memory is in a pool anyway
        script.settings.append(f'tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[{index}], "GPU")')
    else:
        if allocator == "pool":
            script.modules = ["ctypes", "os", "sys"] if arrays else ["os"]
            script.settings += [_TENSORS_STAY, *(_ARRAYS_STAY if arrays else ())]
        script.settings.append('tf.config.set_visible_devices([], "GPU")')
    for pool in () if threads is None else ("intra", "inter"):
        script.settings.append(f"tf.config.threading.set_{pool}_op_parallelism_threads({threads})")
    script.add_elements(arrays=mapper.arrays)
    if case.workload.variables:
        variables = _call(case, case.workload.variables)
        script.data.append(f"variables = {variables if arrays else f'tuple(map(tf.Variable, {variables}))'}")
    script.add_mapping(case, strategy, memory_limit_mib)
    script.blocks.append(_MAIN)
    return script.text(f"{mapper.title}, {strategy.mode} ({strategy.slug})", case.device)


def build_reference(case: Case) -> str:
    """Return the script that computes the float64 reference. Executed, it has ``elems``, ``variables`` where there are
    any, ``reference_output``, and ``compared``, the numbers of the elements that it computes, where these are not all.
    That of a workload with a ``reference`` or a rewrite ``numpy`` needs no TensorFlow."""
    workload, own, script = case.workload, case.workload.own, _Script(case)
    if own is not None:
        how = own_script.facts(case).reference
    else:
        how = "numpy" if workload.reference or "numpy" in workload.rewrites else "float64"
    script.add_elements(arrays=how == "numpy")
    if how == "numpy":
        script.add_reference_in_numpy()
        return script.text(_REFERENCE)
    if how == "given":
        arrays = "tf.nest.map_structure(lambda leaf: leaf.numpy(), elems)"
        script.data.append(f"reference_output = {own.reference}({arrays})")
        return script.text(_REFERENCE)
    if how == "float64":
        script.data.append("elems = in_float64(elems)")
    if (number := compared(case)) < case.batch:
        script.data.append(f"compared = np.linspace(0, {case.batch - 1}, {number}).round().astype(int)")
        script.data.append("elems = tf.nest.map_structure(lambda leaf: tf.gather(leaf, compared), elems)")
    script.functions.append(own_script.in_float64)
    if workload.variables:
        variables = f"in_float64(tf.nest.map_structure(tf.constant, {_call(case, workload.variables)}))"
        script.data.append(f"variables = tuple(map(tf.Variable, {variables}))")
    if own is None:  # a graph is ten times as fast for the many small ops of a gradient
        script.add_mapping(replace(case, dtype="float64"), Strategy("map_fn", "graph"), wide=True)
        result = "tf.nest.map_structure(lambda leaf: np.asarray(leaf, np.float64), strategy(elems))"
    else:  # a person's own function may be none that can be traced
        script.add_mapping(case, Strategy("loop", "eager"))
        result = "in_float64(strategy(elems))"
    script.blocks.append(f"reference_output = {result}")
    return script.text(_REFERENCE)


def compared(case: Case) -> int:
    """Return the number of elements whose results are compared: all, or `MOST_COMPARED` from the first to the last,
    where they are computed one after the other."""
    workload = case.workload
    if workload.own is not None:
        at_once = own_script.facts(case).reference == "given" or is_ragged(case.call(workload.element_output))
    else:
        at_once = bool(workload.reference or workload.use or "numpy" in workload.rewrites)
    return case.batch if at_once else min(case.batch, MOST_COMPARED)


def mapping(source: str) -> str:
    """Return the part of a script that maps: ``strategy`` and what it uses; empty if a script has none."""
    body, lines = ast.parse(source).body, source.splitlines()
    codes = [compile(ast.Module([node], []), "script", "exec") for node in body]
    kept, names = set[int](), {"strategy"}
    while more := {place for place, code in enumerate(codes) if names & bound_by(code)} - kept:
        kept |= more
        names = set[str]().union(*(globals_of(codes[place]) for place in more)) - _GIVEN
    parts = []
    for node in (body[place] for place in sorted(kept)):
        first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
        parts.append("\n".join(lines[first - 1 : node.end_lineno]))
    return "\n\n".join(part for part in parts if len(part) <= _MOST_SHOWN)


class _Script:
    """The parts of a script of a case, in the order in which they stand in it: ``modules`` of Python's own that it
    imports, ``settings`` of TensorFlow before its first op, ``functions``, lines of ``data``, and ``blocks``."""

    def __init__(self, case: Case) -> None:
        self._case, self._workload, self._own = case, case.workload, case.workload.own
        self.packages = ["import numpy as np", "import tensorflow as tf"]
        self.modules: list[str] = []
        self.settings: list[str] = []
        self.functions: list[Function] = []
        self.data: list[str] = []
        self.blocks: list[str] = []

    def add_elements(self, *, arrays: bool) -> None:
        """Add what makes the elements, tensors or ``arrays``, and the source of what makes the variables."""
        case, workload = self._case, self._workload
        if self._own is not None:
            facts, values = own_script.facts(case), {**case.size, "seed": case.seed}
            called = f"({_keywords({name: values[name] for name in facts.parameters})})" if facts.is_called else ""
            self.functions += (tensors, own_script.with_batch)
            self.data.append(f"elems = with_batch({self._own.elems}{called}, {case.batch})")
            return
        self.functions += filter(None, (workload.inputs, workload.variables))
        made = _call(case, workload.inputs)
        if not arrays:
            has_rows = is_ragged(case.call(workload.element_input))
            self.functions += [tensors] if has_rows else []
            made = f"tf.nest.map_structure({'tensors' if has_rows else 'tf.constant'}, {made})"
        self.data.append(f"elems = {made}")

    def add_mapping(
        self, case: Case, strategy: Strategy, memory_limit_mib: int | None = None, *, wide: bool = False
    ) -> None:
        """Add ``strategy``, and what it needs. ``wide``: results are made float64."""
        mapper, workload = strategies.mapper(strategy.mapper), case.workload
        options = dict(strategy.options)
        if chunk := chunks.chosen(case, strategy, memory_limit_mib):
            options = {CHUNK.name: chunk[0], **options}
        start = f"{_DECORATORS[strategy.mode]}def strategy(elems):\n"
        if mapper.apply is None:
            rewrite = workload.rewrites[str(mapper.rewrite)]
            self.functions.append(rewrite)
            self.blocks.append(f"{start}    return {_call(case, rewrite, 'elems', options)}")
            return

        output = case.call(workload.element_output)
        apply = mapper.apply_ragged if is_ragged(output) and mapper.apply_ragged else mapper.apply
        element, converters = workload.numpy_element, list[Function]()
        if mapper.element == "element":
            name = options.pop(ELEMENT, None)
            element = workload.elements[name] if name else workload.element
            # Strategies stack dense tensors, and plain tuples of them.
            converters += [conversions.made_dense] if any(leaf.sparse for leaf in leaves(output)) else []
            converters += [conversions.as_tuples] if has_named(output) else []
        assert element is not None
        if wide:
            converters.insert(0, own_script.in_float64)
            output = map_leaves(lambda leaf: replace(leaf, dtype="float64") if "float" in leaf.dtype else leaf, output)
        decorator = _DECORATORS["graph"] if mapper.compiled else ""
        if options.pop("jit_compile", False):
            decorator = _DECORATORS["xla"]
        fn = element.__name__
        if decorator or workload.variables or case.keywords(element) or converters:
            fn = own_script.WRAPPER if self._own else "fn"
            result = _call(case, element, "x")
            for converter in reversed(converters):
                result = f"{converter.__name__}({result})"
            self.blocks.append(f"{decorator}def {fn}(x):\n    return {result}")

        arguments = [fn, "elems"]
        if "signature" in inspect.signature(apply).parameters:
            self.data.append(_signature(output))
            arguments.append("signature")
        call = f"{apply.__name__}({', '.join(filter(None, [*arguments, _keywords(options)]))})"
        self.functions += [*converters, element, apply]
        if workload.use is None:
            self.blocks.append(f"{start}    return {call}")
        else:
            self.functions.append(workload.use)
            used = _call(case, workload.use, "mapped, elems")
            self.blocks.append(f"{start}    def mapped(elems):\n        return {call}\n\n    return {used}")

    def add_reference_in_numpy(self) -> None:
        """Add the workload's ``reference``, or its rewrite ``numpy`` of float64."""
        case, workload = self._case, self._workload
        self.packages = ["import numpy as np"]
        if case.dtype == "bfloat16":
            self.packages.insert(0, "import ml_dtypes  # noqa: F401 - teaches NumPy bfloat16")
        self.data.append(f"variables = {_call(case, workload.variables) if workload.variables else '()'}")
        if workload.reference is not None:
            self.functions.append(workload.reference)
            result = _call(case, workload.reference, "elems", variables="*variables")
        else:
            rewrite = workload.rewrites["numpy"]
            self.functions = [conversions.in_float64, *self.functions, rewrite]
            result = _call(case, rewrite, "in_float64(elems)", variables="*in_float64(variables)")
            result = f"in_float64({result}, integers=True)"
        self.data.append(f"reference_output = {result}")

    def text(self, title: str, device: str = "") -> str:
        """The whole text. Raises `ScriptError` where two of its functions have the same name."""
        case, own = self._case, self._own
        facts = {**case.size, **case.options, "dtype": case.dtype}
        facts |= {"device": device, "seed": case.seed} if device else {"seed": case.seed}
        line = textwrap.fill(", ".join(f"{name}={value}" for name, value in facts.items()), _WIDTH)
        head, code = [f'"""{self._workload.title}: {title}.\n\n{line}\n"""'], []
        functions: dict[str, Function] = {}
        if own is not None:
            head += _FUTURE.findall(own.code)  # these have to come first
            code = [own_script.seeds(own, case.seed), _FUTURE.sub("", own.code)]
            given = (self._workload.element, *self._workload.rewrites.values())
            self.functions = [function for function in self.functions if function not in given]
        # Each function after those of its file that it calls.
        for function in (one for caller in self.functions for one in (*helpers_of(caller), caller)):
            if functions.setdefault(function.__name__, function) is not function:
                raise ScriptError(f"two functions of one script are named {function.__name__!r}: rename one of them")
        head += ["\n".join(f"import {name}" for name in self.modules), *map("\n".join, (self.packages, self.settings))]
        sources = map(source_of, functions.values())
        parts = ["\n\n".join(filter(None, head)), *code, *sources, "\n".join(self.data), *self.blocks]
        return "\n\n\n".join(part.strip("\n") for part in parts if part) + "\n"


# --- literals --------------------------------------------------------------------------------------------------------


def _call(
    case: Case, function: Function, handed: str = "", further: Mapping[str, Any] | None = None, variables: str = ""
) -> str:
    """The source of a call: one that is ``handed`` tensors or arrays gets the variables too, and the keywords that it
    names; any other has everything that it names."""
    if not handed:
        return f"{function.__name__}({_keywords(case.arguments(function))})"
    if not variables and case.workload.variables:
        variables = "*variables"
    keywords = _keywords({**case.keywords(function), **(further or {})})
    return f"{function.__name__}({', '.join(filter(None, [handed, variables, keywords]))})"


def _keywords(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_literal(value)}" for name, value in values.items())


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)  # in double quotes


def _signature(output: type_nest) -> str:
    """The statement that assigns what a strategy is told of an element's output; a long tuple has a part a line."""
    line = f"signature = {_tensor_spec(output)}"
    if len(line) <= _WIDTH or not isinstance(output, tuple):
        return line
    return "\n".join(["signature = (", *(f"    {_tensor_spec(part)}," for part in output), ")"])


def _tensor_spec(nest: type_nest) -> str:
    """A nest of `Leaf` as the literal of a nest of ``tf.TensorSpec`` and ``tf.RaggedTensorSpec``."""
    if isinstance(nest, Leaf) and nest.is_ragged:
        ragged_rank = max(axis for axis, side in enumerate(nest.shape) if side is None)
        return f"tf.RaggedTensorSpec({list(nest.shape)}, tf.{nest.dtype}, ragged_rank={ragged_rank})"
    if isinstance(nest, Leaf):
        return f"tf.TensorSpec({list(nest.shape)}, tf.{nest.dtype})"
    if isinstance(nest, Mapping):
        return "{" + ", ".join(f"{_literal(key)}: {_tensor_spec(part)}" for key, part in nest.items()) + "}"
    parts = ", ".join(map(_tensor_spec, nest))
    if isinstance(nest, list):
        return f"[{parts}]"
    return f"({parts},)" if len(nest) == 1 else f"({parts})"
