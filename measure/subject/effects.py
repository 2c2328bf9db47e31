"""Sentences on what was derived of a function, and on what mapping means for one that does more than compute."""

from collections.abc import Collection, Sequence

from workloads.functions import Facts
from workloads.own import leaves_from_wire
from workloads.spec import leaves

# Mappers by what they make of an element function's effects, as `measure.subject.side_effects` shows of each strategy.
ONE_BY_ONE = ("loop", "loop_compiled", "map_fn", "while_loop", "autograph", "dataset")
VECTORISED = ("vectorized_map", "chunked", "dataset_batched")
IN_PYTHON = ("loop.eager", "map_fn.eager", "while_loop.eager")
# Those that need no result of one shape.
RAGGED = ("loop", "loop_compiled", "map_fn", "dataset")
# Types of ops that end in an error or do nothing else.
ASSERTIONS = frozenset(("Assert", "CheckNumerics"))

_REFERENCES = {
    "float64": "Results are compared with the function itself, run slice by slice in float64.",
    "own": "Results are compared with the function itself, run slice by slice in its own dtypes.",
    "given": "Results are compared with the reference that was given.",
}
_DRAWING = ("Random", "Multinomial", "Stateful", "RngRead", "TruncatedNormal", "Parameterized", "SampleDistorted")
_ASSIGNING = ("Assign", "ResourceScatter", "ResourceApply", "ResourceSparseApply", "LookupTable")
_READING = ("LookupTableFind", "LookupTableSize", "LookupTableExport")
_UNCOMPILED = {"PyFunc": "a call into Python, which the function makes", "Print": "the function's tf.print"}


def draws(op: str) -> bool:
    """True if an op of this type draws random numbers from a state that TensorFlow keeps."""
    return op.startswith(_DRAWING) and op != "StatefulPartitionedCall"


def _assigns(op: str) -> bool:
    return op.startswith(_ASSIGNING) and not op.startswith(_READING)


def done(ops: Collection[str], *, prints: bool, changed: Sequence[str], keeps_state: bool) -> list[str]:
    """Return sentences on what a function does beside its result, with the strategies that can still work.

    ``ops``: types of its ops. From Python it ``prints``, and has ``changed`` what has these names. ``keeps_state``: its
    results change from call to call, though it draws no random numbers.
    """
    assigns, calls = any(map(_assigns, ops)), any("PyFunc" in op for op in ops)
    said = []
    if keeps_state:
        said.append(
            "Its results change from call to call though it draws no random numbers, so it keeps state and the order "
            f"of calls matters: {_listed(ONE_BY_ONE if assigns or calls else IN_PYTHON)} can work, with one call at a "
            "time. Results of a few elements are compared with those of a Python loop."
        )
    if assigns:
        said.append(
            f"It assigns to a variable or a table: {_listed(ONE_BY_ONE)} do so for each element, {_listed(VECTORISED)} "
            "for the first element alone and are wrong."
        )
    if calls:
        said.append(
            "It calls into Python, one element at a time, whatever the strategy: eager and graph strategies can work, "
            f"XLA cannot compile that. {_listed(VECTORISED)} may make one call too many, or one alone where the "
            "function does without what it returns: then they are wrong."
        )
    if any(op.startswith("Print") for op in ops):
        said.append(
            f"It prints with tf.print: {_listed(ONE_BY_ONE)} do so for each element, eager or in a graph; "
            f"{_listed(VECTORISED)} print the first element alone and are wrong, and XLA cannot compile it."
        )
    if (prints or changed) and not calls:
        does = " and ".join([*(["prints"] if prints else []), *([f"changes {_listed(changed)}"] if changed else [])])
        instead = " or ".join([*(["tf.print"] if prints else []), *(["a tf.Variable"] if changed else [])])
        said.append(
            f"It {does} in Python: in a graph that happens while it is traced, not for each element, so only "
            f"{_listed(IN_PYTHON)} can work. Take that out, or use {instead}, to have other strategies."
        )
    return said


def notes(facts: Facts, does: Sequence[str], asserts: Collection[str], untraced: str) -> list[str]:
    """Return sentences on what was derived, and on what mapping means for a function that does more than compute.

    ``does``: what `done` says; ``asserts``: which of `ASSERTIONS` it has; ``untraced``: why it cannot be traced.
    """
    said = [_REFERENCES[facts.reference]] if facts.reference in _REFERENCES else []
    has_lengths, gives_lengths = (
        any(leaf.is_ragged for leaf in leaves(leaves_from_wire(nest))) for nest in (facts.element, facts.result)
    )
    # Where it is more than that, another sentence names those that can work.
    only_draws = not (does or asserts or untraced or has_lengths or gives_lengths)
    if facts.draws:
        said.append(
            "It draws random numbers, other ones in each strategy: shapes and dtypes are compared, values are not."
            + (
                f" {_listed(ONE_BY_ONE)} can work, and eager or in a graph {_listed(VECTORISED)} can too."
                if only_draws
                else ""
            )
        )
    if any(leaf.sparse for leaf in leaves(leaves_from_wire(facts.result))):
        said.append(
            "Its result is a tf.SparseTensor or tf.IndexedSlices: each strategy makes those of an element dense, and "
            "dense values are compared."
        )
    if has_lengths:
        said.append(
            "The lengths of its elements differ, which makes a batch of them a tf.RaggedTensor: strategies that need "
            f"one shape, as tf.vectorized_map does, cannot work, and {_listed(RAGGED)} can, eager or in a graph."
        )
    if gives_lengths:
        said.append(
            "Its results have no fixed shape: a batch of them is a tf.RaggedTensor, of which row lengths and values "
            f"are compared. Strategies that stack results of one shape cannot work, and {_listed(RAGGED)} can, eager "
            "or in a graph."
        )
    if "Assert" in asserts:
        said.append(
            "It has assertions: a strategy that does not make them for every element is wrong, as are "
            f"{_listed(VECTORISED)}, and all under XLA; {_listed(ONE_BY_ONE)} can work, eager or in a graph."
        )
    elif asserts:
        said.append(
            "It checks that numbers are finite: strategies under XLA leave that out and are wrong, as are "
            f"{_listed(VECTORISED)} where what the check returns is not used; {_listed(ONE_BY_ONE)} can work, eager or "
            "in a graph."
        )
    said += does
    if untraced:
        said.append(
            f"It cannot be traced ({untraced}): strategies in graph mode and under XLA will fail, and only "
            f"{_listed(IN_PYTHON)} can work."
        )
    if isinstance(facts.unknown_work, list):
        said.append(f"The work of {', '.join(facts.unknown_work)} is not known: the limit is of bytes alone.")
    return said


def unsupported(ops: Collection[str]) -> dict[str, str]:
    """Pattern of ``mapper.mode`` → why such a strategy cannot work, of a function with ops of these types."""
    named = [what for part, what in _UNCOMPILED.items() if any(part in op for op in ops)]
    return {"*.xla": f"XLA cannot compile {named[0]}"} if named else {}


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
