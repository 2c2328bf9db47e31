"""Where what is kept lies, and what runs are called: what anyone may ask without opening the store."""

import re
import secrets

from workloads.places import PROJECT, home

__all__ = ["PROJECT", "StoreError", "home", "is_id", "new_id"]

_ID = re.compile(r"[0-9a-f]{24}")


class StoreError(Exception):
    """The store of runs cannot be read or written; the message says why."""


def new_id() -> str:
    """An id that cannot be guessed: 96 random bits in hexadecimal."""
    return secrets.token_hex(12)


def is_id(text: str) -> bool:
    return bool(_ID.fullmatch(text))
