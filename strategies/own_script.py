"""A person's own code as it stands in a script: its checks, the seeds of what it draws, and its elements as tensors."""

import re
import symtable
from typing import TYPE_CHECKING

from strategies.conversions import tensors
from workloads import functions
from workloads.case import Case

if TYPE_CHECKING:
    import tensorflow as tf

# The function that is mapped, where that is more than the one that was given: people call their own `fn`.
WRAPPER = "mapped_fn"
# Names of every script, beside those of functions that a mapper brings. What is mapped may be named as scripts name it.
RESERVED = (
    *("signature", WRAPPER, "strategy", "outputs", "reference_output"),
    *("tensors", "with_batch", "made_dense", "as_tuples", "in_float64"),
)


class ScriptError(ValueError):
    """A script cannot be put together: the message names the function that is at fault."""


def facts(case: Case) -> functions.Facts:
    derived = functions.get(case.workload.slug, case.size) or functions.get(case.workload.slug)
    assert derived is not None, "a workload of a given function is only made with its facts"
    return derived.facts


def may_draw(given: functions.Given) -> bool:
    """True if the code may draw random numbers. The text of what is pickled does not tell."""
    return re.search("random|initializer|keras|cloudpickle", given.code) is not None


def seeds(given: functions.Given, seed: int) -> str:
    """The lines that seed what the code may draw, so that each process has the same variables and elements."""
    if not may_draw(given):
        return ""
    # Keras draws its seeds from Python, so that it need not be imported.
    return f"import random\n\nrandom.seed({seed})\nnp.random.seed({seed})\ntf.random.set_seed({seed})"


def check(given: functions.Given) -> None:
    """Raise `ScriptError` with a sentence where the code is no Python, binds a name that every script uses itself, or
    lacks one that was named. Nothing is executed."""
    try:
        compile(given.code, "<your code>", "exec")
        symbols = symtable.symtable(given.code, "<your code>", "exec").get_symbols()
    except SyntaxError as error:
        at = f"line {error.lineno}: " if error.lineno else ""  # a null byte is in none
        raise ScriptError(f"{at}{error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:  # nested too deeply for the parser
        raise ScriptError(f"Python cannot parse the code: {str(error) or type(error).__name__}") from None
    bound = sorted(symbol.get_name() for symbol in symbols if symbol.is_assigned())
    for name in (given.function, given.elems, given.batched, given.reference):
        if name and name not in bound and "import *" not in given.code:
            raise ScriptError(f"the code has no {name!r}: it defines {', '.join(bound[:20]) or 'nothing'}")
    for name in RESERVED:
        if name in bound:
            raise ScriptError(f"the code defines {name!r}: choose another name, since every script uses it itself")


# --- functions whose source scripts hold -----------------------------------------------------------------------------


def with_batch(elems, batch):
    def one(leaf):
        length = leaf.shape[0]
        return leaf if length == batch else tf.gather(leaf, tf.range(batch) % length)

    return tf.nest.map_structure(one, tensors(elems))


def in_float64(elems):
    def one(leaf):
        return tf.cast(leaf, tf.float64) if leaf.dtype.is_floating else leaf

    return tf.nest.map_structure(one, elems)
