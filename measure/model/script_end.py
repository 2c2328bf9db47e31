"""The end of a script that was run for its figures, as run files keep it."""

from typing import Any

import msgspec

MOST_FIGURES_BYTES = 2**20
_LONGEST_NAME, _LONGEST_TEXT = 200, 20_000
_MOST_DEPTH = 4
_MOST_NUMBER = 2**63


class ScriptEnd(msgspec.Struct, frozen=True, kw_only=True):
    """``figures``: what the script reported; ``error``: why it failed, with the line, empty where it ran through;
    ``ended``: that is no failure of its own, since it was cancelled, took too long or needed too much memory;
    ``printed``: the end of its output; ``seconds``: how long it took."""

    source: str
    figures: dict[str, Any] = {}
    error: str = ""
    ended: bool | msgspec.UnsetType = msgspec.UNSET
    printed: str = ""
    seconds: float = 0.0


def refusal(figures: dict[str, Any]) -> str | None:
    """The reason why figures cannot be kept; None if they can."""
    size = len(msgspec.json.encode(figures))
    if size > MOST_FIGURES_BYTES:
        return f"there are {size >> 10:,} KiB of figures, and {MOST_FIGURES_BYTES >> 10:,} KiB are allowed"
    return _fault(figures, 0)


def _fault(value: Any, depth: int) -> str | None:
    if depth > _MOST_DEPTH:
        return f"figures are nested more than {_MOST_DEPTH} deep"
    if isinstance(value, dict):
        for name in value:
            if len(name) > _LONGEST_NAME or not name.isprintable():
                return f"a name has up to {_LONGEST_NAME} signs that can be printed, and {name[:40]!r} … is none"
        value = list(value.values())
    if isinstance(value, list):
        return next((fault for item in value if (fault := _fault(item, depth + 1))), None)
    if isinstance(value, str) and (len(value) > _LONGEST_TEXT or "\0" in value):
        return f"a text has up to {_LONGEST_TEXT:,} signs that can be shown, and {value[:40]!r} … is none"
    if isinstance(value, int) and abs(value) > _MOST_NUMBER:
        return "a whole number is larger than 64 bits"
    return None
