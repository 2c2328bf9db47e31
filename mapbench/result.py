"""The result of a comparison that Python asked for."""

import ast
import linecache
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure.model.run import Run
from measure.model.run_file import encode
from measure.output import columns, rows, table

if TYPE_CHECKING:
    import pandas as pd


class Result:
    """A run with its verdict. Printed, it is the table that the command line prints."""

    def __init__(self, run: Run, live: dict[str, Callable[..., Any]]) -> None:
        """``live``: the functions that were given, by their names in the run's code."""
        self.run = run
        self._live = live

    @property
    def verdict(self) -> str:
        """The sentence that names the fastest strategies, or says why none can be named."""
        return self.run.verdict

    @property
    def table(self) -> "pd.DataFrame":
        """A row for each strategy, the fastest first, with the columns of the CSV export: seconds and bytes."""
        import pandas as pd

        shown = columns.of("csv")
        return pd.DataFrame([[column.value(row) for column in shown] for row in rows.listed(self.run)],
                            columns=[column.csv for column in shown])  # fmt: skip

    @property
    def leader(self) -> str:
        """The first of the fastest right strategies; ValueError where none was timed."""
        if not self.run.ranking:
            raise ValueError(f"no strategy can be named: {self.run.verdict}")
        return self.run.ranking[0][0]

    def code(self, strategy: str) -> str:
        """Return the script of a strategy; KeyError where it was not measured."""
        code = self.run.measurement(strategy).code
        assert code is not None, "what was measured has its script"
        return code.source

    def save(self, path: str | Path) -> None:
        """Write the run file, which the app and the command line open."""
        Path(path).write_bytes(encode(self.run) + b"\n")

    def mapped(self, strategy: str) -> Callable[[Any], Any]:
        """Return the live function, mapped by a strategy: a function of a batch of any length. Loads TensorFlow."""
        import tensorflow as tf

        own = self.run.request.own
        given = _defined(own.given.code) if own else {}
        # All that the script defines beside the code that was given: that is here already, and alive.
        parts = {name: text for name, text in _defined(self.code(strategy)).items() if name not in {*given, "elems"}}
        text = "\n\n".join(parts.values())
        space: dict[str, Any] = {"tf": tf, **self._live}
        file = f"<mapbench {strategy}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)  # AutoGraph reads it
        exec(compile(text, file, "exec"), space)
        return lambda elems: space["strategy"](space["tensors"](elems))

    def __repr__(self) -> str:
        return table.render(self.run)


def _defined(source: str) -> dict[str, str]:
    """Name → source of each function and each variable that code defines at its top level, decorators included."""
    lines, defined = source.splitlines(), {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
            defined[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            defined[node.targets[0].id] = "\n".join(lines[node.lineno - 1 : node.end_lineno])
    return defined
