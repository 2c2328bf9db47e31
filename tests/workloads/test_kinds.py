"""Files with elements and results that are no dense tensors of numbers: measured and compared like any other."""

from pathlib import Path

import pytest

import strategies
import workloads
from measure.engine.bench import Settings
from measure.engine.host_launcher import HostLauncher
from measure.model.request import parse
from tests.grid import untimed
from tests.workloads.test_workloads import CUBE
from workloads.case import Case
from workloads.spec import Leaf

# Numbers as text, and in float32, and which of them are above a half.
PARTS = """def element(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        taken = tf.gather(x, [0, 0, 2])
    return {
        "text": tf.strings.as_string(x, precision=3),
        "sparse": tf.sparse.from_dense(tf.nn.relu(x - 0.5)),
        "slices": tape.gradient(taken, x),
    }


def reference(x):
    text = np.array([[b"%.3f" % value for value in row] for row in x])
    slices = np.tile([2.0, 0.0, 1.0], (len(x), 1))
    return {"text": text, "sparse": np.maximum(x.astype(np.float64) - 0.5, 0), "slices": slices}


def made(dtype):
    sparse = Leaf((3,), dtype, sparse=True)
    return {"text": Leaf((3,), "string"), "sparse": sparse, "slices": sparse}


def leaf(dtype):"""
KINDS = CUBE.replace("def element(x):\n    return x**3\n\n\n", "")
KINDS = KINDS.replace("def reference(x):\n    return x.astype(np.float64) ** 3\n\n\n", "")
KINDS = KINDS.replace("def leaf(dtype):", PARTS).replace("element_output=leaf", "element_output=made")


# Rows of different lengths, their sums, and their positive numbers.
ROWS = """def inputs(batch, dtype, seed):
    rng = np.random.default_rng(seed)
    rows = np.empty(batch, object)
    rows[:] = [rng.standard_normal(index % 4).astype(dtype) for index in range(batch)]
    return rows


def element(x):
    return {"sum": tf.reduce_sum(x), "positive": tf.boolean_mask(x, x > 0)}


def reference(x):
    positive = np.empty(len(x), object)
    positive[:] = [row[row > 0].astype(np.float64) for row in x]
    return {"sum": np.array([row.astype(np.float64).sum() for row in x]), "positive": positive}


def made(dtype):
    return {"sum": Leaf((), dtype), "positive": Leaf((None,), dtype, length=0.75)}


def leaf(dtype):
    return Leaf((None,), dtype, length=1.5)


def cost():"""
RAGGED = CUBE[: CUBE.index("def inputs")] + ROWS + CUBE[CUBE.index("def cost():") + len("def cost():") :]
RAGGED = RAGGED.replace("element_output=leaf", "element_output=made")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "workloads").mkdir()
    monkeypatch.setenv("MAPBENCH_HOME", str(tmp_path))
    return tmp_path


def test_text_and_sparse_results_are_compared(home: Path, host: HostLauncher) -> None:
    (home / "workloads" / "cube.py").write_text(KINDS)
    asked = parse({"workload": "cube", "strategies": ["loop.eager", "map_fn.graph", "map_fn.xla"]})
    run = untimed(asked, host, Settings(timeout_floor_s=60.0))
    right = [item.correctness and item.correctness.ok for item in run.measurements]
    assert right == [True, True, None], [item.error for item in run.measurements]
    assert run.measurements[2].outcome == "unsupported"


def test_rows_of_different_lengths_are_compared(home: Path, host: HostLauncher) -> None:
    (home / "workloads" / "cube.py").write_text(RAGGED)
    works = ["loop.eager", "map_fn.graph", "dataset.graph"]
    run = untimed(parse({"workload": "cube", "strategies": works}), host, Settings(timeout_floor_s=60.0))
    right = [item.correctness and item.correctness.ok for item in run.measurements]
    assert right == [True, True, True], [item.error for item in run.measurements]


def test_bytes_are_those_of_lengths_on_average(home: Path) -> None:
    (home / "workloads" / "cube.py").write_text(RAGGED)
    case = Case(workloads.get("cube"), {"batch": 8}, "float32")
    # Of each row its numbers, and the number that says where it ends.
    assert case.input_bytes == 8 * (1.5 * 4 + 8)
    assert (Leaf((8, None), "uint8", length=1.25).bytes, Leaf((None, 2, None), "int8", length=3).bytes) == (74, 74)
    assert case.output_bytes == 8 * 4 + 8 * (0.75 * 4 + 8)


def test_lengths_that_differ_are_nothing_for_some(home: Path) -> None:
    (home / "workloads" / "cube.py").write_text(RAGGED)
    cube = workloads.get("cube")
    why = {item.slug: strategies.unsupported(item, cube) for item in strategies.all_strategies(cube)}
    assert {slug for slug, said in why.items() if said is None} == {
        *("loop.eager", "loop.graph", "loop.xla", "loop_compiled.eager", "loop_compiled.graph", "loop_compiled.xla"),
        *("map_fn.eager", "map_fn.graph", "dataset.eager", "dataset.graph"),
    }
    assert why["autograph.graph"] == "AutoGraph loop stacks results of one shape, and the lengths of these differ"


@pytest.mark.parametrize(("shape", "length"), [((None,), None), ((2,), 2.0)])
def test_an_axis_without_a_length_has_an_average(shape: tuple[int | None, ...], length: float | None) -> None:
    with pytest.raises(ValueError, match="None goes with a length"):
        Leaf(shape, "float32", length=length)


def test_text_is_nothing_for_xla(home: Path) -> None:
    (home / "workloads" / "cube.py").write_text(KINDS)
    cube = workloads.get("cube")
    why = {slug: strategies.unsupported(strategies.parse(slug), cube) for slug in ("map_fn.graph", "map_fn.xla")}
    assert why == {"map_fn.graph": None, "map_fn.xla": "XLA takes no text, which the results are"}
