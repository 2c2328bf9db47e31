"""Slugs of strategies as text: ``mapper.mode``, then ``?option=value&…`` with the options sorted."""

from collections.abc import Collection, Mapping
from typing import Any


def with_options(slug: str, more: Mapping[str, Any]) -> str:
    """The slug with these options, as far as it does not give them itself."""
    return _written(slug, dict(sorted({**more, **options(slug)}.items())))


def without_options(slug: str, names: Collection[str]) -> str:
    return _written(slug, {name: value for name, value in options(slug).items() if name not in names})


def options(slug: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in slug.partition("?")[2].split("&") if pair)
    return {name: value for name, _, value in pairs}


def _written(slug: str, chosen: Mapping[str, Any]) -> str:
    pairs = "&".join(f"{name}={value}" for name, value in chosen.items())
    return "?".join(filter(None, (slug.partition("?")[0], pairs)))
