"""A sweep of an option from before its slugs held the option: it opens for ever, with slugs as they are made today."""

import json
from pathlib import Path

import pytest

from measure.model.run import Run
from measure.model.run_file import decode, encode
from measure.store import imports
from measure.sweep import continuing
from measure.sweep.request import of_run

# Measured by a former Mapbench, and never written anew.
FILE = Path(__file__).parents[2] / "data" / "option_1.json"
CHUNKS = (3, 64, 128, 1000)


@pytest.fixture(scope="module")
def run() -> Run:
    return decode(FILE.read_bytes())


def test_its_strategies_have_the_value_that_they_were_measured_at(run: Run):
    slugs = [[item.strategy for item in point.measurements] for point in run.points]
    both = [[f"chunked.graph?chunk={chunk}", f"chunked.xla?chunk={chunk}"] for chunk in CHUNKS]
    assert slugs == [[*both[0], "batched.graph", "map_fn.graph"], *both[1:]]
    assert run.points[3].ranking == [["chunked.graph?chunk=1000"], ["chunked.xla?chunk=1000"]]
    assert run.points[3].verdict.startswith("chunked.graph?chunk=1000 is fastest: 244 µs [163, 365], ")
    assert run.request.strategies == ["chunked.graph", "chunked.xla", "batched.graph", "map_fn.graph"]


def test_nothing_else_of_it_is_another(run: Run):
    now, before = encode(run).decode(), FILE.read_text()
    for chunk in CHUNKS:
        now, before = (text.replace(f"?chunk={chunk}", "") for text in (now, before))
    assert json.loads(now) == json.loads(before)
    assert decode(encode(run)) == run == imports.read(FILE.read_bytes()), "what is as it is today stays so"
    assert continuing.complete(run, of_run(run)) == run.points
