"""Scripts are whole: alone in an interpreter each computes what the reference says. And how they read."""

import ast
import builtins
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strategies
import workloads
from strategies import script
from strategies.spec import MODES
from tests.engine import run_python
from tests.workloads.test_workloads import CUBE, arrays, small
from workloads.case import Case
from workloads.spec import leaves

# Cells where a script has parts of its own, in every mode and dtype. Any other mapper has a workload that it can map.
CELLS = [
    ("image_sqrt", "loop.eager", "float64"),
    ("image_sqrt", "vectorized_map.graph", "float16"),
    ("image_sqrt", "map_fn.xla", "bfloat16"),
    ("trig_exp", "loop_compiled.eager?jit_compile=true", "float32"),
    ("per_example_gradients", "dataset_batched.graph?chunk=2", "float32"),
    ("top_k", "chunked.xla?chunk=2", "float32"),
    ("dp_sgd", "accumulate.graph?chunk=2", "float32"),
    ("counter", "map_fn.graph", "float32"),
    ("random", "map_fn.graph", "float32"),
]
OF_NO_ELEMENT = ("loop.eager", "map_fn.graph", "vectorized_map.graph", "chunked.graph", "dataset.graph")

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


def small_case(slug: str, dtype: str = "float32") -> Case:
    workload = workloads.get(slug)
    return Case(workload, small(workload), dtype)


def assert_right(case: Case, output: Path, lines: list[str], dtypes: list[str], error: str, stderr: str) -> None:
    assert not error, error
    assert "AutoGraph" not in stderr and "WARNING:tensorflow" not in stderr, stderr
    exec(script.build_reference(case), module := dict[str, Any]())
    right, expected = arrays(module["reference_output"]), leaves(case.output)
    assert dtypes == [leaf.dtype for leaf in expected]
    assert lines == [f"{leaf.dtype} {leaf.shape}" for leaf in expected]
    rounding = {"float64": 2**-52, "float32": 2**-23, "float16": 2**-10, "bfloat16": 2**-7}[case.dtype]
    relative = 4 * rounding * case.cost.depth**0.5
    with np.load(output) as got:
        assert len(got.files) == len(right)
        for name, array in zip(got.files, right, strict=True):
            # Where terms nearly cancel, the error is that of the terms. A product of small float16 numbers may be
            # subnormal: its absolute error is 2⁻²⁵ at most.
            least = relative * np.abs(array).max(initial=0.0) + 2**-24 * (rounding > 1e-4)
            np.testing.assert_allclose(got[name], array, rtol=relative, atol=least)


@pytest.mark.usefixtures("live")
def test_scripts_of_every_mapper_alone_compute_the_reference(tmp_path: Path) -> None:
    known = {strategies.parse(strategy).mapper for _, strategy, _ in CELLS}
    further = [
        (next(each.slug for each in workloads.all() if not strategies.missing(mapper, each)), mapper)
        for mapper in strategies.mappers()
        if mapper.slug not in known
    ]
    cells = [*CELLS, *((slug, f"{mapper.slug}.{mapper.modes[0]}", "float32") for slug, mapper in further)]
    assert {strategies.parse(strategy).mode for _, strategy, _ in cells} == set(MODES)
    cases = [(small_case(slug, dtype), strategy) for slug, strategy, dtype in cells]
    gradients = small_case("per_example_gradients")
    cases += [(replace(gradients, size={**gradients.size, "batch": 0}), strategy) for strategy in OF_NO_ELEMENT]
    files = [(str(tmp_path / f"{number}.py"), str(tmp_path / f"{number}.npz")) for number in range(len(cases))]
    for (case, strategy), (path, _) in zip(cases, files, strict=True):
        Path(path).write_text(script.build(case, strategy), encoding="utf-8")
    (tmp_path / "empty").mkdir()
    # Isolated, it finds nothing but the standard library and what is installed.
    result = run_python(DRIVER, json.dumps(files), folder=tmp_path / "empty", options=["-I"])
    said = list(map(json.loads, result.stdout.splitlines()))
    stderr = result.stderr.split("END OF A SCRIPT")
    assert len(said) == len(cases), result.stderr
    for (case, _), (_, output), each, err in zip(cases, files, said, stderr, strict=False):
        assert_right(case, Path(output), *each, err)


@pytest.mark.usefixtures("live")
def test_scripts_hold_nothing_unused_and_nothing_without_a_name(tmp_path: Path) -> None:
    for workload in workloads.all():
        case = Case(workload, small(workload), "bfloat16", seed=2**32 - 1)
        for place, strategy in enumerate(each for each in strategies.all_strategies(workload) if each.mode == "graph"):
            text = script.build(case, strategy.slug, threads=(None, 2)[place % 2])
            (tmp_path / f"{workload.slug}_{strategy.mapper}_{strategy.mode}.py").write_text(text)
        (tmp_path / f"{workload.slug}_reference.py").write_text(script.build_reference(case))
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=E4,E7,E9,F,W,I,B"]
    result = subprocess.run([*ruff, tmp_path], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def undefined(text: str) -> set[str]:
    """The names that code uses and binds nowhere."""
    nodes = list(ast.walk(ast.parse(text)))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ExceptHandler)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - bound - {*vars(builtins), "__name__"}


def test_the_part_of_a_script_that_maps_defines_what_it_uses() -> None:
    for workload in workloads.all():
        for options in workload.choices():
            case = Case(workload.variant(options), small(workload), "float32", options)
            for each in strategies.all_strategies(case.workload):
                part = script.mapping(script.build(case, each.slug))
                assert undefined(part) <= {"np", "tf", "elems", "variables"}, (workload.slug, options, each.slug)
                assert "def strategy(elems):\n" in part and "def inputs(" not in part
    text = f"import json\n\ntable = {'x' * 20_000!r}\nunused = 1\n\n@print\ndef strategy(x):\n    json.loads(table)"
    assert script.mapping(text) == "import json\n\n@print\ndef strategy(x):\n    json.loads(table)"


def test_functions_of_the_file_that_are_called_stand_in_the_script_and_two_of_one_name_are_refused(
    tmp_path: Path,
) -> None:
    helper = "def cubed(x):\n    return x * squared(x)\n\n\ndef squared(x):\n    return x * x\n\n\ndef element("
    file = tmp_path / "cube.py"
    file.write_text(CUBE.replace("def element(", helper).replace("return x**3", "return cubed(x)"))
    text = script.build(Case(workloads.load_file(file), {"batch": 2}, "float32"), "loop.eager")
    order = [text.index(f"def {name}(") for name in ("inputs", "squared", "cubed", "element", "map_with_loop")]
    assert order == sorted(order) and "def reference(" not in text
    file.write_text(CUBE.replace("def element(", "def map_with_loop(").replace("=element", "=map_with_loop"))
    with pytest.raises(script.ScriptError, match="two functions of one script are named 'map_with_loop'"):
        script.build(Case(workloads.load_file(file), {"batch": 2}, "float32"), "loop.eager")
