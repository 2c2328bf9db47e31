"""Mapbench in Python: functions of libraries and of other modules, what a run is called, and whole comparisons."""

import copy
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mapbench.given import NotSendable, given
from measure.engine.deriving import Deriving
from measure.engine.host_launcher import HostLauncher
from tests import warm
from tests.engine import ROOT, environment
from workloads import functions


def numbers(batch=6, width=2):
    return np.ones((batch, width), np.float32)


def same(x):
    return x


class Unsendable:
    """An object whose pickling fails with the words that it has."""

    def __init__(self, words: str) -> None:
        self.words = words

    def __reduce__(self) -> Any:
        raise TypeError(self.words)


def test_a_refusal_shows_no_address_in_memory():
    held = Unsendable("Can't pickle <function f at 0x7f00deadbeef>\nand more")
    with pytest.raises(NotSendable) as refused:
        given(lambda x: held, numbers, None, None)
    assert str(refused.value) == "fn cannot be sent to another process: TypeError: Can't pickle <function f>"


def test_a_refusal_without_words_is_named_by_its_type():
    held = Unsendable("")
    with pytest.raises(NotSendable, match=r"^fn cannot be sent to another process: TypeError$"):
        given(lambda x: held, numbers, None, None)


# --- functions of libraries and of modules ---------------------------------------------------------------------------


def executed(code: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(code, space)
    return space


def test_a_function_of_a_library_goes_by_its_name():
    sent = given(np.sqrt, numbers, None, np.linalg.norm)
    assert "import numpy\n" in sent.code and "cloudpickle" not in sent.code
    assert "\nsqrt = numpy.sqrt\n" in sent.code
    assert "\nnorm = numpy.linalg.norm\n" in sent.code
    space = executed(sent.code)
    assert space[sent.function] is np.sqrt and space[sent.reference] is np.linalg.norm


def test_a_function_that_is_called_as_its_module_or_as_another_has_another_name():
    sent = given(copy.copy, numbers, np.sqrt, same)
    assert executed(sent.code)[sent.function] is copy.copy
    assert sent.function == "imported_fn"
    again = given(np.sqrt, numbers, np.emath.sqrt, np.sqrt)
    space = executed(again.code)
    assert (again.function, again.batched, again.reference) == ("sqrt", "imported_batched", "sqrt")
    assert space["sqrt"] is np.sqrt and space["imported_batched"] is np.emath.sqrt


def test_a_constant_of_another_module_is_not_taken_for_one_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(tmp_path)
    for name, factor in (("scaled", 2.0), ("scaled_batch", 3.0)):
        text = f"FACTOR = {factor}\n\n\ndef {name}(x):\n    return x * FACTOR\n"
        (tmp_path / f"module_of_{name}.py").write_text(text)
    one, other = (importlib.import_module(f"module_of_{name}") for name in ("scaled", "scaled_batch"))
    sent = given(one.scaled, numbers, other.scaled_batch, None)
    space = executed(sent.code)
    assert (space[sent.function](1.0), space[sent.batched](1.0)) == (2.0, 3.0)


LIBRARY = """
import numpy as np, tensorflow as tf, mapbench
from measure.engine import host_launcher
from tests.warm import WARM

host_launcher.subprocess = WARM
images = np.random.default_rng(0).random((4, 6, 6, 3), dtype=np.float32)


def compared(fn, elems):
    result = mapbench.compare(fn, elems, "map_fn.graph", budget=1, quiet=True)
    assert result.leader == "map_fn.graph"
    return result


flip = compared(tf.image.random_flip_left_right, images).code("map_fn.graph")
assert "random_flip_left_right = tensorflow.image.random_flip_left_right" in flip, flip
assert "cloudpickle" not in flip
assert "map_with_map_fn(random_flip_left_right, elems, signature)" in flip
through = compared(lambda x: tf.image.flip_left_right(x), images)
assert np.array_equal(through.mapped("map_fn.graph")(images), images[:, :, ::-1])


def of_a_layer():
    layer = tf.keras.layers.Dense(2, activation="tanh")
    layer.build((None, 3))

    def dense(x):
        return layer(x[None])[0]

    return layer, dense


layer, dense = of_a_layer()
rows = images[:, 0, 0]
result = compared(dense, rows)
assert np.allclose(result.mapped("map_fn.graph")(rows), layer(rows), atol=1e-6)
in_cell = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])


def of_a_cell(x):
    return in_cell(x[None])[0]


result = compared(of_a_cell, rows)
assert np.allclose(result.mapped("map_fn.graph")(rows), in_cell(rows), atol=1e-6)
"""


def test_functions_of_tensorflow_and_live_layers_are_measured(tmp_path: Path):
    # In an interpreter of its own, since it calls TensorFlow.
    home = environment(MAPBENCH_HOME=str(tmp_path / "home"), MAPBENCH_LOCK=str(tmp_path / "lock"))
    (tmp_path / "script.py").write_text(LIBRARY)  # so that the functions have a source
    code = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
    done = warm.run(code, tmp_path / "script.py", folder=ROOT, environment=home)
    assert done.returncode == 0, done.stderr


WHOLE = """
import sys
import numpy as np, mapbench
from measure.engine import host_launcher
from tests.warm import WARM

host_launcher.subprocess = WARM


def squared(x):
    return x * x


result = mapbench.compare(squared, np.ones((4, 2), np.float32), "map_fn.graph", budget=1)
assert result.leader == "map_fn.graph"
print(result, result.table, result._repr_mimebundle_().keys())
assert "tensorflow" not in sys.modules
"""


def test_a_whole_comparison_loads_no_tensorflow(tmp_path: Path):
    home = environment(MAPBENCH_HOME=str(tmp_path / "home"), MAPBENCH_LOCK=str(tmp_path / "lock"))
    (tmp_path / "script.py").write_text(WHOLE)
    command = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(command, cwd=ROOT, env=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- title and presets -----------------------------------------------------------------------------------------------


def test_title_and_presets_are_written_as_code(host: HostLauncher):
    presets = {"Small": {"batch": np.int64(2)}, "Wide": {"batch": 2, "width": 5}}
    sent = given(same, numbers, None, None, 'The "same"', presets)
    assert "TITLE = 'The \"same\"'\n" in sent.code
    assert "PRESETS = {'Small': {'batch': 2}, 'Wide': {'batch': 2, 'width': 5}}\n" in sent.code
    slug = Deriving(host, "a test", patient=True).give(sent, {}, 0)
    workload = functions.workloads()[slug]
    assert (workload.title, workload.presets) == ('The "same"', presets)
    plain = given(same, numbers, None, None).code
    assert "TITLE" not in plain and "PRESETS" not in plain


TITLE = "Titled here"


def titled(x):
    return TITLE and x


def test_a_title_that_the_code_has_otherwise_is_refused():
    assert given(titled, numbers, None, None, TITLE).code == given(titled, numbers, None, None).code
    with pytest.raises(NotSendable, match=r"^a function uses a TITLE of its own: give no title, or rename that$"):
        given(titled, numbers, None, None, "Another")


@pytest.mark.parametrize("presets", [["Small"], {"Small": 3}, {"Small": {"batch": 2.5}}])
def test_presets_that_are_no_sizes_are_refused(presets: Any):
    with pytest.raises(NotSendable, match=r"^presets are not valid: names with sizes in whole numbers are needed"):
        given(same, numbers, None, None, "", presets)


@pytest.mark.parametrize("measure", ["compare", "sweep"])
def test_compare_and_sweep_hand_title_and_presets_on(measure: str, monkeypatch: pytest.MonkeyPatch):
    import mapbench
    from mapbench import api

    handed: list[Any] = []

    class Known(Exception):
        pass

    def measured(code: Any, *_: Any) -> None:
        handed.append(code.code)
        raise Known

    monkeypatch.setattr(api, "_measured", measured)
    over = ({"batch": [1, 2]},) if measure == "sweep" else ()
    with pytest.raises(Known):
        getattr(mapbench, measure)(same, numbers, *over, title="Same", presets={"Small": {"batch": 2}})
    assert "TITLE = 'Same'" in handed[0] and "PRESETS = {'Small': {'batch': 2}}" in handed[0]
