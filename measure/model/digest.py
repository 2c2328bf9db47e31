"""The digests of a run file: by them is seen that a part of it is not as Mapbench wrote it, and which one.

One for each field, and where a field holds what arrived one after another, one for each item: the first 16 digits of
the SHA-256 of its JSON without blanks, the names in it sorted. They notice an accident and a thoughtless change, and
prove nothing against whoever computes them anew.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

# Of a run's fields, those that have a digest for each item.
_ITEMS = ("measurements", "points", "evidence")
_FIELD = "digest"
_DIGITS = 16
_MOST_NAMED = 3

Digests = dict[str, str | list[str]]


def of_run(run: msgspec.Struct) -> Digests:
    """The digests of a run that is about to be written."""
    fields = {name: getattr(run, name) for name in run.__struct_fields__ if name != _FIELD}
    return {
        name: [_of(item) for item in value] if name in _ITEMS else _of(value)
        for name, value in fields.items()
        if value is not msgspec.UNSET
    }


def changed(data: bytes, said: Mapping[str, str | Sequence[str]]) -> list[str]:
    """The paths of what is not as the digests in the file say, in the order of the file."""
    fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    return list(_changed({name: raw for name, raw in fields.items() if name != _FIELD}, said))


def named(paths: Sequence[str]) -> str:
    """Paths for a sentence, the first ones of many."""
    more = len(paths) - _MOST_NAMED
    return ", ".join(paths[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _changed(fields: Mapping[str, msgspec.Raw], said: Mapping[str, str | Sequence[str]]) -> Iterator[str]:
    for name, raw in fields.items():
        digest = said.get(name)
        if name not in _ITEMS or not isinstance(digest, list):
            if digest != _of(msgspec.json.decode(raw)):
                yield f"$.{name}"
            continue
        items = msgspec.json.decode(raw, type=list[msgspec.Raw])
        for place in range(max(len(items), len(digest))):
            item = msgspec.json.decode(items[place]) if place < len(items) else None
            if item is None or place >= len(digest) or _of(item) != digest[place]:
                yield f"$.{name}[{place}]"
    yield from (f"$.{name}" for name in said if name not in fields)


def _of(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:_DIGITS]
