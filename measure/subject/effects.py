"""The side effects of a function, by the types of its ops, and the strategies that would leave them out.

`tf.vectorized_map` runs an op without a rule for batches, or without inputs that depend on the element, once for all;
XLA leaves out assertions and cannot compile a print or a call into Python.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

# Mappers by how often they run an op of the element function: for each element, or once for many of them.
ONE_BY_ONE = ("loop", "loop_compiled", "map_fn", "while_loop", "autograph", "dataset")
VECTORISED = ("vectorized_map", "chunked", "dataset_batched")


@dataclass(frozen=True)
class _Effect:
    """An effect, by what the types of ops that have it begin with, a regular expression. ``once``: mappers that
    vectorise have it for the first element alone; ``xla``: why it is missing under XLA."""

    does: str
    begin: str
    once: bool = True
    xla: str = ""

    def of(self, ops: Collection[str]) -> list[str]:
        """The types of ops that have this effect."""
        return sorted(op for op in ops if re.match(self.begin, op))


_RANDOM = _Effect(
    "draws random numbers",
    "Random|Multinomial|Stateful(?!PartitionedCall)|RngRead|TruncatedNormal|Parameterized|SampleDistorted",
)
# Those that change what later calls give.
_STATE = (
    _Effect(
        "assigns to a variable or a table",
        "Assign|Resource(Scatter|Apply|SparseApply)|LookupTable(?!Find|Size|Export)",
    ),
    _Effect("calls into Python", "PyFunc|EagerPyFunc", once=False, xla="cannot compile that"),
)
_OTHERS = (
    _Effect("has assertions", "Assert", xla="leaves them out"),
    _Effect("checks that numbers are finite", "CheckNumerics", once=False, xla="leaves that out"),
    _Effect("prints", "Print", xla="cannot compile that"),
)
_IN_PYTHON_STATE = (
    "its results change from call to call, and no op of it does that: it keeps state in Python, which happens in a "
    "graph only while it is traced"
)


@dataclass(frozen=True)
class Effects:
    """``draws``: the function draws random numbers; ``notes``: sentences; ``unsupported``: pattern of ``mapper.mode`` →
    why such a strategy would leave something out."""

    draws: bool
    notes: list[str]
    unsupported: dict[str, str]


def of(ops: Collection[str], *, changes: bool, prints: bool) -> Effects:
    """Return the effects of a function with ops of these types. ``changes``: two calls with the same element gave
    different results; ``prints``: it prints from Python."""
    notes: list[str] = []
    unsupported: dict[str, str] = {}
    drawn = _RANDOM.of(ops)  # two draws may be the same by chance
    if drawn:
        notes.append(
            f"It {_RANDOM.does} ({', '.join(drawn)}), other ones in each strategy: shapes and dtypes are compared, "
            "values are not."
        )
    elif changes:
        notes.append("Its results change from call to call, so that only shapes and dtypes are compared.")
    for effect in (*_OTHERS, *_STATE):
        if types := effect.of(ops):
            what = f"{effect.does} ({', '.join(types)})"
            ends = []
            if effect.once:
                ends.append(f"{', '.join(VECTORISED)} do that for the first element alone")
                unsupported |= _patterns(VECTORISED, "*", f"the function {what}, here for the first element alone")
            if effect.xla:
                ends.append(f"XLA {effect.xla}")
                why = f"the function {what}, and XLA {effect.xla}"
                unsupported |= _patterns((*ONE_BY_ONE, *VECTORISED), "xla", why)
            notes.append(f"It {what}: {', and '.join(ends)}.")
    if changes and not drawn and not any(effect.of(ops) for effect in _STATE):
        for mappers, mode in ((VECTORISED, "*"), (ONE_BY_ONE, "graph"), (ONE_BY_ONE, "xla")):
            unsupported |= _patterns(mappers, mode, _IN_PYTHON_STATE)
    if prints:
        notes.append("It prints in Python, which happens in a graph only while it is traced: tf.print does it always.")
    return Effects(bool(drawn), notes, unsupported)


def _patterns(mappers: Iterable[str], mode: str, why: str) -> dict[str, str]:
    return {f"{mapper}.{mode}": why for mapper in mappers}
