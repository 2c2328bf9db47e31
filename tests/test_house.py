"""The rules of the house: rooms import only from rooms below, and the pages' process stays free of TensorFlow."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# From the bottom to the top. A room may import from rooms of lower floors, not from its own floor's other rooms.
FLOORS = (
    ("workloads",),
    ("strategies",),
    ("measure.model",),
    ("measure.machine", "measure.statistics"),
    ("measure.subject", "measure.judge"),
    ("measure.pool",),
    ("measure.engine",),
    ("measure.sweep",),
    ("measure.claims",),
    ("measure.store",),
    ("measure.output",),
    ("measure",),
    ("views.ui",),
    ("views.charts", "views.choices"),
    ("views.result",),
    ("mapbench",),
    ("views.pages",),
    ("app",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# A measured process knows what is asked and its machine, and nothing of the figures that are made of its samples.
FORBIDDEN = {("measure.subject", "measure.statistics")}
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


@cache
def everywhere(tree: ast.AST) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """All imports of a module, those within functions too."""
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def at_module_level(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that are executed with a module: none within functions, and none for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from (each for part in node.orelse for each in at_module_level(ast.Module([part], [])))
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from at_module_level(node)


def targets(nodes: Iterable[ast.Import | ast.ImportFrom], known: Trees) -> Iterator[tuple[str, str]]:
    """(module, name taken from it or "") of each import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif node.level:
            yield "app", ""  # a relative import is read by nobody here: it counts as one from the very top
        else:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (inner, "") if inner in known else (str(node.module), alias.name)


def upward(known: Trees) -> list[str]:
    """The imports that break the order of the rooms."""
    return [
        f"{module} imports {target}"
        for module, tree in known.items()
        for target, _ in targets(everywhere(tree), known)
        if target in known
        and (here := room(module)) != (there := room(target))
        and (FLOOR[there] >= FLOOR[here] or (here, there) in FORBIDDEN)
    ]


def reachable(start: str, graph: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return seen


def in_circles(known: Trees) -> set[str]:
    """Modules that import themselves through others; imports within functions count."""
    graph = {
        module: {target for target, _ in targets(everywhere(tree), known) if target in known and target != module}
        for module, tree in known.items()
    }
    return {module for module in graph if module in reachable(module, graph)}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def private_names(tree: ast.AST) -> set[str]:
    """The private names that a file defines: functions, classes, constants, fields, and attributes of its instances."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return {name for name in names if is_private(name)}


def test_rooms_import_only_from_rooms_below_them() -> None:
    assert upward(trees()) == []
    turned = ast.parse("def f():\n    from measure.engine.turns import Turns")
    assert upward({**trees(), "measure.statistics.ranking": turned}) == [
        "measure.statistics.ranking imports measure.engine.turns"
    ]


def test_no_modules_import_each_other() -> None:
    assert in_circles(trees()) == set()
    circle = {"measure.model.run": "import measure.model.text", "measure.model.text": "import measure.model.run"}
    assert in_circles({module: ast.parse(source) for module, source in circle.items()}) == set(circle)


def test_the_process_of_the_pages_imports_no_tensorflow() -> None:
    def foreign(nodes: Iterable[ast.Import | ast.ImportFrom]) -> set[str]:
        return {target.partition(".")[0] for target, _ in targets(nodes, trees())}

    graph = {}
    for module, tree in trees().items():
        # A module is executed after the packages that it stands in.
        within = {module.rpartition(".")[0]} & set(trees())
        graph[module] = within | {target for target, _ in targets(at_module_level(tree), trees()) if target in trees()}
    pages = {module for module in trees() if module.split(".")[0] in ("app", "views")}
    assert [module for module in pages if "tensorflow" in foreign(everywhere(trees()[module]))] == []
    loaded = pages.union(*(reachable(module, graph) for module in pages))
    assert {"measure.client", "strategies", "workloads"} <= loaded
    assert [module for module in loaded if "tensorflow" in foreign(at_module_level(trees()[module]))] == []
    others = set(trees()) - pages
    assert [module for module in others if PAGES & foreign(everywhere(trees()[module]))] == []


def test_nobody_uses_anothers_private_parts() -> None:
    defined = {module: private_names(tree) for module, tree in trees().items()}
    ours = set().union(*defined.values())
    found = []
    for module, tree in trees().items():
        taken = targets(everywhere(tree), trees())
        found += [f"{module} imports {there}.{name}" for there, name in taken if is_private(name) and there in defined]
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        found += [f"{module} uses {name}" for name in (used & ours) - defined[module]]
    assert found == []
