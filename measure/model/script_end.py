"""The end of a script that was run for its figures, as run files keep it."""

from typing import Any

import msgspec

from measure.model.bounds import LongText, Name, Plain, Seconds, Struct

MOST_FIGURES_BYTES = 2**20
Figures = dict[Name, Plain]


class ScriptEnd(Struct, frozen=True, kw_only=True):
    """``figures``: what the script reported; ``error``: why it failed, with the line, empty where it ran through;
    ``ended``: that is no failure of its own, since it was cancelled, took too long or needed too much memory;
    ``printed``: the end of its output; ``seconds``: how long it took."""

    source: LongText
    figures: Figures = {}
    error: LongText = ""
    ended: bool | msgspec.UnsetType = msgspec.UNSET
    printed: LongText = ""
    seconds: Seconds = 0.0


def refusal(figures: dict[str, Any]) -> str | None:
    """The reason why figures cannot be kept; None if they can."""
    size = len(msgspec.json.encode(figures))
    if size > MOST_FIGURES_BYTES:
        return f"there are {size >> 10:,} KiB of figures, and {MOST_FIGURES_BYTES >> 10:,} KiB are allowed"
    try:
        msgspec.convert(figures, Figures)
    except msgspec.ValidationError as error:
        return str(error)
    return None
