"""Workloads are found, checked and described without TensorFlow; their NumPy parts agree with their metadata."""

import os
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - teaches NumPy bfloat16
import numpy as np
import pytest

import workloads
from measure.subject import correctness
from workloads import discovery
from workloads.case import Case
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


def variants() -> list[tuple[Workload, dict[str, Any]]]:
    """Every workload with its default options, and with each further value of an option that makes a variant."""
    made: list[tuple[Workload, dict[str, Any]]] = []
    for workload in workloads.all():
        made.append((workload, {}))
        made += [(workload, {name: value}) for name, values in workload.variants.items() for value in values]
    return made


def cases() -> list[Any]:
    """Every variant in each of its dtypes, at a small size."""
    return [
        pytest.param(
            Case(workload, small(workload), dtype, options),
            id="-".join([workload.slug, *map(str, options.values()), dtype]),
        )
        for workload, options in variants()
        for dtype in workload.dtypes
    ]


def small(workload: Workload) -> dict[str, int]:
    """A size at which every parameter differs from the others, so that swapped axes show."""
    return {parameter.name: max(parameter.least, 3 + index) for index, parameter in enumerate(workload.sizes)}


def arrays(nest: Any) -> list[np.ndarray]:
    if isinstance(nest, np.ndarray | np.generic):
        return [np.asarray(nest)]
    parts = [nest[key] for key in sorted(nest)] if isinstance(nest, dict) else nest
    return [array for part in parts for array in arrays(part)]


def described(case: Case, function: Any) -> list[tuple[tuple[int | None, ...], str]]:
    return [((case.batch, *leaf.shape), leaf.dtype) for leaf in case.leaves(function)]


def seen(array: np.ndarray) -> tuple[tuple[int | None, ...], str]:
    """The shape and the dtype of an array, of text and of rows of different lengths as well."""
    if array.dtype != object:
        return array.shape, array.dtype.name
    first = array.flat[0]
    return (array.shape, "string") if isinstance(first, bytes) else ((len(array), None), first.dtype.name)


def bytes_of(array: np.ndarray) -> float:
    """The bytes of an array, where TensorFlow takes 24 for a string, and a number for each row of its own length."""
    if array.dtype != object:
        return array.nbytes
    return sum(24 if isinstance(part, bytes) else part.nbytes + 8 for part in array.flat)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and all(np.array_equal(x, y) for x, y in zip(a.flat, b.flat, strict=True))


def test_the_first_workloads_are_there() -> None:
    assert {"image_sqrt", "outer_product", "per_example_gradients"} <= set(workloads.names())
    assert [workload.slug for workload in workloads.all()] == list(workloads.names())
    assert all(workloads.get(slug).slug == slug for slug in workloads.names())


def test_the_projects_own_workloads_come_by_group_and_name() -> None:
    groups = list(dict.fromkeys(workload.group for workload in workloads.all()))
    assert groups[: len(workloads.GROUPS)] == list(workloads.GROUPS)
    for group in groups:
        names = [workload.slug for workload in workloads.all() if workload.group == group]
        assert names == sorted(names)


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


@pytest.mark.parametrize("batch", [None, 0, 1])
@pytest.mark.parametrize("case", cases())
def test_inputs_variables_and_reference_are_as_described(case: Case, batch: int | None) -> None:
    if batch is not None:
        least = next(size.least for size in case.workload.sizes if size.name == "batch")
        case = replace(case, size={**case.size, "batch": max(batch, least)})
    workload = case.workload
    inputs = case.call(workload.inputs)
    assert list(map(seen, arrays(inputs))) == described(case, workload.element_input)
    variables = () if workload.variables is None else case.call(workload.variables)
    assert [Leaf(array.shape, array.dtype.name) for array in variables] == case.leaves(workload.variable_leaves)
    is_ragged = any(leaf.is_ragged for leaf in case.leaves(workload.element_input))
    # Where lengths differ, bytes are forecast from their average.
    assert is_ragged or sum(map(bytes_of, arrays(inputs))) == case.input_bytes
    assert sum(array.nbytes for array in variables) == case.captured_bytes
    output = arrays(workload.reference(inputs, *variables, **case.keywords(workload.reference)))
    assert [array.shape for array in output] == [leaf.shape for leaf in leaves(case.output)]
    assert all(array.dtype == np.float64 and np.isfinite(array).all() for array in output)
    assert sum(array.nbytes for array in output) == case.reference_bytes


@pytest.mark.parametrize("case", cases())
def test_inputs_follow_from_the_seed(case: Case) -> None:
    first, again, other = (
        arrays(changed.call(case.workload.inputs)) for changed in (replace(case, seed=seed) for seed in (1, 1, 2))
    )
    assert all(map(same, first, again))
    assert not any(map(same, first, other))


def test_lengths_of_rows_are_on_average_what_is_said() -> None:
    workload = workloads.get("ragged_in")
    case = Case(workload, {"batch": 4_000, "width": 9}, "float32")
    rows = case.call(workload.inputs)
    assert sum(map(bytes_of, [rows])) == pytest.approx(case.input_bytes, rel=0.05)
    assert (min(map(len, rows)), max(map(len, rows))) == (1, 17)


def test_square_roots_are_of_positive_numbers_in_every_dtype() -> None:
    workload = workloads.get("image_sqrt")
    for dtype in workload.dtypes:
        case = Case(workload, workload.default_size(), dtype)
        assert case.call(workload.inputs).astype(np.float64).min() > 0.09


def test_reference_of_the_outer_product_by_hand() -> None:
    x = np.array([[[1.0, 2.0], [3.0, 4.0]]], dtype=np.float32)
    y = workloads.get("outer_product").reference(x)
    assert y[0, 1, 0, 0, 1] == 6.0 and y[0, 1, 1, 1, 0] == 12.0 and y.shape == (1, 2, 2, 2, 2)


def test_reference_of_the_gradients_is_the_slope_of_the_loss() -> None:
    workload = workloads.get("per_example_gradients")
    case = Case(workload, {"batch": 2, "features": 3}, "float64")
    x, label = case.call(workload.inputs)
    kernel, bias = case.call(workload.variables)
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
    assert Leaf((3,), "string").bytes == 72


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((3, "float32"), "a Leaf has the shape 3: a tuple of lengths is needed"),
        (((3, -1), "float32"), r"a Leaf has the shape \(3, -1\): a tuple of lengths is needed"),
        ((("3",), "float32"), r"a Leaf has the shape \('3',\): a tuple of lengths is needed"),
        (((3,), "flaot32"), "a Leaf has the dtype 'flaot32': choose one of bool, "),
    ],
)
def test_a_leaf_that_is_none_says_what_is_needed(arguments: tuple, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Leaf(*arguments)


def test_leaves_come_in_the_order_of_tf_nest() -> None:
    a, b, c = (Leaf((n,), "float32") for n in (1, 2, 3))
    assert leaves({"b": b, "a": (a, [c])}) == [a, c, b]


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
        str(folder / "broken.py"): f"{folder / 'broken.py'} cannot be loaded: ZeroDivisionError: division by zero "
        "(line 1)",
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


# --- in NumPy ---------------------------------------------------------------------------------------------------------


def data(case: Case) -> tuple[Any, tuple[np.ndarray, ...]]:
    """The inputs and the variables."""
    workload = case.workload
    return case.call(workload.inputs), () if workload.variables is None else case.call(workload.variables)


def assert_right(case: Case, got: Any) -> None:
    inputs, variables = data(case)
    verdict, sentence = correctness.check(
        got,
        case.workload.reference(inputs, *variables, **case.keywords(case.workload.reference)),
        expected=case.output,
        batch=None,
        depth=case.cost.depth,
    )
    assert verdict.ok, sentence


@pytest.mark.parametrize("case", cases())
def test_numpy_rewrites_compute_the_reference(case: Case) -> None:
    if "numpy" in case.workload.rewrites:
        inputs, variables = data(case)
        rewrite = case.workload.rewrites["numpy"]
        assert_right(case, rewrite(inputs, *variables, **case.keywords(rewrite)))


def _slice(inputs: Any, place: int) -> Any:
    if isinstance(inputs, tuple):
        return tuple(_slice(part, place) for part in inputs)
    return inputs[place]


@pytest.mark.parametrize("case", cases())
def test_numpy_elements_compute_the_reference(case: Case) -> None:
    element = case.workload.numpy_element
    if element is not None and case.workload.use is None:
        inputs, variables = data(case)
        outputs = [
            element(
                _slice(inputs, place),
                *variables,
                **case.keywords(element),
            )
            for place in range(case.batch)
        ]
        stacked = [np.stack(parts) for parts in zip(*map(arrays, outputs), strict=True)]
        assert_right(case, tuple(stacked) if isinstance(outputs[0], tuple) else stacked[0])


# --- variants, and what is done with a mapped function ----------------------------------------------------------------


def test_a_variant_replaces_what_it_names_and_nothing_else() -> None:
    workload = workloads.get("per_example_gradients")
    assert workload.variant() is workload and workload.variant({"model": "dense"}) is workload
    case = Case(workload, {"batch": 2, "features": 9}, "float32", {"model": "cnn"})
    assert set(case.workload.rewrites) == {"jacobian"} and case.workload.inputs is workload.inputs
    assert [leaf.shape for leaf in leaves(case.output)] == [(2, 3, 1, 8), (2, 8), (2, 8, 1), (2, 1)]


# --- what a case knows ------------------------------------------------------------------------------------------------


def test_a_case_has_its_options_applied_whichever_are_given() -> None:
    workload, size = workloads.get("per_example_gradients"), {"batch": 2, "features": 9}
    assert Case(workload, size, "float32").options == {"model": "dense"}
    case = Case(workload, size, "float32", {"model": "cnn"})
    assert "batched" not in case.workload.rewrites
    larger = replace(case, size={"batch": 4, "features": 9})
    assert larger.workload == case.workload and larger.output_bytes == 2 * case.output_bytes


def test_bytes_of_a_case_are_exact() -> None:
    def bytes_of(slug: str, size: dict[str, int], dtype: str) -> tuple[int, int, int]:
        case = Case(workloads.get(slug), size, dtype)
        assert case.read_bytes == case.input_bytes + case.captured_bytes
        assert case.tensor_bytes == case.read_bytes + case.output_bytes
        return case.input_bytes, case.output_bytes, case.captured_bytes

    size = {"batch": 100, "side": 32}
    assert bytes_of("outer_product", size, "float32") == (409_600, 419_430_400, 0)
    assert bytes_of("outer_product", size, "float64") == (819_200, 2 * 419_430_400, 0)
    assert bytes_of("outer_product", size, "bfloat16") == (204_800, 419_430_400 // 2, 0)
    assert bytes_of("per_example_gradients", {"batch": 10, "features": 32}, "float32") == (1_320, 1_320, 132)
    assert Case(workloads.get("outer_product"), size, "bfloat16").reference_bytes == 2 * 419_430_400


def test_the_output_of_a_sum_has_no_batch() -> None:
    case = Case(workloads.get("dp_sgd"), {"batch": 7, "features": 3, "hidden": 2}, "float32")
    assert [leaf.shape for leaf in leaves(case.output)] == [(3, 2), (2, 1)]
    assert leaves(Case(workloads.get("square"), {"batch": 7}, "float32").output) == [Leaf((7,), "float32")]


def test_arguments_are_those_that_the_function_names() -> None:
    case = Case(workloads.get("outer_product"), {"batch": 2, "side": 3}, "float32", seed=5)
    assert case.arguments(case.workload.inputs) == {"batch": 2, "side": 3, "dtype": "float32", "seed": 5}
    assert case.arguments(case.workload.cost) == {"side": 3}

    def wants(batch: int, depth: int) -> None: ...

    with pytest.raises(TypeError, match="asks for 'depth': it can have batch, side, dtype, seed"):
        case.arguments(wants)


def test_keywords_are_what_a_function_names_after_its_star() -> None:
    case = Case(workloads.get("top_k"), {"batch": 2, "width": 16, "k": 3}, "float32")
    assert case.keywords(case.workload.element) == {"k": 3}
    assert case.keywords(case.workload.inputs) == {}

    def wants(rows: Any, *, depth: int) -> None: ...

    with pytest.raises(TypeError, match="top_k: wants asks for 'depth': it can have batch, width, k, dtype, seed"):
        case.keywords(wants)


def test_limits_are_matched_by_pattern() -> None:
    workload = replace(
        workloads.get("square"), unsupported={"vectorized_map.*": "It has no form.", "*.xla": "It cannot be compiled."}
    )
    assert workload.why_unsupported("vectorized_map.xla") == "It has no form."
    assert workload.why_unsupported("loop.xla") == "It cannot be compiled."
    assert workload.why_unsupported("loop.eager") is None


def test_philox_is_what_its_authors_publish() -> None:
    """The known answers of Random123 for philox4x32-10."""
    philox = next(each for each in workloads.get("random").helpers if each.__name__ == "philox")
    ones = np.full(4, 0xFFFFFFFF, np.uint64)
    pi = np.array([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], np.uint64)
    key = np.array([0xA4093822, 0x299F31D0], np.uint64)
    answers = [
        (np.zeros(4, np.uint64), np.zeros(2, np.uint64), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (ones, ones[:2], [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (pi, key, [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    ]
    for counter, of_key, right in answers:
        assert philox(counter, of_key).tolist() == right


def test_examples_are_clipped_on_both_sides_of_the_limit() -> None:
    """Else the workload would not show that each example's own gradient is needed."""
    workload = workloads.get("dp_sgd")
    case = Case(workload, workload.default_size(), "float32")
    x, label = (array.astype(np.float64) for array in case.call(workload.inputs))
    first, second = (array.astype(np.float64) for array in case.call(workload.variables))
    activation = np.tanh(x @ first)
    residual = activation @ second - label
    back = (residual @ second.T) * (1 - activation**2)
    lengths = np.sqrt((activation**2).sum(1) * (residual**2).sum(1) + (x**2).sum(1) * (back**2).sum(1))
    assert 0.2 < (lengths > 1).mean() < 0.8
