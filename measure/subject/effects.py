"""The side effects of a function, by the types of its ops, and the strategies that would leave them out.

`tf.vectorized_map` runs an op without a rule for batches, or without inputs that depend on the element, once for all.
"""

import re
from collections.abc import Collection, Iterable

import strategies

_RANDOM = "Random|Multinomial|Stateful(?!PartitionedCall)|RngRead|TruncatedNormal|Parameterized|SampleDistorted"
_ASSIGNS = "Assign|Resource(Scatter|Apply|SparseApply)|LookupTable(?!Find|Size|Export)"
_PYTHON = "PyFunc|EagerPyFunc"
# What the types of ops with an effect begin with → its name, whether mappers that vectorise have it for the first
# element alone, and what XLA does instead.
_EFFECTS = {
    "Assert": ("has assertions", True, "leaves them out"),
    "CheckNumerics": ("checks that numbers are finite", False, "leaves that out"),
    "Print": ("prints", True, "cannot compile that"),
    _ASSIGNS: ("assigns to a variable or a table", True, ""),
    _PYTHON: ("calls into Python", False, "cannot compile that"),
}
_IN_PYTHON_STATE = (
    "its results change from call to call, and no op of it does that: it keeps state in Python, which happens in a "
    "graph only while it is traced"
)


def of(ops: Collection[str], *, changes: bool, prints: bool) -> tuple[bool, list[str], dict[str, str]]:
    """Return the effects of a function with ops of these types: True if it draws random numbers, sentences, and pattern
    of ``mapper.mode`` → why such a strategy would leave something out. ``changes``: two calls with the same element
    gave different results; ``prints``: it prints from Python."""
    notes: list[str] = []
    unsupported: dict[str, str] = {}
    one_by_one, vectorised = (
        [one.slug for one in strategies.mappers() if one.takes_elements and one.side_effects == often]
        for often in ("per element", "once")
    )
    drawn = _begin(ops, _RANDOM)  # two draws may be the same by chance
    if drawn:
        notes.append(
            f"It draws random numbers ({drawn}), other ones in each strategy: shapes and dtypes are compared, values "
            "are not."
        )
    elif changes:
        notes.append("Its results change from call to call, so that only shapes and dtypes are compared.")
    for begin, (effect, once, xla) in _EFFECTS.items():
        if types := _begin(ops, begin):
            does, ends = f"{effect} ({types})", []
            if once:
                ends.append(f"{', '.join(vectorised)} do that for the first element alone")
                unsupported |= _patterns(vectorised, "*", f"the function {does}, here for the first element alone")
            if xla:
                ends.append(f"XLA {xla}")
                unsupported |= _patterns((*one_by_one, *vectorised), "xla", f"the function {does}, and XLA {xla}")
            notes.append(f"It {does}: {', and '.join(ends)}.")
    if changes and not drawn and not _begin(ops, f"{_ASSIGNS}|{_PYTHON}"):
        for mappers, mode in ((vectorised, "*"), (one_by_one, "graph"), (one_by_one, "xla")):
            unsupported |= _patterns(mappers, mode, _IN_PYTHON_STATE)
    if prints:
        notes.append("It prints in Python, which happens in a graph only while it is traced: tf.print does it always.")
    return bool(drawn), notes, unsupported


def _begin(ops: Collection[str], pattern: str) -> str:
    return ", ".join(sorted(op for op in ops if re.match(pattern, op)))


def _patterns(mappers: Iterable[str], mode: str, why: str) -> dict[str, str]:
    return {f"{mapper}.{mode}": why for mapper in mappers}
