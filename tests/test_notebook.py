"""Mapbench in a notebook: a kernel of Jupyter executes cells, and what they show is looked at."""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.deadlines import GONE_S, RUN_S
from tests.engine import ROOT, descendants, eventually

pytestmark = pytest.mark.usefixtures("live")

BEGIN = """
import numpy as np
import mapbench

def numbers(batch=64, width=8):
    return np.random.default_rng(0).random((batch, width), dtype=np.float32)

def squared(x):
    return x * x
"""
_MEASURES = "starting processes"


class Notebook(NotebookClient):
    """Executes cells one by one, and presses the button that interrupts as soon as latency is measured."""

    interrupting: "asyncio.Task[Any] | None" = None

    def run(self, code: str) -> list[dict[str, Any]]:
        """The outputs that a cell has in the end."""
        self.nb.cells.append(nbformat.v4.new_code_cell(code))
        return list(self.execute_cell(self.nb.cells[-1], len(self.nb.cells) - 1).outputs)

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        if _MEASURES in msg["content"].get("text", "") and self.interrupting is None:
            self.interrupting = asyncio.get_running_loop().create_task(self.km.interrupt_kernel())
        return super().process_message(msg, cell, cell_index)

    @property
    def pid(self) -> int:
        return int(self.km.provisioner.pid)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """A kernel that has the functions above."""
    folder = tmp_path_factory.mktemp("notebook")
    book = Notebook(nbformat.v4.new_notebook(), timeout=int(2 * RUN_S), resources={"metadata": {"path": str(folder)}})
    with book.setup_kernel(env={**os.environ, "PYTHONPATH": str(ROOT)}):
        book.run(BEGIN)
        yield book


def test_a_result_draws_itself_and_an_interrupt_keeps_what_there_is_and_leaves_no_process(notebook: Notebook):
    before = descendants(notebook.pid)
    *_, report, latency, memory = notebook.run(
        # Without an interrupt it would go on for minutes.
        "result = mapbench.compare(squared, numbers, 'map_fn.graph,loop.eager', budget=3000)\nresult"
    )
    assert notebook.interrupting is not None
    assert "map_fn.graph" in report["text"] and "cancelled" in report["text"]
    assert "Latency of one call" in latency["data"]["text/html"] and "Memory of one call" in memory["data"]["text/html"]
    eventually(lambda: descendants(notebook.pid) == before, "no process is left", GONE_S)
