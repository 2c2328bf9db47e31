"""Scripts of functions of a person's own: their code as it is, with what every script needs around it."""

import ast
from dataclasses import replace

import pytest
from msgspec.structs import replace as changed

import workloads
from strategies import own_script, script
from strategies.own_script import ScriptError
from workloads import functions
from workloads.case import Case
from workloads.functions import Facts, Given, OwnFunction
from workloads.spec import Leaf

CODE = '''"""Mine."""
from __future__ import annotations

import numpy as np

HALF = 0.5


def numbers(batch=4, side=3, seed=0):
    return np.random.default_rng(seed).random((batch, side))


def half(x):
    return x * HALF
'''
GIVEN = Given(code=CODE, function="half", elems="numbers")
FACTS = Facts(
    size={"batch": 4, "side": 3},
    parameters=["batch", "side", "seed"],
    is_called=True,
    element=["leaf", Leaf((3,), "float64")],
    result=["leaf", Leaf((3,), "float64")],
    dtype="float64",
    reference="own",
)


def case(given: Given = GIVEN, facts: Facts = FACTS) -> Case:
    slug = functions.add(OwnFunction(given=given, facts=facts))
    return Case(workloads.get(slug), {"batch": 8, "side": 3}, "float64", seed=5)


def test_a_script_holds_the_code_maps_its_function_and_seeds_what_it_draws():
    text = script.build(case(), "map_fn.graph")
    body = ast.parse(text).body
    # Imports from the future are only valid before anything else.
    assert isinstance(body[1], ast.ImportFrom) and body[1].module == "__future__"
    assert text.count("from __future__") == 1
    assert "def half(x):\n    return x * HALF\n" in text
    assert "elems = with_batch(numbers(batch=8, side=3, seed=5), 8)\n" in text
    assert "return map_with_map_fn(half, elems, signature)" in text
    # It seeds what the code draws, and no more: the text of Keras and of what is pickled does not tell what that is.
    plain = CODE.replace("np.random.default_rng(seed).random((batch, side))", "np.ones((8, 3))")
    seeds = "random.seed(5)\nnp.random.seed(5)\ntf.random.set_seed(5)"
    for code, is_seeded in ((plain, False), (f"{plain}\n# tf.keras\n", True), (f"{plain}\nimport cloudpickle\n", True)):
        assert (seeds in script.build(case(changed(GIVEN, code=code)), "loop.eager")) == is_seeded


def test_right_results_come_from_the_function_or_from_what_was_given_as_a_rewrite_does():
    mapped = "    return map_with_loop(half, elems, signature)\n\n\nreference_output = in_float64(strategy(elems))\n"
    own = script.build_reference(case())
    assert mapped in own and "elems = in_float64(elems)" not in own
    functions._derived.clear()
    wider = script.build_reference(case(facts=changed(FACTS, reference="float64")))
    assert mapped in wider and "elems = in_float64(elems)\n" in wider
    given = case(changed(GIVEN, reference="half", batched="half"), changed(FACTS, reference="given"))
    assert "reference_output = half(" in script.build_reference(given)
    assert "return half(elems)" in script.build(given, "batched.graph")


def test_sparse_results_are_made_dense_and_named_tuples_plain_in_every_script():
    leaf = ["leaf", Leaf((3,), "float64")]
    for result, made, signature in (
        (["leaf", Leaf((3,), "float64", sparse=True)], "made_dense", "tf.TensorSpec([3], tf.float64)"),
        (["named", [leaf]], "as_tuples", "(tf.TensorSpec([3], tf.float64),)"),
    ):
        functions._derived.clear()
        ours = case(facts=changed(FACTS, result=result))
        mapped, reference = script.build(ours, "map_fn.graph"), script.build_reference(ours)
        for text in (mapped, reference):
            assert f"def mapped_fn(x):\n    return {made}(half(x))\n" in text and text.count(f"def {made}(") == 1
        assert f"signature = {signature}\n" in mapped
        assert "return map_with_map_fn(mapped_fn, elems, signature)" in mapped
        assert "return map_with_loop(mapped_fn, elems, signature)" in reference


def test_of_many_elements_some_have_a_reference():
    many = replace(case(), size={"batch": 100_000, "side": 3})
    assert script.compared(many) == 1_000 and script.compared(case()) == 8
    assert "compared = np.linspace(0, 99999, 1000).round().astype(int)\n" in script.build_reference(many)
    assert "compared" not in script.build_reference(case()) + script.build(many, "map_fn.graph")


def test_facts_are_those_of_the_code_and_the_size():
    one, other = GIVEN.slug, changed(GIVEN, code=CODE.replace("0.5", "0.25")).slug
    assert one != other and one.startswith("half_")
    first = case()
    larger = changed(FACTS, size={"batch": 1, "side": 9}, element=["leaf", Leaf((9,), "float64")])
    functions.add(OwnFunction(given=GIVEN, facts=larger))
    assert (first.input_bytes, replace(first, size={"batch": 8, "side": 9}).input_bytes) == (8 * 3 * 8, 8 * 9 * 8)


def test_names_that_do_not_fit_are_refused():
    for code, sentence in (
        ("def half(x): return x", "the code has no 'numbers': it defines half"),
        ("numbers = half = tensors = 1", "the code defines 'tensors': choose another name"),
        ("numbers = 1\nhalf = (", r"^line 2: '\(' was never closed$"),
        ("numbers = half = 1\0", "^(source code|Python cannot)"),
        (f"half = {'-' * 20_000}1", "^Python cannot parse the code: "),
    ):
        with pytest.raises(ScriptError, match=sentence):
            own_script.check(changed(GIVEN, code=code))
    own_script.check(changed(GIVEN, code="from somewhere import *"))
