"""Mapbench in Python: what is sent of live functions and arrays, and what comes back."""

import functools
import math
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import mapbench
from mapbench import api, drawing, notebook, result
from mapbench.given import NotSendable, given
from measure import runner
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.model.run import Error, Run
from tests import synthetic, warm
from tests.engine import ROOT, Lent, environment
from workloads import functions
from workloads.functions import Given

HALF = 0.5
SIZES = (2, 3)


def halve(x):
    return math.fsum(SIZES) * x * HALF


def twice_halved(x):
    return halve(halve(x))


NOTHING = -math.inf


def least(x):
    return min(x, NOTHING)


def squared(batch):
    return batch**2


def numbers(batch=6, width=2):
    return np.ones((batch, width), np.float32)


def executed(sent: Given) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(sent.code, space)
    return space


def test_a_function_goes_as_source_with_what_it_uses():
    sent = given(twice_halved, numbers, None, None)
    assert (sent.function, sent.elems) == ("twice_halved", "numbers")
    assert "cloudpickle" not in sent.code
    assert sent.code.startswith("import math\n")
    assert "HALF = 0.5" in sent.code
    space = executed(sent)
    assert space["twice_halved"](8.0) == twice_halved(8.0)
    assert space["numbers"](batch=3).shape == (3, 2)


def test_a_number_whose_text_is_no_code_is_pickled():
    sent = given(least, numbers, None, None)
    assert executed(sent)["least"](1.0) == -math.inf


def test_what_has_no_source_is_pickled():
    factor = 3.0
    for fn in (lambda x: x * 3.0, lambda x: x * factor, functools.partial(np.multiply, 3.0)):
        sent = given(fn, numbers, None, None)
        assert "cloudpickle" in sent.code
        assert executed(sent)[sent.function](2.0) == 6.0


def test_a_module_of_the_callers_own_is_not_needed_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "module_of_mine.py").write_text("def helped(x): return x * 3.0\n\nmapped = lambda x: helped(x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    import module_of_mine  # type: ignore[import-not-found]

    sent = given(module_of_mine.mapped, numbers, None, None)
    done = subprocess.run(
        [sys.executable, "-c", f"{sent.code}\nprint({sent.function}(2.0))"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("6.0\n", "")


def test_names_of_all_that_was_given_are_kept():
    sent = given(halve, numbers, squared, squared)
    assert (sent.batched, sent.reference) == ("squared", "squared")
    assert "batched" not in given(halve, numbers, None, None).code


def test_arrays_are_kept_in_a_file_that_every_process_reads():
    array = np.arange(6.0).reshape(3, 2)
    sent = given(halve, array, None, None)
    assert np.array_equal(executed(sent)[sent.elems], array)
    both = given(halve, {"a": array, "b": [b"x", b"yz", b""]}, None, None)
    loaded = executed(both)[both.elems]
    assert np.array_equal(loaded["a"], array)
    assert loaded["b"].tolist() == [b"x", b"yz", b""]
    pair = given(halve, (array, array + 1), None, None)
    one, other = executed(pair)[pair.elems]
    assert np.array_equal(one + 1, other)
    # The same elements are the same file, and so the same workload.
    assert given(halve, array.copy(), None, None).slug == sent.slug


def test_elements_of_different_lengths_are_kept_too():
    import tensorflow as tf  # it takes seconds, and not every process of the tests needs it

    rows = [np.arange(3.0), np.zeros(0), np.arange(2.0)]
    deep = tf.ragged.constant([[["a"], ["b", "c"]], []])
    sent = given(halve, rows, None, None)
    assert executed(sent)[sent.elems].to_list() == [[0.0, 1.0, 2.0], [], [0.0, 1.0]]
    nest = given(halve, {"deep": deep, "plain": np.arange(2)}, None, None)
    loaded = executed(nest)[nest.elems]
    assert loaded["deep"].to_list() == [[[b"a"], [b"b", b"c"]], []]
    assert loaded.keys() == {"deep", "plain"}
    pair = given(halve, (rows, [1, 2, 3]), None, None)
    one, other = executed(pair)[pair.elems]
    assert (one.row_lengths().numpy().tolist(), other.tolist()) == ([3, 0, 2], [1, 2, 3])


LOCK = threading.Lock()
LARGE = np.zeros(2**20 + 1)


@pytest.mark.parametrize(
    ("fn", "elems", "sentence"),
    [
        (
            lambda x: LOCK,
            numbers,
            "fn cannot be sent to another process: TypeError: cannot pickle",
        ),
        (lambda x: x + LARGE, numbers, "fn holds 8 MiB of values, and at most 2 MiB can be sent"),
        (
            halve,
            [[1.0], [[1.0, 2.0]]],
            "the elements differ in more than their lengths: give them as a tf.RaggedTensor",
        ),
        (halve, [[[1.0]], [[1.0], [1.0, 2.0]]], "the elements differ in more than their lengths"),
        (halve, [object()], "the elements hold object: numbers or text are needed"),
    ],
)
def test_what_cannot_be_sent_is_named(fn: Any, elems: Any, sentence: str):
    with pytest.raises(NotSendable, match=sentence.replace("(", r"\(")):
        given(fn, elems, None, None)


def test_importing_it_loads_no_tensorflow():
    code = "import sys, mapbench; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.fixture
def _lent(host: HostLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is there, and no measurements after the verdict."""
    for known in ("_known", "_workloads"):
        monkeypatch.setattr(functions, known, {})
    monkeypatch.setattr(runner, "launcher", lambda *_: Lent(host))
    monkeypatch.setattr(runner, "Settings", functools.partial(Settings, probes=False, process_peaks_s=0.0))


@pytest.mark.usefixtures("_lent")
def test_a_comparison_gives_a_table_the_code_and_a_file(tmp_path: Path):
    result = mapbench.compare(
        squared, numbers, "map_fn.graph,batched.graph", budget=1, size={"width": 3}, batched=squared, quiet=True
    )
    assert sorted(result.table["strategy"]) == ["batched.graph", "map_fn.graph"]
    assert set(result.table["outcome"]) == {"ok"}
    assert result.leader in set(result.table["strategy"])
    assert result.verdict in repr(result)
    assert "return map_with_map_fn(squared, elems, signature)" in result.code("map_fn.graph")
    assert result.run.request.size == {"batch": 6, "width": 3}
    result.save(tmp_path / "run.json")
    assert (tmp_path / "run.json").stat().st_size > 1_000


@pytest.mark.usefixtures("_lent")
def test_an_interrupt_keeps_what_there_is(monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "_watch", interrupted)
    result = mapbench.compare(squared, numbers, "loop.eager", quiet=True)
    assert result.run.status == "cancelled"
    with pytest.raises(ValueError, match="no strategy can be named"):
        _ = result.leader


@pytest.mark.usefixtures("_lent")
def test_a_sweep_has_a_comparison_at_each_point(capsys: pytest.CaptureFixture[str]):
    swept = mapbench.sweep(squared, numbers, {"batch": [1, 50]}, "map_fn.graph,vectorized_map.graph", budget=5)
    assert swept.table.columns[:3].tolist() == ["batch", "rank", "strategy"]
    assert sorted(set(swept.table["batch"])) == [1, 50]
    assert swept.verdict in repr(swept)
    at = swept.at(batch=50)
    assert at.run.request.size == {"batch": 50, "width": 2}
    assert at.leader in ("map_fn.graph", "vectorized_map.graph")
    with pytest.raises(KeyError, match="no such point: batch 1; batch 50 are swept"):
        swept.at(batch=2)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "TensorFlow is being loaded, and the function looked at"
    assert "batch=50: measuring memory and correctness" in said


@pytest.mark.usefixtures("_lent")
@pytest.mark.parametrize(
    ("over", "sentence"),
    [
        ({"bach": "1:10"}, "squared_\\w+ has no size 'bach': its sizes are batch, width"),
        ({"chunk": "1:10"}, "no chosen strategy has an option 'chunk' of numbers"),
        ({}, "nothing is swept"),
    ],
)
def test_what_cannot_be_swept_is_refused(over: dict[str, str], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        mapbench.sweep(squared, numbers, over, "map_fn.graph", quiet=True)


# --- how results are shown -------------------------------------------------------------------------------------------


def test_a_drawing_has_verdict_charts_and_table_and_no_script():
    run = synthetic.run()
    drawn = drawing.fragment(run)
    assert run.verdict in drawn
    assert drawn.count("<svg") == 2
    assert drawn.count("<tr>") == 1 + len(mapbench.Result(run, {}).table)
    assert "<script" not in drawn


def test_words_of_a_run_are_no_html():
    run = synthetic.run()
    item = replace(run.measurements[0], outcome="failed", error=Error(type="Error", message="<b>&"))
    drawn = drawing.fragment(replace(run, verdict="<i>", measurements=[item, *run.measurements[1:]]))
    assert "&lt;i&gt;" in drawn and "<i>" not in drawn
    assert "&lt;b&gt;&amp;" in drawn and "<b>" not in drawn


def test_why_a_strategy_was_not_measured_stands_where_its_figures_would(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(drawing, "_DRAW", "views.charts.no_such_program")
    run = synthetic.run()
    drawn = drawing.fragment(run)
    columns = drawn.count("<th>")
    (row,) = [row for row in re.findall("<tr>(.*?)</tr>", drawn) if "XLA cannot compile tf.numpy_function." in row]
    rank, name, reason = re.findall("<td.*?</td>", row)
    assert f'colspan="{columns - 2}"' in reason
    assert "colspan" not in rank + name
    (timed,) = [row for row in re.findall("<tr>(.*?)</tr>", drawn) if "batched.xla" in row]
    assert timed.count("<td>") == columns


@pytest.mark.parametrize("make", [synthetic.run, synthetic.sweep])
def test_a_drawing_says_what_is_to_be_known_of_the_function_before_the_figures(
    make: Callable[[], Run], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(drawing, "_DRAW", "views.charts.no_such_program")
    drawn = drawing.fragment(synthetic.of_function(make(), "It has <assertions>."))
    above, _, below = drawn.partition('About softened:<ul class="mb-list"><li>It has &lt;assertions&gt;.</li></ul>')
    assert make().verdict in above and "<table" in below
    assert "About" not in drawing.fragment(make())


def test_a_drawing_without_charts_has_the_rest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(drawing, "_DRAW", "views.charts.no_such_program")
    drawn = drawing.fragment(synthetic.run())
    assert "The charts could not be drawn." in drawn and "<table" in drawn


def test_outside_of_a_notebook_it_is_shown_in_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    opened: list[str] = []
    monkeypatch.setattr(result.webbrowser, "open", opened.append)
    monkeypatch.setattr(result.tempfile, "gettempdir", lambda: str(tmp_path))
    run = synthetic.run()
    mapbench.Result(run, {}).show()
    (file,) = tmp_path.iterdir()
    assert opened == [file.as_uri()]
    assert capsys.readouterr().out == f"{file}\n"
    assert run.verdict in file.read_text(encoding="utf-8")


def test_in_a_notebook_it_is_shown_below_the_cell(monkeypatch: pytest.MonkeyPatch):
    shown: list[mapbench.Result] = []
    monkeypatch.setattr(notebook, "display", lambda: shown.append)
    swept = mapbench.Result(synthetic.run(), {})
    swept.show()
    assert shown == [swept]


MAPPED = """
import numpy as np, tensorflow as tf, mapbench
from measure.engine import host_launcher
from tests.warm import WARM

host_launcher.subprocess = WARM
w = tf.Variable(3.0)
x = np.random.default_rng(0).random((16, 4), dtype=np.float32)
chosen = ("loop.eager", "map_fn.graph", "chunked.graph", "loop_compiled.eager")
result = mapbench.compare(lambda v: v * w, x, strategies=",".join(chosen), budget=1, quiet=True)
for slug in chosen:
    mapped = result.mapped(slug)
    for part in (x, x[:5]):
        assert np.array_equal(mapped(part), part * 3), slug
w.assign(2.0)  # the live variable is used, not the one that was measured
assert np.array_equal(mapped(x), x * 2)

words = tf.ragged.constant([[1.0, 2.0], [3.0], [4.0]])
result = mapbench.compare(lambda v: tf.reduce_sum(v) * w, words, strategies="map_fn.graph", budget=1, quiet=True)
assert result.leader == "map_fn.graph"
for elems in (words, [np.ones(2, np.float32), np.ones(1, np.float32), np.zeros(0, np.float32)]):
    assert np.array_equal(result.mapped("map_fn.graph")(elems), [2 * np.sum(row) for row in elems])
"""


def test_a_mapped_function_is_right_at_any_batch(tmp_path: Path):
    # In an interpreter of its own, since it calls TensorFlow.
    home = environment(MAPBENCH_HOME=str(tmp_path / "home"), MAPBENCH_LOCK=str(tmp_path / "lock"))
    (tmp_path / "script.py").write_text(MAPPED)  # so that the function has a source
    code = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
    done = warm.run(code, tmp_path / "script.py", folder=ROOT, environment=home)
    assert done.returncode == 0, done.stderr
