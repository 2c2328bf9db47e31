"""The two sides of a gate: checkouts of a person's own code, and the Pythons that execute it."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from measure.engine.bench import temporary_folder
from measure.pool.process import HERE, Interpreter
from measure.run.place import PROJECT
from measure.run.request import RequestError

# What a host imports, in whichever environment.
_PACKAGES = ("measure", "strategies", "workloads")
_VERSIONS = """
import json, platform
from importlib.metadata import version
print(json.dumps({"python": platform.python_version(), **{name: version(name) for name in ("tensorflow", "numpy")}}))
"""


@dataclass(frozen=True)
class Side:
    name: str
    folder: Path
    python: Interpreter

    def interpreter(self, file: str) -> Interpreter:
        """The Python for a file of the code, which imports what lies beside it, in its checkout and in ``src`` there:
        an installed package would be the same on both sides."""
        folders = (self.folder / file).parent, self.folder, self.folder / "src"
        return replace(self.python, folders=tuple(dict.fromkeys(map(str, folders))))


@contextlib.contextmanager
def environment(path: str) -> Iterator[Interpreter]:
    """The Python of another environment, as one that can measure. Raises `RequestError` with a sentence."""
    with temporary_folder() as project:
        for package in _PACKAGES:  # in a folder without the packages that are installed beside them here
            Path(project, package).symlink_to(PROJECT / package)
        python = os.path.abspath(path)  # and not where a link leads to, which knows nothing of its environment
        try:
            facts = msgspec.json.decode(_printed(python, "-c", _VERSIONS), type=dict[str, str])
        except (OSError, msgspec.DecodeError) as error:
            raise RequestError(f"{path} is no Python that can measure: {error}") from None
        yield Interpreter(python, Path(project), facts=facts)


@contextlib.contextmanager
def opened(name: str) -> Iterator[Side]:
    """A side by its name: a folder, a Python, or a revision of the repository of the current folder, whose files are
    in a temporary folder meanwhile. Raises `RequestError` with a sentence."""
    path, shown = Path(name), os.fsencode(name).decode(errors="replace")
    if name and os.path.isdir(path):
        folder = path.resolve()
        yield Side("the current folder" if folder == Path.cwd() else shown, folder, HERE)
    elif os.path.isfile(path) and os.access(path, os.X_OK):
        with environment(name) as python:
            facts = python.facts
            shown = f"{shown} (Python {facts['python']}, TensorFlow {facts['tensorflow']})"
            yield Side(shown, Path.cwd(), python)
    else:
        with temporary_folder() as temporary:
            checkout = Path(temporary, "checkout")
            checkout.mkdir()
            try:
                commit = _git("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
                # Into an index of its own: whenever this ends, the repository has nothing of it.
                index = {"GIT_INDEX_FILE": str(Path(temporary, "index"))}
                _git(f"--work-tree={checkout}", "read-tree", "--reset", "-u", commit, **index)
                folder = checkout / _git("rev-parse", "--show-prefix")
            except OSError as error:
                raise RequestError(
                    f"{shown!r} is no folder, no Python and no revision that git can bring: {error}"
                ) from None
            yield Side(f"{shown} ({commit[:9]})", folder, HERE)


def _git(*arguments: str, **environment: str) -> str:
    """What git prints. A hook of the repository is not executed."""
    return _printed("git", "-c", f"core.hooksPath={os.devnull}", *arguments, **environment)


def _printed(*command: str, **environment: str) -> str:
    """What a command prints. Raises OSError with its last line where it fails."""
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        raise OSError("".join(done.stderr.strip().splitlines()[-1:]) or f"exit status {done.returncode}")
    return done.stdout.strip()
