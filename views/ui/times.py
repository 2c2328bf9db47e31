"""Times of day as whoever looks at the page counts them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import streamlit as st

from views.ui import look


def local(time: str) -> str:
    """An ISO 8601 time in the reader's zone, to the minute; a text that is none as it is."""
    try:
        moment = datetime.fromisoformat(time)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.astimezone(ZoneInfo(zone())).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return time[:16].replace("T", " ")


def since(time: str | None) -> str:
    """How long ago an ISO 8601 time with its zone was, coarse: 40 s, 3 min."""
    try:
        passed_s = (datetime.now(UTC) - datetime.fromisoformat(time or "")).total_seconds()
    except (ValueError, TypeError):
        return look.MISSING
    return look.duration(passed_s if passed_s < 60 else passed_s // 60 * 60)


def zone() -> str:
    """The name of the reader's zone, as the browser has it; UTC where that is not one of this machine's."""
    name = st.context.timezone or "UTC"
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        return "UTC"
