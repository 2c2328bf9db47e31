"""Workloads are found, checked and described without TensorFlow; their NumPy parts agree with their metadata."""

import os
import textwrap
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - teaches NumPy bfloat16
import numpy as np
import pytest

import workloads
from workloads import discovery
from workloads.spec import Leaf, Workload, leaves

CUBE = """
from typing import TYPE_CHECKING

import numpy as np

from workloads.spec import Cost, Leaf, SizeParameter, Workload

if TYPE_CHECKING:
    import tensorflow as tf


def inputs(batch, dtype, seed):
    return np.random.default_rng(seed).uniform(size=(batch, 3)).astype(dtype)


def element(x):
    return x**3


def reference(x):
    return x.astype(np.float64) ** 3


def leaf(dtype):
    return Leaf((3,), dtype)


def cost():
    return Cost(flops=6, ops=1)


WORKLOAD = Workload(
    slug="cube", title="Cube", group="Elementwise", formula="y = x³", summary="A workload in one file.",
    sizes=(SizeParameter("batch", 4, 1, 100, "rows"),), presets={}, dtypes=("float32",),
    inputs=inputs, element=element, rewrites={}, reference=reference,
    element_input=leaf, element_output=leaf, cost=cost,
)
"""


def cases() -> list[Any]:
    return [
        pytest.param(workload, dtype, id=f"{workload.slug}-{dtype}")
        for workload in workloads.all()
        for dtype in workload.dtypes
    ]


def small(workload: Workload) -> dict[str, int]:
    """A size at which every parameter differs from the others, so that swapped axes show."""
    return {parameter.name: max(parameter.least, 3 + index) for index, parameter in enumerate(workload.sizes)}


def arrays(nest: Any) -> list[np.ndarray]:
    if isinstance(nest, np.ndarray):
        return [nest]
    parts = [nest[key] for key in sorted(nest)] if isinstance(nest, dict) else nest
    return [array for part in parts for array in arrays(part)]


def described(nest: Any, batch: int) -> list[tuple[tuple[int, ...], str]]:
    return [((batch, *leaf.shape), leaf.dtype) for leaf in leaves(nest)]


def test_the_first_workloads_are_there() -> None:
    assert {"image_sqrt", "outer_product", "per_example_gradients"} <= set(workloads.names())
    assert [workload.slug for workload in workloads.all()] == list(workloads.names())
    assert all(workloads.get(slug).slug == slug for slug in workloads.names())


def test_an_unknown_workload_is_a_key_error_that_names_the_known_ones() -> None:
    with pytest.raises(KeyError) as caught:
        workloads.get("cubism")
    assert str(caught.value).startswith("workload 'cubism' is not known: choose one of image_sqrt, ")


@pytest.mark.parametrize("workload", workloads.all(), ids=workloads.names())
def test_texts_help_a_person(workload: Workload) -> None:
    for text in (workload.title, workload.group, workload.formula, workload.summary):
        assert text == text.strip() != ""
    assert all(parameter.help for parameter in (*workload.sizes, *workload.options))
    assert workload.dtypes[0] == "float32"


@pytest.mark.parametrize(("workload", "dtype"), cases())
def test_inputs_variables_and_reference_are_as_described(workload: Workload, dtype: str) -> None:
    size = small(workload)
    inputs = workload.call(workload.inputs, size, dtype)
    assert [(array.shape, array.dtype.name) for array in arrays(inputs)] == described(
        workload.call(workload.element_input, size, dtype), size["batch"]
    )
    variables: tuple[np.ndarray, ...] = ()
    if workload.variables is not None and workload.variable_leaves is not None:
        variables = workload.call(workload.variables, size, dtype)
        assert [Leaf(array.shape, array.dtype.name) for array in variables] == leaves(
            workload.call(workload.variable_leaves, size, dtype)
        )
    output = arrays(workload.reference(inputs, *variables))
    expected = described(workload.call(workload.element_output, size, dtype), size["batch"])
    assert [array.shape for array in output] == [shape for shape, _ in expected]
    assert all(array.dtype == np.float64 and np.isfinite(array).all() for array in output)


@pytest.mark.parametrize(("workload", "dtype"), cases())
def test_inputs_follow_from_the_seed(workload: Workload, dtype: str) -> None:
    first, again, other = (
        arrays(workload.call(workload.inputs, small(workload), dtype, seed=seed)) for seed in (1, 1, 2)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_square_roots_are_of_positive_numbers_in_every_dtype() -> None:
    workload = workloads.get("image_sqrt")
    for dtype in workload.dtypes:
        assert workload.call(workload.inputs, workload.default_size(), dtype).astype(np.float64).min() > 0.09


def test_reference_of_the_outer_product_by_hand() -> None:
    x = np.array([[[1.0, 2.0], [3.0, 4.0]]], dtype=np.float32)
    y = workloads.get("outer_product").reference(x)
    assert y[0, 1, 0, 0, 1] == 6.0 and y[0, 1, 1, 1, 0] == 12.0 and y.shape == (1, 2, 2, 2, 2)


def test_reference_of_the_gradients_is_the_slope_of_the_loss() -> None:
    workload = workloads.get("per_example_gradients")
    size = {"batch": 2, "features": 3}
    x, label = (array.astype(np.float64) for array in workload.call(workload.inputs, size, "float64"))
    kernel, bias = workload.call(workload.variables, size, "float64")
    by_kernel, by_bias = workload.reference((x, label), kernel, bias)

    def losses(kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
        return 0.5 * (label - x @ kernel - bias)[:, 0] ** 2

    # The loss is quadratic, so central differences are exact up to rounding at any step.
    for feature in range(3):
        step = np.zeros_like(kernel)
        step[feature] = 0.5
        slope = losses(kernel + step, bias) - losses(kernel - step, bias)
        np.testing.assert_allclose(by_kernel[:, feature, 0], slope, rtol=1e-12)
    np.testing.assert_allclose(by_bias[:, 0], losses(kernel, bias + 0.5) - losses(kernel, bias - 0.5), rtol=1e-12)


def test_bytes_of_a_leaf() -> None:
    assert Leaf((3, 5), "float32").bytes == 60
    assert Leaf((3, 5), "bfloat16").bytes == 30
    assert Leaf((), "float64").bytes == 8


def test_leaves_come_in_the_order_of_tf_nest() -> None:
    a, b, c = (Leaf((n,), "float32") for n in (1, 2, 3))
    assert leaves({"b": b, "a": (a, [c])}) == [a, c, b]


def test_arguments_are_those_that_the_function_names() -> None:
    workload = workloads.get("outer_product")
    size = {"batch": 2, "side": 3}
    assert workload.arguments(workload.inputs, size, "float32", seed=5) == {
        "batch": 2,
        "side": 3,
        "dtype": "float32",
        "seed": 5,
    }
    assert workload.arguments(workload.cost, size, "float32") == {"side": 3}

    def wants(batch: int, depth: int) -> None: ...

    with pytest.raises(TypeError, match="asks for 'depth': it can have batch, side, dtype, seed"):
        workload.arguments(wants, size, "float32")


# --- workloads outside of the package ------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAPBENCH_WORKLOADS", str(tmp_path))
    return tmp_path


def test_one_file_in_a_named_folder_is_enough(folder: Path) -> None:
    (folder / "cube.py").write_text(CUBE)
    assert workloads.names()[-1] == "cube"
    assert workloads.get("cube").default_size() == {"batch": 4}
    (folder / "cube.py").unlink()
    assert "cube" not in workloads.names()


def test_the_variable_may_name_several_folders_and_single_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "cube.py").write_text(CUBE)
    (tmp_path / "one.py").write_text(CUBE.replace('"cube"', '"one"'))
    (tmp_path / "unnamed.py").write_text(CUBE.replace('"cube"', '"unnamed"'))
    monkeypatch.setenv("MAPBENCH_WORKLOADS", os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "one.py")]))
    assert workloads.names()[-2:] == ("cube", "one")


def test_an_edited_file_is_loaded_again(folder: Path) -> None:
    (folder / "cube.py").write_text(CUBE)
    assert workloads.get("cube").title == "Cube"
    (folder / "cube.py").write_text(CUBE.replace('title="Cube"', 'title="The cube"'))
    assert workloads.get("cube").title == "The cube"


def test_a_broken_file_costs_only_itself(folder: Path) -> None:
    (folder / "broken.py").write_text("WORKLOAD = 1 / 0\n")
    (folder / "cube.py").write_text(CUBE)
    (folder / "other.py").write_text(CUBE.replace('slug="cube"', 'slug="image_sqrt"'))
    assert workloads.names()[-1] == "cube"
    assert workloads.broken() == {
        str(folder / "broken.py"): f"{folder / 'broken.py'} cannot be loaded: ZeroDivisionError: division by zero",
        str(folder / "other.py"): f"{folder / 'other.py'}: slug 'image_sqrt' is taken already: choose another",
    }
    (folder / "broken.py").unlink()
    (folder / "other.py").unlink()
    assert workloads.broken() == {}


def test_a_named_file_that_is_missing_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing.py"
    monkeypatch.setenv("MAPBENCH_WORKLOADS", str(missing))
    assert workloads.broken() == {str(missing): f"{missing} cannot be read: No such file or directory"}


def test_load_file_returns_the_workload(tmp_path: Path) -> None:
    path = tmp_path / "cube.py"
    path.write_text(CUBE)
    assert workloads.load_file(path).slug == "cube"
    assert "cube" not in workloads.names()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('slug="cube"', 'slug="Cube 3"', "slug 'Cube 3' is not valid: small letters, digits and _ are"),
        ('SizeParameter("batch",', 'SizeParameter("rows",', "cube has the sizes rows: one must be 'batch'"),
        ('"batch", 4, 1, 100', '"batch", 4, 5, 100', "the default of batch is 4: it must lie from 5 to 100"),
        ("presets={}", 'presets={"Big": {"batch": 101}}', "preset 'Big' has batch=101, which is no valid size"),
        ('dtypes=("float32",)', "dtypes=()", "cube has no dtypes: at least one is needed"),
        ("element=element", "element=lambda x: x**3", "cannot be put into a script: a top-level 'def' can"),
        ("def element(", "def elems(", "name 'element' is not defined"),
        ("element_output=leaf", "element_output=cost", "cube: cost: Cost(flops=6,"),
        ("cost=cost", "cost=leaf", "cube: leaf gives Leaf("),
        ("inputs(batch,", "inputs(rows,", "inputs asks for 'rows': it can have batch, dtype, seed"),
        ("WORKLOAD =", "SOMETHING =", "offers NoneType as WORKLOAD: a Workload is needed"),
        ("rewrites={}", "rewrites={}, variables=inputs", "variables and variable_leaves go together"),
    ],
)
def test_load_file_says_what_is_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in CUBE
    path = tmp_path / "cube.py"
    path.write_text(CUBE.replace(old, new))
    with pytest.raises(discovery.DiscoveryError) as caught:
        workloads.load_file(path)
    assert str(path) in str(caught.value) and message in str(caught.value)


def test_a_function_may_not_take_a_name_that_scripts_use(tmp_path: Path) -> None:
    path = tmp_path / "cube.py"
    path.write_text(CUBE.replace("def element(", "def strategy(").replace("element=element", "element=strategy"))
    with pytest.raises(
        discovery.DiscoveryError, match="a function is named 'strategy': choose a name other than np, tf"
    ):
        workloads.load_file(path)


def test_load_file_names_a_file_that_is_not_python(tmp_path: Path) -> None:
    path = tmp_path / "cube.txt"
    path.write_text(textwrap.dedent(CUBE))
    with pytest.raises(
        discovery.DiscoveryError, match=r"is not a Python file: a file whose name ends in \.py is needed"
    ):
        workloads.load_file(path)
