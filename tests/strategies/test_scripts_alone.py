"""The script of every strategy is whole: alone in an interpreter it computes what the reference says."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import strategies
import workloads
from strategies import script
from strategies.spec import MODES
from tests import warm
from tests.deadlines import RUN_S
from tests.strategies.test_scripts import small_case
from tests.workloads.test_workloads import arrays
from workloads.case import Case
from workloads.spec import leaves

pytestmark = pytest.mark.usefixtures("live")

# A strategy of each mapper, each mode, each dtype, and cells where a script has parts of its own.
CELLS = [
    ("image_sqrt", "loop.eager", "float64"),
    ("image_sqrt", "vectorized_map.graph", "float16"),
    ("image_sqrt", "map_fn.xla", "bfloat16"),
    *(
        (slug, strategy, "float32")
        for slug, strategy in (
            ("outer_product", "vectorized_map.xla"),
            ("outer_reduce", "while_loop.graph"),
            ("branch", "autograph.graph"),
            ("trig_exp", "loop_compiled.eager?jit_compile=true"),
            ("per_example_gradients", "dataset.graph"),
            ("per_example_gradients", "dataset_batched.graph?chunk=2"),
            ("top_k", "chunked.xla?chunk=2"),
            ("inner_while", "numpy_function.graph"),
            ("top_k", "numpy.eager"),
            ("attention", "numpy_batched.eager"),
            ("per_example_gradients", "jacobian.graph"),
            ("batch_jacobian", "tape_batch_jacobian.graph"),
            ("gradient_through_map", "recompute.graph"),
            ("dp_sgd", "accumulate.graph?chunk=2"),
            ("variable_shape", "ragged.eager"),
            ("square", "batched.xla"),
            ("counter", "map_fn.graph"),
            ("random", "map_fn.graph"),
        )
    ),
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
    # A mapper that is not named above is run on the first workload that has what it needs.
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
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    # It finds nothing but the standard library and what is installed.
    result = warm.run(
        DRIVER,
        json.dumps(files),
        folder=tmp_path / "empty",
        environment=environment,
        isolated=True,
        timeout_s=4 * RUN_S,
    )
    assert result.returncode == 0, result.stderr
    said = list(map(json.loads, result.stdout.splitlines()))
    stderr = result.stderr.split("END OF A SCRIPT")
    assert len(said) == len(cases), result.stderr
    for (case, _), (_, output), each, err in zip(cases, files, said, stderr, strict=False):
        assert_right(case, Path(output), *each, err)
