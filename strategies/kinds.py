"""Kinds of elements and results that some mappers cannot take."""

from strategies.conversions import is_ragged
from strategies.spec import Mapper
from workloads.case import Case
from workloads.spec import Leaf, Workload


def refusal(mapper: Mapper, mode: str, workload: Workload) -> str | None:
    """Return the sentence that says why the elements or results of a workload, with its options applied, cannot be
    mapped in a mode; None where they may."""
    case = Case(workload, workload.default_size(), workload.dtypes[0])
    elements, results = case.leaves(workload.element_input), case.leaves(workload.element_output)
    for leaves, what in ((elements, "elements"), (results, "results")):
        if mode == "xla" and any(map(_is_text, leaves)):
            return f"XLA takes no text, which the {what} are"
    if mapper.apply is None or not is_ragged([*elements, *results]):
        return None
    if mode in mapper.one_shape:
        return mapper.one_shape[mode]
    if is_ragged(results) and mapper.apply_ragged is None:
        return f"{mapper.title} stacks results of one shape, and the lengths of these differ"
    return None


def _is_text(leaf: Leaf) -> bool:
    return leaf.dtype == "string"
