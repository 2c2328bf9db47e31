"""The parts of a script that maps a function of a person's own: their code as it is, and the elements as tensors.

`HELPERS` and `slice_by_slice` are TensorFlow code whose source goes into scripts; `measure.subject.derive` calls the
same functions.
"""

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from strategies import loop
from strategies.conversions import is_ragged, result_converters, tensors
from strategies.layout import ScriptError, keywords, layout, tensor_spec
from strategies.layout import imports as standard_imports
from workloads import functions
from workloads.case import Case
from workloads.functions import Facts, Given

if TYPE_CHECKING:
    import tensorflow as tf

# What maps one element, where that is more than a call of the function: not `fn`, which is what people call their own.
WRAPPER = "mapped_fn"
# Names of every script, beside those of functions that a mapper brings.
_VARIABLES = ("elems", "signature", WRAPPER, "strategy", "outputs", "reference_output")
# What code with a function in it that has no source calls.
_PICKLED = "cloudpickle"
RESERVED = (*_VARIABLES, "tensors", "with_batch", "made_dense", "as_tuples")
# Of so many elements at most right results are computed, one after the other: those of 100,000 take minutes.
MOST_COMPARED = 1_000
_MOST_NAMED = 20  # names of a person's code in a sentence


def with_batch(elems, batch):
    def one(leaf):
        length = leaf.shape[0]
        return leaf if length == batch else tf.gather(leaf, tf.range(batch) % length)

    return tf.nest.map_structure(one, tensors(elems))


HELPERS = (tensors, with_batch)


def in_float64(elems):
    def one(leaf):
        return tf.cast(leaf, tf.float64) if leaf.dtype.is_floating else leaf

    return tf.nest.map_structure(one, elems)


def slice_by_slice(fn, elems):
    def as_array(leaf):
        array = np.asarray(leaf)
        return array.astype(np.float64) if leaf.dtype.is_floating else array

    def one(index):
        return tf.nest.map_structure(as_array, fn(tf.nest.map_structure(lambda leaf: leaf[index], elems)))

    outputs = [one(index) for index in range(tf.nest.flatten(elems)[0].shape[0])]
    return tf.nest.map_structure(lambda *leaves: np.stack(leaves), *outputs)


def facts(case: Case) -> Facts:
    """Return what was derived of the case's function at its size."""
    derived = functions.get(case.workload.slug, case.size) or functions.get(case.workload.slug)
    assert derived is not None, "a workload of a given function is only made with its facts"
    return derived.facts


def code(case: Case) -> str:
    """The code that was given, after the seeds of what it draws."""
    given = _given(case)
    lines = given.code.strip("\n").splitlines()
    for number in _future_imports(given.code):
        lines[number] = ""
    return "\n\n\n".join(filter(None, [seeds(given, case.seed), "\n".join(lines).strip("\n")]))


def imports(case: Case, standard: Sequence[str] = ()) -> str:
    """The imports that a script begins with: those of ``__future__`` have to come first, then ``standard`` modules."""
    lines = _given(case).code.strip("\n").splitlines()
    future = [lines[number] for number in _future_imports("\n".join(lines))]
    return "\n".join([*future, *([""] if future else []), standard_imports(standard)])


def may_draw(given: Given) -> bool:
    """True if the code may draw random numbers. The text of what is pickled does not tell."""
    return "random" in given.code or _PICKLED in given.code


def seeds(given: Given, seed: int) -> str:
    """The lines that seed what the code draws, so that each process has the same variables and elements."""
    if "keras" in given.code:
        return f"tf.keras.utils.set_random_seed({seed})"  # Python's and NumPy's too
    # Keras draws its seeds from Python, so that it need not be imported for what is pickled.
    if re.search(r"\bimport random\b", given.code) or _PICKLED in given.code:
        return f"import random\n\nrandom.seed({seed})\nnp.random.seed({seed})\ntf.random.set_seed({seed})"
    if re.search("random|initializer", given.code):
        return f"np.random.seed({seed})\ntf.random.set_seed({seed})"
    return ""


def elements(given: Given, derived: Facts, values: dict[str, int]) -> str:
    """The source of what is mapped over; ``values``: the sizes and the seed."""
    if not derived.is_called:
        return given.elems
    return f"{given.elems}({keywords({name: values[name] for name in derived.parameters})})"


def data(case: Case) -> list[str]:
    """The lines that make the elements."""
    given, derived = _given(case), facts(case)
    made = elements(given, derived, {**case.size, "seed": case.seed})
    return [layout(f"elems = with_batch({made}, {case.batch})")]


def compared(case: Case) -> int:
    """The number of elements whose results are compared: all, or `MOST_COMPARED` from the first to the last."""
    at_once = facts(case).reference == "given" or is_ragged(case.call(case.workload.element_output))
    return case.batch if at_once else min(case.batch, MOST_COMPARED)


def reference(case: Case) -> list[str]:
    """The lines that compute the right results; where they are of some elements, ``compared`` has their numbers."""
    given, how = _given(case), facts(case).reference
    lines = []
    if (number := compared(case)) < case.batch:
        lines = [
            f"compared = np.linspace(0, {case.batch - 1}, {number}).round().astype(int)",
            "elems = tf.nest.map_structure(lambda leaf: tf.gather(leaf, compared), elems)",
        ]
    if how == "given":
        arrays = "tf.nest.map_structure(lambda leaf: leaf.numpy(), elems)"
        return [layout(f"reference_output = {given.reference}({arrays})")]
    elems = "in_float64(elems)" if how == "float64" else "elems"
    result = case.call(case.workload.element_output)
    name = WRAPPER if result_converters(result) else given.function
    if is_ragged(result):
        mapped = f"{loop.map_ragged_with_loop.__name__}({name}, {elems}, signature)"
        return [layout(f"signature = {tensor_spec(result)}"), layout(f"reference_output = in_float64({mapped})")]
    return [*lines, layout(f"reference_output = slice_by_slice({name}, {elems})")]


def check(given: Given) -> None:
    """Raise `ScriptError` with a sentence where the code is no Python, binds a name that every script uses itself, or
    lacks one that was named. Nothing is executed."""
    try:
        compile(given.code, "<your code>", "exec")
        bound = _bound(ast.parse(given.code))
    except SyntaxError as error:
        raise ScriptError(f"line {error.lineno}: {error.msg}") from None
    except ValueError as error:  # it has null bytes
        raise ScriptError(str(error)) from None
    except (RecursionError, MemoryError):  # of the parser, which does not say where
        raise ScriptError("the code is nested too deeply for Python: split its longest expression") from None
    for name, what in ((given.function, "function"), (given.elems, "elems"), (given.batched, "batched rewrite"),
                       (given.reference, "reference")):  # fmt: skip
        if name and name not in bound and "*" not in bound:
            there = ", ".join(sorted(bound)[:_MOST_NAMED]) or "nothing"
            raise ScriptError(f"the code has no {name!r}, which was named as the {what}: it defines {there}")
    for name in RESERVED:
        if name in bound and name != "elems":
            raise ScriptError(f"the code defines {name!r}: choose another name, since every script uses it itself")


def _bound(tree: ast.Module) -> set[str]:
    """The names that a module binds at its top level, in branches too; ``*`` where an import may bind any."""
    names: set[str] = set()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        else:
            pending += ast.iter_child_nodes(node)
    return names


def _future_imports(text: str) -> list[int]:
    """The numbers of the lines, from 0, that import from ``__future__``."""
    tree = ast.parse(text)
    return [
        number - 1
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    ]


def _given(case: Case) -> Given:
    assert case.workload.own is not None
    return case.workload.own
