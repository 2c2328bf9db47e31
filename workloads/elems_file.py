"""Elements that come as a file of arrays: a copy is kept, which every process of a run reads."""

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from workloads import places
from workloads.discovery import DiscoveryError

_FOLDER = "elems"
# The name of a copy, where a JSON document quotes the code that loads it.
_NAMED = re.compile(rb'\\"' + _FOLDER.encode() + rb'\\", \\"([^"/\\]+-[0-9a-f]{12}\.np[yz])\\"')
# What the elements are called in the code that loads them: a name that no code has by chance.
NAME = "elements_of_file"
_LOADING = """\
import os
import pathlib
import numpy
{} = numpy.load(pathlib.Path(  # which stays where it was measured, until newer ones take its room
    os.environ.get("MAPBENCH_HOME") or pathlib.Path.home() / ".mapbench", "{}", "{}"
))"""
# A process that derives what is known of a function may take as much, and would refuse more after minutes of copying.
MOST_BYTES = 4 * 2**30
# Of copies, as many bytes stay: those that were given last.
KEPT_BYTES = 4 * MOST_BYTES


def too_many(held: int) -> str:
    """The end of a sentence on elements that hold so many bytes."""
    return f"{held / 2**30:.1f} GiB, and at most {MOST_BYTES >> 30} GiB can be measured: give fewer or smaller elements"


def named(document: bytes) -> set[str]:
    """The names of the copies that functions in a JSON document load."""
    return {name.decode() for name in _NAMED.findall(document)}


def remove(names: Iterable[str]) -> None:
    """Remove copies, of which no function is left."""
    for name in names:
        with contextlib.suppress(OSError):
            (places.home() / _FOLDER / name).unlink()


def store(file: str) -> str:
    """Keep a copy of a file ``.npy`` or ``.npz``, for which the oldest may go; the code that loads it as `NAME`. Raises
    `DiscoveryError` with a sentence where it cannot be read or is larger than `MOST_BYTES`."""
    path, folder = Path(file), places.home() / _FOLDER
    try:
        if (held := path.stat().st_size) > MOST_BYTES:
            raise DiscoveryError(f"{file} holds {too_many(held)}")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A process may be reading the copy that is there: it is replaced as a whole.
        with tempfile.TemporaryDirectory(dir=folder) as beside:
            copy = shutil.copyfile(path, Path(beside, "copy"))
            with copy.open("rb") as data:
                digest = hashlib.file_digest(data, "sha256").hexdigest()[:12]
            name = f"{path.stem}-{digest}{path.suffix}"
            copy.chmod(0o600)
            os.replace(copy, folder / name)
    except OSError as error:
        raise DiscoveryError(f"{file} cannot be read: {error.strerror}") from None
    held = 0
    with contextlib.suppress(OSError):  # another process prunes too
        copies = [(one.stat(), one) for one in folder.iterdir() if one.is_file()]
        for status, one in sorted(copies, key=lambda copy: copy[0].st_mtime_ns, reverse=True):
            held += status.st_size
            if held > KEPT_BYTES:
                one.unlink()
    return _LOADING.format(NAME, _FOLDER, name) + f"\n{NAME} = dict({NAME})" * (path.suffix == ".npz")
