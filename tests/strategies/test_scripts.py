"""How the scripts of strategies read, and what does not fit into one."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import strategies
import workloads
from strategies import script
from strategies.spec import MODES
from tests.workloads.test_workloads import CUBE, small
from workloads.case import Case
from workloads.spec import Workload


def small_case(slug: str, dtype: str = "float32") -> Case:
    workload = workloads.get(slug)
    return Case(workload, small(workload), dtype)


def build(slug: str, strategy: str, dtype: str = "float32") -> str:
    return script.build(small_case(slug, dtype), strategy)


# --- how they read -------------------------------------------------------------------------------------------------


WHOLE = '''\
"""Per-example gradients: tf.map_fn, graph (map_fn.graph?parallel_iterations=32).

batch=2, features=3, model=dense, dtype=float32, device=CPU:0, seed=7
"""

import numpy as np
import tensorflow as tf

tf.config.set_visible_devices([], "GPU")
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)


def inputs(batch, features, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(batch, features)).astype(dtype)
    # Labels far from any prediction: where the two nearly cancel, rounding alone would decide the relative error.
    label = rng.uniform(8.0, 12.0, size=(batch, 1)).astype(dtype)
    return x, label


def initial_values(features, dtype, seed):
    rng = np.random.default_rng(seed + 1)
    kernel = (rng.uniform(-1.0, 1.0, size=(features, 1)) / np.sqrt(features)).astype(dtype)
    bias = rng.uniform(-1.0, 1.0, size=(1,)).astype(dtype)
    return kernel, bias


def element(example, kernel, bias):
    x, label = example
    with tf.GradientTape() as tape:
        prediction = tf.matmul(x[None, :], kernel)[0] + bias
        loss = tf.nn.l2_loss(label - prediction)
    return tape.gradient(loss, (kernel, bias))


def map_with_map_fn(fn, elems, signature, parallel_iterations=None):
    return tf.map_fn(fn, elems, fn_output_signature=signature, parallel_iterations=parallel_iterations)


elems = tf.nest.map_structure(tf.constant, inputs(batch=2, features=3, dtype="float32", seed=7))
variables = tuple(map(tf.Variable, initial_values(features=3, dtype="float32", seed=7)))
signature = (tf.TensorSpec([3, 1], tf.float32), tf.TensorSpec([1], tf.float32))


def fn(x):
    return element(x, *variables)


@tf.function
def strategy(elems):
    return map_with_map_fn(fn, elems, signature, parallel_iterations=32)


if __name__ == "__main__":
    outputs = strategy(elems)
    for leaf in tf.nest.flatten(outputs):
        print(leaf.dtype.name, leaf.shape)
'''


def test_a_whole_script_to_the_letter() -> None:
    case = Case(workloads.get("per_example_gradients"), {"batch": 2, "features": 3}, "float32", seed=7)
    assert script.build(case, "map_fn.graph?parallel_iterations=32", threads=1) == WHOLE


@pytest.mark.parametrize("mode", MODES)
def test_a_rewrite_is_called_as_it_is(mode: str) -> None:
    decorator = {"eager": "", "graph": "@tf.function\n", "xla": "@tf.function(jit_compile=True)\n"}[mode]
    text = build("image_sqrt", f"batched.{mode}")
    assert f"\n\n\n{decorator}def strategy(elems):\n    return batched(elems)\n" in text
    assert "element" not in text and "signature" not in text and "variables" not in text
    assert "\n    return batched(elems, *variables)\n" in build("per_example_gradients", f"batched.{mode}")


def test_devices() -> None:
    case = small_case("image_sqrt")
    text = script.build(replace(case, device="GPU:1"), "loop.eager")
    assert 'tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[1], "GPU")\n' in text
    with pytest.raises(script.ScriptError, match="device 'TPU:0' is not valid"):
        script.build(replace(case, device="TPU:0"), "loop.eager")


def test_scripts_are_formatted_and_hold_nothing_unused(tmp_path: Path) -> None:
    """At small and at the largest sizes, where lines have to be split, without and with lines that set threads."""
    for workload in workloads.all():
        largest = {parameter.name: parameter.most for parameter in workload.sizes}
        for name, size, threads in (("small", small(workload), None), ("large", largest, 2)):
            case = Case(workload, size, "bfloat16", seed=2**32 - 1)
            for strategy in strategies.all_strategies(workload):
                text = script.build(case, strategy, threads=threads)
                (tmp_path / f"{workload.slug}_{strategy.mapper}_{strategy.mode}_{name}.py").write_text(text)
            text = script.build_reference(case)
            (tmp_path / f"{workload.slug}_reference_{name}.py").write_text(text)
    ruff = [sys.executable, "-m", "ruff"]
    for command in (
        ["format", "--isolated", "--no-cache", "--line-length=120", "--diff"],
        ["check", "--isolated", "--no-cache", "--line-length=120", "--select=E,F,W,I,B"],
    ):
        result = subprocess.run([*ruff, *command, tmp_path], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout


# --- what does not fit together ------------------------------------------------------------------------------------


def own_workload(folder: Path, *changes: tuple[str, str]) -> Workload:
    text = CUBE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "cube.py").write_text(text)
    return workloads.load_file(folder / "cube.py")


def test_a_name_that_the_script_lacks_is_named(tmp_path: Path) -> None:
    workload = own_workload(tmp_path, ("return x**3", "return LIMIT * math.pi"))
    with pytest.raises(script.ScriptError, match="the script of cube would use LIMIT, math, which it does not have"):
        script.build(Case(workload, {"batch": 2}, "float32"), "loop.eager")


def test_a_reference_has_numpy_alone(tmp_path: Path) -> None:
    workload = own_workload(tmp_path, ("return x.astype(np.float64) ** 3", "return tf.cast(x, tf.float64) ** 3"))
    sentence = "the reference of cube would use tf, which it does not have: its functions may use np, their arguments"
    with pytest.raises(script.ScriptError, match=sentence):
        script.build_reference(Case(workload, {"batch": 2}, "float32"))


def test_helpers_come_before_what_uses_them_and_only_where_they_are_used(tmp_path: Path) -> None:
    helpers = "def half(x):\n    return x / 2\n\n\ndef quarter(x):\n    return half(x) / 2\n\n\ndef element(x):"
    workload = own_workload(
        tmp_path,
        ("def element(x):", helpers),
        ("return x**3", "return quarter(x)"),
        ("cost=cost,", "cost=cost, helpers=(quarter, half),"),
    )
    text = script.build(Case(workload, {"batch": 2}, "float32"), "map_fn.xla")
    assert text.index("def half") < text.index("def quarter") < text.index("def element")
    assert "half" not in script.build_reference(Case(workload, {"batch": 2}, "float32"))


def test_two_functions_of_one_name_are_refused(tmp_path: Path) -> None:
    workload = own_workload(
        tmp_path, ("def element(", "def map_with_loop("), ("element=element", "element=map_with_loop")
    )
    with pytest.raises(script.ScriptError, match="two functions of one script are named 'map_with_loop'"):
        script.build(Case(workload, {"batch": 2}, "float32"), "loop.eager")


def test_a_missing_rewrite_is_named(tmp_path: Path) -> None:
    with pytest.raises(script.ScriptError, match="batched needs a rewrite 'batched', which cube does not have"):
        script.build(Case(own_workload(tmp_path), {"batch": 2}, "float32"), "batched.eager")


def test_nested_signatures_and_options_are_literals(tmp_path: Path) -> None:
    workload = own_workload(
        tmp_path,
        ("from workloads.spec import Cost, Leaf,", "from workloads.spec import Cost, Leaf, Option,"),
        ("def inputs(batch, dtype, seed):", "def inputs(batch, kind, dtype, seed):"),
        ("return Leaf((3,), dtype)", "return {'b': (Leaf((), dtype),), 'a': [Leaf((3,), 'int32')]}"),
        ("cost=cost,", "cost=cost, options=(Option('kind', 'plain', 'kind of numbers', ('plain', 'odd')),),"),
    )
    text = script.build(Case(workload, {"batch": 2}, "float32", {"kind": "odd"}), "map_fn.xla")
    assert 'signature = {"b": (tf.TensorSpec([], tf.float32),), "a": [tf.TensorSpec([3], tf.int32)]}\n' in text
    assert 'inputs(batch=2, kind="odd", dtype="float32", seed=0)' in text
