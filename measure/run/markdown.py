"""Markdown as GitHub and GitLab show it, of words that may have been written by anybody: never a link or a mention."""

import re
from collections.abc import Iterable, Sequence

from measure.run import text

# Signs that mean something to Markdown wherever they are; below, those that do at the start of a line.
_MARKDOWN = re.compile(r"([\\`*\[\]<>|~$#]|(?<!\w)_|_(?!\w)|&(?=[#\w]))")
_AT_START = re.compile(r"^(\d*)([-+=.)])(?=\s|$)")
# Mentions of names, numbers of issues, addresses and emoji are found in what is shown, where an escaped sign is as good
# as any. An invisible sign behind it keeps it from being found.
_FOUND_LATER = re.compile(r"([@#]|:(?=//|[\w+-]+:)|\b(?:www|gh)(?=[.-]))(?=\S)", re.IGNORECASE)
_WORD_JOINER = "\u2060"
_NAME = re.compile(r"[\w.?=,]+")


def plain(words: str) -> str:
    """Return Markdown that shows ``words`` on one line, as they are."""
    joined = _FOUND_LATER.sub(rf"\1{_WORD_JOINER}", text.COMMANDS.sub("", " ".join(words.split())))
    return _AT_START.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\1", joined))


def code(name: str) -> str:
    """Return a name as code, where it is one that code can hold."""
    return f"`{name}`" if _NAME.fullmatch(name) else plain(name)


def grid(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body))
