"""Workloads are found, checked and described without TensorFlow; their NumPy parts agree with their metadata."""

import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - teaches NumPy bfloat16
import numpy as np
import pytest

import strategies
import workloads
from measure.subject import correctness
from strategies import script
from workloads import discovery
from workloads.case import Case
from workloads.spec import Leaf, Workload, leaves

CUBE = """
import numpy as np

from workloads.spec import Cost, Leaf, SizeParameter, Workload, tf


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
    inputs=inputs, element=element, rewrites={}, reference=reference, element_input=leaf, cost=cost,
)
"""


def cases() -> list[Case]:
    """Every workload with each value of its options in each of its dtypes, at a small size."""
    return [
        Case(workload, small(workload), dtype, options)
        for workload in workloads.all()
        for options in workload.choices()
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


def seen(array: np.ndarray) -> tuple[tuple[int | None, ...], str]:
    """The shape and the dtype of an array, of text and of rows of different lengths as well."""
    if array.dtype != object:
        return array.shape, array.dtype.name
    first = array.flat[0]
    return (array.shape, "string") if isinstance(first, bytes) else ((len(array), None), first.dtype.name)


def in_numpy(case: Case) -> bool:
    """True if the right results need no TensorFlow."""
    return case.workload.reference is not None or "numpy" in case.workload.rewrites


def right(case: Case) -> tuple[Any, tuple[np.ndarray, ...], Any]:
    """The inputs, the variables and the right results, of the script that computes these."""
    module: dict[str, Any] = {}
    exec(script.build_reference(case), module)
    return module["elems"], module.get("variables", ()), module["reference_output"]


def test_workloads_come_by_group_and_name_have_texts_for_a_person_and_pass_the_checks_of_a_persons_own() -> None:
    for workload in workloads.all():
        workloads.check(workload)
    for mapper in strategies.mappers():
        strategies.check(mapper)
    places = [(workloads.GROUPS.index(workload.group), workload.slug) for workload in workloads.all()]
    assert places == sorted(places)
    for workload in workloads.all():
        texts = (workload.title, workload.formula, workload.summary)
        assert all((*texts, *(parameter.help for parameter in (*workload.sizes, *workload.options))))
    with pytest.raises(discovery.DiscoveryError, match="workload 'cubism' is not known: choose one of image_sqrt, "):
        workloads.get("cubism")


def assert_described(output: Any, case: Case) -> None:
    assert [array.shape for array in arrays(output)] == [leaf.shape for leaf in leaves(case.output)], case
    assert all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays(output)), case


@pytest.mark.parametrize("batch", [3, 0])
def test_inputs_variables_and_reference_are_as_described(batch: int) -> None:
    for case in cases():
        case = replace(case, size={**case.size, "batch": max(batch, case.workload.sizes[0].least)})
        inputs, variables = (
            case.call(made) if made else () for made in (case.workload.inputs, case.workload.variables)
        )
        described, held = case.leaves(case.workload.element_input), case.leaves(case.workload.variable_leaves)
        assert list(map(seen, arrays(inputs))) == [((case.batch, *leaf.shape), leaf.dtype) for leaf in described], case
        assert [Leaf(array.shape, array.dtype.name) for array in variables] == held
        if not any(array.dtype == object for array in arrays(inputs)):  # bytes of text and ragged rows are forecast
            assert sum(array.nbytes for array in (*arrays(inputs), *variables)) == case.read_bytes, case
        if in_numpy(case):
            assert_described(right(case)[2], case)


def test_inputs_follow_from_the_seed() -> None:
    for case in cases():
        made = [pickle.dumps(replace(case, seed=seed).call(case.workload.inputs)) for seed in (1, 1, 2)]
        assert made[0] == made[1] != made[2], case


def test_numpy_rewrites_and_elements_compute_the_reference() -> None:
    for case in filter(in_numpy, cases()):
        inputs, variables, results = right(case)
        computed = []
        if rewrite := case.workload.rewrites.get("numpy"):
            computed.append(rewrite(inputs, *variables, **case.keywords(rewrite)))
        element = case.workload.numpy_element
        if element is not None and case.workload.use is None:
            slices = zip(*inputs, strict=True) if isinstance(inputs, tuple) else inputs
            outputs = [element(one, *variables, **case.keywords(element)) for one in slices]
            stacked = [np.stack(parts) for parts in zip(*map(arrays, outputs), strict=True)]
            computed.append(tuple(stacked) if isinstance(outputs[0], tuple) else stacked[0])
        for got in computed:
            expected, depth = dict(correctness.leaves_of(results)), case.cost.depth
            verdict, sentence = correctness.check(got, expected, expected=case.output, depth=depth)
            assert verdict.ok, sentence


@pytest.mark.usefixtures("tf")
def test_without_a_reference_the_element_function_of_float64_is_right() -> None:
    """As the reference in NumPy is: with options, text, rows of different lengths, variables, and no element."""
    for slug in ("segments", "top_k", "attention", "dp_sgd", "ragged_in", "decode"):
        for batch in (2, 0):
            workload = workloads.get(slug)
            without = {name: rewrite for name, rewrite in workload.rewrites.items() if name != "numpy"}
            case = Case(workload, {**small(workload), "batch": max(batch, workload.sizes[0].least)}, "float32")
            by_element = replace(case, workload=replace(workload, rewrites=without, numpy=None, reference=None))
            for ours, theirs in zip(*(arrays(right(each)[2]) for each in (by_element, case)), strict=True):
                assert ours.dtype == np.float64 and ours.shape == theirs.shape
                np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    for case in cases():
        if not in_numpy(case):
            assert_described(right(case)[2], case)


def test_the_variable_may_name_several_folders_and_single_files_which_are_loaded_again_when_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    cube = tmp_path / "a" / "cube.py"
    cube.write_text(CUBE)
    (tmp_path / "one.py").write_text(CUBE.replace('"cube"', '"one"'))
    (tmp_path / "unnamed.py").write_text(CUBE.replace('"cube"', '"unnamed"'))
    named = [tmp_path / "a", tmp_path / "one.py", tmp_path / f"{'long' * 99}.py", tmp_path / "missing.py"]
    monkeypatch.setenv("MAPBENCH_WORKLOADS", os.pathsep.join(map(str, named)))
    assert workloads.names()[-2:] == ("cube", "one") and workloads.get("cube").default_size() == {"batch": 4}
    (tmp_path / "a" / "other.py").write_text(CUBE.replace('slug="cube"', 'slug="image_sqrt"'))
    says = list(workloads.broken().values())
    assert any("slug 'image_sqrt' is taken already: choose another" in each for each in says)
    assert any(f"{named[-1]} cannot be loaded: FileNotFoundError" in each for each in says) and len(says) == 3
    cube.write_text(CUBE.replace('title="Cube"', 'title="The cube"'))
    assert workloads.get("cube").title == "The cube"
    cube.unlink()
    assert "cube" not in workloads.names()


def test_load_file_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "my-cube.py"
    for old, new, message in (
        ('slug="cube"', 'slug="Cube 3"', "slug 'Cube 3' is not valid: small letters, digits and _ are"),
        ('SizeParameter("batch",', 'SizeParameter("rows",', "cube has the sizes rows: one must be 'batch'"),
        ("presets={}", 'presets={"Big": {"batch": 101}}', "cube: Big has batch=101, which is no valid size"),
        ("element=element", "element=lambda x: x**3", "cannot be put into a script: a top-level 'def' can"),
        ("def element(", "def elems(", "name 'element' is not defined"),
        ("def element(x", "def strategy(x):\n    pass\n\n\nelement = strategy\n\n\ndef other(x", "is named 'strategy'"),
        ("Leaf((3,), dtype)", 'Leaf((3,), "flaot32")', "a Leaf has the dtype 'flaot32': choose one of bool, "),
        ("element_input=leaf", "element_input=cost", "is neither a Leaf nor a tuple, list or dict"),
        ("inputs(batch,", "inputs(rows,", "inputs asks for 'rows': it can have batch, dtype, seed"),
        ("WORKLOAD =", "SOMETHING =", "offers NoneType as WORKLOAD: a Workload is needed"),
    ):
        assert old in CUBE
        path.write_text(CUBE.replace(old, new))
        with pytest.raises(discovery.DiscoveryError) as caught:
            workloads.load_file(path)
        assert str(path) in str(caught.value) and message in str(caught.value)
