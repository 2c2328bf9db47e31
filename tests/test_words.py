"""Texts in plain words: what was once said in other ones is not said like that again, and those of pages stand in one
file a room."""

import ast
import functools
import re
import string
from collections import Counter
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
    "what there is is not",
    "to what this run can tell",
    "ULP say nothing of",
    "in so little memory",
    "from of the second",
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


# --- the texts of a room of pages, in its texts.py -------------------------------------------------------------------

SHOWN = tuple(sorted(path.parent for path in (ROOT / "views").glob("*/__init__.py")))
FEWEST_WORDS = 4
# Style sheets and nothing else.
STYLE_SHEETS = "layout.py"
# No sentences: a rule of style, «p {color: red}» (a placeholder, «{count:,}», is none), a chart's expression, a script.
CODE = re.compile(r"\{\s*[\w-]+: |\bdatum\.|^\s*export default ")
TAG = re.compile(r"<[^>]*>")
WORD = re.compile(r"[^\w{]*[A-Za-z]+(['-][A-Za-z]+)*[^\w}]*")


def literals(source: str) -> Iterator[str]:
    """The texts of a module, docstrings and its log left out; what an f-string fills in stands as {}."""
    tree = ast.parse(source)
    out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("_log."):
            out |= {id(argument) for argument in node.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            out |= {id(part) for part in node.values}
            yield "".join(parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in out:
            yield node.value


def sentences(source: str) -> list[str]:
    """The texts of a module that a person reads: they have some words between the tags of HTML, and are no code."""
    return [
        text
        for text in literals(source)
        if not CODE.search(text)
        and sum(bool(WORD.fullmatch(word)) for word in TAG.sub(" ", text).split()) >= FEWEST_WORDS
    ]


def constants(room: Path) -> dict[str, ast.expr]:
    """The constants of a room's texts by name; nothing else may stand there."""
    docstring, *rest = ast.parse((room / "texts.py").read_text()).body
    assert isinstance(docstring, ast.Expr)
    assert all(isinstance(part, ast.Assign) and ast.unparse(part.targets[0]).isupper() for part in rest)
    return {ast.unparse(part.targets[0]): part.value for part in rest}


def in_constant(value: ast.expr) -> set[str]:
    """The texts of a constant: its own, or those of a table without its keys."""
    keys = {id(key) for table in ast.walk(value) if isinstance(table, ast.Dict) for key in table.keys}
    return {
        part.value
        for part in ast.walk(value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in keys
    }


def modules(room: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(room.glob("*.py")) if path.name != "texts.py"}


def named(node: ast.AST) -> list[str]:
    """The constants of `texts` that a piece of code names."""
    return [
        part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "texts"
    ]


def misfilled(source: str, fields: dict[str, set[str]]) -> list[str]:
    """The calls of ``texts.NAME.format`` that leave a placeholder empty, or fill in what no text has."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    calls = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "format"]
    return [
        ast.unparse(call)
        for call in calls
        if (names := named(call.func))
        and {keyword.arg for keyword in call.keywords} != set().union(*(fields[name] for name in names))
    ]


@pytest.mark.parametrize("room", SHOWN, ids=lambda room: room.name)
def test_the_texts_of_a_room_stand_in_one_file(room: Path) -> None:
    astray = {name: sentences(source) for name, source in modules(room).items() if name != STYLE_SHEETS}
    assert not {name: said for name, said in astray.items() if said}


@pytest.mark.parametrize("room", SHOWN, ids=lambda room: room.name)
def test_every_text_of_a_room_is_used_and_none_stands_there_twice(room: Path) -> None:
    known = constants(room)
    used = {name for source in modules(room).values() for name in named(ast.parse(source))}
    used |= {part.id for value in known.values() for part in ast.walk(value) if isinstance(part, ast.Name)}
    assert used == set(known)
    often = Counter(text for value in known.values() for text in in_constant(value))
    assert not [text for text, times in often.items() if times > 1]


@pytest.mark.parametrize("room", SHOWN, ids=lambda room: room.name)
def test_every_placeholder_of_a_text_is_filled_in(room: Path) -> None:
    fields = {
        name: {field for text in in_constant(value) for _, field, *_ in string.Formatter().parse(text) if field}
        for name, value in constants(room).items()
    }
    assert not [call for source in modules(room).values() for call in misfilled(source, fields)]


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('x = "No run is kept yet."', 1),
        ('x = f"Run {run} is not known here."', 1),
        ('x = f"<p>{title}</p><b>measured on another machine</b>"', 1),
        ('x = "{count:,} of them were measured before"', 1),
        ('"""No run is kept yet."""\n_log.exception("No run is kept yet")', 0),
        ('x = "Run is here"', 0),
        ("x = '<p style=\"color: red and blue and green\">fn</p>'", 0),
        ('x = "main div button p {row-gap: 1rem}"', 0),
        ('x = "datum.low is less than it"', 0),
    ],
)
def test_a_text_outside_of_its_file_is_noticed(source: str, count: int) -> None:
    assert len(sentences(source)) == count


def test_a_placeholder_without_its_value_is_noticed() -> None:
    fields = {"ONE": {"count"}, "NONE": set[str]()}
    assert not misfilled("(texts.ONE if n else texts.NONE).format(count=n)", fields)
    assert misfilled("texts.ONE.format(number=n)", fields) and misfilled("texts.ONE.format()", fields)
    assert misfilled("texts.NONE.format(count=n)", fields)
