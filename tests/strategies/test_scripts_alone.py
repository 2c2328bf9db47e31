"""The script of every strategy is whole: alone in an interpreter it computes what the reference says."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strategies
import workloads
from strategies import script
from tests import warm
from tests.strategies.test_scripts import build, small_case
from tests.strategies.test_strategies import EVERY_OTHER, GRID
from tests.workloads.test_workloads import CUBE, arrays
from workloads.case import Case
from workloads.spec import leaves

# Workload, strategy, dtype.
Cell = tuple[str, str, str]

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

# One of each mode: run among the quick tests too, and the last also where nothing has imported TensorFlow before.
OF_EACH_MODE = [
    ("image_sqrt", "loop.eager", "float32"),
    ("per_example_gradients", "map_fn.graph", "float32"),
    ("outer_product", "vectorized_map.xla", "float32"),
]

# Runs scripts as a person would, one after another, and writes down what each has said and computed.
DRIVER = """
import contextlib, io, json, runpy, sys, traceback
for script, output in json.loads(sys.argv[1]):
    said, dtypes, error = io.StringIO(), [], ""
    try:
        with contextlib.redirect_stdout(said):
            outputs = runpy.run_path(script, run_name="__main__")["outputs"]
        import numpy as np
        import tensorflow as tf
        leaves = tf.nest.flatten(outputs)
        np.savez(output, *[tf.cast(leaf, tf.float64).numpy() for leaf in leaves])
        dtypes = [leaf.dtype.name for leaf in leaves]
    except Exception:
        error = traceback.format_exc()
    print(json.dumps([said.getvalue().splitlines(), dtypes, error]))
    print("END OF A SCRIPT", file=sys.stderr)
mine = [name for name in ("workloads", "strategies", "measure") if name in sys.modules]
sys.exit(f"a script imported {mine}" if mine else 0)
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


def alone(code: str, *arguments: str | Path, folder: Path) -> Any:
    """The same of an interpreter that has imported TensorFlow before."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return warm.run(code, *arguments, folder=folder, environment=environment, isolated=True)


def reference(case: Case) -> list[np.ndarray]:
    module: dict[str, Any] = {}
    exec(script.build_reference(case), module)
    return arrays(module["reference_output"])


def test_vectorized_map_prints_and_asserts_for_one_element_only_as_the_page_says(tmp_path: Path) -> None:
    result = alone(PRINTS_AND_ASSERTS, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("printed") == 2, result.stderr


def test_scripts_are_built_without_tensorflow(tmp_path: Path) -> None:
    result = python(WITHOUT_TENSORFLOW, folder=tmp_path, path=Path(script.__file__).parents[1])
    assert result.returncode == 0, result.stderr


# --- run as a person would run them --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """What a script has printed, the dtypes of its outputs and where they are, and what went wrong."""

    lines: list[str]
    dtypes: list[str]
    output: Path
    error: str
    stderr: str


def run_scripts(cells: Sequence[Cell], folder: Path, run: Callable[..., Any]) -> list[Ran]:
    """``run`` takes code, its arguments and the folder to run it in; it knows nothing of this project."""
    files = []
    for number, cell in enumerate(cells):
        files.append((str(folder / f"script_{number}.py"), str(folder / f"output_{number}.npz")))
        Path(files[-1][0]).write_text(build(*cell), encoding="utf-8")
    (folder / "empty").mkdir()
    result = run(DRIVER, json.dumps(files), folder=folder / "empty")
    assert result.returncode == 0, result.stderr
    said = zip(files, result.stdout.splitlines(), result.stderr.split("END OF A SCRIPT"), strict=False)
    ran = [Ran(*json.loads(line)[:2], Path(output), json.loads(line)[2], err) for (_, output), line, err in said]
    assert len(ran) == len(cells), result.stderr
    return ran


def assert_right(cell: Cell, ran: Ran) -> None:
    slug, _, dtype = cell
    case = small_case(slug, dtype)
    assert not ran.error, ran.error
    assert "AutoGraph" not in ran.stderr and "WARNING:tensorflow" not in ran.stderr, ran.stderr
    right = reference(case)
    expected = leaves(case.output)
    assert ran.dtypes == [leaf.dtype for leaf in expected]
    assert ran.lines == [f"{leaf.dtype} {leaf.shape}" for leaf in expected]
    rounding = {"float64": 2**-52, "float32": 2**-23, "float16": 2**-10, "bfloat16": 2**-7}[dtype]
    relative = 4 * rounding * case.cost.depth**0.5
    with np.load(ran.output) as got:
        assert len(got.files) == len(right)
        for name, array in zip(got.files, right, strict=True):
            # A product of small float16 numbers may be subnormal: its absolute error is 2⁻²⁵ at most.
            np.testing.assert_allclose(got[name], array, rtol=relative, atol=2**-24 * (rounding > 1e-4))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Cell], Ran]:
    """What became of a cell's script: some run alone, the others after others in one process."""
    others = [cell for cell in CELLS if cell not in OF_EACH_MODE]
    groups = [[cell] for cell in OF_EACH_MODE] + [
        others[start :: len(others) // 10] for start in range(len(others) // 10)
    ]
    known: dict[Cell, Ran] = {}

    def find(cell: Cell) -> Ran:
        if cell not in known:
            (group,) = [group for group in groups if cell in group]
            known.update(zip(group, run_scripts(group, tmp_path_factory.mktemp("scripts"), alone), strict=True))
        return known[cell]

    return find


@pytest.mark.parametrize(
    "cell",
    [pytest.param(cell, id="-".join(cell)) for cell in CELLS],
)
def test_a_script_alone_computes_the_reference(cell: Cell, ran: Callable[[Cell], Ran]) -> None:
    assert_right(cell, ran(cell))


def test_a_script_needs_nothing_that_was_imported_before_it(tmp_path: Path) -> None:
    assert_right(OF_EACH_MODE[-1], *run_scripts(OF_EACH_MODE[-1:], tmp_path, python))


def test_scripts_run_as_subjects_run_them(tmp_path: Path) -> None:
    texts = {f"<{slug} {strategy}>": build(slug, strategy) for slug in FIRST for strategy in GRID}
    texts["<options>"] = build("image_sqrt", "map_fn.graph?parallel_iterations=3")
    texts["<no fallback>"] = build("per_example_gradients", "vectorized_map.graph?fallback_to_while_loop=false")
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    result = alone(SUBJECT, tmp_path / "texts.json", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "AutoGraph" not in result.stderr, result.stderr
    seen = {name: (traces, variables) for name, traces, variables in map(json.loads, result.stdout.splitlines())}
    assert seen.keys() == texts.keys()
    for name, (traces, variables) in seen.items():
        assert traces == (None if ".eager" in name else 1), name
        assert variables == (2 if "gradients" in name or "fallback" in name else 0), name


def test_a_new_workload_and_a_new_mapper_take_one_file_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    output = tmp_path / "output.npz"
    result = alone(DRIVER, json.dumps([[str(tmp_path / "script.py"), str(output)]]), folder=tmp_path)
    assert result.returncode == 0 and json.loads(result.stdout)[2] == "", result.stdout + result.stderr
    with np.load(output) as got:
        np.testing.assert_allclose(got["arr_0"], reference(case)[0], rtol=1e-6)
