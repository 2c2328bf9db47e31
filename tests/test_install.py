"""The project can be installed, and works from any folder."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import ROOT
from tests.deadlines import RUN_S
from tests.test_docs import README, blocks

pytestmark = pytest.mark.usefixtures("live")

PACKAGES = ("mapbench", "measure", "strategies", "views", "workloads")


def outside(folder: Path, *command: str | Path, **variables: str) -> str:
    """What a command prints that is started in a folder from which the working tree cannot be imported."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env={**environment, **variables}, capture_output=True, text=True, timeout=RUN_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def copy_source(folder: Path) -> None:
    """Copy what the project is built from, as a build leaves files beside it."""
    for name in ("pyproject.toml", "setup.py", "requirements.txt", "README.md", "app.py", ".streamlit", *PACKAGES):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)


def test_the_project_is_installed_whole_and_measures_the_example_of_the_readme_from_another_folder(
    tmp_path: Path,
) -> None:
    source, installed = tmp_path / "source", tmp_path / "installed"
    source.mkdir()
    copy_source(source)
    pip = (sys.executable, "-m", "pip", "--quiet", "install", "--no-deps", "--no-build-isolation", "--no-index")
    outside(source, *pip, "--target", installed, source)
    kept = [path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.suffix in (".py", ".json")]
    names = [path.relative_to(ROOT) for path in (*kept, ROOT / "app.py", ROOT / ".streamlit" / "config.toml")]
    assert [name for name in names if not (installed / name).is_file()] == []
    (example,) = blocks(README, "sh", executed=True)
    words = shlex.split(example)
    assert words[:3] == ["python", "-m", "measure"]
    # Of two budgets, the last one counts.
    small = ("--size", "batch=8", "--size", "side=8", "--budget", "60")
    options = (*words[3:], *small, "--quiet", "--json", "-")
    run = json.loads(outside(tmp_path, installed / "bin" / "mapbench", *options, PYTHONPATH=str(installed)))
    ended = {item["strategy"]: item["outcome"] for item in run["measurements"] if not item.get("twin_of")}
    assert len(ended) == 6 and {"loop.graph", "batched.xla"} <= set(ended)
    assert "ok" in ended.values() and set(ended.values()) <= {"ok", "not_run"}, ended
