"""Texts that go into a run's file, without what tells of the person who measured: the folders of a machine. Addresses
in its memory, which tell nothing, are left out as well.

What subjects say comes in at one place, `measure.engine.dialogue`, and is cleaned there, whatever field it is in.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure.model.place import PROJECT
from workloads.own import without_addresses

_OWN = PROJECT.as_posix() + "/"
_HIDDEN = "<path>"
_FILE = re.compile(r'(?<=File ")(?:/|[A-Za-z]:[\\/])[^"\n]*(?=")')
_PACKAGES = re.compile(r".*/((?:site|dist)-packages/.*)")
# A path between quotes may hold blanks. TensorFlow's names of devices (/job:localhost/…) are none, nor is a lone slash.
_QUOTED = re.compile(
    r"""(?<=(['"`]))(?!/\w+:)(?:~\w*[\\/]|\.{0,2}/(?![\s/])|[A-Za-z]:[\\/]|\\\\(?=\w))[^'"`\n]*(?=\1)"""
)
# Elsewhere it ends at a blank, and begins where no word, bracket or other path ends: map/while/mul is an op.
_BEGINS = r"(?:(?<![\w./\\)\]}])|(?<=(?<!\w)-[A-Z])|(?<=file://))"
_PART = r"""[^\s/\\:;,'"`<>|()\[\]{}]+"""
_BARE = re.compile(
    rf"(?:{_BEGINS}\.{{0,2}}/|~\w*/)(?!/)(?:{_PART}/+)*(?:{_PART})?"
    rf"|(?<!\w)(?:[A-Za-z]:[\\/]+|\\\\(?=\w))(?:{_PART}[\\/]+)*(?:{_PART})?"
)
_HAS_SUFFIX = re.compile(r"[^.].*\.[A-Za-z]\w*$")


def cleaned(value: Any) -> Any:
    """Return what a process said with all its texts as they may be told: lists and dicts of texts, numbers and such."""
    if isinstance(value, str):
        return without_folders(without_addresses(value))
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        return {key: cleaned(item) for key, item in value.items()}
    return value


def without_folders(text: str) -> str:
    """Return a text in which paths have become the names of their files, those of packages from the package on. A
    folder, or what could be one, is ``<path>``, and the home ``~``."""
    if "/" not in text and "\\" not in text:
        return text
    text = _FILE.sub(lambda match: _short(match[0], _name), text)
    text = re.sub(_home(), "~", text.replace(_OWN, ""))
    for pattern in (_QUOTED, _BARE):
        text = pattern.sub(lambda match: _short(match[0], _name_of_file), text)
    return text


def _short(path: str, name: Callable[[str], str]) -> str:
    path = re.sub(r"\\+", "/", path)
    package = _PACKAGES.fullmatch(path)
    if package is not None:
        return package[1]
    return path.removeprefix(_OWN) if path.startswith(_OWN) else name(path)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _name_of_file(path: str) -> str:
    ended = path.rstrip(".")  # a sentence may end here
    *folders, name = ended.split("/")
    if _HAS_SUFFIX.search(name):
        return name + path[len(ended) :]
    # One word after a slash is no path, but a rate, a tag or the like.
    return path if folders == [""] else _HIDDEN + path[len(ended) :]


def _home() -> str:
    """A pattern for this person's home folder, which matches nothing where there is none."""
    try:
        home = str(Path.home())
    except RuntimeError:
        return r"(?!)"
    # What only starts like it is another folder. Before it may stand anything: -I/home/somebody/include.
    return rf"{re.escape(home)}(?![\w-])" if home != Path.home().anchor else r"(?!)"
