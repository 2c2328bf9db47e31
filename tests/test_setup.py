"""The project asks for what it imports, in versions that are known."""

import importlib.metadata
import sys

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.test_house import ROOT, foreign, imported, trees

# Modules whose package has another name.
DISTRIBUTIONS = {"vl_convert": "vl-convert-python"}
OWN = {"__future__", "app", "mapbench", "measure", "strategies", "views", "workloads"}


def named(file: str) -> set[str]:
    """The packages of a list of requirements, whose versions are those of the constraints."""
    lines = [line.split("#")[0].strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    wanted = [Requirement(line) for line in lines if line and not line.startswith("-c ")]
    if file != "constraints.txt":
        assert f"-c {'../' * file.count('/')}constraints.txt" in lines
    assert {str(one.specifier)[:2] for one in wanted} == {"==" if file == "constraints.txt" else ""}, file
    return {canonicalize_name(one.name) for one in wanted}


def test_every_package_that_gets_installed_is_pinned() -> None:
    pins = named("constraints.txt")
    all_of_it = named("requirements.txt")
    assert all_of_it ^ named("requirements-cpu.txt") == {"tensorflow", "tensorflow-cpu"}
    assert all_of_it ^ named("requirements-viewer.txt") == {"tensorflow"}
    waiting, seen = [*all_of_it, *named("tests/requirements.txt")], set[str]()
    while waiting:
        if (name := waiting.pop()) in seen:
            continue
        seen.add(name)
        needed = [Requirement(text) for text in importlib.metadata.requires(name) or []]
        waiting += [
            canonicalize_name(one.name) for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})
        ]
    assert seen <= pins
    assert "protobuf" in seen  # reached through TensorFlow: the walk went below the first level


def test_what_the_project_imports_is_what_it_asks_for() -> None:
    tops = set().union(*(foreign(imported(tree)) for tree in trees().values()))
    asked = {canonicalize_name(DISTRIBUTIONS.get(name, name)) for name in tops - OWN - sys.stdlib_module_names}
    assert asked == named("requirements.txt")
