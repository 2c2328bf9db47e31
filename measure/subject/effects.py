"""Sentences on what was derived of a function, and on what mapping means for one that does more than compute."""

from workloads.functions import Facts

_REFERENCES = {
    "float64": "Results are compared with the function itself, run slice by slice in float64.",
    "own": "Results are compared with the function itself, run slice by slice in its own dtypes.",
    "given": "Results are compared with the reference that was given.",
}


def notes(
    facts: Facts, ops: set[str], draws: bool, prints: bool, changed: list[str], untraced: str, unknown: tuple[str, ...]
) -> list[str]:
    """Sentences on what was derived, and on what mapping means for a function that does more than compute."""
    said = [_REFERENCES[facts.reference]] if facts.reference in _REFERENCES else []
    if facts.reference == "shapes" and draws:
        said.append(
            "It draws random numbers, other ones in each strategy: shapes and dtypes are compared, values are not."
        )
    elif facts.reference == "shapes":
        said.append(
            "Its results change from call to call though it draws no random numbers, so it keeps state: the order of "
            "calls matters, and shapes and dtypes are compared, values are not."
        )
    if facts.asserts:
        said.append("It has assertions: a strategy that does not make them for every element is wrong.")
    if any(op.startswith("Assign") for op in ops):
        said.append("It assigns to a variable: how often and in which order depends on the strategy.")
    if any("PyFunc" in op for op in ops):
        said.append("It calls into Python, one element at a time, whatever the strategy; XLA cannot compile that.")
    if any(op.startswith("Print") for op in ops):
        said.append("It prints with tf.print: a strategy may print once for the batch, or not at all.")
    if prints or changed:
        does = "prints from Python" if prints else f"changes {', '.join(changed)}"
        said.append(f"It {does}: in a graph that happens while it is traced, not once for each element.")
    if untraced:
        said.append(f"It cannot be traced ({untraced}): strategies in graph mode and under XLA will fail.")
    if unknown:
        said.append(f"The work of {', '.join(unknown)} is not known: the limit is of bytes alone.")
    return said


def unsupported(facts: Facts, ops: set[str], untraced: str) -> dict[str, str]:
    if any("PyFunc" in op for op in ops):
        return {"*.xla": "XLA cannot compile a call into Python, which the function makes"}
    if "string" in str(facts.element):
        return {"*.xla": "XLA takes no text, which the elements are"}
    return {}
