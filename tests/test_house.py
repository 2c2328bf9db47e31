"""The rules of the house: rooms import only from rooms below, the pages' process stays free of TensorFlow, and what is
imported is asked for, in versions that are known."""

import ast
import importlib.metadata
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]

# From the bottom to the top. A room may import from rooms of lower floors, not from its own floor's other rooms.
FLOORS = (
    ("workloads",),
    ("strategies",),
    ("measure.run",),
    ("measure.machine",),
    ("measure.subject", "measure.judge"),
    ("measure.pool",),
    ("measure.engine",),
    ("measure.claims",),
    ("measure.store",),
    ("measure.output",),
    ("measure",),
    ("views.ui",),
    ("views.charts", "views.choices"),
    ("views.result",),
    ("views.report",),
    ("mapbench",),
    ("views.pages",),
    ("app",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# What draws pages, which commands and measured processes do without.
PAGES = {"streamlit", "altair", "vl_convert"}

Trees = Mapping[str, ast.Module]


@cache
def trees() -> Trees:
    """Every module of the project by its dotted name."""
    tops = ("mapbench", "measure", "strategies", "views", "workloads")
    found = {}
    for path in (ROOT / "app.py", *(path for top in tops for path in sorted((ROOT / top).rglob("*.py")))):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def room(module: str) -> str:
    """The room that a module stands in: the longest name of a room that its own begins with."""
    parts = module.split(".")
    return next(name for n in range(len(parts), 0, -1) if (name := ".".join(parts[:n])) in FLOOR)


def imported(tree: ast.AST, *, at_once: bool = False) -> set[str]:
    """The modules that a module imports, names of functions among them; ``at_once``: when it is executed itself, and
    so neither within functions nor for type checkers alone."""
    names = set[str]()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif not (at_once and (isinstance(node, ast.FunctionDef) or "TYPE_CHECKING" in ast.unparse(node)[:20])):
            names |= imported(node, at_once=at_once)
    return names


def upward(known: Trees) -> Iterator[str]:
    """The imports that break the order of the rooms."""
    for module, tree in known.items():
        for target in imported(tree) & set(known):
            if (here := room(module)) != (there := room(target)) and FLOOR[there] >= FLOOR[here]:
                yield f"{module} imports {target}"


def foreign(names: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def packages(names: Iterable[str]) -> set[str]:
    return {canonicalize_name(DISTRIBUTIONS.get(name, name)) for name in foreign(names)}


def test_rooms_import_only_from_rooms_below_them() -> None:
    assert list(upward(trees())) == []
    turned = ast.parse("def f():\n    from measure.engine.turns import Turns")
    assert list(upward({**trees(), "measure.run.text": turned})) == ["measure.run.text imports measure.engine.turns"]


def test_the_process_of_the_pages_imports_no_tensorflow() -> None:
    known = trees()
    pages = {module for module in known if module.split(".")[0] in ("app", "views")}
    assert [module for module in pages if "tensorflow" in foreign(imported(known[module]))] == []
    # A report is made by a process of its own.
    loaded, waiting = set[str](), [module for module in pages if not module.startswith("views.report")]
    while waiting:
        module = waiting.pop()
        # A module is executed after the packages that it stands in.
        names = {module.rpartition(".")[0], *imported(known[module], at_once=True)} & set(known)
        waiting += names - loaded
        loaded |= names
    assert {"measure.client", "strategies", "workloads"} <= loaded
    absent = named("requirements.txt") - named("deploy/requirements-viewer.txt")
    assert {"tensorflow", "vl-convert-python"} <= absent, "a viewer does without"
    assert [module for module in loaded if absent & packages(imported(known[module], at_once=True))] == []
    assert [module for module in set(known) - pages if PAGES & foreign(imported(known[module]))] == []


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


def test_every_package_that_gets_installed_is_pinned_and_what_is_imported_is_asked_for() -> None:
    whole = named("requirements.txt")
    tops = set().union(*(foreign(imported(tree)) for tree in trees().values())) - OWN - sys.stdlib_module_names
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    further = {canonicalize_name(Requirement(line).name) for lines in extras.values() for line in lines}
    assert packages(tops) - further == whole
    assert not further & packages(set().union(*(imported(tree, at_once=True) for tree in trees().values())))
    assert whole ^ named("deploy/requirements-cpu.txt") == {"tensorflow", "tensorflow-cpu"}
    assert named("deploy/requirements-viewer.txt") < whole
    waiting, reached = [*whole, *named("tests/requirements.txt")], set[str]()
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached.add(name)
            needed = map(Requirement, importlib.metadata.requires(name) or [])
            needed = [one for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
            waiting += [canonicalize_name(one.name) for one in needed]
    assert "protobuf" in reached <= named("constraints.txt"), "TensorFlow's own needs too"
