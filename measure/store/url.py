"""The address of the database, and what may be said of it: its password is shown nowhere, well written or not."""

import os
import re

import sqlalchemy as sa

from measure.model import place
from measure.model.place import StoreError

_HIDDEN = "…"
# What may be shown of an address that cannot be read: a word alone, or the name of a database before its colon.
_HARMLESS = re.compile(r"[\w./-]*")
_DATABASE = re.compile(r"[a-z][a-z0-9+]*(?=://)")


def text() -> str:
    """``MAPBENCH_STORE``, an URL as SQLAlchemy reads it, or a file in Mapbench's home."""
    return os.environ.get("MAPBENCH_STORE") or f"sqlite:///{place.home() / 'runs.db'}"


def parsed(written: str) -> sa.URL:
    """The address as SQLAlchemy reads it. Raises `StoreError`, which quotes only what cannot hold a password."""
    try:
        return sa.make_url(written)
    except (sa.exc.ArgumentError, ValueError):
        raise StoreError(
            f"MAPBENCH_STORE={shown(written)!r} is not an URL of a database, as sqlite:////folder/runs.db"
        ) from None


def shown(written: str) -> str:
    """The part of an address that can hold no password."""
    if _HARMLESS.fullmatch(written):
        return written
    database = _DATABASE.match(written)
    return f"{database[0]}://{_HIDDEN}" if database else _HIDDEN


def without_secrets(sentence: str, url: sa.URL) -> str:
    """A sentence of a driver, which may quote the address, without its password. A password that is not escaped is read
    as parts of the host and of others: where one of them looks odd, nothing of the sentence is shown."""
    if url.get_backend_name() == "sqlite":
        return sentence  # a file has none
    parts = (url.host, url.username, url.database)
    if url.query or not all(_HARMLESS.fullmatch(part or "") for part in parts):
        return f"it cannot be used; the reason is not shown, since {url.get_backend_name()}'s may quote a password"
    return sentence.replace(url.password, _HIDDEN) if url.password else sentence
