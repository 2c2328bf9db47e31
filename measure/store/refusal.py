"""The refusal of a run file from elsewhere: one sentence that says what is wrong with it, and where."""

from typing import NoReturn

# Keys and indices from the whole file to a value in it.
Path = tuple[str | int, ...]
_MOST_QUOTED = 60  # signs


def refuse(path: Path, reason: str) -> NoReturn:
    """Raise ValueError with the reason and the path, as msgspec writes it."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{quoted(part)}" for part in path)
    raise ValueError(f"this is not a valid run file: {reason} - at `${''.join(parts)}`")


def printable(sentence: str) -> str:
    """A sentence that quotes a file, for a terminal: what is no sign of a text is written as its code."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in sentence)


def quoted(value: object) -> str:
    """The part of a value that a sentence has room for."""
    text = str(value)
    return text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}…"
