"""Mapbench in a notebook: a kernel of Jupyter executes cells, and what they show is looked at."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.deadlines import GONE_S, RUN_S
from tests.engine import ROOT

# The interrupt comes as soon as latency is measured: without it, this would go on for minutes.
COMPARE = """
import signal, sys
import numpy as np, psutil
import mapbench

def numbers(batch=64, width=8):
    return np.random.default_rng(0).random((batch, width), dtype=np.float32)

def squared(x):
    return x * x

def write(text, written=sys.stderr.write):
    written(text)
    if "starting processes" in text:
        sys.stderr.write = written
        signal.raise_signal(signal.SIGINT)

sys.stderr.write = write
before = psutil.Process().children(recursive=True)
result = mapbench.compare(squared, numbers, "map_fn.graph,loop.eager", budget=3000)
result
"""
LEFT = f"""
new = [process for process in psutil.Process().children(recursive=True) if process not in before]
psutil.wait_procs(new, timeout={GONE_S})[1]
"""


@pytest.mark.usefixtures("live")
def test_a_result_draws_itself_and_an_interrupt_keeps_what_there_is_and_leaves_no_process(tmp_path: Path):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in (COMPARE, LEFT)])
    client = NotebookClient(book, timeout=int(2 * RUN_S), resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    *_, report, picture = book.cells[0].outputs
    assert "map_fn.graph" in report["text"] and "cancelled" in report["text"]
    assert "Latency of one call, memory and largest error" in picture["data"]["text/html"]
    assert book.cells[1].outputs[-1]["data"]["text/plain"] == "[]"
