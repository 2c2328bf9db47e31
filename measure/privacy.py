"""Texts that go into a run's file, without what tells of the person who measured: the folders of a machine."""

import re
from pathlib import Path

_OWN = Path(__file__).resolve().parent.parent.as_posix() + "/"
_FILE = re.compile(r'(?<=File ")(?:/|[A-Za-z]:[\\/])[^"\n]*(?=")')
_PACKAGES = re.compile(r".*/((?:site|dist)-packages/.*)")


def without_folders(text: str) -> str:
    """An error's text with files of tracebacks named from their package, or by their names, and the home as ``~``."""
    return re.sub(_home(), "~", _FILE.sub(lambda found: _short(found[0]), text))


def _short(path: str) -> str:
    path = path.replace("\\", "/")
    package = _PACKAGES.fullmatch(path)
    if package is not None:
        return package[1]
    return path.removeprefix(_OWN) if path.startswith(_OWN) else path.rpartition("/")[2]


def _home() -> str:
    """A pattern for this person's home folder, which matches nothing where there is none."""
    try:
        home = str(Path.home())
    except RuntimeError:
        return r"(?!)"
    # What only starts like it is another folder. Before it may stand anything: -I/home/somebody/include.
    return rf"{re.escape(home)}(?![\w-])" if home != Path.home().anchor else r"(?!)"
