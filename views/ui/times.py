"""Times of day as whoever looks at the page counts them."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

_UTC = "UTC"


def local(time: str) -> str:
    """Return an ISO 8601 time in the reader's zone, to the minute; a text that is none as it is."""
    try:
        told = datetime.fromisoformat(time)
        told = told if told.tzinfo else told.replace(tzinfo=UTC)
        return told.astimezone(_zone()[1]).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return time[:16].replace("T", " ")


def zone() -> str:
    """Return the name of the reader's zone, as the browser has it; UTC where it is not known here."""
    return _zone()[0]


def _zone() -> tuple[str, tzinfo]:
    name = st.context.timezone or _UTC
    try:
        return name, ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return _UTC, ZoneInfo(_UTC)
