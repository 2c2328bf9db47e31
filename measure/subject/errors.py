"""Errors of strategies, as an outcome, the line that a person can act on, and the full text."""

import re
import traceback

from measure.subject.messages import Failed

# The longest text of an error that is kept: TensorFlow's messages can hold whole graphs.
_MOST_DETAIL = 20_000
_MOST_LINE = 400
_CAUSE = re.compile(r"\s*\w+(Error|Exception): ")
# Parts of a line that name nodes and ops of TensorFlow's, and lines that say nothing of what was wrong.
_NAMES = re.compile(r"\{\{[^}]*\}\}\s*|\s*\[Op:[^\]]*\]|\s*name:\s*$")
_NOISE = re.compile(
    r"$|\s|Graph execution error|<stack traces unavailable>|in user code:|File |Traceback|Detected at node|"
    r"Stack trace for op|\d+ root error|\(\d+\) |Hint:"
)

# Errors of functions that do in Python what needs the values of a tensor → what is done, and what works instead.
_PLAIN = {
    "as a Python `bool`": "decides in Python (if, while, and, or, not) by a tensor: write tf.where, or tf.cond",
    "Iterating over a symbolic": "loops in Python over a tensor: write one op on the whole axis, or tf.while_loop",
    "Cannot convert a symbolic tf.Tensor|'SymbolicTensor' object (has no attribute 'numpy'|cannot be)|"
    "not 'SymbolicTensor'": "takes a tensor for a value of Python or NumPy: write TensorFlow's ops, or tf.py_function",
}


def describe(error: BaseException) -> Failed:
    detail = "".join(traceback.format_exception(error)).strip()
    if len(detail) > _MOST_DETAIL:
        # From the beginning of a line on: the rest of a path could not be told from other words.
        detail = "[…]\n" + detail[-_MOST_DETAIL:].partition("\n")[2]
    name = type(error).__name__
    text = str(getattr(error, "message", None) or error)
    if isinstance(error, SystemExit):
        text = f"the strategy asked Python to exit with status {text or 0}"
    out_of_memory = isinstance(error, MemoryError) or name == "ResourceExhaustedError" or "RESOURCE_EXHAUSTED" in text
    message = shorten(text).removeprefix(f"{name}: ") or name
    return Failed("out_of_memory" if out_of_memory else "failed", name, message, detail)


def shorten(text: str) -> str:
    """The line of one of TensorFlow's messages that says what was wrong, and the lines that a colon at its end
    announces."""
    for pattern, sentence in _PLAIN.items():
        if re.search(pattern, text):
            return f"the function is traced, when tensors have no values, and {sentence}, or take loop.eager"
    lines = [line for line in (_NAMES.sub("", line) for line in text.splitlines()) if line.strip()]
    # Raised while tracing («in user code: …»), the cause stands after the traceback.
    causes = [place for place, line in enumerate(lines) if _CAUSE.match(line) and text.startswith("in user code:")]
    telling = [place for place, line in enumerate(lines) if not _NOISE.match(line)]
    first = [*causes[-1:], *telling, len(lines) - 1][0]
    line = ""
    for more in lines[max(0, first) :]:
        line = f"{line} {more.strip()}".strip()
        if not line.endswith(":"):
            break
    return line[:_MOST_LINE]
