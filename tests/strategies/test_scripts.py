"""The script of every strategy is whole: alone in an interpreter it computes what the reference says."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strategies
import workloads
from strategies import script
from strategies.spec import MODES
from tests.strategies.test_strategies import EVERY_OTHER, GRID
from tests.warm import WarmInterpreter, warm_interpreter
from tests.workloads.test_workloads import CUBE, arrays, small
from workloads.case import Case
from workloads.spec import Workload, leaves

FIRST = ("image_sqrt", "outer_product", "per_example_gradients")

# One strategy of each mode and of each mapper, so that each dtype meets a different one.
BY_DTYPE = {"float64": "loop.eager", "float16": "vectorized_map.graph", "bfloat16": "map_fn.xla"}

CELLS = [(slug, strategy, "float32") for slug in FIRST for strategy in GRID] + [
    (workload.slug, strategy, dtype)
    for workload in workloads.all()
    for dtype, strategy in BY_DTYPE.items()
    if workload.slug in FIRST and dtype in workload.dtypes
]

# A strategy of each further mapper and a cell of each further workload, where a script has parts of its own.
FURTHER = [
    ("outer_reduce", "while_loop.graph"),
    ("branch", "autograph.graph"),
    ("trig_exp", "loop_compiled.eager"),
    ("trig_exp", "loop_compiled.eager?jit_compile=true"),
    ("per_example_gradients", "dataset.graph"),
    ("per_example_gradients", "dataset_batched.graph?chunk=2"),
    ("outer_reduce", "chunked.graph?chunk=2"),
    ("top_k", "chunked.xla?chunk=2"),
    ("inner_while", "numpy_function.graph"),
    ("top_k", "numpy.eager"),
    ("attention", "numpy_batched.eager"),
    ("per_example_gradients", "jacobian.graph"),
    ("batch_jacobian", "tape_batch_jacobian.graph"),
    ("gradient_through_map", "map_fn.graph"),
    ("gradient_through_map", "recompute.graph"),
    ("dp_sgd", "loop.eager"),
    ("dp_sgd", "accumulate.graph?chunk=2"),
    ("variable_shape", "ragged.eager"),
    ("counter", "map_fn.graph"),
    ("square", "batched.xla"),
    ("polynomial", "vectorized_map.graph"),
    ("python_sum", "loop.eager"),
    ("repeat_sum", "vectorized_map.graph"),
    ("image_sqrt_uint8", "vectorized_map.graph"),
    ("pixel_loop", "map_fn.graph"),
    ("matmul_chain", "batched.graph"),
    ("random", "map_fn.graph"),
]
CELLS += [(slug, strategy, "float32") for slug, strategy in FURTHER]
# What is not named above is run, too: a new workload by the plainest mapper, a new mapper on the first workload that
# has what it needs.
CELLS += [
    (workload.slug, "loop.eager", "float32")
    for workload in workloads.all()
    if workload.slug not in {slug for slug, _, _ in CELLS}
]
CELLS += [
    (
        next(each.slug for each in workloads.all() if strategies.offered(mapper, each)),
        f"{mapper.slug}.{mapper.modes[0]}",
        "float32",
    )
    for mapper in strategies.mappers()
    if mapper.slug not in {strategies.parse(strategy).mapper for _, strategy, _ in CELLS}
]

# One of each mode: run among the quick tests too, and also where nothing has imported TensorFlow before the script.
OF_EACH_MODE = [
    ("image_sqrt", "loop.eager", "float32"),
    ("per_example_gradients", "map_fn.graph", "float32"),
    ("outer_product", "vectorized_map.xla", "float32"),
]

# Runs a script as a person would, then writes down what it computed.
DRIVER = """
import json, runpy, sys
outputs = runpy.run_path(sys.argv[1], run_name="__main__")["outputs"]
import numpy as np
import tensorflow as tf
leaves = tf.nest.flatten(outputs)
np.savez(sys.argv[2], *[tf.cast(leaf, tf.float64).numpy() for leaf in leaves])
print(json.dumps([leaf.dtype.name for leaf in leaves]))
mine = [name for name in ("workloads", "strategies", "measure") if name in sys.modules]
sys.exit(f"the script imported {mine}" if mine else 0)
"""

# What a subject does: the text, known to linecache, is executed under another name, and two calls trace once.
SUBJECT = """
import json, linecache, sys
import tensorflow as tf
for name, text in json.load(open(sys.argv[1])).items():
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = {"__name__": "subject"}
    exec(compile(text, name, "exec"), module)
    strategy, elems = module["strategy"], module["elems"]
    strategy(elems), strategy(elems)
    assert "outputs" not in module, name
    assert all(isinstance(variable, tf.Variable) for variable in module.get("variables", ())), name
    traces = strategy.experimental_get_tracing_count() if hasattr(strategy, "experimental_get_tracing_count") else None
    print(json.dumps([name, traces, len(module.get("variables", ()))]))
"""

# Every element but the first would fail its assertion.
PRINTS_AND_ASSERTS = """
import tensorflow as tf
def fn(x):
    tf.print("printed")
    tf.debugging.assert_less(x, 2.0)
    return 2.0 * x
elems = tf.constant([1.0, 5.0, 7.0])
for mapped in (tf.vectorized_map, tf.function(tf.vectorized_map)):
    assert mapped(fn, elems).numpy().tolist() == [2.0, 10.0, 14.0]
"""

WITHOUT_TENSORFLOW = """
import sys
import workloads, strategies, strategies.script as script
from workloads.case import Case
count = 0
for workload in workloads.all():
    size, offered = workload.default_size(), strategies.all_strategies(workload)
    for dtype in workload.dtypes:
        case = Case(workload, size, dtype)
        script.build_reference(case)
        for strategy in offered if dtype == workload.dtypes[0] else offered[:1]:
            script.build(case, strategy)
            count += 1
assert count >= 144, count
assert "tensorflow" not in sys.modules
"""


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmInterpreter]:
    with warm_interpreter() as interpreter:
        yield interpreter


def python(code: str, *arguments: str | Path, folder: Path, path: Path | None = None) -> Any:
    """A fresh interpreter's result; without a path it finds nothing but the standard library and what is installed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["TF_CPP_MIN_LOG_LEVEL"] = "1"
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    return subprocess.run(
        [sys.executable, *([] if path else ["-I"]), "-c", code, *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def small_case(slug: str, dtype: str = "float32") -> Case:
    workload = workloads.get(slug)
    return Case(workload, small(workload), dtype)


def build(slug: str, strategy: str, dtype: str = "float32") -> str:
    return script.build(small_case(slug, dtype), strategy)


def reference(case: Case) -> list[np.ndarray]:
    module: dict[str, Any] = {}
    exec(script.build_reference(case), module)
    return arrays(module["reference_output"])


@pytest.mark.slow
def test_vectorized_map_prints_and_asserts_for_one_element_only_as_the_page_says(
    tmp_path: Path, warm: WarmInterpreter
) -> None:
    result = warm.run(PRINTS_AND_ASSERTS, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("printed") == 2, result.stderr


@pytest.mark.slow
def test_scripts_are_built_without_tensorflow(tmp_path: Path) -> None:
    result = python(WITHOUT_TENSORFLOW, folder=tmp_path, path=Path(script.__file__).parents[1])
    assert result.returncode == 0, result.stderr


# --- run as a person would run them --------------------------------------------------------------------------------


def assert_right_alone(cell: tuple[str, str, str], folder: Path, run: Callable[..., Any]) -> None:
    """``run`` takes code, its arguments and the folder to run it in; it knows nothing of this project."""
    slug, _, dtype = cell
    case = small_case(slug, dtype)
    text, output = folder / "script.py", folder / "output.npz"
    text.write_text(build(*cell), encoding="utf-8")
    (folder / "empty").mkdir()
    result = run(DRIVER, text, output, folder=folder / "empty")
    assert result.returncode == 0, result.stderr
    assert "AutoGraph" not in result.stderr and "WARNING:tensorflow" not in result.stderr, result.stderr
    right = reference(case)
    *shapes, dtypes = result.stdout.splitlines()
    expected = leaves(case.output)
    assert json.loads(dtypes) == [leaf.dtype for leaf in expected]
    assert shapes == [f"{leaf.dtype} {leaf.shape}" for leaf in expected]
    rounding = {"float64": 2**-52, "float32": 2**-23, "float16": 2**-10, "bfloat16": 2**-7}[dtype]
    relative = 4 * rounding * case.cost.depth**0.5
    with np.load(output) as got:
        assert len(got.files) == len(right)
        for name, array in zip(got.files, right, strict=True):
            # A product of small float16 numbers may be subnormal: its absolute error is 2⁻²⁵ at most.
            np.testing.assert_allclose(got[name], array, rtol=relative, atol=2**-24 * (rounding > 1e-4))


@pytest.mark.parametrize(
    "cell",
    [pytest.param(cell, marks=[] if cell in OF_EACH_MODE else pytest.mark.slow, id="-".join(cell)) for cell in CELLS],
)
def test_a_script_alone_computes_the_reference(
    cell: tuple[str, str, str], tmp_path: Path, warm: WarmInterpreter
) -> None:
    assert_right_alone(cell, tmp_path, warm.run)


@pytest.mark.slow
@pytest.mark.parametrize("cell", OF_EACH_MODE, ids="-".join)
def test_a_script_needs_nothing_that_was_imported_before_it(cell: tuple[str, str, str], tmp_path: Path) -> None:
    assert_right_alone(cell, tmp_path, python)


@pytest.mark.slow
def test_scripts_run_as_subjects_run_them(tmp_path: Path, warm: WarmInterpreter) -> None:
    texts = {f"<{slug} {strategy}>": build(slug, strategy) for slug in FIRST for strategy in GRID}
    texts["<options>"] = build("image_sqrt", "map_fn.graph?parallel_iterations=3")
    texts["<no fallback>"] = build("per_example_gradients", "vectorized_map.graph?fallback_to_while_loop=false")
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    result = warm.run(SUBJECT, tmp_path / "texts.json", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "AutoGraph" not in result.stderr, result.stderr
    seen = {name: (traces, variables) for name, traces, variables in map(json.loads, result.stdout.splitlines())}
    assert seen.keys() == texts.keys()
    for name, (traces, variables) in seen.items():
        assert traces == (None if ".eager" in name else 1), name
        assert variables == (2 if "gradients" in name or "fallback" in name else 0), name


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


@pytest.mark.slow
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


def test_a_new_workload_and_a_new_mapper_take_one_file_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm: WarmInterpreter
) -> None:
    for variable, name, text in (("WORKLOADS", "cube", CUBE), ("MAPPERS", "through_dataset", EVERY_OTHER)):
        folder = tmp_path / variable.lower()
        folder.mkdir()
        (folder / f"{name}.py").write_text(text)
        monkeypatch.setenv(f"MAPBENCH_{variable}", str(folder))
    workload = workloads.get("cube")
    case = Case(workload, workload.default_size(), "float32")
    assert "through_dataset.graph" in [strategy.slug for strategy in strategies.all_strategies(workload)]
    text = script.build(case, "through_dataset.graph")
    (tmp_path / "script.py").write_text(text)
    result = warm.run(DRIVER, tmp_path / "script.py", tmp_path / "output.npz", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    with np.load(tmp_path / "output.npz") as got:
        np.testing.assert_allclose(got["arr_0"], reference(case)[0], rtol=1e-6)
