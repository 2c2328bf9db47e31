"""Slugs of strategies as text: ``mapper.mode``, then ``?option=value&…`` with the options sorted."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any


def with_options(slug: str, options: Mapping[str, Any]) -> str:
    """The slug with these options, as far as it does not give them itself."""
    head, pairs = _parts(slug)
    missing = [f"{name}={value}" for name, value in options.items() if name not in map(_name, pairs)]
    return _joined(head, sorted([*pairs, *missing], key=_name)) if missing else slug


def without_options(slug: str, names: Collection[str]) -> str:
    """The slug without the options of these names."""
    head, pairs = _parts(slug)
    return _joined(head, [pair for pair in pairs if _name(pair) not in names])


def options(slug: str) -> dict[str, str]:
    """The options that the slug gives, each with its value as text."""
    return {_name(pair): pair.partition("=")[2] for pair in _parts(slug)[1]}


def renamed(words: str, slugs: Mapping[str, str]) -> str:
    """A sentence in which strategies have other slugs: ``slugs`` maps those in it to the new ones."""
    longest_first = sorted(slugs, key=len, reverse=True)
    pattern = rf"(?<![\w.])({'|'.join(map(re.escape, longest_first))})(?![\w?]|\.\w)"
    return re.sub(pattern, lambda match: slugs[match[1]], words) if slugs else words


def _parts(slug: str) -> tuple[str, list[str]]:
    """The slug's mapper and mode, and its options, each with its value."""
    head, _, tail = slug.partition("?")
    return head, [pair for pair in tail.split("&") if pair]


def _joined(head: str, pairs: Iterable[str]) -> str:
    return "?".join(filter(None, (head, "&".join(pairs))))


def _name(pair: str) -> str:
    return pair.partition("=")[0]
