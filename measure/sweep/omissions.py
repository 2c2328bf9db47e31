"""The reasons why a strategy is not measured at a point of a sweep: kind and amounts of each, and its sentence.

An error keeps its amounts as ``values``, so that one sentence can be made of several errors of a kind.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from msgspec import UNSET

from measure.model import text
from measure.model.run import Error
from measure.sweep.places import written

# Types of errors: by forecast there is too little memory, or time; a smaller point was too much already.
DOES_NOT_FIT, OVER_BUDGET, SMALLER_FAILED = "DoesNotFit", "OverBudget", "LeftOut"

# Outcomes after which a strategy is not run at larger points: the type of its error there, and what is said.
_TYPES = {"timeout": SMALLER_FAILED, "out_of_memory": DOES_NOT_FIT}
_ALREADY = {SMALLER_FAILED: "it ran into the time limit", DOES_NOT_FIT: "it ran out of memory"}
# By type and names of the values; values of all other names are a smaller point's place.
_SENTENCES = {
    (DOES_NOT_FIT, frozenset({"needed_bytes", "limit_bytes"})): (
        "it would need about {needed_bytes}, and the memory limit is {limit_bytes}"
    ),
    (DOES_NOT_FIT, frozenset({"needed_bytes", "available_bytes"})): (
        "it would need about {needed_bytes}, and {available_bytes} are available"
    ),
    (OVER_BUDGET, frozenset({"cost_s", "budget_s"})): (
        "it would take about {cost_s} of the sweep's {budget_s}; with a larger budget it is measured"
    ),
    (OVER_BUDGET, frozenset()): "the time budget was spent; continue the sweep, or give it more",
}
_WRITTEN = {
    "needed_bytes": text.size,
    "available_bytes": text.size,
    "limit_bytes": lambda value: f"{value / 2**20:.0f} MiB",
    "cost_s": text.seconds,
    "budget_s": lambda value: f"{value:.0f} s",
}


def beyond_limit(needed_bytes: int, limit_bytes: int) -> Error:
    """The error of a strategy that by forecast needs more memory than the limit that was asked for."""
    return _not_run(DOES_NOT_FIT, {"needed_bytes": needed_bytes, "limit_bytes": limit_bytes})


def beyond_available(needed_bytes: int, available_bytes: int) -> Error:
    """The error of a strategy that by forecast needs more memory than there is."""
    return _not_run(DOES_NOT_FIT, {"needed_bytes": needed_bytes, "available_bytes": available_bytes})


def over_budget(cost_s: float, budget_s: float) -> Error:
    """The error of a strategy for which there is no time by forecast. ``budget_s``: the whole sweep's, in seconds."""
    return _not_run(OVER_BUDGET, {"cost_s": cost_s, "budget_s": budget_s})


def untimed() -> Error:
    """The error of a strategy of which memory and correctness may be known, and the time was too short for more."""
    return Error(type=OVER_BUDGET, message=f"not timed here: {_sentence(OVER_BUDGET, {})}", values={})


def smaller_failed(at: Mapping[str, int], outcome: str) -> Error | None:
    """The error of a strategy that ended with ``outcome`` at a smaller point, ``at``; None where that says nothing of
    larger ones."""
    return _not_run(_TYPES[outcome], at) if outcome in _TYPES else None


def kind(error: Error) -> Hashable:
    """Return what is the same for errors that `reason` makes one sentence of."""
    return (error.type, error.message if error.values is UNSET else frozenset(error.values))


def reason(*errors: Error) -> str:
    """The sentence of errors of one kind, with the first's amounts and the last's: «about 31.8 s to 2.22 min of 60 s».

    An omission's is without the words that it is one; an error without values says its message.
    """
    first, last = errors[0], errors[-1]
    if first.values is UNSET or last.values is UNSET:
        return first.message
    return _sentence(first.type, {name: (value, last.values[name]) for name, value in first.values.items()})


def _not_run(type_: str, values: Mapping[str, int | float]) -> Error:
    ends = {name: (value,) for name, value in values.items()}
    return Error(type=type_, message=f"not run here: {_sentence(type_, ends)}", values=dict(values))


def _sentence(type_: str, values: Mapping[str, Sequence[int | float]]) -> str:
    """``values``: name → the amounts that are said, from one to another."""
    words = {name: _span(_WRITTEN.get(name, str)(amount) for amount in amounts) for name, amounts in values.items()}
    if template := _SENTENCES.get((type_, frozenset(values))):
        return template.format(**words)
    return f"at {written(words)} {_ALREADY.get(type_, 'it failed')} already"


def _span(amounts: Iterable[str]) -> str:
    return " to ".join(dict.fromkeys(amounts))
