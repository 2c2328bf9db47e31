"""The checks of a mapped function beside its results: of the assertions that it makes, and of what else it does."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import strategies
from strategies import own_script
from strategies.spec import ELEMENT, Strategy
from workloads.case import Case
from workloads.own import source_of
from workloads.spec import Workload

_ASSERTIONS = ("Assert", "check_numerics", "assert_")
_EFFECTS = ("print", "py_function", "numpy_function", "assign", "scatter_")


def of(case: Case, slug: str, script: str) -> dict[str, Any]:
    """Return the fields of a subject's order that say what its strategy, whose script is given, has to do as a Python
    loop does it. A rewrite makes the assertions that it makes, and does what it does.

    Of a function of a person's own it was derived; of a workload's element function its source says it. A workload with
    ``use`` maps inside of another function, and returns what its function does.
    """
    strategy = strategies.parse(slug)
    mapper, workload = strategies.mapper(strategy.mapper), case.workload
    if workload.own is not None:
        known = own_script.facts(case)
        name = workload.own.function if mapper.apply is not None else ""
        return {
            "shapes_only": known.reference == "shapes",
            "asserts": name if known.asserts else "",
            "effects": name if known.effects else "",
            "draws": known.draws,
        }
    if mapper.apply is None or mapper.element != "element" or workload.use is not None:
        return {}
    used = list(_names(workload, strategy))
    name = _mapped(script, {apply.__name__ for apply in (mapper.apply, mapper.apply_ragged) if apply is not None})
    return {
        "asserts": name if any(word.startswith(_ASSERTIONS) for word in used) else "",
        "effects": name if any(word.startswith(_EFFECTS) for word in used) else "",
    }


def _names(workload: Workload, strategy: Strategy) -> Iterator[str]:
    """The names that the source of an element function has, and those of the helpers that it names."""
    further: Any = strategy.options.get(ELEMENT)
    waiting: list[Callable[..., Any] | None] = [workload.element if further is None else workload.elements[further]]
    helpers = {helper.__name__: helper for helper in workload.helpers}
    while waiting:
        if (function := waiting.pop()) is None:
            continue
        for node in ast.walk(ast.parse(textwrap.dedent(source_of(inspect.unwrap(function))))):
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            yield name
            waiting.append(helpers.pop(name, None))


def _mapped(script: str, appliers: set[str]) -> str:
    """The name of what a script's strategy hands to the function that applies it to each element."""
    functions = [node for node in ast.parse(script).body if isinstance(node, ast.FunctionDef)]
    (strategy,) = [node for node in functions if node.name == "strategy"]
    calls = [node for node in ast.walk(strategy) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    (name,) = [ast.unparse(call.args[0]) for call in calls if ast.unparse(call.func) in appliers]
    return name
