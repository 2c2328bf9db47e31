"""Where what is kept lies, and what runs are called: what anyone may ask without opening the store."""

import os
import re
import secrets
from pathlib import Path

_ID = re.compile(r"[0-9a-f]{24}")


class StoreError(Exception):
    """The store of runs cannot be read or written; the message says why."""


def home() -> Path:
    """The folder of everything that is kept: ``MAPBENCH_HOME``, or ``.mapbench`` in the user's home."""
    return Path(os.environ.get("MAPBENCH_HOME") or Path.home() / ".mapbench")


def new_id() -> str:
    """An id that cannot be guessed: 96 random bits in hexadecimal."""
    return secrets.token_hex(12)


def is_id(text: str) -> bool:
    return bool(_ID.fullmatch(text))
