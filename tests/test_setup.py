"""The project can be installed as it says, starts light, and is checked by one command."""

import ast
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.browser import ROOT

PACKAGES = ("mapbench", "measure", "strategies", "views", "workloads")
# Modules whose package has another name.
DISTRIBUTIONS = {"vl_convert": "vl-convert-python"}


def requirements(name: str) -> list[Requirement]:
    """The requirements in a file, without its comments and its reference to the constraints."""
    lines = (line.split("#")[0].strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("-c ")]


def names(name: str) -> set[str]:
    return {canonicalize_name(requirement.name) for requirement in requirements(name)}


def sources() -> list[Path]:
    return [ROOT / "app.py", *(path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))]


def imported(path: Path) -> set[str]:
    """Top-level names of the modules that a file imports, at any depth of its code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


def distribution(module: str) -> str:
    """The package that a module comes with."""
    return canonicalize_name(DISTRIBUTIONS.get(module, module))


def test_constraints_pin_exact_versions_once() -> None:
    pins = requirements("constraints.txt")
    assert all([spec.operator for spec in pin.specifier] == ["=="] for pin in pins)
    assert len({canonicalize_name(pin.name) for pin in pins}) == len(pins)


LISTS = ("requirements.txt", "requirements-cpu.txt", "requirements-viewer.txt", "tests/requirements.txt")


@pytest.mark.parametrize("name", LISTS)
def test_requirements_take_their_versions_from_the_constraints(name: str) -> None:
    references = [line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if line.startswith("-c ")]
    assert references == ["-c ../constraints.txt" if "/" in name else "-c constraints.txt"]
    assert all(not requirement.specifier for requirement in requirements(name))
    assert names(name) <= names("constraints.txt")


def test_every_package_that_gets_installed_is_pinned() -> None:
    pins = names("constraints.txt")
    waiting = sorted(names("requirements.txt") | names("tests/requirements.txt"))
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        assert name in pins, f"{name} gets installed and is not in constraints.txt"
        for text in importlib.metadata.requires(name) or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(needed.name))
    assert "protobuf" in seen  # reached through TensorFlow: the walk went below the first level


def test_the_lists_differ_in_tensorflow_only() -> None:
    assert names("requirements.txt") ^ names("requirements-cpu.txt") == {"tensorflow", "tensorflow-cpu"}
    assert names("requirements.txt") ^ names("requirements-viewer.txt") == {"tensorflow"}


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_third_party_imports_are_direct_dependencies(path: Path) -> None:
    own = {"app", *PACKAGES}
    foreign = {distribution(name) for name in imported(path) - own - sys.stdlib_module_names}
    assert foreign <= names("requirements.txt")


def test_direct_dependencies_are_imported() -> None:
    used = {distribution(name) for path in sources() for name in imported(path)}
    assert names("requirements.txt") <= used


IMPORT_EVERYTHING = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    if "tensorflow" in sys.modules:
        sys.exit(f"importing {name} imports tensorflow")
"""


def test_importing_any_module_does_not_import_tensorflow() -> None:
    modules = []
    for path in sources():
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[-1] != "__main__" and parts != ("app",):
            modules.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    assert {"measure.model.request", "measure.runner"} <= set(modules)
    result = subprocess.run(
        [sys.executable, "-c", IMPORT_EVERYTHING, *modules],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def arrows(package: str) -> set[str]:
    return {name for path in (ROOT / package).rglob("*.py") for name in imported(path)} & {"app", *PACKAGES} - {package}


def test_arrows_run_one_way() -> None:
    """app → mapbench → views → measure → strategies → workloads, and Streamlit stays in the pages."""
    assert arrows("workloads") == set()
    assert arrows("strategies") <= {"workloads"}
    assert arrows("measure") <= {"strategies", "workloads"}
    assert arrows("views") <= {"measure", "strategies", "workloads"}
    assert arrows("mapbench") <= {"measure", "strategies", "views", "workloads"}
    for package in ("mapbench", "measure", "strategies", "workloads"):
        for path in (ROOT / package).rglob("*.py"):
            assert not imported(path) & {"streamlit", "altair", "vl_convert"}, path
    for path in (ROOT / "views").rglob("*.py"):
        assert "tensorflow" not in imported(path), path


def test_ci_runs_the_test_command() -> None:
    assert "bash tests/run" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "command"), [("docs/developing.md", "bash tests/run"), ("README.md", "streamlit run app.py")]
)
def test_docs_show_the_commands(page: str, command: str) -> None:
    blocks = re.findall(r"^```\w*\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    assert any(line == command or line.endswith(f"/{command}") for line in lines)
