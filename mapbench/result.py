"""The results of what Python asked for."""

import ast
import linecache
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mapbench import drawing, notebook
from measure.model.run import Run
from measure.model.run_file import encode
from measure.output import columns, rows, sweep_table, table
from measure.sweep import findings
from measure.sweep.places import readable

if TYPE_CHECKING:
    import pandas as pd


class _Measured:
    """A run that has ended. In a notebook it draws itself."""

    def __init__(self, run: Run, live: dict[str, Callable[..., Any]]) -> None:
        """``live``: the functions that were given, by their names in the run's code."""
        self.run = run
        self._live = live
        self._html = ""

    @property
    def verdict(self) -> str:
        """The sentence that names the fastest strategies, or says why none can be named."""
        return self.run.verdict

    def save(self, path: str | Path) -> None:
        """Write the run file, which the app and the command line open."""
        Path(path).write_bytes(encode(self.run) + b"\n")

    def show(self) -> None:
        """Show verdict, charts and table: in a notebook below its cell, elsewhere in a browser, from a file in the
        folder for temporary ones."""
        if (display := notebook.display()) is not None:
            display(self)
            return
        path = Path(tempfile.gettempdir(), f"mapbench-{self.run.id}.html")
        path.write_text(drawing.page(self.run), encoding="utf-8")
        print(path)
        webbrowser.open(path.as_uri())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The drawing for a notebook, and the table for where that cannot be shown."""
        self._html = self._html or drawing.fragment(self.run)
        return {"text/html": self._html, "text/plain": repr(self)}


class Result(_Measured):
    """A comparison with its verdict. Printed, it is the table that the command line prints."""

    @property
    def table(self) -> "pd.DataFrame":
        """A row for each strategy, the fastest first, with the columns of the CSV export: seconds and bytes."""
        return _frame([], [((), self.run)])

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

    def mapped(self, strategy: str) -> Callable[[Any], Any]:
        """Return the live function, mapped by a strategy: a function of a batch of any length. Loads TensorFlow."""
        import numpy as np
        import tensorflow as tf

        own = self.run.request.own
        given = _defined(own.given.code) if own else {}
        # All that the script defines beside the code that was given: that is here already, and alive.
        parts = {name: text for name, text in _defined(self.code(strategy)).items() if name not in {*given, "elems"}}
        text = "\n\n".join(parts.values())
        space: dict[str, Any] = {"np": np, "tf": tf, **self._live}
        file = f"<mapbench {strategy}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)  # AutoGraph reads it
        exec(compile(text, file, "exec"), space)
        return lambda elems: space["strategy"](space["tensors"](elems))

    def __repr__(self) -> str:
        return table.render(self.run)


class SweepResult(_Measured):
    """A sweep with its verdict. Printed, it is the tables that the command line prints."""

    @property
    def table(self) -> "pd.DataFrame":
        """A row for each strategy at each point that was measured: the point, then the columns of a comparison."""
        run = self.run
        return _frame(
            [axis.name for axis in run.axes],
            [(tuple(point.at.values()), findings.comparison(run, point)) for point in run.points],
        )

    def at(self, **place: int) -> Result:
        """Return the comparison at a point, as in ``at(batch=1000)``; KeyError where that is none of the sweep's."""
        for point in self.run.points:
            if point.at == place:
                return Result(findings.comparison(self.run, point), self._live)
        raise KeyError(f"no such point: {'; '.join(readable(point.at) for point in self.run.points)} are swept")

    def __repr__(self) -> str:
        return sweep_table.render(self.run)


def _frame(axes: list[str], bodies: list[tuple[tuple[int, ...], Run]]) -> "pd.DataFrame":
    """A row for each strategy of comparisons, after the values that they have on the axes."""
    import pandas as pd

    shown = columns.of("csv")
    return pd.DataFrame(
        [[*at, *(column.value(row) for column in shown)] for at, body in bodies for row in rows.listed(body)],
        columns=[*axes, *(column.csv for column in shown)],
    )


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
