"""Sentences about strategies, each once, with the names of all strategies that it is said of. Pure."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

_Name = TypeVar("_Name")
_Said = TypeVar("_Said", bound=Hashable)


def by_sentence(said: Iterable[tuple[_Name, _Said]]) -> list[tuple[list[_Name], _Said]]:
    """The sentences of (name, sentence), each once and with its names, in the order in which they came."""
    names: dict[_Said, list[_Name]] = {}
    for name, sentence in said:
        names.setdefault(sentence, []).append(name)
    return [(known, sentence) for sentence, known in names.items()]


def in_words(said: Iterable[tuple[str, str]]) -> list[str]:
    """The same in words, each name once: ``a.xla, b.graph: every call traces a function anew``."""
    return [f"{', '.join(dict.fromkeys(names))}: {sentence}" for names, sentence in by_sentence(said)]
