"""Mapbench in a notebook: a kernel of Jupyter executes cells, and what they show is looked at."""

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.engine import DEADLINE_S, GONE_WITHIN_S, ROOT, descendants, eventually

BEGIN = """
import numpy as np
import mapbench
from measure.engine import host_launcher
from tests.warm import WARM

def numbers(batch=64, width=8):
    return np.random.default_rng(0).random((batch, width), dtype=np.float32)

def squared(x):
    return x * x
"""
# TensorFlow is imported once for all tests; one that counts processes has those that the kernel starts itself.
WARM_HOSTS, OWN_HOSTS = "host_launcher.subprocess = WARM", "import subprocess; host_launcher.subprocess = subprocess"


class Notebook(NotebookClient):
    """Executes cells one by one. ``shown``: the HTML that the last one has shown, one after the other; ``seen`` is told
    each of them."""

    shown: list[str]
    seen: Callable[[str], None]

    def run(self, code: str, seen: Callable[[str], None] = lambda _: None) -> list[dict[str, Any]]:
        """The outputs that a cell has in the end."""
        self.shown, self.seen = [], seen
        cell = nbformat.v4.new_code_cell(code)
        self.nb.cells.append(cell)
        return list(self.execute_cell(cell, len(self.nb.cells) - 1).outputs)

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        html = msg["content"].get("data", {}).get("text/html")
        if html is not None:
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
    book = Notebook(nbformat.v4.new_notebook(), timeout=int(DEADLINE_S), resources={"metadata": {"path": str(folder)}})
    with book.setup_kernel(env={**os.environ, "PYTHONPATH": str(ROOT)}):
        book.run(BEGIN)
        yield book


def texts(html: str) -> str:
    """The words of HTML, without what is drawn and how."""
    return " ".join(re.sub(r"<[^>]*>", " ", re.sub(r"<(style|svg)\b.*?</\1>", "", html, flags=re.DOTALL)).split())


def test_a_comparison_is_shown_as_it_arrives_and_draws_itself(notebook: Notebook):
    notebook.run(WARM_HOSTS)
    told, drawn = notebook.run(
        "result = mapbench.compare(squared, numbers, 'map_fn.graph,vectorized_map.graph', 2)\nresult"
    )
    progress = notebook.shown[:-1]
    said = list(map(texts, progress))
    assert "TensorFlow is being loaded" in said[0]
    measuring = [words for words in said if "peak memory" in words]
    assert len(set(measuring)) > 1
    assert any(re.search(r"≈ \d+ [µm]s", words) for words in measuring), measuring
    shares = [int(share) for html in progress for share in re.findall(r'<div style="width:(\d+)%', html)]
    assert shares[0] < shares[-1] < 100
    # The end of the progress stays in its place, and the result stands below it.
    assert texts(told["data"]["text/html"]) == said[-1]
    assert said[-1].endswith("2 of 2 strategies were measured.")
    html, plain = drawn["data"]["text/html"], drawn["data"]["text/plain"]
    assert len(re.findall("<svg", html)) == 2
    assert "<script" not in html
    verdict = plain.split("\n\n")[1].splitlines()[0]
    assert verdict in texts(html)
    assert "float32" in texts(html)
    assert "first call" in texts(html)


def test_an_interrupt_keeps_what_there_is_and_leaves_no_process(notebook: Notebook):
    notebook.run(OWN_HOSTS)
    before = descendants(notebook.pid)

    def interrupt_once(html: str) -> None:
        if "KiB" in texts(html) and not hasattr(notebook, "interrupting"):
            notebook.interrupt()

    notebook.run("result = mapbench.compare(squared, numbers, budget=300)", interrupt_once)
    # Of all that could be interrupted, it was a comparison that had begun; the cell ends as if it had run out of time.
    assert "Cancelled" in texts(notebook.shown[-1])
    eventually(lambda: descendants(notebook.pid) == before, "no process is left", GONE_WITHIN_S)
    (said,) = notebook.run("print(result.run.status, result.table['peak_bytes'].notna().any())")
    assert said["text"] == "cancelled True\n"


def test_the_best_function_is_equal_to_the_reference(notebook: Notebook):
    notebook.run(WARM_HOSTS)
    notebook.run("mapped = mapbench.best(squared, numbers, strategies='map_fn.graph', budget=1, quiet=True)")
    assert notebook.shown == []
    (said,) = notebook.run("x = numbers(batch=5)\nprint(np.array_equal(mapped(x), x * x))")
    assert said["text"] == "True\n"
