"""Mapbench in Python: what comes back of a comparison, and how it is shown."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import mapbench
from mapbench import result
from measure.local import Local
from measure.pool.launcher import Launcher
from measure.run.encoding import decode
from measure.run.run import Error
from tests import synthetic
from tests.engine import measure_here
from tests.subjects import Subjects


def squared(batch):
    return batch**2


def numbers(batch=6, width=2):
    return np.ones((batch, width), np.float32)


@pytest.fixture
def subjects(monkeypatch: pytest.MonkeyPatch) -> Subjects:
    """What is measured in place of the function that is given: a workload with the same name."""
    subjects = Subjects(latencies_s={"map_fn.graph": 0.02, "vectorized_map.graph": 0.001})
    measure_here(subjects, monkeypatch)
    monkeypatch.setattr(Local, "give", lambda self, function, seed: "square")
    return subjects


TWO = "map_fn.graph,vectorized_map.graph"


def test_a_comparison_gives_a_table_the_leader_the_code_a_file_and_the_best_function(
    subjects: Subjects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = mapbench.compare(squared, numbers, TWO, budget=60, size={"batch": 50}, quiet=True)
    assert found.table["strategy"].tolist() == ["vectorized_map.graph", "map_fn.graph"]
    assert set(found.table["outcome"]) == {"ok"}
    assert found.leader == "vectorized_map.graph" and found.verdict in str(found)
    assert "map_with_map_fn" in found.code("map_fn.graph")
    assert found.run.request.size["batch"] == 50
    found.save(tmp_path / "run.json")
    assert decode((tmp_path / "run.json").read_bytes()) == found.run
    monkeypatch.setattr(mapbench.Result, "mapped", lambda self, strategy: strategy)
    assert found.run.request.allocator == "pool"
    # The best one is for this process, whose memory comes from wherever its own settings say.
    for variable, allocator in (("", "default"), ("true", "pool")):
        monkeypatch.setenv("TF_CPU_ALLOCATOR_USE_BFC", variable)
        assert mapbench.best(squared, numbers, strategies=TWO, budget=60, quiet=True) == "vectorized_map.graph"
        pool = "TF_CPU_ALLOCATOR_USE_BFC" in next(spec.script for spec in subjects.specs[::-1] if spec.role == "timing")
        assert pool == (allocator == "pool")


def test_a_sweep_has_a_comparison_at_each_point(subjects: Subjects, capsys: pytest.CaptureFixture[str]):
    swept = mapbench.sweep(squared, numbers, {"batch": [1, 50]}, TWO, budget=60)
    assert swept.table.columns[:3].tolist() == ["batch", "rank", "strategy"]
    assert {1, 50} <= set(swept.table["batch"])
    assert swept.verdict in str(swept)
    at = swept.at(batch=50)
    assert at.run.request.size["batch"] == 50 and at.leader == "vectorized_map.graph"
    with pytest.raises(KeyError, match="no such point: batch 1; batch 50"):
        swept.at(batch=0)
    assert capsys.readouterr().err.splitlines()[0] == "TensorFlow is being loaded, and the function looked at"
    for over, names in (
        ({"bach": "1:10"}, "square has no size 'bach': its sizes are batch"),
        ({"chunk": "1:10"}, "no chosen strategy has an option 'chunk' of numbers"),
        ({}, "nothing is swept"),
    ):
        with pytest.raises(ValueError, match=names):
            mapbench.sweep(squared, numbers, over, "map_fn.graph", quiet=True)


def test_a_mapped_function_is_the_live_one_at_any_batch(tf: Any, host: Launcher, monkeypatch: pytest.MonkeyPatch):
    measure_here(host, monkeypatch)
    rows, w = np.random.default_rng(0).random((4, 3), dtype=np.float32), tf.Variable(3.0)
    layer = tf.keras.layers.Dense(2, activation="tanh")
    layer.build((None, 3))

    def of_live_ones(x):
        return layer((x * w)[None])[0]

    mapped = mapbench.compare(of_live_ones, rows, "chunked.graph", budget=300, quiet=True).mapped("chunked.graph")
    assert mapped.__name__ == "chunked.graph"
    for part in (rows, rows[:3]):
        assert np.allclose(mapped(part), layer(part * 3), atol=1e-6)
    w.assign(2.0)  # the live variable is used, not the one that was measured
    assert np.allclose(mapped(rows), layer(rows * 2), atol=1e-6)


def test_it_is_shown_below_the_cell_of_a_notebook_and_elsewhere_in_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    opened: list[str] = []
    monkeypatch.setattr(result.webbrowser, "open", opened.append)
    monkeypatch.setattr(result.tempfile, "gettempdir", lambda: str(tmp_path))
    for shown in (mapbench.Result(synthetic.run(), {}), mapbench.SweepResult(synthetic.sweep(), {})):
        assert shown.verdict in repr(shown) and "\n" not in repr(shown)
        assert shown.verdict in str(shown) and "\n" in str(shown)
    found = mapbench.Result(synthetic.run(), {})
    monkeypatch.setattr(result.export, "report", lambda runs: runs[0].id.encode())
    found.show()
    (file,) = tmp_path.iterdir()
    assert opened == [file.as_uri()] and capsys.readouterr().out == f"{file}\n"
    assert file.read_text() == found.run.id
    drawn: list[Any] = []
    monkeypatch.setattr(result, "_is_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", drawn.append)
    found.show()
    assert [chart.to_dict() for chart in drawn] == [chart.to_dict() for chart in found.charts]
    assert len(drawn) == 1 and str(found) in capsys.readouterr().out


def test_the_best_of_equals_is_named_with_a_warning_and_where_there_is_none_the_reasons_are(
    monkeypatch: pytest.MonkeyPatch,
):
    def best(**changes: Any) -> Any:
        run = replace(synthetic.run(), **changes)
        monkeypatch.setattr(mapbench, "compare", lambda *_, **__: mapbench.Result(run, {}))
        return mapbench.best(squared, numbers)

    monkeypatch.setattr(mapbench.Result, "mapped", lambda self, strategy: strategy)
    with pytest.warns(UserWarning, match=r"^batched\.xla ties with batched\.graph: a rerun may name another of them$"):
        assert best(ranking=[["batched.xla", "batched.graph"], ["loop.graph"]]) == "batched.xla"
    broken = Error(type="Error", message="it broke: at line 3")
    failed = [replace(item, outcome="failed", error=broken) for item in synthetic.run().measurements]
    with pytest.raises(ValueError, match=r"^no strategy can be named: it broke: at line 3$"):
        best(ranking=[], measurements=failed)
    with pytest.raises(KeyboardInterrupt):
        best(status="cancelled")
