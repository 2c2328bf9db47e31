"""The results of what Python asked for."""

import ast
import importlib
import io
import linecache
import sys
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure.judge import sweep_findings
from measure.judge.lines import readable
from measure.output import export, sweep_table, table
from measure.run import place
from measure.run.encoding import encode
from measure.run.run import Run

if TYPE_CHECKING:
    import pandas as pd

# The charts that answer what was asked; the page has more.
_SHOWN = ("comparison", "latency", "memory", "map")
# Reasons that are named where no strategy can be.
_MOST_REASONS = 3


class _Measured:
    """A run that has ended. Printed, it is the report that the command line prints; a notebook adds its charts."""

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
        """The table of the CSV export: a row for each strategy, the fastest first, in seconds and bytes; of a sweep at
        each point, behind the point."""
        import pandas as pd

        made = pd.read_csv(io.StringIO("".join(export.table_csv(self.run))))
        words = made.select_dtypes(exclude=["number", "bool"]).columns
        return made.dropna(subset="strategy").fillna(dict.fromkeys(words, "")).reset_index(drop=True)

    @property
    def charts(self) -> list[Any]:
        """Altair's charts: the picture of a comparison; of a sweep latency and memory, or the map."""
        from views.charts import files  # which loads Altair

        return [chart for name in _SHOWN if (chart := files.chart(self.run, name)) is not None]

    def save(self, path: str | Path) -> None:
        """Write the run file, which the app and the command line open."""
        place.write(Path(path), [encode(self.run), b"\n"])

    def show(self) -> None:
        """Show table and charts below the cell of a notebook; elsewhere the report in a browser, from a file in the
        folder for temporary ones."""
        if _is_notebook():
            self._ipython_display_()
            return
        # Under a name that nobody can guess, so that no link of somebody else's waits there.
        with tempfile.NamedTemporaryFile(prefix="mapbench-", suffix=".html", delete=False) as file:
            file.write(export.report([self.run]))
        print(file.name)
        webbrowser.open(Path(file.name).as_uri())

    def _ipython_display_(self) -> None:
        print(self)
        if _is_notebook():
            display = importlib.import_module("IPython.display").display  # no package that is asked for
            for chart in self.charts:
                display(chart)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.run.request.title}, {self.run.status}: {self.verdict}>"


class Result(_Measured):
    """A comparison with its verdict."""

    @property
    def leader(self) -> str:
        """The first of the fastest right strategies; ValueError where none was timed."""
        if self.run.ranking:
            return self.run.ranking[0][0]
        reasons = {item.error.message for item in self.run.measurements if item.error is not None}
        raise ValueError(f"no strategy can be named: {'; '.join(sorted(reasons)[:_MOST_REASONS]) or self.run.verdict}")

    def code(self, strategy: str) -> str:
        """Return the script of a strategy; KeyError where it was not measured."""
        code = self.run.measurement(strategy).code
        assert code is not None, "what was measured has its script"
        return code.source

    def mapped(self, strategy: str) -> Callable[[Any], Any]:
        """Return the live function, mapped by a strategy, whose name it has: a function of a batch of any length. Loads
        TensorFlow."""
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

        def mapped(elems: Any) -> Any:
            return space["strategy"](space["tensors"](elems))

        mapped.__name__ = mapped.__qualname__ = strategy
        return mapped

    def __str__(self) -> str:
        return table.render(self.run)


class SweepResult(_Measured):
    """A sweep with its verdict."""

    def at(self, **place: int) -> Result:
        """Return the comparison at a point, as in ``at(batch=1000)``; KeyError where that is none of the sweep's."""
        for point in self.run.points:
            if point.at == place:
                return Result(sweep_findings.comparison(self.run, point), self._live)
        raise KeyError(f"no such point: {'; '.join(readable(point.at) for point in self.run.points)} are swept")

    def __str__(self) -> str:
        return sweep_table.render(self.run)


def _is_notebook() -> bool:
    """True below a cell of a notebook; IPython is asked where it is there already, and a terminal's has no kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _defined(source: str) -> dict[str, str]:
    """Name → code of each function and each variable that code defines at its top level."""
    defined = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            defined[node.name] = ast.unparse(node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            defined[node.targets[0].id] = ast.unparse(node)
    return defined
