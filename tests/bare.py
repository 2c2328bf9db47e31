"""Built-in workloads as bare functions: what is left is code, the name of the function and that of its elements."""

import ast
import re

from strategies import script
from workloads.case import Case
from workloads.functions import Given

_MAPPED = "loop.eager"
# What a script has for its mapper and for whoever runs it.
_OF_THE_SCRIPT = ("signature", "strategy", "map_with_loop", "map_ragged_with_loop", "tensors")


def given(case: Case) -> Given:
    """The case's element function with its elements and variables, of which nothing is declared."""
    text = script.build(case, _MAPPED)
    kept = [node for node in ast.parse(text).body if not isinstance(node, ast.Expr | ast.If)]
    parts = {_name(node): ast.get_source_segment(text, node) or "" for node in kept}
    code = "\n\n".join(part for name, part in parts.items() if name not in _OF_THE_SCRIPT)
    # Names that every script uses itself. Where the element function takes more than an element, the script binds that.
    code = re.sub(r"elems = tf\.nest\.map_structure\(tensors, (.*)\)", r"elems = \1", code)
    code = code.replace("elems = ", "elements = ").replace("def fn(", "def bound(")
    return Given(code=code, function="bound" if "fn" in parts else case.workload.element.__name__, elems="elements")


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef):
        return node.name
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ast.unparse(node)
