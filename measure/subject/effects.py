"""Sentences on what was derived of a function, and the strategies that would leave out what it does beside its result.

What that is, the types of its ops tell. `tf.vectorized_map` runs an op without a rule for batches, or without inputs
that depend on the element, once for all; XLA leaves out assertions and cannot compile a print or a call into Python.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from strategies.conversions import is_ragged
from workloads.functions import Facts, has_named, leaves_from_wire
from workloads.spec import leaves

# Mappers by how often they run an op of the element function: for each element, or once for many of them.
ONE_BY_ONE = ("loop", "loop_compiled", "map_fn", "while_loop", "autograph", "dataset")
VECTORISED = ("vectorized_map", "chunked", "dataset_batched")
IN_PYTHON = ("loop.eager", "map_fn.eager", "while_loop.eager")
# Those that need no result of one shape.
RAGGED = ("loop", "loop_compiled", "map_fn", "dataset")


@dataclass(frozen=True)
class _Effect:
    """An effect, by the types of ops that have it: ``ops`` begin them, and ``others`` begin those that do not.
    ``once``: mappers that vectorise have it for the first element alone; ``xla``: why it is missing under XLA."""

    does: str
    ops: tuple[str, ...]
    others: tuple[str, ...] = ()
    once: bool = True
    xla: str = ""

    def of(self, ops: Collection[str]) -> list[str]:
        """The types of ops that have this effect."""
        return sorted(op for op in ops if op.startswith(self.ops) and not op.startswith(self.others or "\0"))


_RANDOM = _Effect(
    "draws random numbers",
    ("Random", "Multinomial", "Stateful", "RngRead", "TruncatedNormal", "Parameterized", "SampleDistorted"),
    ("StatefulPartitionedCall",),
)
_ASSERTS = (
    _Effect("has assertions", ("Assert",), xla="leaves them out"),
    _Effect("checks that numbers are finite", ("CheckNumerics",), once=False, xla="leaves that out"),
)
_ASSIGNS = _Effect(
    "assigns to a variable or a table",
    ("Assign", "ResourceScatter", "ResourceApply", "ResourceSparseApply", "LookupTable"),
    ("LookupTableFind", "LookupTableSize", "LookupTableExport"),
)
_CALLS = _Effect("calls into Python", ("PyFunc", "EagerPyFunc"), once=False, xla="cannot compile that")
_OTHERS = (_ASSIGNS, _CALLS, _Effect("prints", ("Print",), xla="cannot compile that"))

_REFERENCES = {
    "float64": "Results are compared with the function itself, run slice by slice in float64.",
    "own": "Results are compared with the function itself, run slice by slice in its own dtypes.",
    "given": "Results are compared with the reference that was given.",
}
_IN_PYTHON_STATE = (
    "its results change from call to call, and no op of it does that: it keeps state in Python, which happens in a "
    "graph only while it is traced"
)


@dataclass(frozen=True)
class Effects:
    """What a function does beside its result. ``draws``, ``asserts``, ``others``: see `workloads.functions.Facts`;
    ``unsupported``: pattern of ``mapper.mode`` → why such a strategy would leave it out."""

    draws: bool
    asserts: bool
    others: bool
    notes: list[str]
    unsupported: dict[str, str]


def of(ops: Collection[str], *, changes: bool, prints: bool) -> Effects:
    """Return the effects of a function with ops of these types. ``changes``: two calls with the same element gave
    different results; ``prints``: it prints from Python."""
    # Two draws may be the same by chance. What is drawn without a state is the same each time, unless the function
    # keeps the seed.
    stateless = _Effect(_RANDOM.does, ("Stateless",))
    drawn = _RANDOM.of(ops) or (stateless.of(ops) if changes else [])
    notes: list[str] = []
    unsupported: dict[str, str] = {}
    if drawn:
        notes.append(f"It {_RANDOM.does} ({', '.join(drawn)}), other ones in each strategy: shapes and dtypes are "
                     "compared, values are not.")  # fmt: skip
    for effect in (*_ASSERTS, *_OTHERS):
        if types := effect.of(ops):
            what = f"{effect.does} ({', '.join(types)})"
            ends = []
            if effect.once:
                ends.append(f"{_listed(VECTORISED)} do that for the first element alone")
                unsupported |= _patterns(VECTORISED, "*", f"the function {what}, here for the first element alone")
            if effect.xla:
                ends.append(f"XLA {effect.xla}")
                unsupported |= _patterns(
                    (*ONE_BY_ONE, *VECTORISED), "xla", f"the function {what}, and XLA {effect.xla}"
                )
            notes.append(f"It {what}: {', and '.join(ends)}.")
    if changes and not drawn:
        notes.append("Its results change from call to call, so that only shapes and dtypes are compared.")
        if not (_ASSIGNS.of(ops) or _CALLS.of(ops)):
            unsupported |= _patterns(VECTORISED, "*", _IN_PYTHON_STATE)
            for mode in ("graph", "xla"):
                unsupported |= _patterns(ONE_BY_ONE, mode, _IN_PYTHON_STATE)
    if prints:
        notes.append("It prints in Python, which happens in a graph only while it is traced: tf.print does it always.")
    return Effects(
        draws=bool(drawn),
        asserts=any(effect.of(ops) for effect in _ASSERTS),
        others=prints or (changes and not drawn) or any(effect.of(ops) for effect in _OTHERS),
        notes=notes,
        unsupported=unsupported,
    )


def notes(facts: Facts, effects: Effects, untraced: str) -> list[str]:
    """Return sentences on what was derived, and on what that means for mapping. ``untraced``: why the function cannot
    be traced."""
    element, result = leaves_from_wire(facts.element), leaves_from_wire(facts.result)
    sentences = [_REFERENCES[facts.reference]] if facts.reference in _REFERENCES else []
    if has_named(result):
        sentences.append("Its result has named tuples in it: each strategy gives plain tuples of the same parts.")
    if any(leaf.sparse for leaf in leaves(result)):
        sentences.append("Its result is a tf.SparseTensor or tf.IndexedSlices: each strategy makes those of an element "
                    "dense, and dense values are compared.")  # fmt: skip
    for nest, what in ((element, "The lengths of its elements differ"), (result, "Its results have no fixed shape")):
        if is_ragged(nest):
            sentences.append(f"{what}: a batch of them is a tf.RaggedTensor. {_listed(RAGGED)} can work, eager or in a "
                        "graph; strategies that need one shape, as tf.vectorized_map does, cannot.")  # fmt: skip
    sentences += effects.notes
    if untraced:
        sentences.append(f"It cannot be traced ({untraced}): only {_listed(IN_PYTHON)} can work.")
    if isinstance(facts.unknown_work, list):
        sentences.append(f"The work of {', '.join(facts.unknown_work)} is not known: the limit is of bytes alone.")
    return sentences


def _patterns(mappers: Iterable[str], mode: str, why: str) -> dict[str, str]:
    return {f"{mapper}.{mode}": why for mapper in mappers}


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]])
