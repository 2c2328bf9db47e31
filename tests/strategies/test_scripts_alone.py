"""The script of every strategy is whole: alone in an interpreter it computes what the reference says."""

import json
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
from tests.strategies.test_scripts import small_case
from tests.workloads.test_workloads import arrays
from workloads.case import Case
from workloads.spec import leaves

pytestmark = pytest.mark.usefixtures("live")

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


def reference(case: Case) -> list[np.ndarray]:
    module: dict[str, Any] = {}
    exec(script.build_reference(case), module)
    return arrays(module["reference_output"])


def assert_right(case: Case, output: Path, lines: list[str], dtypes: list[str], error: str, stderr: str) -> None:
    assert not error, error
    assert "AutoGraph" not in stderr and "WARNING:tensorflow" not in stderr, stderr
    right = reference(case)
    expected = leaves(case.output)
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


def test_scripts_of_every_mapper_alone_compute_the_reference(tmp_path: Path) -> None:
    known = {strategies.parse(strategy).mapper for _, strategy, _ in CELLS}
    further = [
        (next(each.slug for each in workloads.all() if strategies.offered(mapper, each)), mapper)
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
