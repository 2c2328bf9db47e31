"""The place of the runs on disk, their ids and their times of day."""

import re
import secrets
import time
from datetime import UTC, datetime

from workloads.places import PROJECT, home

__all__ = ["PROJECT", "StoreError", "home", "is_id", "new_id", "utc", "utc_now"]


class StoreError(Exception):
    """The store of runs cannot be read or written; the message says why."""


def new_id() -> str:
    """Return an id that cannot be guessed: 96 random bits in hexadecimal."""
    return secrets.token_hex(12)


def is_id(text: str) -> bool:
    return bool(re.fullmatch(r"[0-9a-f]{24}", text))


def utc(milliseconds: int) -> str:
    """Milliseconds since 1970 as a time of day in ISO 8601 and UTC: ``2026-01-31T12:00:00.000Z``."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_now() -> str:
    return utc(time.time_ns() // 1_000_000)
