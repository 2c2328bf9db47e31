"""The place of the runs on disk, their ids and their times of day, and files that are written whole or not at all."""

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from workloads.places import PROJECT, home

__all__ = ["PROJECT", "StoreError", "home", "is_id", "new_id", "utc", "utc_now", "write"]


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


def write(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file that somebody asked for: whole, or it stays as it was. Raises OSError."""
    if path.is_symlink() or (path.exists() and not path.is_file()):  # such as a terminal or a pipe
        with path.open("wb") as file:
            file.writelines(parts)
        return
    beside = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            file.writelines(parts)
        if path.exists():
            shutil.copymode(path, beside)
        os.replace(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
