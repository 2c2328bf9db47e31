"""The project can be installed, and works from any folder."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.browser import ROOT, TRACEBACK, AppServer

PACKAGES = ("mapbench", "measure", "strategies", "views", "workloads")
BUILT_FROM = ("pyproject.toml", "setup.py", "requirements.txt", "README.md", "app.py", ".streamlit", *PACKAGES)
GIVEN = """
import numpy as np


def numbers(batch=8):
    return np.arange(batch, dtype=np.float32)


def halved(x):
    return x / 2
"""

# A whole comparison in fresh interpreters imports TensorFlow eight times; one of them finds what is there.
FRESH = r"""
from measure.engine.deriving import facts_of
from measure.engine.fresh_launcher import FreshLauncher
from workloads.functions import Given

given = Given(code="ones = [1.0] * 4\ndef half(x): return x / 2", function="half", elems="ones")
print(facts_of(FreshLauncher(finds_devices=False), given, {}, 0).size)
"""


class Installed(NamedTuple):
    """An environment with the project installed; ``folder`` is where its packages lie."""

    python: Path
    command: Path
    folder: Path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of the working tree, in an environment that has the packages of this one and nothing of the tree."""
    source, wheels, venv = (tmp_path_factory.mktemp(name) for name in ("source", "wheels", "venv"))
    for name in BUILT_FROM:  # a build leaves files beside what it builds
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, source / name)
    _pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", wheels, source)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    _pip("--python", python, "install", "--no-deps", *wheels.iterdir())
    folder = next(venv.glob("lib/python*/site-packages"))
    (folder / "these.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return Installed(python, venv / "bin" / "mapbench", folder)


def _pip(*arguments: str | Path) -> None:
    done = subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _outside(folder: Path, *command: str | Path, **variables: str) -> str:
    """What a command prints that is started in a folder from which the working tree cannot be imported."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env={**environment, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_that_the_project_runs_with_is_installed(installed: Installed):
    kept = [path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.suffix in (".py", ".json")]
    names = [path.relative_to(ROOT) for path in (*kept, ROOT / "app.py", ROOT / ".streamlit" / "config.toml")]
    assert [name for name in names if not (installed.folder / name).is_file()] == []


def test_the_command_lists_and_measures_from_another_folder(installed: Installed, tmp_path: Path):
    (tmp_path / "given.py").write_text(GIVEN, encoding="utf-8")
    assert "usage: mapbench compare" in _outside(tmp_path, installed.command, "compare", "--help")
    assert "outer_product" in _outside(tmp_path, installed.command, "list")
    asked = ("compare", "given.py:halved", "--elems", "numbers", "--strategies", "map_fn.graph", "--budget", "1")
    printed = _outside(tmp_path, installed.command, *asked)
    assert printed.splitlines()[1].split()[1] == "map_fn.graph"
    assert printed.splitlines()[1].split()[-1] == "ok"


def test_fresh_processes_find_what_is_installed(installed: Installed, tmp_path: Path):
    assert _outside(tmp_path, installed.python, "-c", FRESH) == "{'batch': 4}\n"


def test_the_pages_are_served_from_where_they_are_installed(installed: Installed, tmp_path: Path):
    server = AppServer.start(installed.folder / "app.py", tmp_path / "home", {"PYTHONPATH": ""})
    left = server.stop()
    assert left == []
    assert TRACEBACK not in server.log()
