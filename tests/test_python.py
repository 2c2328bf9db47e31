"""Mapbench in Python: what comes back of a comparison, and how it is shown."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import mapbench
from mapbench import api, drawing, notebook, progress, result
from measure import runner
from measure.model.run import Error
from measure.model.run_file import decode
from measure.runner import Snapshot
from tests import synthetic, warm
from tests.engine import ROOT, environment
from tests.measure.test_admission import measured_here
from tests.subjects import Subjects


def squared(batch):
    return batch**2


def numbers(batch=6, width=2):
    return np.ones((batch, width), np.float32)


@pytest.fixture
def subjects(monkeypatch: pytest.MonkeyPatch) -> Subjects:
    """What is measured in place of the function that is given: a workload with the same name."""
    subjects = Subjects(latencies_s={"map_fn.graph": 0.02, "vectorized_map.graph": 0.001})
    measured_here(subjects, monkeypatch)
    monkeypatch.setattr(runner.Runner, "give", lambda self, function, seed: "square")
    return subjects


TWO = "map_fn.graph,vectorized_map.graph"


def test_a_comparison_gives_a_table_the_leader_the_code_a_file_and_the_best_function(
    subjects: Subjects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = mapbench.compare(squared, numbers, TWO, budget=60, size={"batch": 50}, quiet=True)
    assert found.table["strategy"].tolist() == ["vectorized_map.graph", "map_fn.graph"]
    assert set(found.table["outcome"]) == {"ok"}
    assert found.leader == "vectorized_map.graph" and found.verdict in repr(found)
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


def test_an_interrupt_keeps_what_there_is(subjects: Subjects, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "_watch", interrupted)
    subjects.answers = {"memory": lambda spec: []}  # it never ends by itself
    found = mapbench.compare(squared, numbers, "loop.eager", quiet=True)
    assert found.run.status == "cancelled"
    with pytest.raises(ValueError, match="no strategy can be named"):
        _ = found.leader


def test_a_sweep_has_a_comparison_at_each_point(subjects: Subjects, capsys: pytest.CaptureFixture[str]):
    swept = mapbench.sweep(squared, numbers, {"batch": [1, 50]}, TWO, budget=60)
    assert swept.table.columns[:3].tolist() == ["batch", "rank", "strategy"]
    assert {1, 50} <= set(swept.table["batch"])
    assert swept.verdict in repr(swept)
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


MAPPED = """
import numpy as np, tensorflow as tf, mapbench
from measure.engine import host_launcher
from tests.warm import WARM

host_launcher.subprocess = WARM
rows = np.random.default_rng(0).random((4, 3), dtype=np.float32)
w = tf.Variable(3.0)
layer = tf.keras.layers.Dense(2, activation="tanh")
layer.build((None, 3))


def of_live_ones(x):
    return layer((x * w)[None])[0]


result = mapbench.compare(of_live_ones, rows, "chunked.graph", budget=30, quiet=True)
mapped = result.mapped("chunked.graph")
for part in (rows, rows[:3]):
    assert np.allclose(mapped(part), layer(part * 3), atol=1e-6)
w.assign(2.0)  # the live variable is used, not the one that was measured
assert np.allclose(mapped(rows), layer(rows * 2), atol=1e-6)
"""


@pytest.mark.usefixtures("live")
def test_a_mapped_function_is_the_live_one_at_any_batch(tmp_path: Path):
    # In an interpreter of its own, since it calls TensorFlow.
    home = environment(MAPBENCH_HOME=str(tmp_path / "home"), MAPBENCH_LOCK=str(tmp_path / "lock"))
    (tmp_path / "script.py").write_text(MAPPED)  # so that the functions have a source
    code = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
    done = warm.run(code, tmp_path / "script.py", folder=ROOT, environment=home)
    assert done.returncode == 0, done.stderr


# --- how results are shown -------------------------------------------------------------------------------------------


@pytest.fixture
def _without_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that draws them fails."""
    monkeypatch.setattr(drawing, "subprocess", SimpleNamespace(run=lambda *_, **__: SimpleNamespace(returncode=1)))


@pytest.mark.usefixtures("live")
def test_a_drawing_has_verdict_charts_and_table_and_no_script():
    run = synthetic.run()
    drawn = drawing.fragment(run)
    assert run.verdict in drawn
    assert drawn.count("<svg") == 2
    assert drawn.count("<tr>") == 1 + len(mapbench.Result(run, {}).table)
    assert "<script" not in drawn


@pytest.mark.usefixtures("_without_charts")
def test_a_drawing_without_charts_has_the_rest_and_words_of_a_run_are_no_html():
    run = synthetic.run()
    item = replace(run.measurements[0], outcome="failed", error=Error(type="Error", message="<b>&"))
    drawn = drawing.fragment(replace(run, verdict="<i>", measurements=[item, *run.measurements[1:]]))
    assert "The charts could not be drawn." in drawn and "<table" in drawn
    assert "&lt;i&gt;" in drawn and "<i>" not in drawn
    assert "&lt;b&gt;&amp;" in drawn and "<b>" not in drawn
    # Why a strategy was not measured stands where its figures would.
    columns = drawn.count("<th>")
    (row,) = [row for row in re.findall("<tr>(.*?)</tr>", drawn) if "XLA cannot compile tf.numpy_function." in row]
    rank, name, reason = re.findall("<td.*?</td>", row)
    assert f'colspan="{columns - 2}"' in reason and "colspan" not in rank + name


def test_progress_in_a_notebook_has_a_bar_what_is_known_and_in_the_end_a_count():
    run = synthetic.partial(4)
    shown = progress.drawn(Snapshot(run, "running", message="timing", elapsed_s=3.0, remaining_s=1.0))
    assert "width:75%" in shown and "timing" in shown and shown.count("<tr>") == 1 + len(run.measurements) - 1
    assert progress.ended(synthetic.run(unhappy=False)).endswith("11 of 11 strategies were measured.")


@pytest.mark.usefixtures("_without_charts")
def test_it_is_shown_below_the_cell_of_a_notebook_and_elsewhere_in_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    opened: list[str] = []
    monkeypatch.setattr(result.webbrowser, "open", opened.append)
    monkeypatch.setattr(result.tempfile, "gettempdir", lambda: str(tmp_path))
    found = mapbench.Result(synthetic.run(), {})
    found.show()
    (file,) = tmp_path.iterdir()
    assert opened == [file.as_uri()] and capsys.readouterr().out == f"{file}\n"
    assert found.verdict in file.read_text(encoding="utf-8")
    shown: list[mapbench.Result] = []
    monkeypatch.setattr(notebook, "display", lambda: shown.append)
    found.show()
    assert shown == [found] and len(opened) == 1
