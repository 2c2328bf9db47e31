"""Mapbench in a notebook: a kernel of Jupyter executes cells, and what they show is looked at."""

import asyncio
import os
import re
from collections.abc import Callable, Iterator
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


class Notebook(NotebookClient):
    """Executes cells one by one. ``shown``: the HTML that the last one has shown, one after the other; ``seen`` is told
    each of them."""

    shown: list[str] = []
    seen: Callable[[str], None] = print

    def run(self, code: str, seen: Callable[[str], None] = lambda _: None) -> list[dict[str, Any]]:
        """The outputs that a cell has in the end."""
        self.shown, self.seen = [], seen
        self.nb.cells.append(nbformat.v4.new_code_cell(code))
        return list(self.execute_cell(self.nb.cells[-1], len(self.nb.cells) - 1).outputs)

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        if html := msg["content"].get("data", {}).get("text/html"):
            self.shown.append(html)
            self.seen(html)
        return super().process_message(msg, cell, cell_index)

    @property
    def pid(self) -> int:
        return int(self.km.provisioner.pid)

    def interrupt(self) -> None:
        """Do what the button does."""
        self.interrupting = asyncio.get_running_loop().create_task(self.km.interrupt_kernel())


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """A kernel that has the functions above."""
    folder = tmp_path_factory.mktemp("notebook")
    book = Notebook(nbformat.v4.new_notebook(), timeout=int(2 * RUN_S), resources={"metadata": {"path": str(folder)}})
    with book.setup_kernel(env={**os.environ, "PYTHONPATH": str(ROOT)}):
        book.run(BEGIN)
        yield book


def texts(html: str) -> str:
    """The words of HTML, without what is drawn and how."""
    return " ".join(re.sub(r"<[^>]*>", " ", re.sub(r"<(style|svg)\b.*?</\1>", "", html, flags=re.DOTALL)).split())


def test_what_is_known_is_shown_as_it_arrives_and_kept_by_an_interrupt_which_leaves_no_process(notebook: Notebook):
    before = descendants(notebook.pid)

    def interrupt_once(html: str) -> None:
        # Some memory is known then, and the comparison would go on for minutes.
        if re.search(r"\d (B|KiB)\b", texts(html)) and not hasattr(notebook, "interrupting"):
            notebook.interrupt()

    told, drawn = notebook.run(
        "result = mapbench.compare(squared, numbers, 'map_fn.graph,loop.eager', budget=3000)\nresult", interrupt_once
    )
    assert hasattr(notebook, "interrupting") and len(set(notebook.shown)) > 2
    # The end of the progress stays in its place, and the result stands below it.
    assert texts(told["data"]["text/html"]) == texts(notebook.shown[-2])
    assert "Cancelled" in texts(notebook.shown[-2])
    html, plain = drawn["data"]["text/html"], drawn["data"]["text/plain"]
    assert "<script" not in html and "float32" in texts(html) and "map_fn.graph" in plain
    eventually(lambda: descendants(notebook.pid) == before, "no process is left", GONE_S)
    (said,) = notebook.run("print(result.run.status, result.table['peak_bytes'].notna().any())")
    assert said["text"] == "cancelled True\n"
