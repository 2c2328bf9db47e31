"""Times of day as the run file writes them."""

from datetime import UTC, datetime


def utc_now() -> str:
    """Now, in ISO 8601 and UTC, to the millisecond: ``2026-01-31T12:00:00.000Z``."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
