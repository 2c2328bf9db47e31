"""Texts that go into a run's file, without what tells of the person who measured: the folders of a machine. Addresses
in its memory, which tell nothing, are left out as well.

What subjects say comes in at one place, `measure.pool.dialogue`, and is cleaned there, whatever field it is in.
"""

import contextlib
import os
import re
from typing import Any

import msgspec

from measure.run.place import PROJECT
from workloads.discovery import without_addresses

# An absolute path: between quotes it may hold blanks, elsewhere it ends at a blank or a sign, and begins where no word,
# bracket or other path ends: map/while/mul is an op. TensorFlow's names of devices (/job:localhost/…) are none.
_QUOTED = re.compile(r"""(?<=(["'`]))(?:~|/(?!\w+:)[^"'`/\n]+)/[^"'`\n]*(?=\1)""")
_SIGN = r"""\s"'`,;:()<>|"""
_BARE = re.compile(
    rf"(?:(?<![\w.)\]}}/~])|(?<=file://))(?:~|/(?!\w+:)[^/{_SIGN}]+)/(?:[^{_SIGN}]*[^.{_SIGN}])?"  # no dot at its end
)
_PACKAGE = re.compile(r"(?:site|dist)-packages/.*")


def cleaned(value: Any) -> Any:
    """Return what a process said with all its texts as they may be told: what is in a line of JSON, or lists and dicts
    of texts, numbers and such. A line that cannot be read stays one."""
    if isinstance(value, bytes):
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return cleaned(msgspec.json.decode(value))
    if isinstance(value, str):
        return without_folders(without_addresses(value))
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        return {key: cleaned(item) for key, item in value.items()}
    return value


def without_folders(text: str) -> str:
    """Return a text in which absolute paths have become the names of their files, those of packages from the package
    on. A folder, or what could be one, is ``<path>``, and the home ``~``."""
    if "/" not in text:
        return text
    text = text.replace(f"{PROJECT.as_posix()}/", "")
    if len(home := os.path.expanduser("~")) > 1:
        text = re.sub(rf"{re.escape(home)}(?![\w-])", "~", text)
    return _BARE.sub(_short, _QUOTED.sub(_short, text))


def _short(match: re.Match[str]) -> str:
    if package := _PACKAGE.search(match[0]):
        return package[0]
    name = match[0].rpartition("/")[2]
    return name if "." in name[1:] else "<path>"
