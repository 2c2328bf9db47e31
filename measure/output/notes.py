"""Sentences about strategies, each once, with the names of all strategies that it is said of. Pure."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

_Name = TypeVar("_Name")
_Sentence = TypeVar("_Sentence", bound=Hashable)


def by_sentence(notes: Iterable[tuple[_Name, _Sentence]]) -> list[tuple[list[_Name], _Sentence]]:
    """The sentences of (name, sentence), each once and with its names, in the order in which they came."""
    names: dict[_Sentence, list[_Name]] = {}
    for name, sentence in notes:
        names.setdefault(sentence, []).append(name)
    return [(its_names, sentence) for sentence, its_names in names.items()]


def in_words(notes: Iterable[tuple[str, str]]) -> list[str]:
    """The same in words, each name once: ``a.xla, b.graph: every call traces a function anew``."""
    return [f"{', '.join(dict.fromkeys(names))}: {sentence}" for names, sentence in by_sentence(notes)]
