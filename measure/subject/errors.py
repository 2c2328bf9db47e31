"""Errors of strategies, as an outcome, the line that a person can act on, and the full text."""

import re
import traceback

from measure.subject.messages import Failed

# The longest text of an error that is kept: TensorFlow's messages can hold whole graphs.
_MOST_DETAIL = 20_000
_MOST_LINE = 400
_NODE = re.compile(r"\{\{[^}]*\}\}\s*")
_CAUSE = re.compile(r"^\s*\w+(Error|Exception): ")
_OP_SUFFIX = re.compile(r"\s*\[Op:[^\]]*\]|\s*name:\s*$")
_NOISE = re.compile(
    r"^(Graph execution error|<stack traces unavailable>|"
    r"in user code:|File |Traceback|Detected at node|Stack trace for op|\s|\d+ root error|\(\d+\) |Hint:)"
)

# Errors of functions that do in Python what needs the values of a tensor → what is wrong, and what works instead.
_UNTRACED = "which has no value while it is traced"
_ONE_BY_ONE = "or take a strategy that calls the function for one element after the other, such as"
_PLAIN = (
    (
        "as a Python `bool`",
        f"the function decides in Python (if, while, and, or, not) by a tensor, {_UNTRACED}, and nothing converts that "
        f"here: write tf.where, or tf.cond for whole branches, {_ONE_BY_ONE} tf.map_fn",
    ),
    (
        "Iterating over a symbolic",
        f"the function loops in Python over a tensor, {_UNTRACED}, and nothing converts that here: write one op on the "
        f"whole axis, tf.unstack or tf.while_loop, {_ONE_BY_ONE} tf.map_fn",
    ),
    (
        re.compile("Cannot convert a symbolic tf.Tensor|'SymbolicTensor' object (has no attribute 'numpy'|cannot be)|"
                   "not 'SymbolicTensor'"),
        f"the function takes a tensor for a value of Python or NumPy, {_UNTRACED}: write TensorFlow's ops or "
        f"tf.numpy_function, {_ONE_BY_ONE} loop.eager",
    ),
)  # fmt: skip


def describe(error: BaseException) -> Failed:
    """The outcome, type, message and detail of an error."""
    detail = "".join(traceback.format_exception(error)).strip()
    if len(detail) > _MOST_DETAIL:
        # Cut at the end of a line, where there is one: the rest of a path could not be told from other words.
        first, last = detail[: _MOST_DETAIL // 2], detail[-_MOST_DETAIL // 2 :]
        detail = "\n".join((first, "[…]", last.partition("\n")[2] or last))
    name = type(error).__name__
    text = str(getattr(error, "message", None) or error)
    if isinstance(error, SystemExit):
        text = f"the strategy asked Python to exit with status {text or 0}"
    out_of_memory = isinstance(error, MemoryError) or name == "ResourceExhaustedError" or "RESOURCE_EXHAUSTED" in text
    message = shorten(text).removeprefix(f"{name}: ") or name
    return Failed("out_of_memory" if out_of_memory else "failed", name, message, detail)


def shorten(text: str) -> str:
    """The line of one of TensorFlow's messages that says what was wrong."""
    for pattern, sentence in _PLAIN:
        if re.search(pattern, text):
            return sentence
    lines = [_OP_SUFFIX.sub("", _NODE.sub("", line)) for line in text.splitlines()]
    if text.startswith("in user code:"):
        # Raised while tracing: the cause stands after the traceback, and may itself have several lines.
        causes = [number for number, line in enumerate(lines) if _CAUSE.match(line)]
        if causes:
            return _from(lines, causes[-1])
    telling = [number for number, line in enumerate(lines) if line.strip() and not _NOISE.match(line)]
    filled = [number for number, line in enumerate(lines) if line.strip()]
    # Errors raised while tracing are wrapped («in user code: …»): the cause is the last line.
    return _from(lines, (telling or filled[-1:] or [0])[0])


def _from(lines: list[str], number: int) -> str:
    """The line with this number, and what follows a colon at its end."""
    line = "".join(lines[number : number + 1]).strip()
    for more in lines[number + 1 :]:
        if not line.endswith(":"):
            break
        line = f"{line} {more.strip()}".rstrip()
    return line[:_MOST_LINE]
