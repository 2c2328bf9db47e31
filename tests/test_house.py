"""The rules of the house: rooms import only from rooms below, nobody uses another's private parts, files stay small."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# From the bottom to the top. A room may import from rooms of lower floors, not from its own floor's other rooms.
FLOORS = (
    ("workloads",),
    ("strategies",),
    ("measure.model",),
    ("measure.machine", "measure.statistics"),
    ("measure.subject", "measure.judge"),
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

MOST_LINES = 350
MOST_CLASS_LINES = 250
MOST_METHODS = 20
# Caches that may do without a bound in bytes, since what they can be asked is few and small; all others are a `Kept`.
FEW_AND_SMALL = {
    "measure.claims.known",  # no arguments
    "strategies",  # one value
    "strategies.script",  # functions of files, by themselves
    "views.charts.latency",  # flags
    "views.charts.memory",
    "views.charts.timeline",
    "views.pages.claims",  # the example
    "views.pages.compare",
    "workloads.case",  # functions of files, by themselves
    "workloads.own",  # facts of a person's own file, which no stranger gives
}
CACHES = {"cache", "lru_cache", "cache_data", "cache_resource"}
# A file or class that is longer says so in its first lines: «Longer than others, since …».
REASON = "Longer than others, since "
BARE_CLAUSE = re.compile(r"(What|Whether|Who|Where|How|Why|When|Which|That|Those|As|Of)\b")
# The text of these goes into scripts, and so into run files: it stays as it is.
IN_SCRIPTS = {"workloads.random.uniform"}


@cache
def files() -> Mapping[str, Path]:
    """Every module of the project by its dotted name."""
    modules = {}
    for path in sorted(
        [
            ROOT / "app.py",
            *(
                p
                for top in ("mapbench", "measure", "views", "strategies", "workloads")
                for p in (ROOT / top).rglob("*.py")
            ),
        ]
    ):
        parts = path.relative_to(ROOT).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def room(module: str) -> str:
    """The room that a module stands in: the longest name of a room that its own begins with."""
    parts = module.split(".")
    return next(name for n in range(len(parts), 0, -1) if (name := ".".join(parts[:n])) in FLOOR)


def imports(tree: ast.AST, modules: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """(module, name taken from it or "") of each import of the project's own, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield "app", ""  # a relative import is read by nobody here: it counts as one from the very top
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (inner, "") if inner in modules else (node.module, alias.name)


def upward(sources: Mapping[str, str]) -> list[str]:
    """The imports that break the order of the rooms."""
    return [
        f"{module} imports {imported}"
        for module, source in sources.items()
        for imported, _ in imports(ast.parse(source), sources)
        if (here := room(module)) != (there := room(imported))
        and (FLOOR[there] >= FLOOR[here] or (here, there) in FORBIDDEN)
    ]


def circles(sources: Mapping[str, str]) -> list[list[str]]:
    """Modules that import each other, directly or through others; imports inside functions count."""
    graph = {m: {i for i, _ in imports(ast.parse(source), sources) if i != m} for m, source in sources.items()}

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for imported in graph[waiting.pop()] - seen:
                seen.add(imported)
                waiting.append(imported)
        return seen

    reach = {module: reachable(module) for module in graph}
    groups = {tuple(sorted(o for o in reach[m] if m in reach[o])) for m in graph if m in reach[m]}
    return [list(group) for group in sorted(groups)]


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _private_names(owner: ast.ClassDef) -> set[str]:
    """Private names that a class defines: methods, fields, and attributes that it assigns to its instances."""
    names = set()
    for node in ast.walk(owner):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node):
            names.add(node.attr)
    return {name for name in names if _is_private(name)}


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def _inherited(owner: ast.ClassDef, module: str, trees: Mapping[str, ast.Module]) -> tuple[set[str], set[str]]:
    """Private names of a class's bases: of those in its own file, and of those in other files of the project."""
    here, elsewhere = set[str](), set[str]()
    if not owner.bases:
        return here, elsewhere
    origins = {name: there for there, name in imports(trees[module], trees) if name}
    origins |= {there.rpartition(".")[2]: there for there, name in imports(trees[module], trees) if not name}
    for base in owner.bases:
        base = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name):
            there, name = origins.get(base.value.id, ""), base.attr
        else:
            name = base.id if isinstance(base, ast.Name) else ""
            there = origins.get(name, module)
        found = next(
            (n for n in getattr(trees.get(there), "body", []) if isinstance(n, ast.ClassDef) and n.name == name), None
        )
        if found is not None:
            own, foreign = _inherited(found, there, trees)
            (here if there == module else elsewhere).update(_private_names(found) | own)
            elsewhere |= foreign
    return here, elsewhere


def private_parts(sources: Mapping[str, str]) -> list[str]:
    """Private names that are used outside of the file or class that they belong to."""
    trees = {module: ast.parse(source) for module, source in sources.items()}
    classes = {module: [n for n in ast.walk(t) if isinstance(n, ast.ClassDef)] for module, t in trees.items()}
    functions = {
        n.name for tree in trees.values() for n in tree.body if isinstance(n, ast.FunctionDef) and _is_private(n.name)
    }
    ours = functions.union(*(_private_names(owner) for owners in classes.values() for owner in owners))
    problems = set()
    for module, tree in trees.items():
        problems |= {f"{module} imports {there}.{name}" for there, name in imports(tree, sources) if _is_private(name)}
        uses = {node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in ours}
        for owner in classes[module]:
            here, elsewhere = _inherited(owner, module, trees)
            own = (_private_names(owner) | here) - elsewhere
            uses -= {node for node in ast.walk(owner) if isinstance(node, ast.Attribute) and node.attr in own}
        problems |= {f"{module} uses .{node.attr}" for node in uses}
    return sorted(problems)


def too_long(module: str, source: str) -> list[str]:
    """What is longer than a room should be, without a reason at its head."""
    problems = []
    lines = source.splitlines()
    if len(lines) > MOST_LINES and REASON not in "\n".join(lines[:12]):
        problems.append(f"{module} has {len(lines)} lines")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            length = node.end_lineno - node.lineno + 1
            methods = sum(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body)
            if (length > MOST_CLASS_LINES or methods > MOST_METHODS) and REASON not in (ast.get_docstring(node) or ""):
                problems.append(f"{module}.{node.name} has {length} lines and {methods} methods")
    return problems


def caches(sources: Mapping[str, str]) -> set[str]:
    """The modules that have a cache of the standard library or of Streamlit."""
    return {
        module
        for module, source in sources.items()
        if not module.startswith("measure.subject.")  # a measured process is gone after a moment
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Attribute) and node.attr in CACHES and getattr(node.value, "id", "") != "linecache")
        or (isinstance(node, ast.ImportFrom) and any(alias.name in CACHES for alias in node.names))
    }


def bare_clauses(module: str, source: str) -> list[str]:
    """The docstrings that open with a bare clause, «Whether it …», and are no sentence and no noun phrase."""
    return [
        f"{module}.{getattr(node, 'name', '')}: {docstring.splitlines()[0]}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and BARE_CLAUSE.match(docstring := ast.get_docstring(node) or "")
        and f"{module}.{getattr(node, 'name', '')}" not in IN_SCRIPTS
    ]


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    return {module: path.read_text(encoding="utf-8") for module, path in files().items()}


def test_rooms_import_only_from_rooms_below_them(sources):
    assert upward(sources) == []


def test_no_modules_import_each_other(sources):
    assert circles(sources) == []


def test_nobody_uses_anothers_private_parts(sources):
    assert private_parts(sources) == []


def test_files_and_classes_can_be_read_in_one_sitting(sources):
    assert [problem for module, source in sources.items() for problem in too_long(module, source)] == []


def test_what_is_kept_in_memory_is_bounded_in_bytes(sources):
    assert caches(sources) == FEW_AND_SMALL
    assert caches({"a": "import functools as f\n@f.lru_cache\ndef g(x): ..."}) == {"a"}
    assert caches({"a": "from functools import cache"}) == {"a"}


def test_docstrings_are_sentences_or_noun_phrases(sources):
    assert [clause for module, source in sources.items() for clause in bare_clauses(module, source)] == []


def test_every_room_says_in_one_sentence_what_it_is_for(sources):
    for name in FLOOR:
        if name in ("app", "workloads", "strategies"):
            continue
        sentence = ast.get_docstring(ast.parse(sources[name])) or ""
        assert sentence.endswith("."), name


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("measure.model.run", "from measure.judge import verdict"),
        ("measure.subject.timing", "from measure.statistics import ranking"),
        ("measure.store.store", "from measure import runner"),
        ("measure.statistics.ranking", "def f():\n    from measure.engine.race import Rules"),
        ("views.charts.base", "import views.result.tables"),
        ("workloads.square", "import app"),
        ("measure.model.run", "from ..engine import race"),
    ],
)
def test_an_import_that_is_turned_round_is_noticed(sources, module, line):
    turned = upward(dict.fromkeys(sources, "") | {module: sources[module] + "\n" + line})
    assert [problem.split()[0] for problem in turned] == [module]


def test_a_circle_within_a_room_is_noticed(sources):
    turned = sources["measure.model.digits"] + "\nfrom measure.model import run"
    planted = {
        "measure.model": "",
        "measure.model.digits": turned,
        "measure.model.run": "from measure.model import digits",
    }
    assert ["measure.model.digits", "measure.model.run"] in circles(planted)


@pytest.mark.parametrize(
    "line",
    [
        "from measure.model.run_file import _decoder",
        "def f(record):\n    return record._items",
        "class Mine(Record):\n    def f(self):\n        return self._items",
        "class Mine(Record):\n    def f(self):\n        self._items = {}\n        return self._items",
        "class Other:\n    def __init__(self):\n        self._items = 1\ndef f(record):\n    return record._items",
    ],
)
def test_a_foreign_private_part_is_noticed(sources, line):
    planted = dict.fromkeys(sources, "") | {
        "measure.engine.record": sources["measure.engine.record"],
        "views.ui.guard": "from measure.engine.record import Record\n" + line,
    }
    assert [problem for problem in private_parts(planted) if problem.startswith("views.ui.guard")]


def test_a_long_file_and_a_long_class_need_a_reason():
    line = "x = 1\n"
    assert too_long("m", line * 351) and not too_long("m", line * 350)
    assert not too_long("m", f'"""A file.\n\n{REASON}it is one table.\n"""\n' + line * 351)
    methods = "".join(f"    def f{n}(self): ...\n" for n in range(21))
    assert too_long("m", "class A:\n" + methods)
    assert not too_long("m", f'class A:\n    """{REASON}it is a protocol."""\n' + methods)


def test_a_bare_clause_is_noticed():
    source = '"""The rules."""\ndef f():\n    """Whether it is."""\nclass C:\n    """How much."""\n    x = 1\n'
    assert [clause.split(":")[0] for clause in bare_clauses("m", source)] == ["m.f", "m.C"]
    assert not bare_clauses("m", 'def f():\n    """Return what it is."""\n')
