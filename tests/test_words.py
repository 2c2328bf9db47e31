"""Texts in plain words: what was once said in other ones is not said like that again."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("measure", "strategies", "views", "workloads")
# Riddles and half sentences that were on the pages.
OUT = (
    "Its memory over the least",
    "and, for a map of winners",
    "I have",
    "Cancelled: cancelled",
    ", all of it output",
    "the latencies do not",
    "order holds among what was sampled",
    "nothing beats these in both",
    "their options of numbers",
    "second entry",
    "of the time that it took then",
)


def said(text: str) -> Iterator[str]:
    """The texts of a module: constants that are put together stand as one, and docstrings count too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@functools.cache
def texts() -> list[tuple[Path, str]]:
    modules = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [
        *((path, text) for path in modules for text in said(path.read_text())),
        *((path, " ".join(path.read_text().split())) for path in pages),
    ]


@pytest.mark.parametrize("words", OUT)
def test_words_that_are_out_are_said_nowhere(words: str) -> None:
    places = [f"{path.relative_to(ROOT)}: {text[:120]}" for path, text in texts() if words in text]
    assert not places, "\n".join(places)


def test_a_text_that_is_put_together_is_seen() -> None:
    source = 'def f(n):\n    return f"{n} of " "the time that " f"it took then"\n'
    assert any("the time that it took then" in text for text in said(source))
