"""A decision on a run: made of what people write, and as lines of plain text."""

import getpass

import msgspec

from measure.run import text
from measure.run.place import utc_now
from measure.run.run import Decision

MOST_TITLE, MOST_NOTE = 200, 2_000  # signs


def make(title: str = "", decision: str = "", note: str = "", by: str = "") -> Decision | msgspec.UnsetType:
    """The decision as of now; UNSET where nothing but a name is written. Raises ValueError with a sentence."""
    lines = {name: " ".join(text.COMMANDS.sub("", words).split()) for name, words in (("title", title), ("by", by))}
    notes = {name: text.COMMANDS.sub("", words).strip() for name, words in (("decision", decision), ("note", note))}
    if not lines["title"] and not any(notes.values()):
        return msgspec.UNSET
    try:
        return msgspec.convert({**lines, **notes, "at": utc_now()}, Decision)
    except msgspec.ValidationError:
        raise ValueError(
            f"this is too long: a title and a name have at most {MOST_TITLE} signs, a decision and a note {MOST_NOTE:,}"
        ) from None


def lines(decision: Decision) -> list[str]:
    """The decision as a reader of plain text sees it."""
    signed = ", ".join(filter(None, (decision.by and f"by {decision.by}", decision.at[:10])))
    return [*filter(None, (decision.title, decision.decision, decision.note)), signed]


def account() -> str:
    """The name of the account that this process has; empty where it has none, as in a container."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
