"""Times of day as whoever looks at the page counts them."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from views.ui import look

_UTC = "UTC"


def local(time: str) -> str:
    """Return an ISO 8601 time in the reader's zone, to the minute; a text that is none as it is."""
    try:
        told = datetime.fromisoformat(time)
        told = told if told.tzinfo else told.replace(tzinfo=UTC)
        return told.astimezone(_zone()[1]).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return time[:16].replace("T", " ")


def since(time: str | None) -> str:
    """Return how long ago an ISO 8601 time was, coarse: 40 s, 3 min."""
    try:
        passed_s = (datetime.now(UTC) - datetime.fromisoformat(time or "")).total_seconds()
    except (ValueError, TypeError):
        return look.MISSING
    return look.duration(passed_s if passed_s < 60 else passed_s // 60 * 60)


def zone() -> str:
    """Return the name of the reader's zone, as the browser has it; UTC where it is not known here."""
    return _zone()[0]


def _zone() -> tuple[str, tzinfo]:
    name = st.context.timezone or _UTC
    try:
        return name, ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return _UTC, ZoneInfo(_UTC)
