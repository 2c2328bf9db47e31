"""Run files from elsewhere. Nothing in them is trusted: what is not valid is refused, with the path of the fault.

A file that passes can be shown, exported and analysed without surprises: its numbers are finite and in range, what
belongs together has the same length, and every name refers to something. Its texts may still hold anything that can be
printed: whoever shows one escapes it. Its code is text, and is never executed.
"""

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from measure.model.run import Run
from measure.model.run_file import decode, encode
from measure.store import values, whole
from measure.store.refusal import Path, printable, refuse

# A comparison takes some 100 kB, a sweep of many points a few MB, and one of 400 points and all strategies, each with a
# dozen rounds in five processes, 63 MiB. The others keep what is read from taking much more room than its file does.
MOST_BYTES = 80 * 2**20
# Checking one of those takes seconds and some 300 MiB: a server that serves strangers allows less.
_MOST_VALUES = 5_000_000
_MOST_CONTAINERS = 800_000
# The fewest bytes of a large file for each, so that what is read takes no more than some five times its file.
_BYTES_OF_VALUE, _BYTES_OF_CONTAINER = 8, 80


def read(data: bytes, most_bytes: int = MOST_BYTES) -> Run:
    """The run in a file from elsewhere, of so many bytes at most. Raises ValueError with one sentence that says what is
    wrong, and where."""
    try:
        check_weight(data, "this file", most_bytes)
        run = decode(data)
        raw = _parsed(data)
        whole.check_size(run)
        _check_fields(raw, run, ())
        values.check(run)
        whole.check(run)
        # What a file leaves out has a default, which an export writes.
        check_weight(encode(run), "this file, written in full,", most_bytes)
    except RecursionError:  # runs of claims within runs of claims, and so on
        raise ValueError("this is not a valid run file: it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(printable(str(error))) from None
    return run


def check_weight(data: bytes, what: str, most_bytes: int = MOST_BYTES) -> None:
    """Refuse what is larger than a run can be, before it is parsed. ``what``: how the sentence calls it."""
    if len(data) > most_bytes:
        allowed = f"{most_bytes // 2**20} MiB are allowed{' on this server' if most_bytes < MOST_BYTES else ''}"
        raise ValueError(f"{what} is too large: it has {len(data) / 2**20:.1f} MiB, and {allowed}")
    most_values = min(_MOST_VALUES, most_bytes // _BYTES_OF_VALUE)
    most_containers = min(_MOST_CONTAINERS, most_bytes // _BYTES_OF_CONTAINER)
    if data.count(b",") > most_values or data.count(b"[") + data.count(b"{") > most_containers:
        raise ValueError(f"{what} holds too many values to be a run")


class _Twice(dict[str, Any]):
    """An object in which ``name`` occurs more than once."""

    name: str


def first_twice(names: Iterable[str]) -> str:
    """The first name that has occurred before, in as many steps as there are names: a file may have a million."""
    seen: set[str] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def _parsed(data: bytes) -> Any:
    """The document as it is written. Refuses what says one thing twice: the one that comes first would be lost."""
    any_twice = False

    def take(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal any_twice
        value = dict(pairs)
        if len(value) == len(pairs):
            return value
        any_twice = True
        twice = _Twice(value)
        twice.name = first_twice(name for name, _ in pairs)
        return twice

    raw = json.loads(data, object_pairs_hook=take)
    if any_twice:
        _check_names(raw, ())
    return raw


def _check_names(raw: Any, path: Path) -> None:
    """Refuse the first name that occurs twice in an object."""
    if isinstance(raw, _Twice):
        refuse((*path, raw.name), "it occurs a second time")
    items = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for key, item in items:
        _check_names(item, (*path, key))


def _check_fields(raw: Any, value: Any, path: Path) -> None:
    """Refuse fields that the schema does not have: they would be lost."""
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        for name in raw:
            if name not in names:
                refuse((*path, name), "there is no such field")
        for name in names:
            if name in raw:
                _check_fields(raw[name], getattr(value, name), (*path, name))
    elif isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
        for index, (there, item) in enumerate(zip(raw, value, strict=False)):  # a warning may have come to the file's
            _check_fields(there, item, (*path, index))
