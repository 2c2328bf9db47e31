"""The refusal of a run file from elsewhere: one sentence that says what is wrong with it, and where."""

from typing import NoReturn

# Keys and indices from the whole file to a value in it.
Path = tuple[str | int, ...]
_MOST_QUOTED = 60  # signs
# Of a sentence that quotes a whole value: its beginning, and its end, which has the path.
_BEGINNING, _END = 700, 200


def refuse(path: Path, reason: str) -> NoReturn:
    """Raise ValueError with the reason and the path, as msgspec writes it."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{quoted(part)}" for part in path)
    raise ValueError(f"this is not a valid run file: {reason} - at `${''.join(parts)}`")


def printable(sentence: str) -> str:
    """A sentence that quotes a file, for a terminal: what is no sign of a text is written as its code, and of a very
    long one the middle is left out."""
    text = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in sentence)
    return text if len(text) <= _BEGINNING + _END else f"{text[:_BEGINNING]}…{text[-_END:]}"


def quoted(value: object) -> str:
    """The part of a value that a sentence has room for."""
    text = str(value)
    return text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}…"
