"""Elements that come as a file of arrays: a copy is kept, which every process of a run reads."""

import hashlib
from pathlib import Path

from workloads import places
from workloads.discovery import DiscoveryError

_FOLDER = "elems"
# What the elements are called in the code that loads them: a name that no code has by chance.
NAME = "elements_of_file"


def kept(file: str) -> str:
    """Keep a copy of a file ``.npy`` or ``.npz``; the lines of code that load it as `NAME`.

    Raises `DiscoveryError` with a sentence where it cannot be read.
    """
    path = Path(file)
    try:
        data = path.read_bytes()
        name = f"{path.stem}-{hashlib.sha256(data).hexdigest()[:12]}{path.suffix}"
        folder = places.home() / _FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    except OSError as error:
        raise DiscoveryError(f"{file} cannot be read: {error.strerror}") from None
    lines = [
        "import os",
        "import pathlib",
        "import numpy",
        f"{NAME} = numpy.load(",
        '    pathlib.Path(os.environ.get("MAPBENCH_HOME") or pathlib.Path.home() / ".mapbench", '
        f'"{_FOLDER}", "{name}")',
        ")",
    ]
    return "\n".join([*lines, *([f"{NAME} = dict({NAME})"] if path.suffix == ".npz" else [])])
