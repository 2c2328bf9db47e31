"""The parts of a script that maps a function of a person's own: their code as it is, and the elements as tensors.

`HELPERS` and `slice_by_slice` are TensorFlow code whose source goes into scripts; `measure.subject.derive` calls the
same functions.
"""

import re
import symtable
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from strategies import loop
from strategies.conversions import is_ragged, result_converters, tensors
from strategies.layout import ScriptError, keywords, signature, some_of
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
_FUTURE = re.compile(r"^from __future__ import .+$", re.MULTILINE)
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
    return "\n\n\n".join(filter(None, [seeds(given, case.seed), _FUTURE.sub("", given.code).strip("\n")]))


def imports(case: Case, standard: Sequence[str] = ()) -> str:
    """The imports that a script begins with: those of ``__future__`` have to come first, then ``standard`` modules."""
    return "\n\n".join([*_FUTURE.findall(_given(case).code), standard_imports(standard)])


def may_draw(given: Given) -> bool:
    """True if the code may draw random numbers. The text of what is pickled does not tell."""
    return re.search("random|initializer|keras|cloudpickle", given.code) is not None


def seeds(given: Given, seed: int) -> str:
    """The lines that seed what the code may draw, so that each process has the same variables and elements."""
    if not may_draw(given):
        return ""
    # Keras draws its seeds from Python, so that it need not be imported.
    return f"import random\n\nrandom.seed({seed})\nnp.random.seed({seed})\ntf.random.set_seed({seed})"


def data(case: Case) -> list[str]:
    """The lines that make the elements."""
    elems, derived, values = _given(case).elems, facts(case), {**case.size, "seed": case.seed}
    made = f"{elems}({keywords({name: values[name] for name in derived.parameters})})" if derived.is_called else elems
    return [f"elems = with_batch({made}, {case.batch})"]


def compared(case: Case) -> int:
    """The number of elements whose results are compared: all, or `MOST_COMPARED` from the first to the last."""
    at_once = facts(case).reference == "given" or is_ragged(case.call(case.workload.element_output))
    return case.batch if at_once else min(case.batch, MOST_COMPARED)


def reference(case: Case) -> list[str]:
    """The lines that compute the right results; where they are of some elements, ``compared`` has their numbers."""
    given, how = _given(case), facts(case).reference
    lines = some_of(case.batch, compared(case))
    if how == "given":
        arrays = "tf.nest.map_structure(lambda leaf: leaf.numpy(), elems)"
        return [f"reference_output = {given.reference}({arrays})"]
    elems = "in_float64(elems)" if how == "float64" else "elems"
    result = case.call(case.workload.element_output)
    name = WRAPPER if result_converters(result) else given.function
    if is_ragged(result):
        mapped = f"{loop.map_ragged_with_loop.__name__}({name}, {elems}, signature)"
        return [signature(result), f"reference_output = in_float64({mapped})"]
    return [*lines, f"reference_output = slice_by_slice({name}, {elems})"]


def check(given: Given) -> None:
    """Raise `ScriptError` with a sentence where the code is no Python, binds a name that every script uses itself, or
    lacks one that was named. Nothing is executed."""
    try:
        compile(given.code, "<your code>", "exec")
        symbols = symtable.symtable(given.code, "<your code>", "exec").get_symbols()
    except SyntaxError as error:
        raise ScriptError(f"line {error.lineno}: {error.msg}") from None
    except ValueError as error:  # it has null bytes
        raise ScriptError(str(error)) from None
    except (RecursionError, MemoryError):  # of the parser, which does not say where
        raise ScriptError("the code is nested too deeply for Python: split its longest expression") from None
    bound = sorted(symbol.get_name() for symbol in symbols if symbol.is_assigned())
    for name in (given.function, given.elems, given.batched, given.reference):
        if name and name not in bound and "import *" not in given.code:
            there = ", ".join(bound[:_MOST_NAMED]) or "nothing"
            raise ScriptError(f"the code has no {name!r}: it defines {there}")
    for name in RESERVED:
        if name in bound and name != "elems":
            raise ScriptError(f"the code defines {name!r}: choose another name, since every script uses it itself")


def _given(case: Case) -> Given:
    assert case.workload.own is not None
    return case.workload.own
